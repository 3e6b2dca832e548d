"""What clock-render-dp-k-same does to gaze."""

from __future__ import annotations

from pathlib import Path

from synthetic_traces import draw_synthesis


def draw(path: Path) -> None:
    """Draw it."""
    draw_synthesis(
        path,
        (
            ("k = 15, epsilon = 1000", "clock-render-dp-k-same:k=15,epsilon=1000", "C0"),
            ("k = 15, epsilon = 10", "clock-render-dp-k-same:k=15,epsilon=10", "C1"),
        ),
    )
