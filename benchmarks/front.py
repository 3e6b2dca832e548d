"""The front: people recognised by the strongest attacker against what each kind of analyst keeps.

    python benchmarks/front.py gazecom --out results/front-gazecom
        [--known results/gazecom/parts/gazecom results/clock-gazecom/parts/gazecom-windows ...]
        [--splits 10] [--draws 2] [--workers 1] [--drawn-only] [--page docs/results/front.md]

The mechanisms, attackers and utilities are those of the study `front-gazecom` (or
`front-eyenavgs`). What the folders of `--known` hold already (of the same recordings, with the same
battery and at least as many splits) is not computed again; what is computed goes to `--out`, and a
run that was stopped goes on there. Then the figure is drawn, `front-gazecom.png` beside the page,
the tables go between the page's marks, and which releases another one beats is said.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

import gazeveil
from front_pictures import dominated, fronts
from gazeveil.evaluation.report.charts import drawing
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import run
from gazeveil.evaluation.study import NONE, Study, mechanism_text
from gazeveil.papers.study_file import read
from lines import markdown, put_into

STUDIES = Path(gazeveil.__file__).parent / "papers" / "studies"

#: One panel and one column each: utility, metric, heading of the column, digits.
PANELS = (
    ("saliency", "kl", "maps: KL", 3),
    ("dwell", "distribution_error", "dwell: distribution", 2),
    ("events:by=stimulus", "fixation_duration_wasserstein_s", "fixation durations (s)", 3),
    ("scanpath", "similarity", "scanpaths: similarity", 2),
    ("signal", "median_error_deg", "samples: median (deg)", 1),
    ("prediction:target=released", "error_over_hold", "prediction: error over hold", 3),
)

#: Columns of the second table.
FURTHER = (
    ("signal", "rmse_deg", "RMS (deg)", 1),
    ("signal", "p90_error_deg", "90 % (deg)", 1),
    ("signal", "kept_share", "samples kept", 2),
    ("dwell", "mean_error", "dwell: mean", 2),
    ("dwell", "sd_error", "SD", 2),
    ("dwell", "quantile_error", "quantiles", 2),
    ("events:by=stimulus", "saccade_amplitude_wasserstein_deg", "saccade amplitudes (deg)", 2),
    ("events:by=stimulus", "fixation_rate_error_hz", "fixation rate (Hz)", 2),
    ("events:by=stimulus", "main_sequence_slope_error", "main sequence, slope", 2),
    ("scanpath", "structure_correlation", "who looks alike: r", 2),
)


def computed(given: argparse.Namespace) -> list[Results]:
    """All results, those that were missing computed first."""
    held = [Results.read(folder) for folder in given.known]
    wanted = {"use": given.draws, "recognition": given.splits, "white-box": given.splits}
    for part in read(STUDIES / f"front-{given.cohort}.toml").parts:
        kind = part.label.rpartition(", ")[2]
        study = replace(part.study(), repetitions=wanted[kind])
        folder = given.out / kind
        if not given.drawn_only:
            there = {r for results in held for r in releases(results, kind, study.repetitions)}
            missing = tuple(m for m in study.mechanisms if str(m) not in there)
            if missing:
                run(replace(study, mechanisms=missing), folder, given.workers, said(kind))
        if (folder / "results.parquet").exists():
            held.append(Results.read(folder))
    return held


def said(kind: str) -> object:
    """A line for every tenth of the way."""

    def progress(done: int, cells: int) -> None:
        if cells and done * 10 // cells > (done - 1) * 10 // cells:
            print(f"{kind}: {done} of {cells} cells", flush=True)

    return progress


def releases(results: Results, kind: str, repetitions: int) -> set[str]:
    """Texts of the releases of which some results have everything of a kind."""
    column = "utility" if kind == "use" else "attack"
    frame = results.frame.filter(pl.col(column).is_not_null(), pl.col("repetitions") >= repetitions)
    if kind == "use":
        frame = frame.filter(pl.col("utility").is_in([u for u, *_ in PANELS]))
        complete = frame.group_by("mechanism", "reading", "parameters").agg(
            pl.col("utility").n_unique()
        )
        frame = complete.filter(pl.col("utility") == len({u for u, *_ in PANELS}))
    return {
        mechanism_text(m, r or "", p or "")
        for m, r, p in frame.select("mechanism", "reading", "parameters").unique().rows()
    }


def together(held: Iterable[Results], study: Study) -> Findings:
    """Results of several runs as one: attacks and utilities, of each release or
    attacker what comes first.
    """
    wanted = {NONE, *(str(m) for m in study.mechanisms)}
    utilities = {u for u, *_ in (*PANELS, *FURTHER)}
    frames, outcomes, guarantees, seen = [], [], [], set()
    for results in held:
        for column in ("attack", "utility"):
            rows = results.frame.filter(pl.col(column).is_not_null())
            complete = wanted if column == "attack" else releases(results, "use", 1)
            if column == "utility":
                rows = rows.filter(pl.col("utility").is_in(list(utilities)))
            # Attackers of one release may stand in several folders, its utilities in one.
            names = ("mechanism", "reading", "parameters", "attack")[: 3 + (column == "attack")]
            for key in rows.select(names).unique().rows():
                text = mechanism_text(key[0], key[1] or "", key[2] or "")
                if text not in wanted & complete or (column, text, *key[3:]) in seen:
                    continue
                seen.add((column, text, *key[3:]))
                same = [
                    pl.col(c).fill_null("") == (v or "") for c, v in zip(names, key, strict=True)
                ]
                frames.append(rows.filter(*same).with_columns(cohort=pl.lit("front")))
                outcomes.append(results.outcomes.filter(pl.col(column).is_not_null(), *same))
        guarantees += list(results.guarantees)
    frame = pl.concat([f.select(frames[0].columns) for f in frames])
    rows = pl.concat([f.select(outcomes[0].columns) for f in outcomes])
    return Findings(Results(frame, rows, tuple(guarantees)))


def measured(findings: Findings, utility: str, metric: str) -> list[bool]:
    """Which of the attacked releases have a figure."""
    return [r.measure(utility, metric) is not None for r in findings.attacked]


def name_of(release: ReleaseFindings) -> str:
    """A release as the tables have it."""
    return "0 as recorded" if release.baseline else f"{release.number} {release.label}"


def found(release: ReleaseFindings) -> tuple[str, str]:
    """The re-identification rate of the attacker chosen on the other splits, with its interval, and
    who does best of all.
    """
    shown = release.shown
    if shown is None:
        return "not measured", ""
    ends = f"({100 * shown.low:.0f}\N{EN DASH}{100 * shown.high:.0f})"
    return f"{100 * shown.value:.0f} {ends}", f"`{shown.attack}`"


def figure_of(
    release: ReleaseFindings, utility: str, metric: str, digits: int, star: bool = False
) -> str:
    """A figure, in bold on its front."""
    measure = release.measure(utility, metric)
    if measure is None or measure.value != measure.value:
        return ""
    text = f"{measure.value:.{digits}f}"
    return f"**{text}**" if star else text


def tables(findings: Findings) -> tuple[str, str]:
    """The main table and the further one."""
    shown = sorted(findings.releases, key=lambda r: -(r.shown.value if r.shown else -1.0))
    beaten = [
        {d.release.text: d for d in dominated(findings, utility, metric)}
        for utility, metric, *_ in PANELS
    ]
    head = ("release", "found (%)", "by", *(title for *_, title, _ in PANELS))
    rows = []
    for release in shown:
        best = [
            release.shown is not None
            and not release.baseline
            and release.text not in out
            and release.measure(utility, metric) is not None
            for (utility, metric, *_), out in zip(PANELS, beaten, strict=True)
        ]
        rows.append(
            [
                name_of(release),
                *found(release),
                *(
                    figure_of(release, u, m, digits, on)
                    for (u, m, _, digits), on in zip(PANELS, best, strict=True)
                ),
            ]
        )
    further = [
        [name_of(r), *(figure_of(r, u, m, digits) for u, m, _, digits in FURTHER)] for r in shown
    ]
    return (
        markdown(head, rows),
        markdown(("release", *(title for *_, title, _ in FURTHER)), further),
    )


#: Attackers who hold raw recordings: column of their table, text.
WHITE_BOX = (
    ("holds released pieces too", "steps:knowledge=exemplars"),
    ("makes releases", "steps:knowledge=white-box,draws=2"),
    ("makes releases, joins pieces", "relink:knowledge=white-box,draws=2"),
)


def white_box(held: Iterable[Results]) -> str:
    """What attackers find who hold raw recordings, of whatever was attacked so."""
    cells: dict[str, dict[str, str]] = {}
    for results in held:
        label = {r.text: r.label for r in Findings(results).releases}
        rows = results.frame.filter(
            pl.col("scenario") == "raw/private", pl.col("metric") == "identification_rate"
        )
        for row in rows.iter_rows(named=True):
            text = mechanism_text(row["mechanism"], row["reading"] or "", row["parameters"] or "")
            rate, low, high = (100 * row[name] for name in ("value", "low", "high"))
            said = f"{rate:.1f} ({low:.0f}\N{EN DASH}{high:.0f})"
            splits = "" if row["repetitions"] != 1 else ", one split"
            cells.setdefault(label[text], {})[row["attack"]] = said + splits
    rows_of = [
        [text, *(found.get(attack, "not run") for _, attack in WHITE_BOX)]
        for text, found in cells.items()
    ]
    return markdown(("release", *(title for title, _ in WHITE_BOX)), rows_of)


def main() -> None:
    """Compute what is missing, draw, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", choices=("gazecom", "eyenavgs", "vr-eyetracking"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--known", type=Path, nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--drawn-only", action="store_true", help="compute nothing")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    held = computed(given)
    study = read(STUDIES / f"front-{given.cohort}.toml").parts[0].study()
    findings = together(held, study)
    main_table, further = tables(findings)
    folder = given.page.parent if given.page else given.out
    panels = [p for p in PANELS if sum(measured(findings, p[0], p[1])) > 1]
    with drawing():
        picture = fronts(
            findings,
            [(utility, metric) for utility, metric, *_ in panels],
            folder,
            f"front-{given.cohort}",
            [title for *_, title, _ in panels],
        )
    text = (
        f"![Participants re-identified against what is kept](front-{given.cohort}.png)\n\n"
        f"{picture.caption}\n\n{main_table}"
    )
    print(text, further, sep="\n\n")
    if given.page:
        put_into(given.page, given.cohort, text)
        put_into(given.page, f"{given.cohort}-white-box", white_box(held))


if __name__ == "__main__":
    main()
