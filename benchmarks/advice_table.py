"""The table behind `gazeveil advise`, from results of studies.

    gazeveil evaluate $GAZEVEIL_DATA/gazecom ... --out results/advice-screen
    gazeveil evaluate benchmarks/advice_features.toml --out results/advice-features
    python -m benchmarks.advice_table --screen results/advice-screen

with `--features results/advice-features` in the last line; `--commands` prints the first whole.
Rows of recordings in headsets come from `advice_headsets.py` and stay as they are.
What attackers find comes from `docs/results/attackers.md` (the strong battery; `gazeveil reproduce
gazecom`), for `mosaic` from `docs/results/front.md` (`advice_newest.py`);
`--newest` makes its rows alone, `--refresh` takes rates, notes and promises anew. Errors of feature
tables come from `docs/results/fourier-comparison.md`, errors of heat maps from this script.
It writes `src/gazeveil/release/advice.csv` and the table of `docs/howto/choose.md`.

Every figure stands between two anchors (`advice_references.py`; `--references` takes them anew):
raw recordings against others of the same people, and an analyst without the data, who has a map of
the middle, no looks at an area, a textbook's distributions of fixations and saccades, gaze at the
middle of the view, the middle of a feature's public range.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.advice_newest import newest
from benchmarks.advice_page import PAGE, write_page
from benchmarks.advice_references import anchors

import gazeveil
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice import AdviceRow, advice_rows
from gazeveil.utility.maps import central_map, jensen_shannon

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "gazeveil" / "release" / "advice.csv"
ATTACKS = ROOT / "docs" / "results" / "attackers.md"
#: The source of rows that `advice_headsets.py` makes.
HEADSETS = "docs/results/vr-eyetracking.md"
FEATURES = ROOT / "docs" / "results" / "fourier-comparison.md"

UTILITIES = ("density", "aoi", "events", "signal")

#: Purpose -> metric of a study, its words and its unit.
METRICS = {
    "maps": ("jsd", "divergence of heat maps", "bits"),
    "aoi": ("dwell_rmse_s", "error of the time on an area", "s"),
    "events": ("fixation_duration_wasserstein_s", "error of fixation durations", "s"),
    "samples": ("rmse_deg", "distance from the recorded gaze", "degrees"),
    "teaching": ("saccade_amplitude_wasserstein_deg", "error of saccade amplitudes", "degrees"),
}

#: Viewers that a heat map with a promise about whole people is tried with: those of the recordings,
#: each counted several times.
VIEWERS = 960


@dataclass(frozen=True)
class Source:
    """The recordings of one kind."""

    kind: str
    folder: str
    title: str
    people: int
    rate_hz: int
    section: str
    features: str

    @property
    def candidates(self) -> tuple[tuple[str, int], ...]:
        """Mechanisms that were attacked, and the fewest people each takes."""
        half_a_second = self.rate_hz // 2
        return (
            ("clock-render:epsilon=1,r_deg=2,slot_s=1/2,form=offline", 1),
            ("clock-render:epsilon=10,r_deg=2,form=offline", 1),
            ("dpgazesynth-one-report:epsilon=1", 1),
            ("event-synth-pd:k=4,gamma=4", 8),
            ("gaussian:sigma_deg=10", 1),
            ("k-same-synth:k=4,match=crowd", 8),
            (f"kaleido:epsilon=10,w={half_a_second},r_deg=2", 1),
            ("spatial:L=64", 1),
            ("temporal:K=3", 1),
        )

    @property
    def data(self) -> str:
        """The recordings in words."""
        return f"{self.title}, {self.people} people"

    def cohort(self) -> gazeveil.Cohort:
        data = Path(os.environ.get("GAZEVEIL_DATA", ROOT.parent / "shared" / "data"))
        return gazeveil.Cohort(list(gazeveil.read(data / self.folder)))


SOURCES = (
    Source("screen", "gazecom", "GazeCom", 24, 250, "gazecom", "gazecom"),
    Source("vr", "eyenavgs_nthu", "EyeNavGS", 12, 36, "eyenavgs", "eyenavgs_nthu"),
)


def command(source: Source) -> str:
    """The study of one kind of recordings."""
    words = ["gazeveil evaluate", f"$GAZEVEIL_DATA/{source.folder}"]
    words += [f"-m {text}" for text, _ in source.candidates]
    words += [f"-m {text}" for text in newest(source.section)]
    words += [f"-u {name}" for name in UTILITIES]
    words += ["--attacks none --repetitions 2", f"--out results/advice-{source.kind}"]
    return " ".join(words)


def attacked(section: str) -> dict[str, tuple[str, float, float, float]]:
    """Mechanism text -> the strongest attacker and the per cent of people it finds, with its
    interval.
    """
    text = ATTACKS.read_text("utf-8")
    lines = text.split(f"<!-- begin {section} -->")[1].split("<!-- end")[0].splitlines()
    found = {}
    for line in lines:
        cells = [c.strip() for c in line.strip("|").split("|")]
        name = re.match(r"`([a-z-]+)` (.*)", cells[0])
        if name is None:
            continue
        attacker = cells[4].split("`")[1]
        rate, low, high = (float(n) for n in re.findall(r"\d+", cells[2]))
        found[f"{name[1]}:{name[2].replace(' ', '')}"] = (attacker, rate, low, high)
    return found


def measured(folder: Path, text: str, metric: str) -> tuple[float, float | None]:
    """Value and chance of a mechanism in the results of a study."""
    wanted = mechanism(text)
    # Defaults count too: another setting of the same mechanism may be in the same results.
    given = dict(part.split("=") for part in str(wanted).partition(":")[2].split(","))
    rows = pl.read_parquet(folder / "results.parquet").filter(
        (pl.col("mechanism") == wanted.name) & (pl.col("metric") == metric)
    )
    for row in rows.iter_rows(named=True):
        stored = dict(p.split("=", 1) for p in row["parameters"].split(",") if "=" in p)
        if stored and all(_same(v, given[k]) for k, v in stored.items() if k in given):
            return row["value"], row["chance"]
    raise SystemExit(f"{folder} has no {metric} of {text}")


def _same(stored: str, given: str) -> bool:
    try:
        return Fraction(stored) == Fraction(given)
    except ValueError:
        return stored == given


def words(text: str, rate_hz: int) -> str:
    """The parameters with windows in seconds."""
    name, _, given = text.partition(":")
    parts = []
    for part in given.split(","):
        key, _, value = part.partition("=")
        if key == "w":
            parts.append(f"w = {int(value) / rate_hz:g} s ({value} samples at {rate_hz} Hz)")
        elif key in ("slot_s", "piece_s", "segment_s"):
            parts.append(f"{key[:-2]}s of {float(Fraction(value)):g} s")
        elif key in ("r_deg", "sigma_deg"):
            parts.append(f"{key[:-4]} = {value} deg")
        else:
            parts.append(f"{key} = {value}")
    if name == "mosaic" and "piece_s" not in given:
        parts.append("pieces of 5 s")
    if name in ("clock-render", "mosaic"):
        parts.append("w = 0.5 s")
    return ", ".join(parts)


def of_recordings(
    source: Source, folder: Path, cohort: gazeveil.Cohort, without: Mapping[str, float]
) -> Iterator[AdviceRow]:
    """Rows of mechanisms that release recordings."""
    attacks = attacked(source.section)
    for text, least in source.candidates:
        stated = gazeveil.protect(cohort, text).guarantee.plain
        attacker, found, low, high = attacks[text]
        for purpose, (metric, about, unit) in METRICS.items():
            value, chance = measured(folder, text, metric)
            reference = without.get(purpose, chance)
            assert reference is not None
            yield AdviceRow(
                purpose,
                source.kind,
                text,
                words(text, source.rate_hz),
                least,
                stated,
                about,
                round(value, 4),
                round(reference, 4),
                unit,
                attacker,
                found,
                round(100 / source.people, 1),
                source.data,
                "docs/results/attackers.md",
                "strong battery, 10 splits",
                low=low,
                high=high,
            )


def of_newest(
    source: Source, folder: Path, cohort: gazeveil.Cohort, without: Mapping[str, float]
) -> Iterator[AdviceRow]:
    """Rows of pieces and of another's way of moving."""
    for text, about_it in newest(source.section).items():
        stated = gazeveil.protect(cohort, text).guarantee.plain
        for purpose, (metric, about, unit) in METRICS.items():
            value, chance = measured(folder, text, metric)
            reference = without.get(purpose, chance)
            assert reference is not None
            # Time on an area is that of a piece by itself, and so is the reference.
            within = " within a piece" * (purpose == "aoi" and text.startswith("mosaic"))
            yield AdviceRow(
                purpose,
                source.kind,
                text,
                words(text, source.rate_hz),
                about_it.least_people,
                stated,
                about + within,
                round(value, 4),
                round(reference, 4),
                unit,
                about_it.attacker,
                about_it.found,
                round(100 / source.people, 1),
                source.data,
                about_it.source,
                about_it.tried,
                about_it.note,
                low=about_it.low,
                high=about_it.high,
            )


