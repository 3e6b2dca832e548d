"""What dct-knorm does to one feature, beside fpa."""

from __future__ import annotations

from pathlib import Path

from traces import draw_pair

SHOWN = (
    ("fpa, epsilon = 20", "fpa:epsilon=20,shrink=wiener", "C1"),
    ("dct-knorm, epsilon = 20", "dct-knorm:epsilon=20", "C0"),
    ("dct-knorm, epsilon = 100", "dct-knorm:epsilon=100", "C2"),
)
CURVES = (
    ("fpa", "fpa:shrink=wiener", "C1"),
    ("dct-knorm, exponential", "dct-knorm:profile=exponential", "C4"),
    ("dct-knorm", "dct-knorm:", "C0"),
)


def draw(path: Path) -> None:
    """Draw it."""
    draw_pair(path, SHOWN, CURVES)
