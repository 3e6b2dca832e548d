"""The README's table: participants re-identified in each preset's release, and what is kept.

    python benchmarks/presets.py --out results/presets [--known results/gazecom/parts/gazecom ...]
        [--workers 1] [--readme README.md]

Ten splits by stimulus of GazeCom (24 people, screen) and EyeNavGS (12 people, headset) under
GAZEVEIL_DATA. Two kinds of attackers are tried on each release: the strong battery, retrained on a
second release, and white-box attackers, who hold raw recordings and make releases of them to learn
from. The rate is that of the attacker chosen on the other splits. `--known` names folders of
studies whose figures need not be computed again. What is kept comes from the table behind `gazeveil
advise`, beside both of its anchors.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

import gazeveil
from gazeveil.evaluation.report.findings import Findings
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.run import run
from gazeveil.evaluation.study import NONE, Study, mechanism_text
from gazeveil.papers.study_file import read
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice import advice_rows
from gazeveil.release.recipe import PRESETS
from lines import markdown, put_into

STUDIES = Path(gazeveil.__file__).parent / "papers" / "studies"

WHITE_BOX = ("steps:knowledge=white-box,draws=8", "steps:knowledge=exemplars")


@dataclass(frozen=True)
class Source:
    """Recordings of one kind."""

    kind: str
    cohort: str

    def study(self) -> Study:
        """The study of recognition on the front, whose recordings and splits are used here too."""
        return read(STUDIES / f"front-{self.cohort}.toml").parts[1].study()


SOURCES = (Source("screen", "gazecom"), Source("vr", "eyenavgs"))

#: Presets for headsets alone.
HEADSETS = ("public-vr",)

#: Preset -> rows of advice that say what its release keeps: purpose, words of the table.
KEPT = {
    "public-maps": ("maps", "maps: {} bits"),
    "public-events": ("teaching", "saccades: {}°"),
    "public-samples": ("samples", "gaze: {}°"),
    "public-pieces": ("samples", "gaze: {}°"),
    "public-vr": ("samples", "gaze: {}°"),
    "public-features": ("ml", "features: {} of range"),
}


def attacked(source: Source, out: Path, known: Sequence[Path], workers: int) -> Findings:
    """All attacks on the presets' releases of one kind of recordings, as one study."""
    presets = [p for p in PRESETS.values() if source.kind == "vr" or p.name not in HEADSETS]
    texts = [str(mechanism(t)) for t in dict.fromkeys(p.mechanism for p in presets)]
    held = [Results.read(folder) for folder in known]
    for name, attacks, scenario in (
        ("strong", ("strong",), "private/private"),
        ("white-box", WHITE_BOX, "raw/private"),
    ):
        done = {t for results in held for t in complete(results, scenario)}
        missing = [t for t in texts if t not in done]
        if name == "white-box":
            missing = [t for t in missing if mechanism(t).kind != "table"]
        if missing:
            asked = {"mechanisms": tuple(missing), "scenarios": (scenario,), "repetitions": 10}
            study = replace(source.study(), attacks=attacks, utilities=(), **asked)
            held.append(run(study, out / f"{source.kind}-{name}", workers))
    return Findings(together(held, {NONE, *texts}))


def complete(results: Results, scenario: str) -> set[str]:
    """Texts of mechanisms that a study attacked in ten splits of a scenario."""
    rows = results.frame.filter(
        pl.col("attack").is_not_null(), pl.col("scenario") == scenario, pl.col("repetitions") >= 10
    )
    if scenario == "raw/private":
        rows = rows.filter(pl.col("attack").str.contains("white-box"))
    return set(names(rows)["text"])


def names(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with the full texts of its mechanisms."""
    texts = [
        mechanism_text(m, r or "", p or "")
        for m, r, p in frame.select("mechanism", "reading", "parameters").rows()
    ]
    return frame.with_columns(text=pl.Series(texts, dtype=pl.String))


def together(held: Sequence[Results], texts: set[str]) -> Results:
    """Attacks of several studies of the same splits, each attacker and release once."""
    frames, outcomes, guarantees = [], [], []
    seen = pl.DataFrame(schema=dict.fromkeys(("text", "attack", "scenario"), pl.String))
    for results in held:
        rows = names(results.frame.filter(pl.col("attack").is_not_null()))
        rows = rows.filter(pl.col("text").is_in(texts)).join(seen, on=seen.columns, how="anti")
        cells = names(results.outcomes.filter(pl.col("attack").is_not_null()))
        outcomes.append(cells.join(rows.select(seen.columns).unique(), on=seen.columns, how="semi"))
        seen = pl.concat([seen, rows.select(seen.columns).unique()])
        frames.append(rows.with_columns(cohort=pl.lit("presets")))
        guarantees += list(results.guarantees)
    columns = held[0].frame.columns
    frame = pl.concat([f.select(columns) for f in frames])
    stored = [f.select(held[0].outcomes.columns) for f in outcomes]
    return Results(frame, pl.concat(stored), tuple(guarantees))


def rate(findings: Findings, text: str) -> str:
    """A re-identification rate with its interval, as the table has it."""
    release = next(r for r in findings.releases if r.text == text)
    shown = release.shown
    assert shown is not None
    ends = f"{100 * shown.low:.0f}-{100 * shown.high:.0f}"
    return f"{100 * shown.value:.0f} ({ends})"


def kept(name: str, kind: str) -> str:
    """The error of the preset's purpose, beside raw recordings and no data."""
    purpose, words = KEPT[name]
    row = next(
        r
        for r in advice_rows()
        if (r.purpose, r.kind, r.mechanism) == (purpose, kind, PRESETS[name].mechanism)
    )
    raw = "" if row.raw is None else f"raw {row.raw:.2g}, "
    return f"{words.format(f'{row.value:.2g}')} ({raw}none {row.reference:.2g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--known", type=Path, nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--readme", type=Path)
    given = parser.parse_args()
    found = {}
    for source in SOURCES:
        known = [f for f in given.known if source.cohort in str(f)]
        found[source.kind] = attacked(source, given.out, known, given.workers)
    rows = [["as recorded", *(rate(found[s.kind], NONE) for s in SOURCES), ""]]
    for name, preset in PRESETS.items():
        text = str(mechanism(preset.mechanism))
        headset = name in HEADSETS
        rates = [
            "" if headset and s.kind == "screen" else rate(found[s.kind], text) for s in SOURCES
        ]
        rows.append([f"`{name}`", *rates, kept(name, "vr" if headset else "screen")])
    head = ("release", "screen, % (chance 4)", "headset, % (chance 8)", "error")
    table = markdown(head, rows)
    print(table)
    if given.readme:
        put_into(given.readme, "presets", table)


if __name__ == "__main__":
    main()
