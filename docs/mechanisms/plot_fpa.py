"""What fpa does to one feature, and what shrinkage saves."""

from __future__ import annotations

from pathlib import Path

from traces import draw_pair

SHOWN = (
    ("corrected, epsilon = 200", "fpa:epsilon=200", "C0"),
    ("with shrinkage", "fpa:epsilon=200,shrink=wiener", "C2"),
    ("published, epsilon = 200", "fpa:epsilon=200,reading=published", "C3"),
)
CURVES = (
    ("fpa, public k", "fpa:", "C0"),
    ("fpa, Wiener shrinkage", "fpa:shrink=wiener", "C2"),
    ("fpa, k = 5", "fpa:k=5", "C1"),
)


def draw(path: Path) -> None:
    """Draw it."""
    draw_pair(path, SHOWN, CURVES)
