"""Why Bozkir et al. 2021 finds that chunks beat the whole signal, and we do not: the same published
noise, measured in three ways.

    python benchmarks/fourier_utility.py [--draws 60] [--page docs/results/fourier-utility.md]

Window features of EyeNavGS (12 people), one scene as one document. Noise as published: the
sensitivity of each document, chunk and feature from its participants, and the k with the least
expected error for each. Ways: the root mean square error of whole signals over their mean; the
paper's 1/|NMSE| of whole signals; and 1/|NMSE| of every chunk, averaged over chunks. Recordings are
found through GAZEVEIL_DATA.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazeveil
from gazeveil.features import without_minima
from gazeveil.privacy.tables.published import documents
from gazeveil.privacy.tables.recordings import sequences

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data"))
SCENE, WINDOW_S, STEP_S = "alameda", 10.0, 0.1
EPSILONS = (0.01, 0.1, 1.0)
KS = (1, 2, 3, 4, 6, 8, 12, 17)

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """A mechanism of the paper: how signals are cut, and what gets noise.

    Parameters
    ----------
    chunk : int
        Rows of a chunk; 0 for whole signals.
    difference : bool
        Noise on differences inside chunks, summed up again.
    keeps_first : bool
        The first value of a chunk is kept as it is, and the sensitivity is that of the differences
        alone: another way to read "the first element of each chunk is preserved".
    """

    chunk: int = 0
    difference: bool = False
    keeps_first: bool = False


METHODS = {
    "FPA": Method(),
    "CFPA-32": Method(32),
    "CFPA-64": Method(64),
    "CFPA-128": Method(128),
    "DCFPA-32": Method(32, True),
    "DCFPA-64": Method(64, True),
    "DCFPA-128": Method(128, True),
    "DCFPA-32, first values kept": Method(32, True, True),
    "DCFPA-64, first values kept": Method(64, True, True),
    "DCFPA-128, first values kept": Method(128, True, True),
}

WAYS = ("error", "1/NMSE", "1/NMSE by chunk")


def recorded() -> Reals:
    """The signals, shape (people, features, windows): features in which participants differ in
    every chunk and whose mean is not 0, because the others get no noise as published.
    """
    cohort = gazeveil.read(DATA / "eyenavgs_nthu").select(stimuli=[SCENE])
    table = without_minima(gazeveil.window_features(cohort, window_s=WINDOW_S, step_s=STEP_S))
    (document,) = documents("study", sequences("study", table))
    values = document.values[:, :, : int(document.lengths.min())]
    size = np.abs(values).max(axis=(0, 2))
    differ = np.abs(values.mean(axis=2)).min(axis=0) > 1e-9
    for start in range(0, values.shape[2], 32):
        block = values[:, :, start : start + 32]
        differ &= np.ptp(block, axis=0).max(axis=-1) > 1e-6 * size
        if block.shape[2] > 1:
            steps = np.diff(block, axis=2)
            differ &= np.ptp(steps, axis=0).max(axis=-1) > 1e-9 * size
    return values[:, differ]


def noisy_chunk(
    block: Reals, method: Method, epsilon: float, draws: int, rng: np.random.Generator
) -> tuple[Reals, Reals]:
    """Mean squared error and mean of releases of one chunk, each (draws, people, features)."""
    signal = block.copy()
    if method.difference:
        signal[:, :, 1:] -= block[:, :, :-1]
        if method.keeps_first:
            signal[:, :, 0] = 0.0
    m = signal.shape[2]
    apart = signal[:, None] - signal[None]
    delta_2 = np.sqrt((apart**2).sum(axis=-1)).max(axis=(0, 1))
    spectrum = np.fft.rfft(signal, axis=-1)
    best = np.full(block.shape[1], np.inf)
    errors = np.empty((draws, *block.shape[:2]))
    means = np.empty_like(errors)
    for k in sorted({min(k, m // 2 + 1) for k in KS}):
        kept = spectrum.copy()
        kept[:, :, k:] = 0.0
        back = np.fft.irfft(np.concatenate([np.eye(k, m // 2 + 1), 1j * np.eye(k, m // 2 + 1)]), m)
        base = np.fft.irfft(kept, m, axis=-1)
        if method.difference:
            base, back = np.cumsum(base, axis=-1), np.cumsum(back, axis=-1)
            if method.keeps_first:
                shift = block[:, :, :1] - base[:, :, :1]
                base, back = base + shift, back - back[:, :1]
        scale = np.sqrt(m * k) * delta_2 / epsilon
        lost = ((base - block) ** 2).mean(axis=(0, 2))
        expected = lost + 2 * scale**2 * (back**2).sum() / m
        better = np.flatnonzero(expected < best)
        best[better] = expected[better]
        for i in range(draws):
            noise = rng.laplace(size=(len(block), len(better), 2 * k)) * scale[better, None]
            wrong = (base - block)[:, better] + noise @ back
            errors[i][:, better] = (wrong**2).mean(axis=-1)
            means[i][:, better] = (block[:, better] + wrong).mean(axis=-1)
    return errors, means


def measured(values: Reals, method: Method, epsilon: float, draws: int) -> tuple[float, ...]:
    """The figures of :data:`WAYS`: the first is the median over features, the others the mean over
    draws, people and features as the paper averages them.
    """
    rng = np.random.default_rng(7)
    length = method.chunk or values.shape[2]
    starts = [s for s in range(0, values.shape[2], length) if values.shape[2] - s >= 8]
    weights, errors, means, utilities = [], [], [], []
    for start in starts:
        block = values[:, :, start : start + length]
        error, mean = noisy_chunk(block, method, epsilon, draws, rng)
        weights.append(block.shape[2])
        errors.append(error)
        means.append(mean)
        utilities.append(np.abs(block.mean(axis=2) * mean) / error)
    share = np.array(weights) / sum(weights)
    level = np.abs(values[:, :, : sum(weights)].mean(axis=2))
    error, mean = np.tensordot(share, errors, 1), np.tensordot(share, means, 1)
    relative = np.sqrt(error.mean(axis=(0, 1))) / level.mean(axis=0)
    return (
        float(np.median(relative)),
        float((level * np.abs(mean) / error).mean()),
        float(np.mean(utilities)),
    )


def picture(found: dict[str, dict[float, tuple[float, ...]]], place: Path) -> None:
    """Three panels, one for each way."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(drawn)
    for way, panel in enumerate(drawn.subplots(1, 3).flat):
        for name, by in found.items():
            style = ":" if "kept" in name else "--" if name.startswith("D") else "-"
            panel.plot(EPSILONS, [by[e][way] for e in EPSILONS], style, marker="o", label=name)
        panel.set(xscale="log", yscale="log", xlabel="epsilon of one feature")
        better = "lower" if way == 0 else "higher"
        panel.set_title(f"{WAYS[way]} ({better} is better)", fontsize=9)
    handles, labels = panel.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    place.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(place, dpi=110)


