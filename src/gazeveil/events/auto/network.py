"""The network of the `auto` detector: from motion on the grid to the chance of each class.

A small convolutional network: one layer at the grid's rate, seven at a quarter of it whose reach
doubles from one to the next (2 s to both sides in all), one more at the grid's rate. Its 12,500
weights come with the package; `benchmarks/events_training.py` trains them and
`docs/explain/event_network.md` says on what. PyTorch is not needed.

The causal form looks to the past only: every layer's three samples end at its own, and what it says
at a grid sample is about the one `DELAY` before. One sample at a time or all at once, it adds up
the same numbers in the same order.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Singles
from gazeveil.compiled import fused, fused_inlined

#: What the network tells apart, and their places.
CLASSES = ("fixation", "saccade", "pso", "pursuit", "other")
FIXATES, SACCADES, SETTLES, PURSUES, OTHER = range(5)

#: Grid samples that make one of the slow layers, and the reach of those in their own samples.
STRIDE = 4
DILATIONS = (1, 2, 4, 8, 16, 32, 64)

#: Grid samples by which the causal form speaks late.
DELAY = 2

# Channels at the grid's rate and of the slow layers. Loops over a fixed number of channels are
# compiled to vector instructions.
WIDTH, HIDDEN = 16, 32

# Grid samples that are computed at once: they stay in the processor's cache. What lies further away
# than the reach has no influence.
_PIECE = 8192
_REACH = STRIDE * (sum(DILATIONS) + 2)

_DILATIONS = np.array(DILATIONS)


class Network(NamedTuple):
    """Singles, laid out for rows of samples times columns of channels.

    Parameters
    ----------
    stem : array, shape (3, FEATURES, WIDTH)
        First layer, at the grid's rate.
    down : array, shape (STRIDE, WIDTH, HIDDEN)
        To the slow rate.
    deep : array, shape (7, 3, HIDDEN)
        The slow layers, each channel by itself.
    wide : array, shape (7, HIDDEN, HIDDEN)
        What mixes the channels after each.
    up : array, shape (HIDDEN, WIDTH)
        Back to the grid's rate.
    fine : array, shape (3, WIDTH, WIDTH)
        Last layer at the grid's rate.
    out : array, shape (WIDTH, 5)
        To the classes.
    stem_bias, down_bias, deep_bias, wide_bias, up_bias, fine_bias, out_bias : array
        What is added to each.
    """

    stem: Singles
    down: Singles
    deep: Singles
    wide: Singles
    up: Singles
    fine: Singles
    out: Singles
    stem_bias: Singles
    down_bias: Singles
    deep_bias: Singles
    wide_bias: Singles
    up_bias: Singles
    fine_bias: Singles
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
            np.stack([w[f"deep.{i}.weight"][:, 0].T for i in count]),
            np.stack([w[f"wide.{i}.weight"][:, :, 0].T for i in count]),
            w["up.weight"][:, :, 0].T,
            w["fine.weight"].transpose(2, 1, 0),
            w["out.weight"][:, :, 0].T,
            w["stem.bias"],
            w["down.bias"],
            np.stack([w[f"deep.{i}.bias"] for i in count]),
            np.stack([w[f"wide.{i}.bias"] for i in count]),
            w["up.bias"],
            w["fine.bias"],
            w["out.bias"],
        )
        return cls(*(np.ascontiguousarray(a, dtype=np.float32) for a in arrays))

    def chances(self, features: Singles) -> Singles:
        """Chance of each class at each grid sample, shape (n, 5)."""
        n = len(features)
        result = np.empty((n, len(CLASSES)), dtype=np.float32)
        for first in range(0, n, _PIECE):
            stop = min(n, first + _PIECE)
            # Reach and pieces are whole numbers of slow samples, so pieces do not move their grid.
            low, high = max(0, first - _REACH), min(n, stop + _REACH)
            piece = _chances(self, features[low:high])
            result[first:stop] = piece[first - low : stop - low]
        return result


@fused_inlined
def add_wide(source: Singles, weight: Singles, result: Singles) -> None:
    """Add `source` times `weight` to the HIDDEN numbers of `result`."""
    for c in range(0, len(source), 8):
        a, b, d, e = source[c], source[c + 1], source[c + 2], source[c + 3]
        f, g, h, k = source[c + 4], source[c + 5], source[c + 6], source[c + 7]
        for o in range(HIDDEN):
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


@fused_inlined
def add_fast(source: Singles, weight: Singles, result: Singles) -> None:
    """Add `source` times `weight` to the WIDTH numbers of `result`."""
    for c in range(0, len(source), 8):
        a, b, d, e = source[c], source[c + 1], source[c + 2], source[c + 3]
        f, g, h, k = source[c + 4], source[c + 5], source[c + 6], source[c + 7]
        for o in range(WIDTH):
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


@fused_inlined
def classify(row: Singles, weight: Singles, bias: Singles, result: Singles) -> None:
    """Chances of the classes from the last layer's numbers of one grid sample."""
    top = np.float32(-np.inf)
    for o in range(len(bias)):
        total = bias[o]
        for c in range(len(row)):
            total += row[c] * weight[c, o]
        result[o] = total
        top = max(top, total)
    whole = np.float32(0)
    for o in range(len(bias)):
        result[o] = np.float32(math.exp(result[o] - top))
        whole += result[o]
    for o in range(len(bias)):
        result[o] /= whole


