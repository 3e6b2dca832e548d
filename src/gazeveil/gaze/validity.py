"""Which samples are plain gaze, and when a clock counts as set back.

A sample is plain gaze if both angles are numbers inside the space: longitude in [0, 360) and
colatitude in [0, 180) degrees on a sphere, both in (-90, 90) degrees on a screen. NaN and infinity
are outside.

A sample whose time does not come after the last good one is lost. The clock was set back, and its
new times are believed, after :data:`SET_BACK_S` of such samples. They are counted at the nominal
rate, because the clock in doubt cannot measure. A relay sees whole blocks of times and believes a
single step back of more than :data:`SET_BACK_S` at once.

Times of samples: the rate they show, and which of them go forward.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Bools, Floats, Ints
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


_KNOWN_RATES_HZ = (
    *(25, 30, 50, 60, 72, 75, 90, 100, 120, 125, 150, 200),
    *(240, 250, 300, 500, 600, 1000, 1200, 1250, 2000),
)

# Double steps are the tracker's own where at least one step in ten is one, and the distance between
# them varies by less than half of itself (by 0.9 where one in five samples is lost at random).
_DOUBLE_STEPS, _FEWEST_DOUBLE_STEPS, _REGULAR = 0.1, 10, 0.5


def estimate_rate_hz(t_ns: ArrayLike, valid: ArrayLike | None = None) -> float:
    """Samples per second from the steps between neighbouring samples, NaN for fewer than two.

    The mean over steps without gaps is used where it lies near the median, because stamps rounded
    to milliseconds put the median off (120 Hz would read as 125). A tracker that leaves out every
    fifth stamp of a faster clock (Pupil Invisible: 4, 4, 4, 8 ms) has the rate of its mean step;
    double steps that come irregularly are losses and change nothing. Rates that trackers really
    have are recognised within 1.5 %, since real clocks jitter.
    """
    t = np.asarray(t_ns, dtype=np.int64)
    if valid is not None and np.count_nonzero(valid) >= 2:
        t = t[np.asarray(valid)]
    steps = np.diff(t)
    steps = steps[steps > 0]
    if len(steps) == 0:
        return float("nan")
    median = float(np.median(steps))
    rate, near = 1e9 / median, steps[np.abs(steps - median) <= 0.4 * median]
    if len(near) and abs(1e9 / near.mean() / rate - 1) < 0.15:
        rate = 1e9 / float(near.mean())
    double = np.flatnonzero((steps > 1.5 * median) & (steps < 2.5 * median))
    if len(double) > max(_FEWEST_DOUBLE_STEPS, _DOUBLE_STEPS * len(steps)):
        apart = np.diff(double)
        if apart.std() < _REGULAR * apart.mean():
            rate = 1e9 / float(steps[steps < 2.5 * median].mean())
    nearest = min(_KNOWN_RATES_HZ, key=lambda known: abs(rate / known - 1))
    return float(nearest) if abs(rate / nearest - 1) < 0.015 else rate


def increasing(t_ns: ArrayLike, valid: ArrayLike) -> Bools:
    """`valid` with as few samples as possible unmarked so that the times of the rest strictly
    increase.

    This is a longest increasing subsequence: one wild time stamp costs one sample, wherever it
    stands.
    """
    t = np.ascontiguousarray(t_ns, dtype=np.int64)
    mask = np.array(valid, dtype=np.bool_)
    index = np.flatnonzero(mask)
    times = t[index]
    if len(times) < 2 or (np.diff(times) > 0).all():
        return mask
    mask[index[~_longest_increasing(times)]] = False
    return mask


def _longest_increasing(t: Ints) -> Bools:
    """Members of one longest increasing subsequence."""
    # ends[k]: the smallest end of an increasing run of length k + 1, at index tails[k].
    ends: list[int] = []
    tails: list[int] = []
    before = []
    for i, time in enumerate(t.tolist()):
        at = bisect_left(ends, time)
        before.append(tails[at - 1] if at else -1)
        if at == len(ends):
            ends.append(time)
            tails.append(i)
        else:
            ends[at], tails[at] = time, i
    members = np.zeros(len(t), dtype=np.bool_)
    last = tails[-1]
    while last >= 0:
        members[last] = True
        last = before[last]
    return members