def rows_of(found: dict[str, dict[float, tuple[float, ...]]]) -> list[str]:
    """A markdown table."""
    head = [f"{way}, epsilon {e:g}" for way in WAYS for e in EPSILONS]
    lines = ["| method | " + " | ".join(head) + " |", "|---|" + "---|" * len(head)]
    for name, by in found.items():
        cells = [f"{by[e][way]:.3g}" for way in range(len(WAYS)) for e in EPSILONS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    values = recorded()
    found: dict[str, dict[float, tuple[float, ...]]] = {}
    for name, method in METHODS.items():
        found[name] = {e: measured(values, method, e, arguments.draws) for e in EPSILONS}
        print(name, *(f"{v:.3g}" for by in found[name].values() for v in by), flush=True)
    if arguments.page:
        picture(found, arguments.page.parent.parent / "figures" / "fourier-utility.png")
        text = arguments.page.read_text(encoding="utf-8")
        mark = "<!-- measured -->"
        before, _, rest = text.partition(mark)
        after = rest.partition(mark)[2]
        shape = f"{len(values)} people, {values.shape[1]} features, {values.shape[2]} windows"
        table = "\n".join([f"{shape}, {arguments.draws} draws.", "", *rows_of(found)])
        arguments.page.write_text(f"{before}{mark}\n\n{table}\n\n{mark}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
