"""The table behind `gazeveil advise`, from results of studies.

    gazeveil evaluate $GAZEVEIL_DATA/gazecom ... --out results/advice-screen
    gazeveil evaluate $GAZEVEIL_DATA/eyenavgs_nthu ... --out results/advice-vr
    gazeveil evaluate benchmarks/advice_features.toml --out results/advice-features
    python benchmarks/advice_table.py --screen results/advice-screen --vr results/advice-vr

with `--features results/advice-features` in the last line; `--commands` prints the first two whole.
What attackers find
comes from `docs/results/attackers.md` (the strong battery; `gazeveil reproduce gazecom`), errors of
feature tables from `docs/results/fourier-comparison.md`, errors of heat maps from this script. It
writes `src/gazeveil/release/advice/advice.csv` and the table of `docs/howto/choose.md`.

An analyst without the data is the reference of every figure: an even map, no looks at an area, a
textbook's fixation of 250 ms and saccade of 5 degrees, gaze at the middle, the middle of a
feature's public range.
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
from pathlib import Path

import numpy as np
import polars as pl

import gazeveil
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import PromiseError
from gazeveil.privacy.promise.sentence import amounts, claim
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice.pages import write_page
from gazeveil.release.advice.rows import AdviceRow, advice_rows
from gazeveil.utility.density import jensen_shannon

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "gazeveil" / "release" / "advice" / "advice.csv"
ATTACKS = ROOT / "docs" / "results" / "attackers.md"
FEATURES = ROOT / "docs" / "results" / "fourier-comparison.md"
PAGE = ROOT / "docs" / "howto" / "choose.md"

UTILITIES = ("density", "aoi", "events", "signal")

#: Purpose -> metric of a study, its words and its unit.
METRICS = {
    "maps": ("jsd", "divergence of heat maps", "bits"),
    "aoi": ("dwell_rmse_s", "error of the time on an area", "s"),
    "events": ("fixation_duration_wasserstein_s", "error of fixation durations", "s"),
    "samples": ("rmse_deg", "distance from the recorded gaze", "degrees"),
    "teaching": ("saccade_amplitude_wasserstein_deg", "error of saccade amplitudes", "degrees"),
}

TEXTBOOK_FIXATION_S, TEXTBOOK_SACCADE_DEG = 0.25, 5.0

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
    words += [f"-u {name}" for name in UTILITIES]
    words += ["--attacks none --no-report --repetitions 2", f"--out results/advice-{source.kind}"]
    return " ".join(words)


def attacked(section: str) -> dict[str, tuple[str, float]]:
    """Mechanism text -> the strongest attacker and the per cent of people it finds."""
    text = ATTACKS.read_text("utf-8")
    lines = text.split(f"<!-- begin {section} -->")[1].split("<!-- end")[0].splitlines()
    found = {}
    for line in lines:
        cells = [c.strip() for c in line.strip("|").split("|")]
        name = re.match(r"`([a-z-]+)` (.*)", cells[0])
        if name is None:
            continue
        attacker = cells[3].split("`")[1]
        rate = float(cells[2].split()[0])
        found[f"{name[1]}:{name[2].replace(' ', '')}"] = (attacker, rate)
    return found


def measured(folder: Path, text: str, metric: str) -> tuple[float, float | None]:
    """Value and chance of a mechanism in the results of a study."""
    wanted = mechanism(text)
    given = dict(part.split("=") for part in text.partition(":")[2].split(","))
    rows = pl.read_parquet(folder / "results.parquet").filter(
        (pl.col("mechanism") == wanted.name) & (pl.col("metric") == metric)
    )
    for row in rows.iter_rows(named=True):
        stored = dict(p.split("=", 1) for p in row["parameters"].split(",") if "=" in p)
        if all(_same(stored.get(k), v) for k, v in given.items()):
            return row["value"], row["chance"]
    raise SystemExit(f"{folder} has no {metric} of {text}")


def _same(stored: str | None, given: str) -> bool:
    try:
        return stored is not None and Fraction(stored) == Fraction(given)
    except ValueError:
        return stored == given


def references(cohort: gazeveil.Cohort) -> dict[str, float]:
    """What an analyst without the data gets wrong."""
    material = RecordingSet(cohort)
    wrong: dict[str, list[float]] = {"fixation": [], "saccade": []}
    for kind, column, usual in (
        ("fixation", "duration", TEXTBOOK_FIXATION_S),
        ("saccade", "amplitude", TEXTBOOK_SACCADE_DEG),
    ):
        table = material.table(kind)
        values = table.values[:, table.columns.index(column)]
        people: dict[str, list[np.ndarray]] = {}
        for key, rows in table.recordings().items():
            people.setdefault(key[0], []).append(values[rows])
        for parts in people.values():
            every = np.concatenate(parts)
            wrong[kind].append(float(np.nanmean(np.abs(every - usual))))
    away: dict[str, list[float]] = {}
    for r in cohort:
        sphere = isinstance(r.space, gazeveil.Sphere)
        x, y = r.x_deg[r.valid], r.y_deg[r.valid]
        middle = (np.full_like(x, 180.0 if sphere else 0.0), np.full_like(y, 90.0 if sphere else 0))
        error = distance_deg(r.space, x, y, *middle)
        if len(error):
            away.setdefault(r.person, []).append(float(np.sqrt(np.mean(error**2))))
    return {
        "events": float(np.mean(wrong["fixation"])),
        "teaching": float(np.mean(wrong["saccade"])),
        "samples": float(np.mean([np.mean(a) for a in away.values()])),
    }


def promise(guarantee: Guarantee) -> str:
    """The promise in a few words, and its sum for a person."""
    if guarantee.definition == "none":
        return "none"
    own = claim(guarantee).split(" (neighbours")[0]
    if guarantee.unit == "user":
        return own if "one person" in own else f"{own}, for everything of one person"
    assert guarantee.change is not None
    try:
        whole = guarantee.map(Change.person(metric=guarantee.change.metric))
    except PromiseError:
        return own
    return f"{own}; adds up to {amounts(whole)} for everything of one person"


def words(text: str, rate_hz: int) -> str:
    """The parameters with windows in seconds."""
    name, _, given = text.partition(":")
    parts = []
    for part in given.split(","):
        key, _, value = part.partition("=")
        if key == "w":
            parts.append(f"w = {int(value) / rate_hz:g} s ({value} samples at {rate_hz} Hz)")
        elif key == "slot_s":
            parts.append(f"slots of {float(Fraction(value)):g} s")
        elif key in ("r_deg", "sigma_deg"):
            parts.append(f"{key[:-4]} = {value} deg")
        else:
            parts.append(f"{key} = {value}")
    if name == "clock-render":
        parts.append("w = 0.5 s")
    return ", ".join(parts)


def of_recordings(source: Source, folder: Path, cohort: gazeveil.Cohort) -> Iterator[AdviceRow]:
    """Rows of mechanisms that release recordings."""
    attacks, without = attacked(source.section), references(cohort)
    for text, least in source.candidates:
        stated = promise(gazeveil.protect(cohort, text).guarantee)
        attacker, found = attacks[text]
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
            )


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
            even = np.mean([jensen_shannon(a, np.ones_like(a)) for a, _ in pairs]) / math.log(2)
            viewers = times * source.people
            yield AdviceRow(
                "maps",
                source.kind,
                text,
                words(text, source.rate_hz),
                1 if times == 1 else viewers,
                promise(release.guarantee),
                METRICS["maps"][1],
                round(float(value), 4),
                round(float(even), 4),
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
                f"differential privacy with epsilon = {epsilon} for one feature of one recording;"
                " adds up over features and recordings",
                "error of features, as a share of their range",
                errors[name][epsilon],
                errors["midpoint"][epsilon],
                "",
                attacker,
                rate,
                None if rate is None else round(100 / source.people, 1),
                source.data,
                "docs/results/fourier-comparison.md, benchmarks/advice_features.toml",
            )


def refreshed(row: AdviceRow, rates: Mapping[str, tuple[str, float]]) -> AdviceRow:
    """A row with what the page of attackers says today."""
    if row.mechanism not in rates:
        return row
    attacker, found = rates[row.mechanism]
    return replace(row, attacker=attacker, found=found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screen", type=Path)
    parser.add_argument("--vr", type=Path)
    parser.add_argument("--features", type=Path, help="results of advice_features.toml")
    parser.add_argument("--commands", action="store_true", help="print the studies and stop")
    parser.add_argument("--refresh", action="store_true", help="take attack rates anew")
    options = parser.parse_args()
    if options.commands:
        for source in SOURCES:
            print(command(source))
        return
    if options.refresh:
        rates = {source.kind: attacked(source.section) for source in SOURCES}
        rows = [refreshed(row, rates[row.kind]) for row in advice_rows()]
    else:
        rows = []
        for source in SOURCES:
            folder, cohort = getattr(options, source.kind), source.cohort()
            rows += of_recordings(source, folder, cohort)
            rows += of_maps(source, cohort)
            rows += of_features(source, options.features if source.kind == "screen" else None)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(AdviceRow))
        writer.writerows(["" if v is None else v for v in astuple(r)] for r in rows)
    print(f"{TABLE}: {len(rows)} rows")
    advice_rows.cache_clear()
    write_page(PAGE)
    print(PAGE)


if __name__ == "__main__":
    main()
