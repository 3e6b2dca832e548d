"""The network of the online detector, one grid sample at a time.

The numbers are those of :mod:`gazeveil.events.auto.network` with blocks that end at the sample, and
of the causal form of :mod:`gazeveil.events.auto.network`. What a layer needs of the past is kept in
rings, so a stream costs the same at its end as at its beginning. A lost sample counts as the last
place that was seen: a stream cannot know where the eye will be found again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats, Ints, Singles
from gazeveil.compiled import compiled, fused, fused_inlined
from gazeveil.events.auto.network import (
    DILATIONS,
    FEATURES,
    FIRST_NOISE_DEG,
    HALF_DEG_S,
    HIDDEN,
    LANES,
    MEDIAN_SQUARE,
    NOISE_STEP,
    SCALES,
    STRIDE,
    WIDTH,
    Network,
    classify,
)

_SCALES = np.array(SCALES)
_HALF = np.array(HALF_DEG_S)
_DILATIONS = np.array(DILATIONS)

# The longest reach of a block into the past is 3 half scales and two scales.
_TOTALS = 256
_MASK = _TOTALS - 1

# Where the ring of each slow layer begins; it holds two reaches and the present.
_STARTS = np.concatenate(([0], np.cumsum(2 * _DILATIONS + 1)))


# Rows of weights and of memory in one array each: compiled code pays for every array it is handed.
_SHAPES = (
    (3, FEATURES, WIDTH),
    (STRIDE, WIDTH, HIDDEN),
    (len(DILATIONS), 3, HIDDEN),
    (len(DILATIONS), HIDDEN, HIDDEN),
    (HIDDEN, WIDTH),
    (3, WIDTH, WIDTH),
    (WIDTH, LANES),
    (WIDTH,),
    (HIDDEN,),
    (len(DILATIONS), HIDDEN),
    (len(DILATIONS), HIDDEN),
    (WIDTH,),
    (WIDTH,),
    (LANES,),
)
_CUTS = tuple(int(n) for n in np.cumsum([0, *(np.prod(shape) for shape in _SHAPES)]))
_ROWS = int(_STARTS[-1])
_MEMORY = tuple(
    int(n)
    for n in np.cumsum([0, 3 * FEATURES, 3 * WIDTH, STRIDE * WIDTH, _ROWS * HIDDEN, WIDTH, LANES])
)


class StreamState(NamedTuple):
    """What is kept of a stream.

    Parameters
    ----------
    totals : array, shape (256, 3)
        Running sums of places in deg less the first place, by grid sample.
    places : array, shape (5, 3)
        The first place, the last three places at the tracker's or the grid's rate, whichever is
        lower, and the sum of the block being filled.
    noise : array, shape (2,)
        The running noise in deg, and the grid's rate in Hz.
    counts : array of int64, shape (7,)
        Grid samples so far, places so far, samples of the block being filled, seen ones of them,
        and whether each of the last three places was seen.
    features, fast : array, shape (3, channels)
        Rings of the layers at the grid's rate.
    block : array, shape (4, channels)
        Output of the first layer that waits for the slow ones.
    slow : array, shape (rings, channels)
        Rings of the slow layers.
    up : array, shape (channels,)
        What the slow layers said last.
    probabilities : array, shape (8,)
        What the network says now (the first five), about the grid sample `DELAY` before.
    """

    totals: Floats
    places: Floats
    noise: Floats
    counts: Ints
    features: Singles
    fast: Singles
    block: Singles
    slow: Singles
    up: Singles
    probabilities: Singles


(_GRID, _PLACES, _FILLED, _FOUND, _WAS_SEEN) = range(5)
_FIRST, _BLOCK = 0, 4

#: Lengths of the three arrays behind a StreamState.
DOUBLES, SINGLES, COUNTS = 3 * _TOTALS + 17, _MEMORY[-1], 7


def new_memory(grid_hz: float) -> tuple[Floats, Singles, Ints]:
    """The three arrays before the first sample."""
    doubles = np.zeros(DOUBLES)
    doubles[-2:] = FIRST_NOISE_DEG, grid_hz
    return doubles, np.zeros(SINGLES, dtype=np.float32), np.zeros(COUNTS, dtype=np.int64)


def packed(net: Network) -> Singles:
    """All weights in one array."""
    return np.concatenate([w.ravel() for w in net])


@compiled
def unpack_state(doubles: Floats, singles: Singles, counts: Ints) -> StreamState:
    """The state that lies in three arrays."""
    m = _MEMORY
    return StreamState(
        doubles[: 3 * _TOTALS].reshape((_TOTALS, 3)),
        doubles[3 * _TOTALS : 3 * _TOTALS + 15].reshape((5, 3)),
        doubles[3 * _TOTALS + 15 :],
        counts,
        singles[m[0] : m[1]].reshape((3, FEATURES)),
        singles[m[1] : m[2]].reshape((3, WIDTH)),
        singles[m[2] : m[3]].reshape((STRIDE, WIDTH)),
        singles[m[3] : m[4]].reshape((_ROWS, HIDDEN)),
        singles[m[4] : m[5]],
        singles[m[5] : m[6]],
    )


@compiled
def unpack_network(flat: Singles) -> Network:
    """The network that lies in one array."""
    c, s = _CUTS, _SHAPES
    return Network(
        flat[c[0] : c[1]].reshape(s[0]),
        flat[c[1] : c[2]].reshape(s[1]),
        flat[c[2] : c[3]].reshape(s[2]),
        flat[c[3] : c[4]].reshape(s[3]),
        flat[c[4] : c[5]].reshape(s[4]),
        flat[c[5] : c[6]].reshape(s[5]),
        flat[c[6] : c[7]].reshape(s[6]),
        flat[c[7] : c[8]],
        flat[c[8] : c[9]],
        flat[c[9] : c[10]].reshape(s[9]),
        flat[c[10] : c[11]].reshape(s[10]),
        flat[c[11] : c[12]],
        flat[c[12] : c[13]],
        flat[c[13] : c[14]],
    )


@compiled
def reset(state: StreamState) -> None:
    """Begin again: what comes next has nothing to do with what was."""
    state.totals[:] = 0.0
    state.places[:] = 0.0
    state.counts[:] = 0
    state.noise[0] = FIRST_NOISE_DEG
    state.features[:] = 0.0
    state.fast[:] = 0.0
    state.block[:] = 0.0
    state.slow[:] = 0.0
    state.up[:] = 0.0


@compiled
def add_sample(state: StreamState, net: Network, place: Floats, seen: bool, merge: int) -> bool:
    """Take one sample (or one point between two) in; whether it made a grid sample whole."""
    counts, places = state.counts, state.places
    if merge == 1:
        _advance(state, net, place, seen)
        return True
    if seen and counts[_FOUND] == 0:
        places[_BLOCK] = 0.0  # places that were not seen do not count beside one that was
    if seen or counts[_FOUND] == 0:
        for a in range(3):
            places[_BLOCK, a] += place[a]
    counts[_FILLED] += 1
    counts[_FOUND] += seen
    if counts[_FILLED] < merge:
        return False
    number = counts[_FOUND] if counts[_FOUND] > 0 else merge
    for a in range(3):
        places[_BLOCK, a] /= number
    seen = 2 * counts[_FOUND] >= merge
    update_noise(state, places[_BLOCK], seen)
    _advance(state, net, places[_BLOCK], seen)
    places[_BLOCK] = 0.0
    counts[_FILLED], counts[_FOUND] = 0, 0
    return True


@compiled
def update_noise(state: StreamState, place: Floats, seen: bool) -> None:
    """Follow the noise with a place at the tracker's or the grid's rate, whichever is lower."""
    count, places = state.counts[_PLACES], state.places
    at = count % 3
    for a in range(3):
        places[1 + at, a] = place[a]
    state.counts[_WAS_SEEN + at] = seen
    state.counts[_PLACES] += 1
    if count < 2 or state.counts[_WAS_SEEN:].min() == 0:
        return
    middle, oldest = (count - 1) % 3, (count - 2) % 3
    square = 0.0
    for a in range(3):
        bend = places[1 + at, a] - 2.0 * places[1 + middle, a] + places[1 + oldest, a]
        square += bend * bend
    level = state.noise[0]
    up = square > level * level * MEDIAN_SQUARE
    state.noise[0] = min(max(level * (1.0 + NOISE_STEP if up else 1.0 - NOISE_STEP), 1e-3), 10.0)


@compiled
def _advance(state: StreamState, net: Network, place: Floats, seen: bool) -> None:
    """One grid sample: its motion, then the network."""
    now, totals = state.counts[_GRID], state.totals
    if now == 0:
        state.places[_FIRST] = place
    before, at = totals[now & _MASK], totals[(now + 1) & _MASK]
    for a in range(3):
        at[a] = before[a] + (place[a] - state.places[_FIRST, a])
    noise, grid_hz = state.noise[0], state.noise[1]
    row = state.features[now % 3]
    row[FEATURES - 2] = 1.0 if seen else -1.0
    row[FEATURES - 1] = math.log(noise + 0.002) * 0.25 + 0.5
    scales = len(_SCALES)
    for s in range(scales):
        k = _SCALES[s]
        half = k // 2
        size = 2 * half + 1
        share = 1.0 / size
        along, low, high, whole = 0.0, 0.0, 0.0, 0.0
        for a in range(3):
            newest = _sum(totals, now + 1, size, a)
            middle = _sum(totals, now + 1 - k, size, a)
            oldest = _sum(totals, now + 1 - 2 * k, size, a)
            one, two = (middle - oldest) * share, (newest - middle) * share
            along += one * two
            low += one * one
            high += two * two
            whole += (one + two) * (one + two)
        noise_term = noise * noise * share + 1e-8
        speed = math.sqrt(whole) * grid_hz / (2.0 * k)
        row[s] = speed / (speed + _HALF[s])
        row[scales + s] = along / (math.sqrt(low * high) + noise_term)
    _forward(state, net, now)
    state.counts[_GRID] = now + 1


@compiled
def _sum(totals: Floats, stop: int, size: int, a: int) -> float:
    """Sum of the `size` grid samples before `stop`; before the first one all are like it."""
    # What lies before the first sample has not been written yet: the ring is longer than the reach.
    return totals[stop & _MASK, a] - totals[(stop - size) & _MASK, a]


@fused_inlined
def _add_product(source: Singles, weight: Singles, result: Singles) -> None:
    """Add `source` times `weight` to `result`; eight rows of weights at a time."""
    for c in range(0, len(source), 8):
        a, b, d, e = source[c], source[c + 1], source[c + 2], source[c + 3]
        f, g, h, k = source[c + 4], source[c + 5], source[c + 6], source[c + 7]
        for o in range(len(result)):
            result[o] += (
                a * weight[c, o]
                + b * weight[c + 1, o]
                + d * weight[c + 2, o]
                + e * weight[c + 3, o]
                + f * weight[c + 4, o]
                + g * weight[c + 5, o]
                + h * weight[c + 6, o]
                + k * weight[c + 7, o]
            )


@fused
def _forward(state: StreamState, net: Network, now: int) -> None:
    """The network at one grid sample."""
    zero = np.float32(0)
    stem = np.empty(WIDTH, dtype=np.float32)
    stem[:] = net.stem_bias
    for k in range(3):
        if now + k >= 2:
            _add_product(state.features[(now + k - 2) % 3], net.stem[k], stem)
    for o in range(WIDTH):
        stem[o] = max(stem[o], zero)
    state.block[now % STRIDE] = stem
    if now % STRIDE == STRIDE - 1:
        _forward_slow(state, net, now // STRIDE)
    fast, last = state.fast[now % 3], np.empty(WIDTH, dtype=np.float32)
    for o in range(WIDTH):
        fast[o] = max(stem[o] + state.up[o], zero)
    last[:] = net.fuse_bias
    for k in range(3):
        if now + k >= 2:
            _add_product(state.fast[(now + k - 2) % 3], net.fuse[k], last)
    for o in range(WIDTH):
        last[o] = fast[o] + max(last[o], zero)
    classify(last, net.out, net.out_bias, state.probabilities)


@fused
def _forward_slow(state: StreamState, net: Network, at: int) -> None:
    """The slow layers, once per block."""
    zero = np.float32(0)
    value = np.empty(HIDDEN, dtype=np.float32)
    value[:] = net.down_bias
    for k in range(STRIDE):
        _add_product(state.block[k], net.down[k], value)
    for o in range(HIDDEN):
        value[o] = max(value[o], zero)
    one, other = np.empty(HIDDEN, dtype=np.float32), np.empty(HIDDEN, dtype=np.float32)
    for layer in range(len(_DILATIONS)):
        d, start, depthwise = _DILATIONS[layer], _STARTS[layer], net.depthwise[layer]
        size = 2 * d + 1
        here = state.slow[start + at % size]
        mid, far = (state.slow[start + (at - d) % size], state.slow[start + (at - 2 * d) % size])
        for o in range(HIDDEN):
            here[o] = value[o]
            one[o] = (
                net.depthwise_bias[layer, o]
                + far[o] * depthwise[0, o]
                + mid[o] * depthwise[1, o]
                + value[o] * depthwise[2, o]
            )
        other[:] = net.pointwise_bias[layer]
        _add_product(one, net.pointwise[layer], other)
        for o in range(HIDDEN):
            value[o] += max(other[o], zero)
    up = state.up
    up[:] = net.up_bias
    _add_product(value, net.up, up)
