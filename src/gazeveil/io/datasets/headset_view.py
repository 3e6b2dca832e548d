"""The half screen of the HTC Vive as DGaze and EHTask project it: 110 degrees high, 1080 x 1200 px.

Place on the screen and tangent angle are related by s = 0.5 + D tan(a) / size with D = 600 / tan(55
deg) px, from the released code of both datasets. Screen places count from the lower left corner.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen

_WIDTH_PX, _HEIGHT_PX = 1080.0, 1200.0
_DISTANCE_PX = 0.5 * _HEIGHT_PX / float(np.tan(np.radians(55.0)))

#: One pixel stands for one millimetre: only the ratio to the distance matters.
VIEW = Screen(_WIDTH_PX, _HEIGHT_PX, _WIDTH_PX, _HEIGHT_PX, _DISTANCE_PX)


def from_fractions(places: Floats) -> Floats:
    """Tangent angles (right, down) in degrees, shape (n, 2), of screen places in 0..1 from the
    lower left corner.
    """
    x, y = VIEW.from_px(places[:, 0] * _WIDTH_PX, (1.0 - places[:, 1]) * _HEIGHT_PX)
    return np.stack((x, y), axis=1)
