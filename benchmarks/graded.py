"""What colluding apps gain from graded views and from independent noise: one JSON line per figure.

    python benchmarks/graded.py [--json FILE] [--samples 200000]

Truth is uniform on 30 degrees along one axis. m apps put their views together: by the best linear
combination, and by a regressor trained to correct the finest view. Both are fitted on one half and
judged on the other; the gain is the share of the finest view's RMS error that they save, with its
upper end at five standard errors. Independent noise is averaged beside it: its variance falls as
1/m.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from gazeveil.privacy.stream.graded import Graded
from speed import Lines

FINEST_DEG = 4


def errors(views: np.ndarray, truth: np.ndarray, trained: bool) -> np.ndarray:
    """Squared errors on the second half of the samples."""
    half = len(truth) // 2
    if not trained:
        design = np.column_stack((views, np.ones(len(views))))
        fit = np.linalg.lstsq(design[:half], truth[:half], rcond=None)[0]
        return np.asarray((design[half:] @ fit - truth[half:]) ** 2)
    inputs = np.column_stack((views[:, 0], views[:, 1:] - views[:, :1]))
    model = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.1, random_state=0)
    model.fit(inputs[:half], (truth - views[:, 0])[:half])
    return np.asarray((views[half:, 0] + model.predict(inputs[half:]) - truth[half:]) ** 2)


def noise_deg(levels: list[Fraction], seed: int, samples: int) -> np.ndarray:
    """Noise along one axis at each level, shape (samples, levels)."""
    session = Graded(tuple(levels)).open(100.0, seed=seed)
    return (
        np.stack([session.noise_steps(level, 0, samples)[:, 0] for level in levels], axis=1)
        / 2.0**session.bits
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--samples", type=int, default=200_000)
    arguments = parser.parse_args()
    lines, n = Lines(arguments.json), arguments.samples
    for m in (2, 5, 10):
        truth = np.random.default_rng(m).uniform(-15, 15, n)
        views = truth[:, None] + noise_deg(
            [Fraction(FINEST_DEG) * Fraction(5, 4) ** i for i in range(m)], m, n
        )
        for trained in (False, True):
            alone, together = (errors(views[:, :1], truth, trained), errors(views, truth, trained))
            gain = (alone - together) / (2 * alone.mean())
            high = float(gain.mean() + 5 * gain.std() / np.sqrt(len(gain)))
            attacker = "trained regressor" if trained else "best linear combination"
            lines.add(
                f"{m} colluding apps, {attacker}: 0.02 over the upper end of the gain",
                1.0,
                0.02 / max(high, 1e-9),
                "times",
                gain=round(float(gain.mean()), 5),
                gain_high=round(high, 5),
                rms_finest_deg=round(float(np.sqrt(alone.mean())), 3),
                rms_together_deg=round(float(np.sqrt(together.mean())), 3),
            )
        copies = np.mean(
            [noise_deg([Fraction(FINEST_DEG)], 100 + i, n)[:, 0] for i in range(m)], axis=0
        )
        one = noise_deg([Fraction(FINEST_DEG)], 100, n)
        lines.add(
            f"{m} independent copies: variance of one over that of their mean",
            0.95 * m,
            float(one.var() / copies.var()),
            "times",
            apps=m,
        )
    if not lines.close():
        sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
