"""The network of the `auto` detector: from motion on the grid to the probability of each class.

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

from gazeveil.arrays import Codes, Floats, Singles
from gazeveil.compiled import fused, fused_inlined
from gazeveil.events.trace import FIXATION, PURSUIT, runs

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
