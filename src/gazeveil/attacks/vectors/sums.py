"""Compiled sums over values of which some are NaN, which the descriptions of recordings share."""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.statistics import LEAST, pair_correlation
from gazeveil.compiled import compiled


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