def with_newest(folder: Path) -> list[AdviceRow]:
    """The rows as they are, those of the newest mechanisms on screens made anew."""
    source = SOURCES[0]
    rows = [r for r in advice_rows() if r.source != HEADSETS]
    rows = [r for r in rows if r.kind != "screen" or r.mechanism not in newest(source.section)]
    same = ("events", "samples", "teaching")
    without = {r.purpose: r.reference for r in rows if r.kind == "screen" and r.purpose in same}
    return [*rows, *of_newest(source, folder, source.cohort(), without)]


def of_maps(source: Source, cohort: gazeveil.Cohort) -> Iterator[AdviceRow]:
    """Heat maps with a promise about whole people, for as few and for many viewers."""
    for text in ("heatmap-laplace:epsilon=2,rows=9,columns=16",):
        for times in (1, VIEWERS // source.people):
            many = gazeveil.Cohort(
                [r.with_(person=f"{r.person}-{i}") for r in cohort for i in range(times)]
            )
            exact = gazeveil.protect(many, text.replace("epsilon=2", "epsilon=100000")).data
            release = gazeveil.protect(many, text)
            pairs = [(exact[s].cells, release.data[s].cells) for s in exact]
            value = np.mean([jensen_shannon(a, b) for a, b in pairs]) / math.log(2)
            middle = central_map(cohort[0].space, 9, 16)
            guess = np.mean([jensen_shannon(a, middle) for a, _ in pairs]) / math.log(2)
            viewers = times * source.people
            yield AdviceRow(
                "maps",
                source.kind,
                text,
                words(text, source.rate_hz),
                1 if times == 1 else viewers,
                release.guarantee.plain,
                METRICS["maps"][1],
                round(float(value), 4),
                round(float(guess), 4),
                "bits",
                "",
                None,
                None,
                f"{source.title}, {viewers} viewers" + (", each several times" * (times > 1)),
                "benchmarks/advice_table.py",
            )


def found_in_features(folder: Path | None) -> dict[str, tuple[str, float]]:
    """Mechanism text -> the strongest attacker on tables of features, and per cent found."""
    if folder is None:
        return {}
    rows = pl.read_parquet(folder / "results.parquet").filter(
        (pl.col("metric") == "identification_rate") & (pl.col("mechanism") != "none")
    )
    strongest: dict[str, tuple[str, float]] = {}
    for row in rows.sort("value").iter_rows(named=True):
        epsilon = dict(p.split("=", 1) for p in row["parameters"].split(","))["epsilon"]
        text = f"{row['mechanism']}:epsilon={epsilon}"
        strongest[text] = (row["attack"], round(100 * row["value"], 1))
    return strongest


@cache
def promised_of_features(text: str) -> str:
    """The plain promise of a mechanism on a table of windows whose length is named."""
    cohort = gazeveil.simulate(people=2, stimuli=1, seconds=30, rate_hz=120, seed=1)
    table = gazeveil.window_features(cohort, window_s=10, step_s=1)
    return gazeveil.protect(table, f"{text},length=21").guarantee.plain


def of_features(source: Source, attacks: Path | None = None) -> Iterator[AdviceRow]:
    """Rows of mechanisms on tables of window features."""
    found = found_in_features(attacks)
    text = FEATURES.read_text("utf-8").split(f"## {source.features}\n")[1].split("\n## ")[0]
    lines = text.split("Measured:")[1].splitlines()
    budgets = ("0.01", "0.1", "1", "10", "100")
    errors: dict[str, dict[str, float]] = {}
    for line in lines:
        cells = [c.strip().strip("*`") for c in line.strip("|").split("|")]
        if len(cells) == 1 + len(budgets) and cells[1].replace(".", "").isdigit():
            errors[cells[0]] = dict(zip(budgets, map(float, cells[1:]), strict=True))
    for name in ("dct-knorm", "fpa", "lpa"):
        for epsilon in ("1", "10"):
            attacker, rate = found.get(f"{name}:epsilon={epsilon}", ("", None))
            yield AdviceRow(
                "ml",
                source.kind,
                f"{name}:epsilon={epsilon}",
                f"epsilon = {epsilon} for each feature of a recording",
                1,
                promised_of_features(f"{name}:epsilon={epsilon}"),
                "error of features, as a share of their range",
                errors[name][epsilon],
                errors["midpoint"][epsilon],
                "",
                attacker,
                rate,
                None if rate is None else round(100 / source.people, 1),
                source.data,
                "docs/results/fourier-comparison.md, benchmarks/advice_features.toml",
                "" if rate is None else "four classifiers of windows, 3 splits",
            )


@cache
def promised(kind: str, text: str) -> str:
    """The plain promise of a mechanism on the recordings of a kind."""
    cohort = next(s for s in SOURCES if s.kind == kind).cohort()
    return gazeveil.protect(cohort, text).guarantee.plain


def refreshed(row: AdviceRow) -> AdviceRow:
    """A row with what the page of attackers, or the notes on the newest, say today."""
    table = row.purpose == "ml"
    stated = promised_of_features(row.mechanism) if table else promised(row.kind, row.mechanism)
    row = replace(row, promise=stated)
    if row.kind == "vr":
        return row
    section = SOURCES[0].section
    if (said := newest(section).get(row.mechanism)) is not None:
        rates = {"attacker": said.attacker, "found": said.found}
        return replace(row, note=said.note, low=said.low, high=said.high, **rates)
    rates = attacked(section)
    if row.mechanism not in rates:
        return row
    attacker, found, low, high = rates[row.mechanism]
    tried = "strong battery, 10 splits"
    return replace(row, attacker=attacker, found=found, low=low, high=high, tried=tried)


def anchored(rows: list[AdviceRow], source: Source, cohort: gazeveil.Cohort) -> list[AdviceRow]:
    """Rows with both anchors taken anew."""
    raw, without = anchors(cohort)
    for purpose, value in without.items():
        print(f"{source.title}, {purpose}: raw {raw.get(purpose)}, without {value:.4g}")
    return [
        replace(
            row,
            raw=raw.get(row.purpose),
            reference=round(without.get(row.purpose, row.reference), 4),
        )
        if row.kind == source.kind and not row.mechanism.startswith("heatmap")
        else row
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screen", type=Path)
    parser.add_argument("--features", type=Path, help="results of advice_features.toml")
    parser.add_argument("--commands", action="store_true", help="print the studies and stop")
    parser.add_argument("--refresh", action="store_true", help="take attack rates and notes anew")
    parser.add_argument("--newest", action="store_true", help="make rows of mosaic alone")
    parser.add_argument("--references", action="store_true", help="take references of samples anew")
    options = parser.parse_args()
    if options.commands:
        print(command(SOURCES[0]))
        return
    headsets = [r for r in advice_rows() if r.source == HEADSETS]
    others = [r for r in advice_rows() if r.source != HEADSETS]
    if options.refresh:
        rows = [refreshed(row) for row in others]
    elif options.references:
        rows = anchored(others, SOURCES[0], SOURCES[0].cohort())
    elif options.newest:
        rows = with_newest(options.screen)
    else:
        rows = []
        for source in SOURCES:
            cohort = source.cohort()
            if source.kind == "screen":
                without = anchors(cohort)[1]
                made = [
                    *of_recordings(source, options.screen, cohort, without),
                    *of_newest(source, options.screen, cohort, without),
                ]
                rows += anchored(made, source, cohort)
            rows += of_maps(source, cohort)
            rows += of_features(source, options.features if source.kind == "screen" else None)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(AdviceRow))
        rows += headsets
        writer.writerows(["" if v is None else v for v in astuple(r)] for r in rows)
    print(f"{TABLE}: {len(rows)} rows")
    advice_rows.cache_clear()
    write_page()
    print(PAGE)


if __name__ == "__main__":
    main()
