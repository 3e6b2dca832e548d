"""What spatial does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("L = 64, cell centres", "spatial:L=64", "C0"), ("L = 64, corners (published)", "spatial:L=64,reading=published", "C1")))
