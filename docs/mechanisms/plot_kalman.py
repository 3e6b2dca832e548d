"""What kalman does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("default", "kalman:", "C0"), ("noise_deg = 5", "kalman:noise_deg=5", "C1")))
