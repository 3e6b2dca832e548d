"""What kaleido does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    draw_streams(path, (("epsilon = 50, w = 60, r = 1", "kaleido:epsilon=50,w=60,r_deg=1", "C0"), ("epsilon = 5", "kaleido:epsilon=5,w=60,r_deg=1", "C1")))
