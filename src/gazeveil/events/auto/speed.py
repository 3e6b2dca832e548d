"""Noise, smoothing and speed at the tracker's own rate, for the `auto` detector.

Speed is the distance covered over an interval of some ms around the sample, after a light Gaussian;
where the rate is too low for that interval, it is the step that led to the sample.

How gaze moves, in numbers that do not depend on the tracker's rate: what the network of the
`auto` detector is given.

A recording is first brought to a grid of about 250 Hz by a whole factor: faster ones are averaged
in blocks, slower ones are joined by straight lines. Around each grid sample, means of blocks of
about k samples are taken k samples before it, at it and k samples after it, for k of
:data:`SCALES`. They give two numbers per scale:

* the speed from the block before to the block after, squashed as v / (v + v0), so that drift,
  pursuit and saccades all lie well inside 0 to 1;
* the turn, the cosine between the step to the block at the sample and the step away from it, less
  sharp where the steps are within the noise: 1 for straight motion, -1 for a reversal.

Two more tell whether the eye was seen and how noisy the recording is.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Codes, Floats, Ints, Singles
from gazeveil.compiled import compiled
from gazeveil.events.trace import FIXATION, SACCADE, UNDEFINED

#: Rate in Hz that grids come near to.
GRID_HZ = 250.0

#: Distances of the blocks in grid samples, and the speed in deg/s that is squashed to one half.
SCALES = (1, 2, 4, 8, 16, 32, 64)
HALF_DEG_S = (60.0, 45.0, 30.0, 20.0, 12.0, 8.0, 5.0)

#: Grid samples before and after that the numbers of one depend on.
REACH = SCALES[-1] + SCALES[-1] // 2

#: Numbers per grid sample: speeds, turns, whether the eye was seen, the noise.
FEATURES = 2 * len(SCALES) + 2

#: The running estimate of a stream's noise begins here and moves by this share per sample.
FIRST_NOISE_DEG = 0.02
NOISE_STEP = 0.02

#: Median square of a second difference of white noise of deviation 1 in two directions: its length
#: has the median 1.1774 times its deviation, whose square is 6.
MEDIAN_SQUARE = 6.0 * 1.1774**2

_SCALES = np.array(SCALES)
_HALF = np.array(HALF_DEG_S)


def grid_factor(rate_hz: float) -> tuple[int, int]:
    """How many samples make one grid sample, and how many grid samples lie from one sample to the
    next; one of the two is 1.
    """
    if rate_hz >= GRID_HZ * math.sqrt(2.0):
        return round(rate_hz / GRID_HZ), 1
    return 1, max(1, round(GRID_HZ / rate_hz))


@compiled
def to_grid(points: Floats, seen: Bools, merge: int, split: int) -> tuple[Floats, Bools]:
    """Positions, shape (axes, n), and which of them were seen, on the grid.

    With `split` above 1, sample i is grid sample i times `split`. With `merge` above 1, a grid
    sample is the mean of the seen samples of its block, or of all of them if none was seen.
    """
    axes, n = points.shape
    if split > 1:
        size = (n - 1) * split + 1 if n > 0 else 0
        grid, there = np.empty((axes, size)), np.empty(size, dtype=np.bool_)
        for i in range(n):
            there[i * split] = seen[i]
            for a in range(axes):
                grid[a, i * split] = points[a, i]
            if i + 1 < n:
                for j in range(1, split):
                    there[i * split + j] = seen[i] and seen[i + 1]
                    for a in range(axes):
                        step = points[a, i + 1] - points[a, i]
                        grid[a, i * split + j] = points[a, i] + step * j / split
        return grid, there
    size = (n + merge - 1) // merge
    grid, there = np.empty((axes, size)), np.empty(size, dtype=np.bool_)
    for g in range(size):
        first, stop = g * merge, min(n, (g + 1) * merge)
        count = 0
        for i in range(first, stop):
            count += seen[i]
        there[g] = 2 * count >= stop - first
        for a in range(axes):
            total = 0.0
            for i in range(first, stop):
                if seen[i] or count == 0:
                    total += points[a, i]
            grid[a, g] = total / (count if count > 0 else stop - first)
    return grid, there


@compiled
def noise_on_grid(grid: Floats, there: Bools, step: int) -> float:
    """Standard deviation in degrees of white noise per direction, from the median second difference
    over `step` grid samples, which real movement hardly touches; 0 where too little was seen.
    """
    axes, n = grid.shape
    size = np.empty(max(0, n - 2 * step))
    count = 0
    for i in range(step, n - step):
        if there[i - step] and there[i] and there[i + step]:
            square = 0.0
            for a in range(axes):
                bend = grid[a, i + step] - 2.0 * grid[a, i] + grid[a, i - step]
                square += bend * bend
            size[count] = square
            count += 1
    if count == 0:
        return 0.0
    return math.sqrt(np.median(size[:count]) / MEDIAN_SQUARE)


@compiled
def running_noise(grid: Floats, there: Bools, step: int) -> Floats:
    """The same noise at each grid sample from those before it: a median that is followed up and
    down by :data:`NOISE_STEP` per sample.
    """
    axes, n = grid.shape
    result = np.empty(n)
    level = FIRST_NOISE_DEG
    for i in range(n):
        due = i >= 2 * step and i % step == 0
        if due and there[i] and there[i - step] and there[i - 2 * step]:
            square = 0.0
            for a in range(axes):
                bend = grid[a, i] - 2.0 * grid[a, i - step] + grid[a, i - 2 * step]
                square += bend * bend
            up = square > level * level * MEDIAN_SQUARE
            level = min(max(level * (1.0 + NOISE_STEP if up else 1.0 - NOISE_STEP), 1e-3), 10.0)
        result[i] = level
    return result


@compiled
def motion(grid: Floats, there: Bools, grid_hz: float, noise: Floats, causal: bool) -> Singles:
    """The numbers of each grid sample, shape (n, FEATURES), float32.

    With `causal` the blocks end at the sample instead of lying around it, so that nothing after it
    is needed. `noise` is that of each grid sample.
    """
    axes, n = grid.shape
    result = np.empty((n, FEATURES), dtype=np.float32)
    totals = np.zeros((axes, n + 1))
    for a in range(axes):
        for i in range(n):
            totals[a, i + 1] = totals[a, i] + (grid[a, i] - grid[a, 0])
    for i in range(n):
        result[i, FEATURES - 2] = 1.0 if there[i] else -1.0
        result[i, FEATURES - 1] = math.log(noise[i] + 0.002) * 0.25 + 0.5
    scales = len(_SCALES)
    fast, turn = np.empty(n), np.empty(n)
    for s in range(scales):
        k = _SCALES[s]
        half = k // 2
        back = half + k if causal else 0
        _at_scale(totals, grid, noise, k, back, grid_hz, _HALF[s], fast, turn)
        for i in range(n):
            result[i, s] = fast[i]
            result[i, scales + s] = turn[i]
    return result


@compiled
def _at_scale(
    totals: Floats,
    grid: Floats,
    noise: Floats,
    k: int,
    back: int,
    grid_hz: float,
    half_deg_s: float,
    fast: Floats,
    turn: Floats,
) -> None:
    """Squashed speed and turn of all grid samples at one scale, with blocks `back` samples before
    them.
    """
    axes, n = grid.shape
    half = k // 2
    size, per_s = 1.0 / (2 * half + 1), grid_hz / (2.0 * k)
    fast[:], turn[:] = 0.0, 0.0
    before, after = np.zeros(n), np.zeros(n)
    # Blocks that lie inside the recording, in a loop that becomes vector instructions.
    first, stop = min(n, max(0, k + half + back)), max(0, n - max(0, k + half - back))
    for a in range(axes):
        row = totals[a]
        for i in range(first, stop):
            m = i - back
            low = row[m - k + half + 1] - row[m - k - half]
            mid = row[m + half + 1] - row[m - half]
            high = row[m + k + half + 1] - row[m + k - half]
            one, two = (mid - low) * size, (high - mid) * size
            fast[i] += (one + two) * (one + two)
            turn[i] += one * two
            before[i] += one * one
            after[i] += two * two
        for i in range(n):
            if i < first or i >= stop:
                m = i - back
                one = _block(totals, grid, a, m, half, n) - _block(totals, grid, a, m - k, half, n)
                two = _block(totals, grid, a, m + k, half, n) - _block(totals, grid, a, m, half, n)
                fast[i] += (one + two) * (one + two)
                turn[i] += one * two
                before[i] += one * one
                after[i] += two * two
    for i in range(n):
        speed = math.sqrt(fast[i]) * per_s
        fast[i] = speed / (speed + half_deg_s)
        turn[i] /= math.sqrt(before[i] * after[i]) + noise[i] * noise[i] * size + 1e-8


@compiled
def _block(totals: Floats, grid: Floats, a: int, centre: int, half: int, n: int) -> float:
    """Mean of the samples `half` around `centre`; the ends of the recording go on as they are."""
    first, stop = centre - half, centre + half + 1
    if first >= 0 and stop <= n:
        return (totals[a, stop] - totals[a, first]) / (stop - first)
    total = 0.0
    for i in range(first, stop):
        total += grid[a, min(max(i, 0), n - 1)] - grid[a, 0]
    return total / (stop - first)


# Second differences from which a median is certain enough.
_ENOUGH = 100_000


def noise_deg(points: Floats, segments: Ints) -> float:
    """Standard deviation of white noise per direction, from the median second difference, which
    real movement hardly touches; 0 where there is none. Long recordings are looked at here and
    there.
    """
    squares = _second_differences(points, segments, max(1, points.shape[1] // _ENOUGH))
    return math.sqrt(float(np.median(squares)) / MEDIAN_SQUARE) if len(squares) else 0.0


@compiled
def _second_differences(points: Floats, segments: Ints, step: int) -> Floats:
    """Squares of every `step`-th second difference within the segments."""
    result = np.empty(points.shape[1])
    count = 0
    for s in range(len(segments)):
        for i in range(segments[s, 0] + 1, segments[s, 1] - 1, step):
            square = 0.0
            for a in range(len(points)):
                bend = points[a, i + 1] - 2.0 * points[a, i] + points[a, i - 1]
                square += bend * bend
            result[count] = square
            count += 1
    return result[:count]


def smoothing_samples(
    noise: float, rate_hz: float, least: float, speed_noise_deg_s: float
) -> float:
    """Gaussian width in samples, at least `least`, that holds the noise of the speed at
    `speed_noise_deg_s`.

    The derivative of white noise of deviation s after a Gaussian of width w has deviation s / (2
    pi^(1/4) w^(3/2)) per sample.
    """
    return max(
        least,
        (
            (noise * rate_hz / (2 * math.pi**0.25 * speed_noise_deg_s)) ** (2 / 3)
            if noise * rate_hz > speed_noise_deg_s
            else 0.0
        ),
    )


@compiled
def smoothed(points: Floats, segments: Ints, sigma: float) -> Floats:
    """Positions, shape (axes, n), after a Gaussian of `sigma` samples inside each segment; its ends
    are continued as they are.
    """
    result = points.copy()
    reach = math.ceil(3.0 * sigma)
    if sigma < 0.2:
        return result
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    for s in range(len(segments)):
        first, last = segments[s, 0], segments[s, 1] - 1
        for a in range(len(points)):
            row, out = points[a], result[a]
            for i in range(first, last + 1):
                total = 0.0
                if i - reach >= first and i + reach <= last:
                    for k in range(2 * reach + 1):
                        total += weights[k] * row[i - reach + k]
                else:
                    for k in range(2 * reach + 1):
                        total += weights[k] * row[min(max(i - reach + k, first), last)]
                out[i] = total
    return result


@compiled
def speeds(points: Floats, segments: Ints, rate_hz: float, interval_s: float) -> Floats:
    """Speed in deg/s at each sample of the segments, over `interval_s` or the step before the
    sample; 0 elsewhere.
    """
    result = np.zeros(points.shape[1])
    steps = max(1, round(interval_s * rate_hz))
    back, ahead = (steps + 1) // 2, steps // 2
    for s in range(len(segments)):
        first, last = segments[s, 0], segments[s, 1] - 1
        for i in range(first, last + 1):
            lo, hi = max(first, i - back), min(last, i + ahead)
            if hi > lo:
                result[i] = distance(points, lo, hi) * rate_hz / (hi - lo)
    return result


@compiled
def distance(points: Floats, i: int, j: int) -> float:
    """Degrees between two samples."""
    total = 0.0
    for a in range(len(points)):
        step = points[a, j] - points[a, i]
        total += step * step
    return math.sqrt(total)


@compiled
def close_short_fixations(segments: Ints, least: float, codes: Codes) -> None:
    """Fixations of fewer than `least` samples between two saccades become part of them; alone
    between gaps they are UNDEFINED.
    """
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        start = first
        for i in range(first, stop):
            if i + 1 == stop or codes[i + 1] != codes[i]:
                if codes[i] == FIXATION and i + 1 - start < least:
                    before = codes[start - 1] if start > first else UNDEFINED
                    after = codes[i + 1] if i + 1 < stop else UNDEFINED
                    if before == SACCADE and after == SACCADE:
                        codes[start : i + 1] = SACCADE
                    elif before == UNDEFINED and after == UNDEFINED:
                        codes[start : i + 1] = UNDEFINED
                start = i + 1
