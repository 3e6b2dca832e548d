"""Statistics of values of which some are NaN; NaN where too few are known, never a warning."""

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
