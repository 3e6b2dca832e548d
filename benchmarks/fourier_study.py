"""Which noise leaves most of a feature, at the same epsilon and unit, on window features of real
recordings.

    python benchmarks/fourier_study.py [--people N] [--draws 3] [--json FILE] [--page
    docs/results/fourier-comparison.md]

Datasets, windows, epsilons and mechanisms are in fourier_study.toml; 48 features, epsilon per
recording-feature. All mechanisms get the same Wiener shrinkage with the same public spectrum, and
the constant public midpoint is a row of its own. The figure is the root mean square error of a
feature in units of its public range, averaged over features: expected in closed form before
clamping, and measured on releases as they are published. Recordings are found through
GAZEVEIL_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.features import without_minima
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.recordings import sequences
from lines import put_into
from table_errors import expected_error

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data"))
STUDY = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))
#: Folder, format, window and step in seconds, and the public length in windows.
SETS = tuple(
    (c["folder"], c["format"], c["window_s"], c["step_s"], c.get("length"))
    for c in STUDY["cohorts"]
)
EPSILONS = tuple(STUDY["epsilons"])
ROWS = tuple(STUDY["mechanisms"])

#: A mechanism that is not this much better than the midpoint has kept nothing worth its budget.
SURVIVES = 0.99


def clamped(table: FeatureTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values within bounds, midpoints and ranges."""
    low, high = table.bounds.T
    return np.clip(table.values, low, high), (low + high) / 2, high - low


def root_mean_square(wrong: np.ndarray) -> float:
    """Root mean square per feature over what was measured, averaged over features."""
    return float(np.sqrt(np.nanmean(wrong**2, axis=0)).mean())


def measured(m: Mechanism[FeatureTable], table: FeatureTable, draws: int) -> float:
    """The error of releases."""
    values, _, size = clamped(table)
    seqs = sequences("study", table)
    place = np.concatenate([np.arange(n) for n in seqs.lengths])
    recording = np.repeat(np.arange(len(seqs.keys)), seqs.lengths)
    errors = []
    for seed in range(draws):
        out = m.release(table, seed=seed).data.values
        rows = len(out) // len(seqs.keys)
        kept = place < rows
        errors.append(
            root_mean_square(
                (out[(recording * rows + place)[kept]] - values[seqs.order[kept]]) / size
            )
        )
    return float(np.mean(errors))


def study(
    table: FeatureTable, length: int | None, draws: int
) -> dict[str, dict[str, tuple[float, float]]]:
    """Expected and measured error by row and epsilon."""
    values, middle, size = clamped(table)
    seqs = sequences("study", table)
    kept = seqs.order[
        np.concatenate([np.arange(n) for n in seqs.lengths]) < (length or int(seqs.lengths.max()))
    ]
    constant = root_mean_square((values[kept] - middle) / size)
    out = {"midpoint": dict.fromkeys(EPSILONS, (constant, constant))}
    for row in ROWS:
        out[row.rstrip(":")] = {}
        for e in EPSILONS:
            m = mechanism(f"{row},epsilon={e},shrink=wiener", length=length)
            out[row.rstrip(":")][e] = (
                float(np.sqrt(expected_error(m, table)).mean()),
                measured(m, table, draws),
            )
    return out


def rows_of(result: dict[str, dict[str, tuple[float, float]]], which: int) -> list[str]:
    """A markdown table."""
    lines = [
        "| mechanism | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |",
        "|---|" + "---|" * len(EPSILONS),
    ]
    best = {e: min(v[e][which] for v in result.values()) for e in EPSILONS}
    for name, by in result.items():
        cells = [
            (
                f"**{by[e][which]:.4f}**"
                if by[e][which] <= best[e] * (1 + 1e-9)
                else f"{by[e][which]:.4f}"
            )
            for e in EPSILONS
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def verdict(result: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    """What the table says, in words."""
    middle = result["midpoint"]["1"][0]
    family = [name for name in result if name.startswith(("fpa", "cfpa", "dcfpa"))]
    lines = []
    for e in EPSILONS:
        ours = result["dct-knorm"][e][0]
        name = min(family, key=lambda n: result[n][e][0])
        best = result[name][e][0]
        if min(ours, best) > SURVIVES * middle:
            lines.append(
                f"- epsilon {e}: only the midpoint survives (`dct-knorm` {ours / middle:.4f} of its"
                f" error, the best other one, `{name}`, {best / middle:.4f})."
            )
        else:
            lines.append(
                f"- epsilon {e}: `dct-knorm` has {ours / middle:.3f} of the midpoint's error, the"
                f" best other one, `{name}`, {best / middle:.3f};"
                f" {'lower' if ours < best else 'not lower'} by a factor of {best / ours:.3f}."
            )
    return lines


def main() -> None:
    """Run, print and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, help="only the first people of each set")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--page", type=Path, default=ROOT / "docs" / "results" / "fourier-comparison.md"
    )
    given = parser.parse_args()
    lines: list[dict[str, object]] = []
    for folder, kind, window_s, step_s, length in SETS:
        cohort = gazeveil.read(DATA / folder, format=kind)
        if given.people is not None:
            cohort = cohort.select(people=sorted(cohort.people)[: given.people])
        table = without_minima(gazeveil.window_features(cohort, window_s=window_s, step_s=step_s))
        seqs = sequences("study", table)
        result = study(table, length, given.draws)
        told = (
            f"{len(seqs.people)} people, {len(seqs.keys)} recordings of {seqs.lengths.min()} to"
            f" {seqs.lengths.max()} windows of {window_s:g} s"
        )
        told += f" every {step_s:g} s; public length: " + (
            f"{length} windows" if length else "that of the longest recording"
        )
        rows = "\n".join(rows_of(result, 1))
        put_into(given.page, folder, f"{told}.\n\nMeasured:\n\n{rows}")
        print(f"{folder}: {told}", *rows_of(result, 0), *verdict(result), sep="\n", flush=True)
        lines += [
            {
                "set": folder,
                "mechanism": name,
                "epsilon": e,
                "rmse_expected": by[e][0],
                "rmse_measured": by[e][1],
            }
            for name, by in result.items()
            for e in EPSILONS
        ]
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
