"""What dpgazesynth does: gaze of one person before and after, and where a population looks."""

from __future__ import annotations

from pathlib import Path

from synthetic_traces import draw_synthesis


def draw(path: Path) -> None:
    """Draw it."""
    draw_synthesis(path, (("corrected", "dpgazesynth:epsilon=3", "C0"), ("published", "dpgazesynth:epsilon=3,reading=published", "C3")))
