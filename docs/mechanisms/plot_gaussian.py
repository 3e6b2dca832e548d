"""What gaussian does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("sigma = 1 degree", "gaussian:sigma_deg=1", "C0"), ("sigma = 5 degrees", "gaussian:sigma_deg=5", "C1")))
