"""How far the screen was, from what an EyeLink ASC file says about its calibration.

An ASC file gives the screen in pixels and no millimetres. But calibration lines give each target's
angle as HREF (a plane 15000 units before the eye) and validation lines give the same targets in
pixels; the slope between the two is the viewing distance in pixels, which is all that degrees need.
Files without both get a documented assumption.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gazeveil.gaze.geometry import Screen

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
_TARGET = re.compile(r"VALIDATE\s+\S+\s+POINT\s+(\d+)\s+(LEFT|RIGHT)\s+at\s+(-?[\d.]+),(-?[\d.]+)")


@dataclass(frozen=True)
class Geometry:
    """The screen, its top-left corner in the file's pixels, and where the distance comes from."""

    screen: Screen
    left_px: float
    top_px: float
    source: str


def from_messages(texts: list[str], screen: Screen | None = None) -> Geometry:
    """Screen of an ASC file.

    Parameters
    ----------
    texts : list of str
        Its messages without their times.
    screen : Screen, optional
        What the user says goes before everything.

    Returns
    -------
    Geometry
        `source` is `given`, `calibration` or `assumed`.
    """
    box = next(
        (tuple(float(v) for v in m.groups()) for t in texts if (m := _COORDS.search(t))),
        _ASSUMED_PX,
    )
    left, top = box[0], box[1]
    if screen is not None:
        return Geometry(screen, left, top, "given")
    width, height = (_extent(box[2] - box[0]), _extent(box[3] - box[1]))
    if width <= 0 or height <= 0:
        left, top, width, height = _ASSUMED_PX
    pitch_mm = _ASSUMED_WIDTH_MM / width
    distance_px = _distance_px(texts)
    distance_mm = _ASSUMED_DISTANCE_MM if distance_px is None else distance_px * pitch_mm
    estimated = Screen(width, height, _ASSUMED_WIDTH_MM, height * pitch_mm, distance_mm)
    return Geometry(estimated, left, top, "assumed" if distance_px is None else "calibration")


def _extent(span: float) -> float:
    """Pixels between two corners: trackers write the last pixel (1919) or the size (1920)."""
    return span + 1 if round(span) % 2 else span


def _distance_px(texts: list[str]) -> float | None:
    """Viewing distance in pixels from calibration and validation of the same targets, None where
    they do not agree.
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
    slopes = []
    for axis in (0, 1):
        if np.ptp(href[:, axis]) == 0:
            return None
        slope, offset = np.polyfit(href[:, axis], px[:, axis], 1)
        if np.abs(px[:, axis] - slope * href[:, axis] - offset).max() > 0.1 * np.ptp(px[:, axis]):
            return None
        slopes.append(slope * HREF_DISTANCE)
    # Square pixels: both axes must tell the same distance.
    return float(np.mean(slopes)) if min(slopes) > 0 and max(slopes) < 1.15 * min(slopes) else None
