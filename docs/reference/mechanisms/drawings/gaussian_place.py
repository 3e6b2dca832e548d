"""What gaussian-place does to gaze, and that looking longer or again tells no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from stream_traces import draw_streams

from gazeveil import Recording, mechanism


def _averaging(axes: Axes, _: Recording) -> None:
    trials, lengths = 300, np.array([1, 4, 16, 64, 256, 1024])
    for text, label, colour in (
        ("gaussian:sigma_deg=2", "noise on every sample", "C1"),
        ("gaussian-fixation:sigma_deg=2", "one draw per quarter of a second", "C0"),
        ("gaussian-place:sigma_deg=2", "one draw per cell", "C2"),
    ):
        n = int(lengths[-1])
        t = np.broadcast_to(np.arange(n) * 8_333_333, (trials, n))
        x = (
            mechanism(text)
            .open_many(trials, 120.0, seed=1)
            .push(t, np.full((trials, n), 182.5), np.full((trials, n), 92.5))[1]
        )
        errors = [np.sqrt(np.mean((x[:, :k].mean(axis=1) - 182.5) ** 2)) for k in lengths]
        axes.loglog(lengths, errors, "o-", color=colour, label=label)
    axes.set(xlabel="samples of steady gaze that are averaged", ylabel="error of its place (deg)")
    axes.legend(frameon=False, fontsize=8)


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(
        path, (("one draw per cell, sigma = 2", "gaussian-place:sigma_deg=2", "C2"),), _averaging
    )
