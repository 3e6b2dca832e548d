"""What temporal does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("K = 12", "temporal:K=12", "C0"), ("K = 12, held", "temporal:K=12,hold=True", "C1")))
