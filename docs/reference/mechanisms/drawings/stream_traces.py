"""The picture on the pages of stream mechanisms: gaze over time and in space, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from gazeveil import Recording, mechanism, simulate
from gazeveil.gaze.geometry import unwrap_x

SECONDS = 4.0
RAW = "black"


def viewed() -> Recording:
    """A few seconds of one simulated person who looks around."""
    return simulate(1, 1, SECONDS, 120.0, seed=11)[0]


def draw_streams(path: Path, shown: Sequence[tuple[str, str, str]]) -> None:
    """Draw releases of one recording: x against time on the left, the places on the right.

    Parameters
    ----------
    path : Path
        The picture.
    shown : sequence of (label, mechanism, colour)
        Releases to draw, repeatable by a seed.
    """
    r = viewed()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(3, 2)
    )
    for label, text, colour in [("gaze", "", RAW), *shown]:
        out = r if not text else mechanism(text).release(r, seed=2).data
        x = unwrap_x(np.where(out.valid, out.x_deg, np.nan))
        order = 3 if text else 4
        left.plot(
            (out.t_ns - r.t_ns[0]) / 1e9,
            x,
            ".-" if text else "-",
            ms=3,
            lw=0.7 if text else 1.2,
            color=colour,
            label=label,
            zorder=order,
        )
        right.plot(x, out.y_deg, "." if text else "-", ms=4, lw=1.0, color=colour, zorder=order)
    left.set(xlabel="time (s)", ylabel="x (deg)")
    left.legend(frameon=False, fontsize=8)
    right.set(xlabel="x (deg)", ylabel="y (deg)")
    right.invert_yaxis()
    figure.savefig(path, dpi=80)
    plt.close(figure)
