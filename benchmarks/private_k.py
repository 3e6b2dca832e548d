"""Whether choosing FPA's number of bins from the data is worth its budget, on window features of
real recordings.

    python benchmarks/private_k.py [--people N] [--page docs/results/private-k.md]

Datasets and windows are those of fourier_study.toml; 48 features, epsilon per recording-feature.
NMSE is the expected squared error (closed form, before clamping) over that of the public midpoint,
averaged over features: 1 is worth nothing. `best in hindsight` takes the k with the least error on
the data for each feature, as Bozkir et al. 2021 does, and pays nothing for it: no release may do
that, it is what a choice could gain at most. Recordings are found through GAZEVEIL_DATA.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gazeveil
from gazeveil.features import without_minima
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.sequences.fourier import fourier_estimator
from gazeveil.privacy.tables.sequences.recordings import STEPS, lattice, sequences

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data"))
STUDY = tomllib.loads((Path(__file__).with_name("fourier_study.toml")).read_text(encoding="utf-8"))
EPSILONS = (1, 3, 10, 30, 100, 300, 1000)
ROWS = (
    "fpa",
    "fpa-private-k",
    "fpa-private-k:k_share=1/100",
    "fpa:shrink=wiener",
    "fpa-private-k:shrink=wiener",
)


def dropped_by_k(centred: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Mean squared size of what k = 1, ... bins leave out, over what was measured; by feature."""
    n = centred.shape[1]
    spectra = np.fft.rfft(centred, axis=1)
    lost = []
    for k in range(1, n // 2 + 2):
        spectra[:, k - 1] = 0
        lost.append((np.fft.irfft(spectra, n, axis=1)[real] ** 2).mean(axis=0))
    return np.array(lost)


def nmse(table: FeatureTable, length: int | None) -> dict[str, list[float]]:
    """NMSE by row, one value per epsilon."""
    seqs = sequences("study", table)
    grid = lattice("study", seqs, length)
    n = grid.values.shape[1]
    centred = grid.values / STEPS - 0.5
    real = np.arange(n) < np.minimum(seqs.lengths, n)[:, None]
    midpoint = (centred[real] ** 2).mean(axis=0)
    out: dict[str, list[float]] = {}
    for row in ROWS:
        name, _, more = row.partition(":")
        texts = [f"{name}:epsilon={e}" + (f",{more}" if more else "") for e in EPSILONS]
        made = [mechanism(text, length=length) for text in texts]
        out[row] = [float((m.expected_error(table) / midpoint).mean()) for m in made]
        print(row, *(f"{v:.4f}" for v in out[row]), flush=True)
    lost = dropped_by_k(centred, real)
    best = []
    for e in EPSILONS:
        noise = [
            float(np.mean(fourier_estimator(n, k, float(e), None).noise))
            for k in range(1, n // 2 + 2)
        ]
        best.append(float(((lost + np.array(noise)[:, None]).min(axis=0) / midpoint).mean()))
    out["best in hindsight (no promise)"] = best
    return out


def main() -> None:
    """Run, print, draw and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, help="only the first people of each set")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results" / "private-k.md")
    given = parser.parse_args()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    tables: list[str] = []
    for axis, cohort_of in zip(axes, STUDY["cohorts"], strict=True):
        cohort = gazeveil.read(DATA / cohort_of["folder"], format=cohort_of["format"])
        if given.people is not None:
            cohort = cohort.select(people=sorted(cohort.people)[: given.people])
        table = without_minima(
            gazeveil.window_features(
                cohort, window_s=cohort_of["window_s"], step_s=cohort_of["step_s"]
            )
        )
        seqs = sequences("study", table)
        result = nmse(table, cohort_of.get("length"))
        tables += [
            f"## {cohort_of['folder']}",
            "",
            f"{len(seqs.people)} people, {len(seqs.keys)} recordings, 48 features.",
            "",
            "| | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |",
            "|---|" + "---|" * len(EPSILONS),
        ]
        for row, values in result.items():
            axis.loglog(EPSILONS, values, "o-" if "private" in row else ".--", label=row)
            called = row if "hindsight" in row else f"`{row}`"
            tables.append(f"| {called} | " + " | ".join(f"{v:.4f}" for v in values) + " |")
        tables.append("")
        axis.axhline(1.0, color="0.6", lw=0.8)
        axis.set(title=cohort_of["folder"], xlabel="epsilon of one recording-feature")
    axes[0].set_ylabel("NMSE (midpoint = 1)")
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "figures" / "private-k.png", dpi=110)
    before = given.page.read_text(encoding="utf-8") if given.page.exists() else ""
    # What was concluded from the figures is written by hand, above the tables.
    head = before.partition("## ")[0] or "# Private choice of k\n\n"
    given.page.write_text(head + "\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
