"""The picture on the pages of DPGazeSynth: gaze over time, and where a population looks, before and
after.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from gazeveil import Cohort, Screen, mechanism, simulate

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
SECONDS = 6.0


def _where(cohort: Cohort) -> np.ndarray:
    x, y = (np.concatenate([getattr(r, n)[r.valid] for r in cohort]) for n in ("x_deg", "y_deg"))
    wide, high = SCREEN.width_deg / 2, SCREEN.height_deg / 2
    return np.histogram2d(y, x, bins=(40, 40), range=((-high, high), (-wide, wide)))[0]


def draw_synthesis(path: Path, shown: Sequence[tuple[str, str, str]]) -> None:
    """Draw releases of sixty simulated people: traces of one of them above, densities of all below.

    Parameters
    ----------
    path : Path
        The picture.
    shown : sequence of (label, mechanism, colour)
        Releases to draw, repeatable by a seed.
    """
    raw = simulate(60, 1, 20.0, 120.0, task="video", space=SCREEN, seed=11).load()
    released = [
        ("recorded", raw, "black"),
        *(
            (label, mechanism(text).release(raw, seed=2).data, colour)
            for label, text, colour in shown
        ),
    ]
    figure, axes = plt.subplots(
        2, len(released), figsize=(10.5, 4.6), layout="constrained", height_ratios=(2, 3)
    )
    for column, (label, cohort, colour) in enumerate(released):
        one = cohort[0]
        kept = one.t_ns - one.t_ns[0] < SECONDS * 1e9
        for values, style in ((one.x_deg, "-"), (one.y_deg, ":")):
            axes[0, column].plot(
                (one.t_ns[kept] - one.t_ns[0]) / 1e9,
                np.where(one.valid, values, np.nan)[kept],
                style,
                color=colour,
                lw=0.8,
            )
        axes[0, column].set(
            title=label, xlabel="s", ylim=(-24, 24), ylabel="x, y (deg)" if column == 0 else None
        )
        found = _where(cohort)
        axes[1, column].imshow(
            np.sqrt(found / found.sum()), extent=(-24, 24, 14, -14), cmap="magma", vmin=0, vmax=0.12
        )
        axes[1, column].set(xlabel="x (deg)", ylabel="y (deg)" if column == 0 else None)
    figure.savefig(path, dpi=84)
    plt.close(figure)
