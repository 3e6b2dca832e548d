"""What gaussian-fixation does to gaze, and how much less of it can be averaged away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from stream_traces import draw_streams

from gazeveil import Recording, mechanism


def _averaging(axes: Axes, _: Recording) -> None:
    trials, lengths = 300, np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
    for text, label, colour in (
        ("gaussian:sigma_deg=2", "noise on every sample", "C1"),
        ("gaussian-fixation:sigma_deg=2", "one draw per quarter of a second", "C0"),
    ):
        n = int(lengths[-1])
        t = np.broadcast_to(np.arange(n) * 8_333_333, (trials, n))
        x = (
            mechanism(text)
            .open_many(trials, 120.0, seed=1)
            .push(t, np.full((trials, n), 180.0), np.full((trials, n), 90.0))[1]
        )
        errors = [np.sqrt(np.mean((x[:, :k].mean(axis=1) - 180) ** 2)) for k in lengths]
        axes.loglog(lengths, errors, "o-", color=colour, label=label)
    axes.loglog(lengths, 2 / np.sqrt(lengths), ":", color="gray", label="2 / sqrt(n)")
    axes.set(xlabel="samples of a fixation that are averaged", ylabel="error of its place (deg)")
    axes.legend(frameon=False, fontsize=8)


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(
        path,
        (("one draw per quarter of a second, sigma = 2", "gaussian-fixation:sigma_deg=2", "C0"),),
        _averaging,
    )
