"""The test for plain gaze inside compiled loops (:mod:`gazeveil.gaze.recording`)."""

from __future__ import annotations

from gazeveil.compiled import compiled
from gazeveil.gaze.recording import SCREEN_DEG, SPHERE_DEG, Bounds

_SPHERE_DEG, _SCREEN_DEG = SPHERE_DEG, SCREEN_DEG


@compiled
def bounds_deg(sphere: bool) -> Bounds:
    """Bounds of plain gaze on a sphere or a screen, in degrees."""
    return _SPHERE_DEG if sphere else _SCREEN_DEG


@compiled
def is_plain(x_deg: float, y_deg: float, bounds: Bounds) -> bool:
    """Whether one sample is plain gaze; without branches, so that a loop takes several at once."""
    return (x_deg >= bounds[0]) & (x_deg < bounds[1]) & (y_deg >= bounds[2]) & (y_deg < bounds[3])
