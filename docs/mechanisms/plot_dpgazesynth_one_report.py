"""What dpgazesynth-one-report does: gaze of one person before and after, and where a population looks."""

from __future__ import annotations

from pathlib import Path

from synthetic_traces import draw_synthesis


def draw(path: Path) -> None:
    """Draw it."""
    draw_synthesis(path, (("one report", "dpgazesynth-one-report:epsilon=3", "C0"), ("every slot (dpgazesynth)", "dpgazesynth:epsilon=3", "C1")))
