"""What cfpa does to one feature, at the two units."""

from __future__ import annotations

from pathlib import Path

from traces import draw_pair

SHOWN = (
    ("corrected, epsilon = 20", "cfpa:chunk=64,epsilon=20,shrink=wiener", "C0"),
    ("epsilon = 20 per chunk", "cfpa:chunk=64,epsilon=20,per=chunk,shrink=wiener", "C2"),
    ("published, epsilon = 20", "cfpa:chunk=64,epsilon=20,reading=published", "C3"),
)
CURVES = (
    ("cfpa, chunks of 32", "cfpa:chunk=32,shrink=wiener", "C0"),
    ("cfpa, chunks of 64", "cfpa:chunk=64,shrink=wiener", "C1"),
    ("cfpa, chunks of 128", "cfpa:chunk=128,shrink=wiener", "C4"),
    ("fpa", "fpa:shrink=wiener", "C2"),
)


def draw(path: Path) -> None:
    """Draw it."""
    draw_pair(path, SHOWN, CURVES)
