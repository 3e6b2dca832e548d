"""What clock-render-k-same does to gaze."""

from __future__ import annotations

from pathlib import Path

from synthetic_traces import draw_synthesis


def draw(path: Path) -> None:
    """Draw it."""
    draw_synthesis(path, (("k = 4", "clock-render-k-same:k=4", "C0"), ("k = 15", "clock-render-k-same:k=15", "C1")))
