"""The course of a saccade.

Peak speed follows the main sequence V = v_max (1 - exp(-A / c)) (Bahill, Clark and Stark 1975). The
share of the way covered after the share u of the time is the minimum-jerk step 10u^3 - 15u^4 +
6u^5, whose peak speed is 1.875 times the mean speed; so the duration is 1.875 A / V, and a little
more for a skewed course. (Measured ratios of peak to mean lie between 1.65, Becker 1989, and 2;
what the hand labels of GazeCom call a saccade lasts rather longer than this.) Warping time by u + w
u (1 - u) puts the peak early, as real saccades have it, the more the larger they are (van Opstal
and van Gisbergen 1987). The path bulges sideways by a share of the amplitude (curvature).
"""

from __future__ import annotations

import math

from gazeveil.compiled import compiled

PEAK_TO_MEAN = 1.875
SHORTEST_S = 0.008


@compiled
def peak_speed(amplitude_deg: float, v_max_deg_s: float, constant_deg: float) -> float:
    """Peak speed of the main sequence, degrees per second."""
    return v_max_deg_s * (1.0 - math.exp(-amplitude_deg / constant_deg))


@compiled
def duration(amplitude_deg: float, v_max_deg_s: float, constant_deg: float, skew: float) -> float:
    """Seconds a saccade of this size takes."""
    if amplitude_deg < 1e-6:
        return SHORTEST_S
    return max(
        SHORTEST_S,
        PEAK_TO_MEAN
        * (1.0 + 0.5 * skew * skew)
        * amplitude_deg
        / peak_speed(amplitude_deg, v_max_deg_s, constant_deg),
    )


@compiled
def share(u: float, skew: float) -> float:
    """Share of the way covered at share `u` of the time; `skew` in (-1, 1), positive for an early
    peak.
    """
    if u <= 0.0:
        return 0.0
    if u >= 1.0:
        return 1.0
    w = u + skew * u * (1.0 - u)
    return w * w * w * (10.0 - 15.0 * w + 6.0 * w * w)
