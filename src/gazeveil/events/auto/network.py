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

The network of the `auto` detector: from motion on the grid to the probability of each class.

A small convolutional network: one layer at the grid's rate, seven at a quarter of it whose reach
doubles from one to the next (2 s to both sides in all), one more at the grid's rate. Its 12,500
weights come with the package; `benchmarks/events_training.py` trains them and
`docs/explain/event_network.md` says on what. PyTorch is not needed.

The causal form looks to the past only: every layer's three samples end at its own, and what it says
at a grid sample is about the one `DELAY` before (:mod:`gazeveil.events.online.streaming` runs it).

Fixation or smooth pursuit: decided for each interval between saccades, with the share of pursuit
of the recording itself.

The network gives the odds of pursuit against fixation sample by sample. They lean towards what its
training recordings held, an eighth of pursuit; people who look at moving dots pursue most of the
time, and the same drift means more there. So the share of pursuit is estimated from the recording:
intervals vote with their mean log odds, tempered since neighbouring samples do not speak
independently, and the share moves from :data:`SHARE` as far as the votes carry it against
:data:`PRIOR_S` seconds that keep it there (expectation maximisation of the share of a mixture,
Saerens et al. 2002). The odds then move with the share, and the interval is what its mean says.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Codes, Floats, Ints, Singles
from gazeveil.compiled import compiled, fused, fused_inlined
from gazeveil.events.trace import FIXATION, PURSUIT, SACCADE, UNDEFINED, runs

#: Rate in Hz that grids come near to.
GRID_HZ = 250.0

#: Distances of the blocks in grid samples, and the speed in deg/s that is squashed to one half.
SCALES = (1, 2, 4, 8, 16, 32, 64)
HALF_DEG_S = (60.0, 45.0, 30.0, 20.0, 12.0, 8.0, 5.0)

#: Grid samples before and after that the numbers of one depend on.
SPEED_REACH = SCALES[-1] + SCALES[-1] // 2

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


#: What the network tells apart, and their places.
CLASSES = ("fixation", "saccade", "pso", "pursuit", "other")
P_FIXATION, P_SACCADE, P_PSO, P_PURSUIT, P_OTHER = range(5)

#: Grid samples that make one of the slow layers, and the reach of those in their own samples.
STRIDE = 4
DILATIONS = (1, 2, 4, 8, 16, 32, 64)

#: Grid samples by which the causal form speaks late.
DELAY = 2

# Channels at the grid's rate and of the slow layers. Loops over a fixed number of channels are
# compiled to vector instructions.
WIDTH, HIDDEN = 16, 32

#: What lies further away than so many grid samples has no influence.
REACH = STRIDE * (sum(DILATIONS) + 2)

_DILATIONS = np.array(DILATIONS)

# Rows of one product: so few that the library behind it does not start threads for them.
_ROWS = 64

# The classes, and as many columns as vector instructions take at once: the rest is zero.
_CLASSES, LANES = len(CLASSES), 8


class Network(NamedTuple):
    """Singles, laid out for rows of samples times columns of channels.

    Parameters
    ----------
    stem : array, shape (3, FEATURES, WIDTH)
        First layer, at the grid's rate.
    down : array, shape (STRIDE, WIDTH, HIDDEN)
        To the slow rate.
    depthwise : array, shape (7, 3, HIDDEN)
        The slow layers, each channel by itself.
    pointwise : array, shape (7, HIDDEN, HIDDEN)
        What mixes the channels after each.
    up : array, shape (HIDDEN, WIDTH)
        Back to the grid's rate.
    fuse : array, shape (3, WIDTH, WIDTH)
        Last layer at the grid's rate.
    out : array, shape (WIDTH, 8)
        To the classes; the last three columns are zero.
    stem_bias, down_bias, depthwise_bias, pointwise_bias, up_bias, fuse_bias, out_bias : array
        What is added to each.
    """

    stem: Singles
    down: Singles
    depthwise: Singles
    pointwise: Singles
    up: Singles
    fuse: Singles
    out: Singles
    stem_bias: Singles
    down_bias: Singles
    depthwise_bias: Singles
    pointwise_bias: Singles
    up_bias: Singles
    fuse_bias: Singles
    out_bias: Singles

    @classmethod
    def load(cls, source: object) -> Network:
        """Singles as the training script writes them: (out, in, kernel)."""
        with np.load(source) as file:  # type: ignore[arg-type]
            w = {name: file[name] for name in file.files}
        count = range(len(DILATIONS))
        arrays = (
            w["stem.weight"].transpose(2, 1, 0),
            w["down.weight"].transpose(2, 1, 0),
            np.stack([w[f"depthwise.{i}.weight"][:, 0].T for i in count]),
            np.stack([w[f"pointwise.{i}.weight"][:, :, 0].T for i in count]),
            w["up.weight"][:, :, 0].T,
            w["fuse.weight"].transpose(2, 1, 0),
            np.pad(w["out.weight"][:, :, 0].T, ((0, 0), (0, LANES - _CLASSES))),
            w["stem.bias"],
            w["down.bias"],
            np.stack([w[f"depthwise.{i}.bias"] for i in count]),
            np.stack([w[f"pointwise.{i}.bias"] for i in count]),
            w["up.bias"],
            w["fuse.bias"],
            np.pad(w["out.bias"], (0, LANES - _CLASSES)),
        )
        return cls(*(np.ascontiguousarray(a, dtype=np.float32) for a in arrays))

    def probabilities(self, features: Singles) -> Singles:
        """Chance of each class at each grid sample, shape (n, 5)."""
        return _forward(self, features)


