"""Statistics of values of which some are NaN; NaN where too few are known, never a warning.

Compiled sums over values of which some are NaN, which the descriptions of recordings share.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled

#: Smallest value of which a logarithm is taken, in degrees or deg/s: far below what trackers
#: resolve.
LEAST = 0.01


def known(values: Floats) -> Floats:
    """The finite values."""
    return values[np.isfinite(values)]


def quantiles(values: Floats, at: tuple[float, ...]) -> Floats:
    """Quantiles of the known values, between neighbours by a straight line."""
    some = np.sort(known(values))
    if not len(some):
        return np.full(len(at), np.nan)
    # numpy.quantile to the last digit, in less than half of its time: some thousand are taken per
    # person, and most of that time is not sorting.
    place = np.asarray(at, dtype=np.float64) * (len(some) - 1)
    below = np.floor(place).astype(np.int64)
    share = place - below
    low, high = some[below], some[np.minimum(below + 1, len(some) - 1)]
    step = high - low
    between: Floats = np.where(share >= 0.5, high - step * (1.0 - share), low + step * share)
    return between


def sectors(angles_deg: Floats, count: int) -> Ints:
    """Number of the sector of each angle, of `count` equal ones; the first is centred on 0."""
    turned = np.floor((angles_deg + 180.0 / count) / (360.0 / count)).astype(np.int64)
    number: Ints = turned % count
    return number


@compiled
def pair_correlation(a: Floats, b: Floats, least: int) -> float:
    """Correlation over the pairs that are both known; NaN for fewer than `least` pairs, 0 where one
    does not vary.
    """
    n, sum_a, sum_b = 0, 0.0, 0.0
    for i in range(len(a)):
        if math.isfinite(a[i]) and math.isfinite(b[i]):
            n += 1
            sum_a += a[i]
            sum_b += b[i]
    if n < least:
        return math.nan
    mean_a, mean_b = sum_a / n, sum_b / n
    aa, bb, ab = 0.0, 0.0, 0.0
    for i in range(len(a)):
        if math.isfinite(a[i]) and math.isfinite(b[i]):
            u, v = a[i] - mean_a, b[i] - mean_b
            aa += u * u
            bb += v * v
            ab += u * v
    scale = math.sqrt(aa * bb)
    return ab / scale if scale > 1e-12 else 0.0


def line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Slope, value in the middle of x, and deviation of the rest, of a straight line through
    points; NaN for fewer than three.
    """
    if len(x) < 3 or np.ptp(x) < 1e-9:
        return float("nan"), float("nan"), float("nan")
    dx = x - x.mean()
    slope = float(dx @ (y - y.mean()) / (dx @ dx))
    return slope, float(y.mean()), float(np.std(y - y.mean() - slope * dx))


@compiled
def sorted_quantiles(ordered: Floats, at: Floats, out: Floats) -> None:
    """Quantiles `at` of the finite values, between neighbours by a straight line, into `out`;
    nothing is written where none is finite. `ordered` has what is not finite last: NumPy sorts so,
    and faster than compiled code does.
    """
    n = len(ordered)
    while n > 0 and not math.isfinite(ordered[n - 1]):
        n -= 1
    if n == 0:
        return
    for i in range(len(at)):
        place = at[i] * (n - 1)
        low = int(place)
        high = min(low + 1, n - 1)
        out[i] = ordered[low] + (place - low) * (ordered[high] - ordered[low])


@compiled
def sorted_log_quantiles(ordered: Floats, at: Floats, out: Floats) -> None:
    """Logarithms of :func:`sorted_quantiles`; `out` holds NaN before."""
    sorted_quantiles(ordered, at, out)
    for i in range(len(at)):
        out[i] = log_from_least(out[i])


@compiled
def log_from_least(value: float) -> float:
    """The logarithm of what is not below LEAST; NaN stays."""
    return math.nan if math.isnan(value) else math.log(max(value, LEAST))


@compiled
def moments(values: Floats) -> tuple[int, float, float, float, float]:
    """Of the finite values: how many, mean, standard deviation (NaN for fewer than two), skewness
    and excess kurtosis (NaN for fewer than four, or where they do not vary).
    """
    n, total = 0, 0.0
    for value in values:
        if math.isfinite(value):
            n += 1
            total += value
    if n < 2:
        return n, total if n else math.nan, math.nan, math.nan, math.nan
    mean, square, cube, fourth = total / n, 0.0, 0.0, 0.0
    for value in values:
        if math.isfinite(value):
            d = value - mean
            square += d * d
            cube += d * d * d
            fourth += d * d * d * d
    sd = math.sqrt(square / n)
    if n < 4 or sd < 1e-9:
        return n, mean, sd, math.nan, math.nan
    return n, mean, sd, cube / n / sd**3, fourth / n / sd**4 - 3.0


@compiled
def behind(late: Floats, early: Floats, by: int, least: int) -> float:
    """Correlation of steps with others so many slots before, over both axes.

    Parameters
    ----------
    late, early : array of float64, shape (2, steps)
        Right and down.
    by : int
        How many slots.
    least : int
        Fewer pairs show no correlation.
    """
    pairs = late.shape[1] - by
    if pairs < 1:
        return math.nan
    a, b = np.empty(2 * pairs), np.empty(2 * pairs)
    for axis in range(2):
        for i in range(pairs):
            a[2 * i + axis] = late[axis, i + by]
            b[2 * i + axis] = early[axis, i]
    return pair_correlation(a, b, least)


@compiled
def unwrapped(x: Floats) -> Floats:
    """A path of longitudes without jumps at 0/360; what is not known stays so."""
    out = np.empty_like(x)
    turns, last = 0.0, math.nan
    for i in range(len(x)):
        if math.isfinite(x[i]):
            step = x[i] - last
            if step >= 180.0:
                turns -= 360.0
            elif step <= -180.0:
                turns += 360.0
            last = x[i]
        out[i] = x[i] + turns
    return out
