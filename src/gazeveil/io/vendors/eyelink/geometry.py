"""How far the screen was, from what an EyeLink ASC file says about its calibration.

An ASC file gives the screen in pixels and no millimetres. But calibration lines give each target's
angle as HREF (a plane 15000 units before the eye) and validation lines give the same targets in
pixels; the slope between the two is the viewing distance in pixels, which is all that degrees need.
Where they are missing, the resolution in pixels per degree that `END` lines state gives it too.
Files without all that get a documented assumption.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.io.parsing.assemble import has_pixels, refuse_other_pixels

#: HREF units from the eye to its reference plane (EyeLink manual).
HREF_DISTANCE = 15000.0

# A 24 inch monitor at 700 mm, where the file leaves the scale or the distance open.
_ASSUMED_WIDTH_MM = 531.0
_ASSUMED_DISTANCE_MM = 700.0
_ASSUMED_PX = (0.0, 0.0, 1920.0, 1080.0)

_COORDS = re.compile(
    r"(?:GAZE|DISPLAY)_COORDS\s+(-?[\d.]+)[\s,]+(-?[\d.]+)[\s,]+(-?[\d.]+)[\s,]+(-?[\d.]+)"
)
_POINT = re.compile(r"^!CAL\s+-?[\d.]+,\s*-?[\d.]+\s+(-?[\d.]+),\s*(-?[\d.]+)\s*$")
# The right eye's lines say `4POINT` whatever the number of targets.
_TARGET = re.compile(
    r"VALIDATE\s+\S+\s+\d*POINT\s+(\d+)\s+(LEFT|RIGHT)\s+at\s+(-?[\d.]+),\s*(-?[\d.]+)"
)


@dataclass(frozen=True)
class Geometry:
    """The screen, its top-left corner in the file's pixels, and where the distance comes from."""

    screen: Screen
    left_px: float
    top_px: float
    source: str


def _boxes(texts: list[str]) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, right and bottom pixels that the messages state."""
    for text in texts:
        if (found := _COORDS.search(text)) is not None:
            left, top, right, bottom = (float(v) for v in found.groups())
            yield left, top, right, bottom


def _given(path: Path, texts: list[str], screen: Screen) -> Geometry:
    """What the user says, where the file does not say other pixels. A tracker may state its own
    default before the experiment states the screen: one of the two is enough.
    """
    sizes = {(_extent(b[2] - b[0]), _extent(b[3] - b[1])): b for b in _boxes(texts)}
    stated = [size for size in sizes if min(size) > 0]
    refuse_other_pixels(path, screen, stated, "GAZE_COORDS or DISPLAY_COORDS")
    box = next((sizes[size] for size in stated if has_pixels(screen, size)), _ASSUMED_PX)
    return Geometry(screen, box[0], box[1], "given")


def from_messages(
    path: Path,
    texts: list[str],
    screen: Screen | None = None,
    resolution: tuple[float, float] | None = None,
) -> Geometry:
    """Screen of an EyeLink file.

    Parameters
    ----------
    path : Path
        The file.
    texts : list of str
        Its messages without their times.
    screen : Screen, optional
        What the user says; its pixels are those of the file where that says them.
    resolution : tuple of float, optional
        Pixels per degree of x and y in the middle of the screen, as the file states them.

    Returns
    -------
    Geometry
        `source` is `given`, `calibration`, `resolution` or `assumed`.

    Raises
    ------
    FormatError
        For a screen of other pixels than the file states.
    """
    if screen is not None:
        return _given(path, texts, screen)
    box = next(_boxes(texts), _ASSUMED_PX)
    left, top = box[0], box[1]
    width, height = (_extent(box[2] - box[0]), _extent(box[3] - box[1]))
    if width <= 0 or height <= 0:
        left, top, width, height = _ASSUMED_PX
    calibrated_px = _distance_px(texts)
    if calibrated_px is not None:
        (across_px, down_px), source = calibrated_px, "calibration"
    elif resolution is not None:
        across_px, down_px = (float(np.degrees(r)) for r in resolution)
        source = "resolution"
    else:
        across_px = down_px = _ASSUMED_DISTANCE_MM * width / _ASSUMED_WIDTH_MM
        source = "assumed"
    distance_mm = across_px * _ASSUMED_WIDTH_MM / width
    estimated = Screen(
        width, height, width * distance_mm / across_px, height * distance_mm / down_px, distance_mm
    )
    return Geometry(estimated, left, top, source)


def _extent(span: float) -> float:
    """Pixels between two corners: trackers write the last pixel (1919) or the size (1920)."""
    return span + 1 if round(span) % 2 else span


def _distance_px(texts: list[str]) -> tuple[float, float] | None:
    """Viewing distance in pixels across and down, from calibration and validation of the same
    targets; None where they do not agree.
    """
    points: list[tuple[float, float]] = []
    targets: dict[int, tuple[float, float]] = {}
    for text in texts:
        if "Calibration points" in text:
            points = []
        elif (match := _POINT.match(text)) is not None:
            points.append((float(match[1]), float(match[2])))
        elif (match := _TARGET.search(text)) is not None:
            targets[int(match[1])] = (float(match[3]), float(match[4]))
    count = len(targets)
    if count < 5 or len(points) < count or sorted(targets) != list(range(count)):
        return None
    href = np.array(points[:count])
    px = np.array([targets[i] for i in range(count)])
    found = [_slope(href, px, axis) for axis in (0, 1)]
    if found[0] is None or found[1] is None:
        return None
    across, down = found[0] * HREF_DISTANCE, found[1] * HREF_DISTANCE
    # Pixels are nearly square: both axes must tell nearly the same distance.
    plausible = min(across, down) > 0 and max(across, down) < 1.15 * min(across, down)
    return (across, down) if plausible else None


def _slope(href: Floats, px: Floats, axis: int) -> float | None:
    """Pixels per HREF unit along an axis, None where the targets do not lie on a line.

    The tracker shows the corner targets of a validation nearer to the centre than those of the
    calibration (`validation_corner_scaling`), so only targets in the row or column of the first
    one, the centre, are compared.
    """
    other = 1 - axis
    along = np.abs(px[:, other] - px[0, other]) <= 0.02 * np.ptp(px[:, other])
    if np.count_nonzero(along) < 3:
        along = np.ones(len(px), dtype=np.bool_)
    h, p = href[along, axis], px[along, axis]
    if np.ptp(h) == 0 or np.ptp(p) == 0:
        return None
    slope, offset = np.polyfit(h, p, 1)
    if np.abs(p - slope * h - offset).max() > 0.1 * np.ptp(p):
        return None
    return float(slope)
