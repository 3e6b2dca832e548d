"""What lpa does to one feature, and what shrinkage saves."""

from __future__ import annotations

from pathlib import Path

from traces import draw_pair

SHOWN = (
    ("corrected, epsilon = 100", "lpa:epsilon=100", "C0"),
    ("with shrinkage", "lpa:epsilon=100,shrink=wiener", "C2"),
    ("published, epsilon = 100", "lpa:epsilon=100,reading=published", "C3"),
)
CURVES = (
    ("lpa", "lpa:", "C0"),
    ("lpa, Wiener shrinkage", "lpa:shrink=wiener", "C2"),
)


def draw(path: Path) -> None:
    """Draw it."""
    draw_pair(path, SHOWN, CURVES)
