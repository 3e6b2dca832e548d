"""What clock-render does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(
        path,
        (
            ("epsilon = 10, r = 2, offline", "clock-render:epsilon=10,r_deg=2,form=offline", "C0"),
            ("epsilon = 10, r = 2, stream", "clock-render:epsilon=10,r_deg=2", "C1"),
        ),
    )
