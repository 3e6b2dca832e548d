"""Files that say in how many pixels their gaze is: a screen of others would place it wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen

# Files count the last pixel (1919) or the size (1920).
_SLACK_PX = 1.0


def has_pixels(screen: Screen, size_px: tuple[float, float]) -> bool:
    """Whether a screen has this width and height in pixels, give or take one."""
    width_px, height_px = size_px
    return (
        abs(screen.width_px - width_px) <= _SLACK_PX
        and abs(screen.height_px - height_px) <= _SLACK_PX
    )


def refuse_other_pixels(
    path: Path, screen: Screen, stated: Sequence[tuple[float, float]], where: str
) -> None:
    """Refuse a screen whose pixels are none of those that a file states.

    Parameters
    ----------
    path : Path
        The file.
    screen : Screen
        What the user says.
    stated : sequence of (width, height)
        Pixels; empty where the file says nothing.
    where : str
        What of the file states them, for the message.

    Raises
    ------
    FormatError
        Which names both.
    """
    if not stated or any(has_pixels(screen, size_px) for size_px in stated):
        return
    width_px, height_px = stated[0]
    raise FormatError(
        path,
        f"its {where} says {width_px:g} x {height_px:g} px, and screen= says"
        f" {screen.width_px:g} x {screen.height_px:g} px",
        f"Say the pixels of the file, with the millimetres they took up: Screen({width_px:g},"
        f" {height_px:g}, width_mm, height_mm, distance_mm).",
    )