@fused
def _chances(net: Network, features: Singles) -> Singles:
    n = len(features)
    slow_n = (n + STRIDE - 1) // STRIDE
    zero = np.float32(0)
    fast = np.empty((n, WIDTH), dtype=np.float32)
    last = np.empty(WIDTH, dtype=np.float32)
    one, other = np.empty(HIDDEN, dtype=np.float32), np.empty(HIDDEN, dtype=np.float32)
    for i in range(n):
        last[:] = net.stem_bias
        for k in range(3):
            if 0 <= i + k - 1 < n:
                add_fast(features[i + k - 1], net.stem[k], last)
        for o in range(WIDTH):
            fast[i, o] = max(last[o], zero)
    slow = np.empty((slow_n, HIDDEN), dtype=np.float32)
    for j in range(slow_n):
        one[:] = net.down_bias
        for k in range(STRIDE):
            if j * STRIDE + k < n:
                add_wide(fast[j * STRIDE + k], net.down[k], one)
        for o in range(HIDDEN):
            slow[j, o] = max(one[o], zero)
    after = np.empty_like(slow)
    for layer in range(len(_DILATIONS)):
        d, deep = _DILATIONS[layer], net.deep[layer]
        for j in range(slow_n):
            for o in range(HIDDEN):
                one[o] = net.deep_bias[layer, o] + slow[j, o] * deep[1, o]
            if j >= d:
                for o in range(HIDDEN):
                    one[o] += slow[j - d, o] * deep[0, o]
            if j + d < slow_n:
                for o in range(HIDDEN):
                    one[o] += slow[j + d, o] * deep[2, o]
            other[:] = net.wide_bias[layer]
            add_wide(one, net.wide[layer], other)
            for o in range(HIDDEN):
                after[j, o] = slow[j, o] + max(other[o], zero)
        slow, after = after, slow
    up = np.empty(WIDTH, dtype=np.float32)
    for j in range(slow_n):
        up[:] = net.up_bias
        add_fast(slow[j], net.up, up)
        for i in range(j * STRIDE, min(n, (j + 1) * STRIDE)):
            for o in range(WIDTH):
                fast[i, o] = max(fast[i, o] + up[o], zero)
    result = np.empty((n, len(net.out_bias)), dtype=np.float32)
    for i in range(n):
        last[:] = net.fine_bias
        for k in range(3):
            if 0 <= i + k - 1 < n:
                add_fast(fast[i + k - 1], net.fine[k], last)
        for o in range(WIDTH):
            last[o] = fast[i, o] + max(last[o], zero)
        classify(last, net.out, net.out_bias, result[i])
    return result


@cache
def shipped(name: str) -> Network:
    """A network that comes with the package: `auto` or `online`."""
    with (files("gazeveil.events") / "weights" / f"{name}.npz").open("rb") as file:
        return Network.load(file)
