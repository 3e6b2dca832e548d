"""Movement statistics: lengths, directions and turns of the steps of a path.

Computed for many recordings at many slot lengths, so the sums are compiled.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.statistics import pair_correlation, sorted_quantiles
from gazeveil.compiled import compiled

#: Quantiles of the length of steps, and of the change from one step to the next.
_LENGTHS = np.array((0.1, 0.25, 0.5, 0.75, 0.9))
_CHANGES = np.array((0.25, 0.5, 0.75, 0.9))

_LAGS = (1, 2, 3)
_SECTORS = 8
_HARMONICS = (1, 2, 3)

#: Below this, in degrees, lengths count as equal: trackers do not resolve them.
_LEAST_DEG = 0.01
_BLUR_DEG = 0.05

# Tangent of half a sector.
_EDGE = math.tan(math.pi / _SECTORS)

# Fewer pairs of steps show no correlation.
_LEAST_PAIRS = 4


def _names() -> tuple[str, ...]:
    names = [f"length_q{100 * q:.0f}" for q in _LENGTHS]
    names += ["length_rms", "length_log_mean", "length_log_sd"]
    for axis in "xy":
        names += [f"{axis}_sd", f"{axis}_mean_abs", f"{axis}_skew"]
        names += [f"{axis}_lag{lag}" for lag in _LAGS]
    names += ["abs_xy", "xy", "length_lag1", "log_x_over_y"]
    names += [f"way_{i}" for i in range(_SECTORS)] + [f"count_{i}" for i in range(_SECTORS)]
    names += [f"turn_{part}{h}" for h in _HARMONICS for part in ("cos", "sin")]
    return (*names, *(f"change_q{100 * q:.0f}" for q in _CHANGES))


#: Names of the statistics, in order.
NAMES = _names()


def step_statistics(steps_deg: Floats) -> Floats:
    """Statistics of steps, in the order of :data:`NAMES`; NaN where too few steps are known.

    Parameters
    ----------
    steps_deg : array of float64, shape (steps, 2)
        Right and down, in order of time; NaN where one end is not known.
    """
    out = np.full((1, len(NAMES)), np.nan)
    if len(steps_deg):
        fill_step_statistics(np.ascontiguousarray(steps_deg.T), np.array((0, len(steps_deg))), out)
    return out[0]


def fill_step_statistics(steps_deg: Floats, ends: Ints, out: Floats) -> None:
    """As :func:`step_statistics` of several paths of one recording, into an array of NaN.

    Parameters
    ----------
    steps_deg : array of float64, shape (2, steps)
        Those of all paths, one path after the other; contiguous.
    ends : array of int64, shape (paths + 1,)
        Where each path begins, and where the last one ends; one without steps is left as it is.
    out : array of float64, shape (paths, len(NAMES))
        Takes the statistics.
    """
    dx, dy = steps_deg
    length, change = np.empty(len(dx)), np.empty(len(dx))
    _both_lengths(dx, dy, length, change)
    lengths = length.copy()
    for begin, end in pairwise(ends.tolist()):
        if end > begin:
            # NumPy sorts faster than compiled code does, and puts NaN last.
            lengths[begin:end].sort()
            change[begin : end - 1].sort()
    _all_statistics(dx, dy, length, lengths, change, ends, _LENGTHS, _CHANGES, out)


@compiled
def _both_lengths(dx: Floats, dy: Floats, length: Floats, change: Floats) -> None:
    """Lengths of the steps, and of their differences, of which the last is not known."""
    for i in range(len(dx)):
        length[i] = math.sqrt(dx[i] * dx[i] + dy[i] * dy[i])
    for i in range(len(dx) - 1):
        u, v = dx[i + 1] - dx[i], dy[i + 1] - dy[i]
        change[i] = math.sqrt(u * u + v * v)


@compiled
def _quantiles(ordered: Floats, at: Floats, out: Floats) -> None:
    """Logarithms of quantiles of the finite values, by linear interpolation. `ordered` is not
    negative, the smallest first and what is not finite last.
    """
    if len(ordered) == 0 or not math.isfinite(ordered[0]):
        return
    sorted_quantiles(ordered, at, out)
    for i in range(len(at)):
        out[i] = math.log(max(out[i], _LEAST_DEG))


@compiled
def _lengths(length: Floats, out: Floats) -> None:
    """Root mean square of the lengths, and mean and deviation of their logarithms."""
    n, square, total, total_square = 0, 0.0, 0.0, 0.0
    for value in length:
        if math.isfinite(value):
            n += 1
            square += value * value
            log = math.log(value + _BLUR_DEG)
            total += log
            total_square += log * log
    if n > 1:
        mean = total / n
        out[0] = math.log(math.sqrt(square / n) + _LEAST_DEG)
        out[1] = mean
        out[2] = math.sqrt(max(total_square / n - mean * mean, 0.0))


@compiled
def _axis(values: Floats, out: Floats) -> None:
    """Deviation, mean size, skewness and lagged correlations of the steps along one axis."""
    n, total, size = 0, 0.0, 0.0
    for value in values:
        if math.isfinite(value):
            n += 1
            total += value
            size += abs(value)
    if n < 4:
        return
    mean, square, cube = total / n, 0.0, 0.0
    for value in values:
        if math.isfinite(value):
            d = value - mean
            square += d * d
            cube += d * d * d
    sd = math.sqrt(square / n)
    out[0], out[1] = sd, size / n
    out[2] = cube / n / (sd * sd * sd) if sd > 1e-9 else 0.0
    for i in range(3):
        lag = i + 1
        out[3 + i] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)


@compiled
def _sector(dx: float, dy: float) -> int:
    """Which of the eight sectors a step points to: the angle is compared with the edges, because
    it costs many times as much to work out.
    """
    wide, high = abs(dx), abs(dy)
    if high <= wide * _EDGE:
        return 4 if math.copysign(1.0, dx) < 0 else 0
    if wide <= high * _EDGE:
        return 6 if dy < 0 else 2
    if dx > 0:
        return 7 if dy < 0 else 1
    return 5 if dy < 0 else 3


@compiled
def _directions(dx: Floats, dy: Floats, length: Floats, out: Floats) -> None:
    """Shares of the way and of the steps in each sector; the first is centred on the right."""
    way, count = np.zeros(_SECTORS), np.zeros(_SECTORS)
    for i in range(len(dx)):
        if math.isfinite(length[i]):
            sector = _sector(dx[i], dy[i])
            way[sector] += length[i]
            count[sector] += 1
    all_way, all_steps = way.sum(), count.sum()
    for k in range(_SECTORS):
        out[k] = way[k] / all_way if all_way > 0 else math.nan
        out[_SECTORS + k] = count[k] / all_steps if all_steps > 0 else math.nan


@compiled
def _turns(dx: Floats, dy: Floats, length: Floats, out: Floats) -> None:
    """Means of cosine and sine of multiples of the turn from one step to the next, each turn
    weighed by the geometric mean of its two steps.

    Cosine and sine of a turn are the products of its steps over their lengths; those of its double
    and threefold follow from them.
    """
    total = 0.0
    sums = np.zeros(6)
    for i in range(len(dx) - 1):
        both = length[i] * length[i + 1]
        if math.isfinite(both) and both > 0:
            weight = math.sqrt(both)
            c = (dx[i] * dx[i + 1] + dy[i] * dy[i + 1]) / both
            s = (dx[i] * dy[i + 1] - dy[i] * dx[i + 1]) / both
            total += weight
            sums[0] += weight * c
            sums[1] += weight * s
            sums[2] += weight * (c * c - s * s)
            sums[3] += weight * 2.0 * s * c
            sums[4] += weight * c * (c * c - 3.0 * s * s)
            sums[5] += weight * s * (3.0 * c * c - s * s)
    for k in range(6):
        out[k] = sums[k] / total if total > 0 else math.nan


@compiled
def _statistics(
    dx: Floats,
    dy: Floats,
    length: Floats,
    lengths: Floats,
    changes: Floats,
    of_lengths: Floats,
    of_changes: Floats,
    out: Floats,
) -> None:
    _quantiles(lengths, of_lengths, out[:5])
    _lengths(length, out[5:8])
    _axis(dx, out[8:14])
    _axis(dy, out[14:20])
    out[20] = pair_correlation(np.abs(dx), np.abs(dy), _LEAST_PAIRS)
    out[21] = pair_correlation(dx, dy, _LEAST_PAIRS)
    out[22] = pair_correlation(length[:-1], length[1:], _LEAST_PAIRS)
    out[23] = math.log(out[8] + _LEAST_DEG) - math.log(out[14] + _LEAST_DEG)
    _directions(dx, dy, length, out[24:40])
    _turns(dx, dy, length, out[40:46])
    _quantiles(changes, of_changes, out[46:50])


@compiled
def _all_statistics(
    dx: Floats,
    dy: Floats,
    length: Floats,
    lengths: Floats,
    changes: Floats,
    ends: Ints,
    of_lengths: Floats,
    of_changes: Floats,
    out: Floats,
) -> None:
    """Statistics of one path after the other."""
    for k in range(len(out)):
        a, b = ends[k], ends[k + 1]
        if b > a:
            _statistics(
                dx[a:b],
                dy[a:b],
                length[a:b],
                lengths[a:b],
                changes[a : b - 1],
                of_lengths,
                of_changes,
                out[k],
            )
