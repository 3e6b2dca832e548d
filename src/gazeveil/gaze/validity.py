"""Which samples are plain gaze, and when a clock counts as set back.

A sample is plain gaze if both angles are numbers inside the space: longitude in [0, 360) and
colatitude in [0, 180) degrees on a sphere, both in (-90, 90) degrees on a screen. NaN and infinity
are outside.

A sample whose time does not come after the last good one is lost. The clock was set back, and its
new times are believed, after :data:`SET_BACK_S` of such samples. They are counted at the nominal
rate, because the clock in doubt cannot measure. A relay sees whole blocks of times and believes a
single step back of more than :data:`SET_BACK_S` at once.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import Space, Sphere

#: Lowest x, first x above, lowest y, first y above, in degrees.
Bounds: TypeAlias = tuple[float, float, float, float]

#: How long, or how far, times go back until the clock counts as set back, in seconds.
SET_BACK_S = 0.5

# Half-open as on the sphere: the smallest number above -90 makes the lower end open.
_SCREEN_LOW_DEG = math.nextafter(-90.0, 0.0)
#: Bounds of plain gaze.
SPHERE_DEG: Bounds = (0.0, 360.0, 0.0, 180.0)
SCREEN_DEG: Bounds = (_SCREEN_LOW_DEG, 90.0, _SCREEN_LOW_DEG, 90.0)


def are_plain(space: Space, x_deg: Floats, y_deg: Floats) -> Bools:
    """Which samples are plain gaze in a space."""
    low_x, high_x, low_y, high_y = SPHERE_DEG if isinstance(space, Sphere) else SCREEN_DEG
    return (x_deg >= low_x) & (x_deg < high_x) & (y_deg >= low_y) & (y_deg < high_y)


def set_back_samples(rate_hz: float) -> int:
    """Samples in :data:`SET_BACK_S` at a nominal rate in Hz, at least one."""
    return max(1, round(SET_BACK_S * rate_hz))
