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
from gazeveil.events.trace import FIXATION, SACCADE, UNDEFINED, runs

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


def to_grid(points: Floats, seen: Bools, merge: int, split: int) -> tuple[Floats, Bools]:
    """Positions, shape (axes, n), and which of them were seen, on the grid.

    With `split` above 1, sample i is grid sample i times `split`. With `merge` above 1, a grid
    sample is the mean of the seen samples of its block, or of all of them if none was seen.
    """
    n = points.shape[1]
    if split > 1:
        at = np.arange((n - 1) * split + 1 if n else 0)
        low, part = at // split, at % split
        high = np.minimum(low + 1, n - 1)
        grid = points[:, low] + (points[:, high] - points[:, low]) * part / split
        return grid, seen[low] & (seen[high] | (part == 0))
    starts = np.arange(0, n, merge)
    if n == 0:
        return points, seen
    count, size = np.add.reduceat(seen, starts, dtype=np.int64), np.diff(starts, append=n)
    used = seen | np.repeat(count == 0, size)
    total = np.add.reduceat(np.where(used, points, 0.0), starts, axis=1)
    return total / np.where(count > 0, count, size), 2 * count >= size


def noise_on_grid(grid: Floats, there: Bools, step: int) -> float:
    """Standard deviation in degrees of white noise per direction, from the median second difference
    over `step` grid samples, which real movement hardly touches; 0 where too little was seen.
    """
    low, mid, high = slice(None, -2 * step), slice(step, -step), slice(2 * step, None)
    known = there[low] & there[mid] & there[high]
    bend = (grid[:, high] - 2.0 * grid[:, mid] + grid[:, low])[:, known]
    if bend.shape[1] == 0:
        return 0.0
    return math.sqrt(float(np.median((bend * bend).sum(axis=0))) / MEDIAN_SQUARE)


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
    step = max(1, points.shape[1] // _ENOUGH)
    middles = [np.arange(first + 1, stop - 1, step) for first, stop in segments]
    i = np.concatenate([np.empty(0, dtype=np.int64), *middles])
    bend = points[:, i + 1] - 2.0 * points[:, i] + points[:, i - 1]
    if len(i) == 0:
        return 0.0
    return math.sqrt(float(np.median((bend * bend).sum(axis=0))) / MEDIAN_SQUARE)


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
    for first, stop in segments:
        for a, row in enumerate(points):
            path = np.pad(row[first:stop], reach, mode="edge")
            result[a, first:stop] = np.convolve(path, weights, "valid")
    return result


def speeds(points: Floats, segments: Ints, rate_hz: float, interval_s: float) -> Floats:
    """Speed in deg/s at each sample of the segments, over `interval_s` or the step before the
    sample; 0 elsewhere.
    """
    result = np.zeros(points.shape[1])
    steps = max(1, round(interval_s * rate_hz))
    back, ahead = (steps + 1) // 2, steps // 2
    for first, stop in segments:
        i = np.arange(first, stop)
        low, high = np.maximum(first, i - back), np.minimum(stop - 1, i + ahead)
        way = np.linalg.norm(points[:, high] - points[:, low], axis=0)
        result[first:stop] = way * rate_hz / np.maximum(high - low, 1)
    return result


@compiled
def distance(points: Floats, i: int, j: int) -> float:
    """Degrees between two samples."""
    total = 0.0
    for a in range(len(points)):
        step = points[a, j] - points[a, i]
        total += step * step
    return math.sqrt(total)


def close_short_fixations(segments: Ints, least: float, codes: Codes) -> None:
    """Fixations of fewer than `least` samples between two saccades become part of them; alone
    between gaps they are UNDEFINED.
    """
    for begin, end in segments:
        for first, stop in runs(codes[begin:end] == FIXATION):
            if stop - first < least:
                a, b = begin + first, begin + stop
                before = codes[a - 1] if a > begin else UNDEFINED
                after = codes[b] if b < end else UNDEFINED
                if before == after and before in (SACCADE, UNDEFINED):
                    codes[a:b] = before
