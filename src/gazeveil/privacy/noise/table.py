"""Integer noise from tables: the fastest sampler, with its distance from the exact law proved and stated.

A law on a few thousand outcomes is stored as an alias table (Walker 1977, Vose 1991) in whole numbers: of 2**63 equal slots outcome x
owns the whole part of p(x) 2**63, one word picks the slot. The slots nobody owns (fewer than there are outcomes) are the outcome
"escape", which draws two more words and gives x its fraction of a slot to 64 further bits. So every probability is right to 2**-127.

Discrete Laplace of any scale needs no large table: the digits of a geometric number in any base are independent, each one a truncated
geometric number of its own, and the leading digit, which has no bound, starts afresh beyond its table because the law has no memory. A
discrete Gaussian is cut where its tail is below 2**-140. :data:`TABLE_DELTA` bounds the total variation per value. Proof:
proofs/noise-table.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.compiled import compiled
from gazeveil.privacy.exactly import Number, exact
from gazeveil.privacy.noise import reals
from gazeveil.privacy.noise.exact import _below, laplace_scale
from gazeveil.privacy.noise.rng import WordArray, Words

#: Bound on the total variation between one value and its exact law.
TABLE_DELTA = Fraction(1, 1 << 100)

#: Largest sigma of a table.
MOST_SIGMA = 1 << 10

_BASE = 4000  # digits below the leading one
_MOST_RESTARTS = 1 << 16
_WORK = 256


@compiled
def _pair_up(weights: WordArray, capacity: np.uint64, keep: WordArray, alias: NDArray[np.int64]) -> None:
    """Vose's pairing on whole numbers: column i keeps `keep[i]` of its slots and gives the others to `alias[i]`."""
    n = len(weights)
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    smalls, larges = 0, 0
    for i in range(n):
        if weights[i] < capacity:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0:
        # The weights sum to n capacities, so a column that lacks slots always finds one that has too many.
        i, j = small[smalls - 1], large[larges - 1]
        smalls -= 1
        keep[i], alias[i] = weights[i], j
        weights[j] -= capacity - weights[i]
        if weights[j] < capacity:
            larges -= 1
            small[smalls] = j
            smalls += 1
    for k in range(larges):
        keep[large[k]], alias[large[k]] = capacity, large[k]


@dataclass(frozen=True, eq=False)
class AliasTable:
    """One law on the outcomes 0 to n - 1.

    Parameters
    ----------
    bits : int
        There are 2**bits columns of 2**(63 - bits) slots.
    keep, alias : arrays, shape (2**bits,)
        Column i is outcome i in its first `keep[i]` slots, `alias[i]` in the others; outcome n is "escape".
    fraction : array of uint64, shape (n,)
        What each outcome owns of the slots nobody owns, in 2**-64 of a slot.
    escapes : int
        Slots nobody owns.
    """

    bits: int
    keep: WordArray
    alias: NDArray[np.int64]
    fraction: WordArray
    escapes: int

    @property
    def arguments(self) -> tuple[int, WordArray, NDArray[np.int64], WordArray, np.uint64]:
        """The table as :func:`look_up` takes it."""
        return 63 - self.bits, self.keep, self.alias, self.fraction, np.uint64(self.escapes)


def alias_table(weights: Sequence[int]) -> AliasTable:
    """The table of outcomes 0 to n - 1 with probabilities proportional to the weights, each right to 2**-127."""
    total = sum(weights)
    shares = [(w << 127) // total for w in weights]
    whole = [s >> 64 for s in shares]
    escapes = (1 << 63) - sum(whole)
    bits = len(weights).bit_length()
    slots = np.zeros(1 << bits, dtype=np.uint64)
    slots[: len(weights)] = whole
    slots[len(weights)] = escapes
    keep, alias = np.empty_like(slots), np.empty(len(slots), dtype=np.int64)
    _pair_up(slots, np.uint64(1 << (63 - bits)), keep, alias)
    return AliasTable(bits, keep, alias, np.array([s & ((1 << 64) - 1) for s in shares], dtype=np.uint64), escapes)


@compiled
def _escape(fraction: WordArray, escapes: np.uint64, words: WordArray, position: int) -> tuple[np.int64, int]:
    """The outcome of a slot that nobody owns: x with probability fraction[x] / (escapes * 2**64)."""
    slot, position = _below(escapes, words, position)
    if position < 0 or position >= len(words):
        return np.int64(0), -1
    word = words[position]
    high, low = np.uint64(0), np.uint64(0)
    for x in range(len(fraction)):
        before = low
        low += fraction[x]
        if low < before:
            high += np.uint64(1)
        if high > slot or (high == slot and low > word):
            return np.int64(x), position + 1
    return np.int64(0), position + 1


@compiled
def look_up(
    shift: int, keep: WordArray, alias: NDArray[np.int64], fraction: WordArray, escapes: np.uint64, words: WordArray, position: int
) -> tuple[int, np.uint64, int]:
    """An outcome, a fair bit and the position after them; position -1 when the words ran out."""
    if position >= len(words):
        return 0, np.uint64(0), -1
    word = words[position]
    position += 1
    slot = word >> np.uint64(1)
    x = np.int64(slot >> np.uint64(shift))
    if slot & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1)) >= keep[x]:
        x = alias[x]
    if x == len(fraction):
        x, position = _escape(fraction, escapes, words, position)
    return int(x), word & np.uint64(1), position


