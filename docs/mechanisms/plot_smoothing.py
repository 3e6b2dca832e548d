"""What smoothing does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("windows of 10 and 50", "smoothing:", "C0"), ("published", "smoothing:reading=published", "C1")))
