"""What a release of Kaleido shows of its own noise.

A value that changes was published, one that stays was repeated, and what a publication may spend
follows from the publications of the window before it. So the scale of every publication's noise is
public: whoever averages a release weighs its values by it.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.compiled import compiled
from gazeveil.privacy.stream.kaleido.step import KaleidoSettings, share


def noise_scales_deg(
    settings: KaleidoSettings, x_deg: Floats, y_deg: Floats, valid: Bools
) -> Floats:
    """Scale b of the noise of what each sample shows, in degrees, from a released recording alone.

    Parameters
    ----------
    settings : KaleidoSettings
        The public numbers of the mechanism.
    x_deg, y_deg, valid : arrays, shape (samples,)
        As released.

    Returns
    -------
    array of float64, shape (samples,)
        Infinite before the first publication and where nothing is left to publish with.
    """
    unit_deg = math.degrees(1.0) if settings.sphere else settings.step_deg
    units = _units(
        settings.rule, settings.units, settings.slots, settings.window, x_deg, y_deg, valid
    )
    scale = settings.scale_times_units * unit_deg / np.maximum(units, 1e-300)
    return np.where(units > 0, scale, np.inf)


@compiled
def _units(
    rule: int, units: int, slots: int, window: int, x: Floats, y: Floats, valid: Bools
) -> Floats:
    """Units of the publication that each sample shows."""
    n = len(x)
    out = np.zeros(n)
    times, spent_at = np.empty(n, np.int64), np.empty(n, np.int64)
    first, after, spent, shown = 0, 0, 0, 0
    last_x, last_y = math.nan, math.nan
    for i in range(n):
        if valid[i] and not (x[i] == last_x and y[i] == last_y):
            while first < after and i - times[first] >= window:
                spent -= spent_at[first]
                first += 1
            shown, counted = share(rule, units, units // slots, spent)
            times[after], spent_at[after] = i, counted
            spent += counted
            after += 1
            last_x, last_y = x[i], y[i]
        out[i] = shown
    return out