@compiled
def _draw(
    shift: NDArray[np.int64],
    start: NDArray[np.int64],
    keep: WordArray,
    alias: NDArray[np.int64],
    first: NDArray[np.int64],
    fraction: WordArray,
    escapes: WordArray,
    place: NDArray[np.int64],
    tail: int,
    out: NDArray[np.int64],
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Signed values whose size has the digits of the tables, lowest first; outcome `tail` of the last starts it afresh from there."""
    digits = len(shift)
    after = position
    while done < len(out):
        size, restarts, d = 0, 0, 0
        negative = np.uint64(0)
        while d < digits:
            if after >= len(words):
                return done, position
            word = words[after]
            after += 1
            negative = word & np.uint64(1)
            slot = word >> np.uint64(1)
            column = np.int64(slot >> np.uint64(shift[d]))
            x = column
            if slot & ((np.uint64(1) << np.uint64(shift[d])) - np.uint64(1)) >= keep[start[d] + column]:
                x = alias[start[d] + column]
            if x == first[d + 1] - first[d]:
                x, after = _escape(fraction[first[d] : first[d + 1]], escapes[d], words, after)
                if after < 0:
                    return done, position
            size += x * place[d]
            if d == digits - 1 and x == tail and restarts < _MOST_RESTARTS:
                restarts += 1
            else:
                d += 1
        if negative == np.uint64(0):
            out[done] = size
        elif size > 0:
            out[done] = -size
        else:
            continue
        done += 1
        position = after
    return done, position


class NoiseTable:
    """A sampler of signed integers made from one table per digit of their size.

    Parameters
    ----------
    laws : sequence of lists of int
        Weights of the outcomes 0, 1, ... of each digit, lowest digit first.
    places : sequence of int
        What one unit of each digit counts.
    tail : int
        Outcome of the last digit that means "this much and the digit again", or -1.

    Attributes
    ----------
    delta_num : Fraction
        Bound on the total variation between one value and its exact law.
    """

    delta_num = TABLE_DELTA

    def __init__(self, laws: Sequence[Sequence[int]], places: Sequence[int], tail: int = -1) -> None:
        made = [alias_table(weights) for weights in laws]
        self._arrays = (
            np.array([63 - law.bits for law in made], dtype=np.int64),
            np.cumsum([0, *(len(law.keep) for law in made[:-1])]).astype(np.int64),
            np.concatenate([law.keep for law in made]),
            np.concatenate([law.alias for law in made]),
            np.cumsum([0, *(len(law.fraction) for law in made)]).astype(np.int64),
            np.concatenate([law.fraction for law in made]),
            np.array([law.escapes for law in made], dtype=np.uint64),
            np.array(places, dtype=np.int64),
        )
        self._tail = tail

    def __call__(self, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
        """The kernel that :meth:`Words.run` runs."""
        return _draw(*self._arrays, self._tail, out, done, words, position)

    def draw(self, count: int, words: Words) -> NDArray[np.int64]:
        """That many values."""
        return words.run(self, checks.count("NoiseTable", "count", count, least=0), len(self._arrays[0]) + 1)


def _geometric_weights(ratio: int, outcomes: int) -> list[int]:
    """1, a, a**2, ... for a = ratio / 2**256."""
    weights = [1 << _WORK]
    for _ in range(outcomes - 1):
        weights.append((weights[-1] * ratio) >> _WORK)
    return weights


@lru_cache(maxsize=64)
def _laplace_table(t: int, s: int) -> NoiseTable:
    laws: list[list[int]] = []
    places = [1]
    scale = Fraction(t, s)
    while scale > _BASE // 8:
        laws.append(_geometric_weights(reals.exp_minus(1 / scale, _WORK), _BASE))
        places.append(places[-1] * _BASE)
        scale /= _BASE
    ratio = reals.exp_minus(1 / scale, _WORK)
    outcomes = min(_BASE, max(4, math.ceil(20 * scale)))
    weights = _geometric_weights(ratio, outcomes)
    # all that is left: a**n / (1 - a)
    beyond = (weights[-1] * ratio) // ((1 << _WORK) - ratio)
    return NoiseTable([*laws, [*weights, beyond]], places, outcomes)


def laplace_table(scale: Number) -> NoiseTable:
    """A table sampler of integers with P(x) proportional to exp(-|x| / scale).

    Parameters
    ----------
    scale : Fraction or other number
        In grid steps, at most 2**40; rounded up by :func:`~gazeveil.privacy.noise.exact.laplace_scale` where its terms are too large.
        Making the table takes some milliseconds, the last 64 are kept.
    """
    return _laplace_table(*laplace_scale(exact("laplace_table", "scale", scale, above=0)))


@lru_cache(maxsize=16)
def _gaussian_table(sigma: Fraction) -> NoiseTable:
    factor, step = reals.exp_minus(1 / (2 * sigma**2), _WORK), reals.exp_minus(1 / sigma**2, _WORK)
    weights = [1 << _WORK]
    while weights[-1] >> (_WORK - 160):
        weights.append((weights[-1] * factor) >> _WORK)
        factor = (factor * step) >> _WORK
    return NoiseTable([weights], [1])


def gaussian_table(sigma: Number) -> NoiseTable:
    """A table sampler of integers with P(x) proportional to exp(-x**2 / (2 sigma**2)).

    Parameters
    ----------
    sigma : Fraction or other number
        In grid steps, 1/16 to 1024; need not be whole.
    """
    value = exact("gaussian_table", "sigma", sigma, above=0)
    if not Fraction(1, 16) <= value <= MOST_SIGMA:
        checks.refuse("gaussian_table", "sigma", "from 1/16 to 1024 grid steps", sigma, "Use discrete_gaussian, or another grid.")
    return _gaussian_table(value)
