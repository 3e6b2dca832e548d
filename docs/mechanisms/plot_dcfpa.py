"""What dcfpa does to one feature, beside cfpa."""

from __future__ import annotations

from pathlib import Path

from traces import draw_pair

SHOWN = (
    ("corrected, epsilon = 100", "dcfpa:chunk=64,epsilon=100", "C0"),
    ("with shrinkage", "dcfpa:chunk=64,epsilon=100,shrink=wiener", "C2"),
    ("published, epsilon = 100", "dcfpa:chunk=64,epsilon=100,reading=published", "C3"),
)
CURVES = (
    ("dcfpa, chunks of 32", "dcfpa:chunk=32", "C0"),
    ("dcfpa, Wiener shrinkage", "dcfpa:chunk=32,shrink=wiener", "C2"),
    ("cfpa, chunks of 32", "cfpa:chunk=32", "C1"),
)


def draw(path: Path) -> None:
    """Draw it."""
    draw_pair(path, SHOWN, CURVES)