@fused_inlined
def classify(row: Singles, weight: Singles, bias: Singles, scratch: Singles) -> None:
    """Chances of the classes from the last layer's numbers of one grid sample, in `scratch`."""
    for o in range(LANES):
        scratch[o] = bias[o]
    for c in range(0, WIDTH, 4):
        a, b, d, e = row[c], row[c + 1], row[c + 2], row[c + 3]
        for o in range(LANES):
            scratch[o] += (
                a * weight[c, o]
                + b * weight[c + 1, o]
                + d * weight[c + 2, o]
                + e * weight[c + 3, o]
            )
    top = scratch[0]
    for o in range(1, _CLASSES):
        top = max(top, scratch[o])
    whole = np.float32(0)
    for o in range(_CLASSES):
        scratch[o] = math.exp(scratch[o] - top)
        whole += scratch[o]
    for o in range(_CLASSES):
        scratch[o] /= whole


@fused
def _forward(net: Network, features: Singles) -> Singles:
    """All grid samples at once: the products of each layer in blocks of rows."""
    n = len(features)
    slow_n = (n + STRIDE - 1) // STRIDE
    fast = np.zeros((slow_n * STRIDE, WIDTH), dtype=np.float32)
    _over_three(features, net.stem, net.stem_bias, fast[:n])
    slow = np.empty((slow_n, HIDDEN), dtype=np.float32)
    blocks, down = (
        fast.reshape((slow_n, STRIDE * WIDTH)),
        net.down.reshape((STRIDE * WIDTH, HIDDEN)),
    )
    for first in range(0, slow_n, _ROWS):
        stop = min(slow_n, first + _ROWS)
        np.dot(blocks[first:stop], down, slow[first:stop])
    _rectify(slow, net.down_bias)
    mixed, product = np.empty_like(slow), np.empty((_ROWS, HIDDEN), dtype=np.float32)
    for layer in range(len(_DILATIONS)):
        _along_time(slow, net.depthwise[layer], net.depthwise_bias[layer], _DILATIONS[layer], mixed)
        for first in range(0, slow_n, _ROWS):
            stop = min(slow_n, first + _ROWS)
            rows = product[: stop - first]
            np.dot(mixed[first:stop], net.pointwise[layer], rows)
            _rectify(rows, net.pointwise_bias[layer])
            for j in range(stop - first):
                for o in range(HIDDEN):
                    slow[first + j, o] += rows[j, o]
    up = np.empty((slow_n, WIDTH), dtype=np.float32)
    for first in range(0, slow_n, _ROWS):
        stop = min(slow_n, first + _ROWS)
        np.dot(slow[first:stop], net.up, up[first:stop])
    for i in range(n):
        for o in range(WIDTH):
            fast[i, o] = max(fast[i, o] + up[i // STRIDE, o] + net.up_bias[o], np.float32(0))
    last = np.empty((n, WIDTH), dtype=np.float32)
    _over_three(fast[:n], net.fuse, net.fuse_bias, last)
    result, scratch = np.empty((n, _CLASSES), dtype=np.float32), np.empty(LANES, dtype=np.float32)
    for i in range(n):
        for o in range(WIDTH):
            last[i, o] += fast[i, o]
        classify(last[i], net.out, net.out_bias, scratch)
        for o in range(_CLASSES):
            result[i, o] = scratch[o]
    return result


@fused
def _over_three(source: Singles, weight: Singles, bias: Singles, result: Singles) -> None:
    """A layer over the sample before, the sample and the one after; beyond the ends is nothing."""
    n, width = source.shape
    flat = weight.reshape((3 * width, WIDTH))
    rows = np.zeros((_ROWS, 3 * width), dtype=np.float32)
    for first in range(0, n, _ROWS):
        stop = min(n, first + _ROWS)
        for i in range(first, stop):
            for k in range(3):
                at = i + k - 1
                for c in range(width):
                    rows[i - first, k * width + c] = source[at, c] if 0 <= at < n else 0.0
        np.dot(rows[: stop - first], flat, result[first:stop])
    _rectify(result, bias)


@fused
def _along_time(slow: Singles, weight: Singles, bias: Singles, reach: int, result: Singles) -> None:
    """Each channel by itself over the sample `reach` before, the sample and the one after."""
    n = len(slow)
    for j in range(n):
        for o in range(HIDDEN):
            result[j, o] = bias[o] + slow[j, o] * weight[1, o]
    for j in range(reach, n):
        for o in range(HIDDEN):
            result[j, o] += slow[j - reach, o] * weight[0, o]
    for j in range(n - reach):
        for o in range(HIDDEN):
            result[j, o] += slow[j + reach, o] * weight[2, o]


@fused
def _rectify(values: Singles, bias: Singles) -> None:
    for i in range(values.shape[0]):
        for o in range(values.shape[1]):
            values[i, o] = max(values[i, o] + bias[o], np.float32(0))


@cache
def shipped(name: str) -> Network:
    """A network that comes with the package: `auto` or `online`."""
    with (Path(__file__).parent.parent / "weights" / f"{name}.npz").open("rb") as file:
        return Network.load(file)


#: Share of pursuit that a recording has without evidence, and the seconds that speak for it.
SHARE = 0.12
PRIOR_S = 2.0

#: Slower recordings show too little of an interval: their share may fall, not rise.
SHARE_FROM_HZ = 200.0

#: Log odds are divided by this before they vote.
TEMPERATURE = 1.5

#: Longest part of an interval that is decided as one, in seconds.
PART_S = 1.0

#: Gaze that stays within so many degrees rests, however smoothly it drifts.
AREA_DEG = 0.3

#: Chances count at least this much.
LEAST_PROBABILITY = 1e-4


def mark_pursuit(
    points: Floats, probabilities: Singles, merge: int, split: int, rate_hz: float, codes: Codes
) -> None:
    """Turn the parts of FIXATION that pursue into PURSUIT."""
    longest = max(1, int(PART_S * rate_hz))
    parts: list[tuple[int, int]] = []
    for first, stop in runs(codes == FIXATION):
        pieces = -(-(stop - first) // longest)
        cuts = [first + (stop - first) * k // pieces for k in range(pieces + 1)]
        parts += pairwise(cuts)
    if not parts:
        return
    chances = np.asarray(probabilities, dtype=np.float64) + LEAST_PROBABILITY
    each = np.log(chances[:, P_PURSUIT] / chances[:, P_FIXATION])
    odds = np.array(
        [each[a * split // merge : (b - 1) * split // merge + 1].mean() for a, b in parts]
    )
    shift = TEMPERATURE * share_shift(odds, np.diff(parts)[:, 0] / rate_hz)
    if rate_hz < SHARE_FROM_HZ:
        shift = min(shift, 0.0)
    for own, (first, stop) in zip(odds.tolist(), parts, strict=True):
        if own + shift > 0.0:
            path = points[:, first:stop]
            if np.linalg.norm(path - path[:, :1], axis=0).max() > AREA_DEG:
                codes[first:stop] = PURSUIT


def share_shift(odds: Floats, length_s: Floats) -> float:
    """By how much the log odds of the share of pursuit differ from those of :data:`SHARE`."""
    usual = math.log(SHARE / (1.0 - SHARE))
    shift, whole = 0.0, float(length_s.sum()) + PRIOR_S
    for _ in range(100):
        votes = length_s / (1.0 + np.exp(-(odds / TEMPERATURE + shift)))
        share = (PRIOR_S * SHARE + float(votes.sum())) / whole
        moved = math.log(share / (1.0 - share)) - usual
        if abs(moved - shift) < 1e-4:
            return moved
        shift = moved
    return shift
