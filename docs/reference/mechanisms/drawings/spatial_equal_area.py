"""What spatial-equal-area does to gaze, and how large its cells are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from stream_traces import draw_streams

from gazeveil import Recording
from gazeveil.privacy.stream.downsample import equal_area_rows


def _areas(axes: Axes, _: Recording) -> None:
    edges, columns = equal_area_rows(64)
    whole = 4 * np.pi * (180 / np.pi) ** 2
    axes.stairs(
        whole * np.diff(-np.cos(np.radians(edges))) / 2 / columns,
        edges,
        color="C0",
        label="equal area",
    )
    plain = np.minimum(np.arange(35) * 16 / 3, 180)
    axes.stairs(
        whole * np.diff(-np.cos(np.radians(plain))) / 2 / 60,
        plain,
        color="C1",
        label="equal angles (spatial)",
    )
    axes.set(xlabel="y (deg)", ylabel="area of a cell (square degrees)", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("L = 64", "spatial-equal-area:L=64", "C0"),), _areas)
