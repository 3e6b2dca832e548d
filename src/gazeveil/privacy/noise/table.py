"""Integer noise from tables: the fastest sampler, with its distance from the exact law proved and
stated.

A law on a few thousand outcomes is stored as an alias table (Walker 1977, Vose 1991) in whole
numbers: of 2**63 equal slots outcome x owns the whole part of p(x) 2**63, and one word picks the
slot. The few slots nobody owns are the outcome "escape", drawn about once in 2**50 values: there
the outcome is chosen among the fractions of slots with 1,200 further bits, on Python's integers. So
the table is fast and every probability is right to 2**-1200.

Discrete Laplace of any scale needs no large table: the digits of a geometric number in any base are
independent, each one a truncated geometric number of its own, and the leading digit, which has no
bound, starts afresh beyond its table because the law has no memory.
:data:`TABLE_DELTA` bounds what the rest costs per value. Proof: proofs/noise-table.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise import reals
from gazeveil.privacy.noise.exact import TAIL_DELTA, laplace_scale
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.randomness.uniform import draw_below
from gazeveil.privacy.rational import Number, exact

#: What one value adds to delta, for every epsilon up to 100.
TABLE_DELTA = TAIL_DELTA

#: Largest sigma of a table.
MOST_SIGMA = 1 << 10

#: Bits of a word that pick a slot where the word's lowest bit is a sign and nothing else is needed.
WHOLE_WORD = 63

#: Weights of the outcomes 0, 1, ... in units of 2**-bits, each right to 2**64 units, with a sum of
#: at least 2**bits.
Law: TypeAlias = Callable[[int], Sequence[int]]

_BASE = 4000  # digits below the leading one
_MOST_RESTARTS = 1 << 16
_TABLE_BITS = 256
_ESCAPE_WORDS = 19
_ESCAPE_BITS = 64 * _ESCAPE_WORDS


@compiled
def _pair_up(weights: WordArray, capacity: np.uint64, keep: WordArray, alias: Ints) -> None:
    """Vose's pairing on whole numbers: column i keeps `keep[i]` of its slots and gives the others
    to `alias[i]`.
    """
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
        # The weights sum to n capacities, so a column that lacks slots always finds one that has
        # too many.
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
    """One law on the outcomes 0, 1, ...

    Parameters
    ----------
    law : callable
        The law to any number of bits, for escapes.
    owned : list of int
        Slots of each outcome; later outcomes own none.
    bits : int
        There are 2**bits columns of 2**(slot_bits - bits) slots.
    keep, alias : arrays, shape (2**bits,)
        Column i is outcome i in its first `keep[i]` slots, `alias[i]` in the others; outcome
        `len(owned)` is "escape".
    slot_bits : int
        There are 2**slot_bits slots.
    """

    law: Law
    owned: list[int]
    bits: int
    keep: WordArray
    alias: Ints
    slot_bits: int = WHOLE_WORD

    @property
    def escapes(self) -> int:
        """Slots nobody owns."""
        return (1 << self.slot_bits) - sum(self.owned)

    def look_up(self, words: WordArray, position: int) -> tuple[int, int, int]:
        """An outcome, a fair bit and the position after them, escapes included; position -1 when
        the words ran out.
        """
        x, bit, position = look_up(
            self.slot_bits - self.bits, self.keep, self.alias, words, position
        )
        if position >= 0 and x == len(self.owned):
            x, position = self.escape(words, position)
        return int(x), int(bit), position

    def escape(self, words: WordArray, position: int) -> tuple[int, int]:
        """The outcome of a slot that nobody owns, x in proportion to what p(x) 2**slot_bits exceeds
        the slots of x, and the position after it; position -1 when the words ran out.
        """
        slot, position = draw_below(np.uint64(self.escapes), words, position)
        if position < 0 or position + _ESCAPE_WORDS > len(words):
            return 0, -1
        place = int.from_bytes(
            words[position : position + _ESCAPE_WORDS].astype(">u8").tobytes(), "big"
        ) + (int(slot) << _ESCAPE_BITS)
        weights = self.law(_ESCAPE_BITS + 80)
        total, before = sum(weights), 0
        for x, weight in enumerate(weights):
            slots = self.owned[x] if x < len(self.owned) else 0
            before += max(
                0, (weight << (self.slot_bits + _ESCAPE_BITS)) // total - (slots << _ESCAPE_BITS)
            )
            if before > place:
                return x, position + _ESCAPE_WORDS
        return 0, position + _ESCAPE_WORDS


def alias_table(law: Law, slot_bits: int = WHOLE_WORD) -> AliasTable:
    """The table of a law, with 2**slot_bits slots."""
    weights = law(_TABLE_BITS)
    total = sum(weights)
    # Less 2**-100 of a slot, far more than the weights' error: no outcome is given more than it
    # has.
    owned = [max(0, ((w << (slot_bits + 100)) // total - 1) >> 100) for w in weights]
    while owned[-1] == 0:
        owned.pop()
    bits = len(owned).bit_length()
    slots = np.zeros(1 << bits, dtype=np.uint64)
    slots[: len(owned)] = owned
    slots[len(owned)] = (1 << slot_bits) - sum(owned)
    keep, alias = np.empty_like(slots), np.empty(len(slots), dtype=np.int64)
    _pair_up(slots, np.uint64(1 << (slot_bits - bits)), keep, alias)
    return AliasTable(law, owned, bits, keep, alias, slot_bits)


@compiled
def look_up(
    shift: int, keep: WordArray, alias: Ints, words: WordArray, position: int
) -> tuple[int, np.uint64, int]:
    """An outcome of a table (or "escape"), a fair bit and the position after them; position -1 when
    the words ran out.
    """
    if position >= len(words):
        return 0, np.uint64(0), -1
    slot = words[position] >> np.uint64(1)
    x = np.int64(slot >> np.uint64(shift))
    if slot & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1)) >= keep[x]:
        x = alias[x]
    return int(x), words[position] & np.uint64(1), position + 1


@compiled
def _draw(
    shift: Ints,
    start: Ints,
    escape: Ints,
    place: Ints,
    keep: WordArray,
    alias: Ints,
    tail: int,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int, bool]:
    """Signed values whose size has the digits of the tables, lowest first, until one escapes or the
    words run out.
    """
    digits = len(shift)
    after = position
    while done < len(out):
        size, restarts, d = 0, 0, 0
        negative = np.uint64(0)
        while d < digits:
            if after >= len(words):
                return done, position, False
            word = words[after]
            after += 1
            negative = word & np.uint64(1)
            slot = word >> np.uint64(1)
            x = np.int64(slot >> np.uint64(shift[d]))
            if slot & ((np.uint64(1) << np.uint64(shift[d])) - np.uint64(1)) >= keep[start[d] + x]:
                x = alias[start[d] + x]
            if x == escape[d]:
                return done, position, True
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
    return done, position, False


class NoiseTable:
    """A sampler of signed integers made from one table per digit of their size.

    Parameters
    ----------
    laws : sequence of Law
        Laws of the digits, lowest digit first.
    places : sequence of int
        What one unit of each digit counts.
    tail : int
        Outcome of the last digit that means "this much and the digit again", or -1.

    Attributes
    ----------
    delta_num : Fraction
        What one value adds to delta, for every epsilon up to 100.
    """

    delta_num = TABLE_DELTA

    def __init__(self, laws: Sequence[Law], places: Sequence[int], tail: int = -1) -> None:
        self.tables = [alias_table(law) for law in laws]
        self._places, self._tail = list(places), tail
        self._arrays = (
            np.array([63 - t.bits for t in self.tables], dtype=np.int64),
            np.cumsum([0, *(len(t.keep) for t in self.tables[:-1])]).astype(np.int64),
            np.array([len(t.owned) for t in self.tables], dtype=np.int64),
            np.array(places, dtype=np.int64),
            np.concatenate([t.keep for t in self.tables]),
            np.concatenate([t.alias for t in self.tables]),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """The kernel that :meth:`Words.run` runs."""
        while True:
            done, position, escaped = _draw(*self._arrays, self._tail, out, done, words, position)
            if not escaped:
                return done, position
            value, after = self._one(words, position)
            if after < 0:
                return done, position
            out[done] = value
            done, position = done + 1, after

    def _one(self, words: WordArray, position: int) -> tuple[int, int]:
        """One value, escapes included, and the position after it: what the compiled loop does, in
        plain Python.
        """
        while True:
            size, negative = 0, 0
            for d, table in enumerate(self.tables):
                for _ in range(_MOST_RESTARTS + 1):
                    x, negative, position = table.look_up(words, position)
                    if position < 0:
                        return 0, -1
                    size += x * self._places[d]
                    if d < len(self.tables) - 1 or x != self._tail:
                        break
            if size > 0 or negative == 0:
                return (-size if negative else size), position

    def draw(self, count: int, words: Words) -> Ints:
        """That many values."""
        return words.run(
            self, checks.count("NoiseTable", "count", count, least=0), len(self.tables) + 1
        )


def _powers(rate: Fraction, outcomes: int, beyond: bool) -> Law:
    """1, a, a**2, ... for a = exp(-rate), and at the end, if asked for, all that is left: a**n / (1
    - a).
    """

    def law(bits: int) -> list[int]:
        ratio = reals.exp_minus(rate, bits)
        weights = [1 << bits]
        for _ in range(outcomes - 1):
            weights.append((weights[-1] * ratio) >> bits)
        return [*weights, (weights[-1] * ratio) // ((1 << bits) - ratio)] if beyond else weights

    return law


@lru_cache(maxsize=64)
def _laplace_table(t: int, s: int) -> NoiseTable:
    laws: list[Law] = []
    places = [1]
    scale = Fraction(t, s)
    while scale > _BASE // 8:
        laws.append(_powers(1 / scale, _BASE, False))
        places.append(places[-1] * _BASE)
        scale /= _BASE
    outcomes = min(_BASE, max(4, math.ceil(20 * scale)))
    return NoiseTable([*laws, _powers(1 / scale, outcomes, True)], places, outcomes)


def laplace_table(scale: Number) -> NoiseTable:
    """A table sampler of integers with P(x) proportional to exp(-|x| / scale).

    Parameters
    ----------
    scale : Fraction or other number
        In grid steps, at most 2**40; rounded up by
        :func:`~gazeveil.privacy.noise.exact.laplace_scale` where its terms are too large. Making
        the table takes some milliseconds, the last 64 are kept.
    """
    return _laplace_table(*laplace_scale(exact("laplace_table", "scale", scale, above=0)))


def half_gaussian(sigma: Fraction) -> Law:
    """exp(-x**2 / (2 sigma**2)) for x = 0, 1, ..."""

    def law(bits: int) -> list[int]:
        factor = reals.exp_minus(1 / (2 * sigma**2), bits)
        step = reals.exp_minus(1 / sigma**2, bits)
        weights = [1 << bits]
        while weights[-1] >> 64:
            weights.append((weights[-1] * factor) >> bits)
            factor = (factor * step) >> bits
        return weights

    return law


@lru_cache(maxsize=16)
def _gaussian_table(sigma: Fraction) -> NoiseTable:
    return NoiseTable([half_gaussian(sigma)], [1])


def gaussian_table(sigma: Number) -> NoiseTable:
    """A table sampler of integers with P(x) proportional to exp(-x**2 / (2 sigma**2)).

    Parameters
    ----------
    sigma : Fraction or other number
        In grid steps, 1/16 to 1024; need not be whole.
    """
    value = exact("gaussian_table", "sigma", sigma, above=0)
    if not Fraction(1, 16) <= value <= MOST_SIGMA:
        checks.refuse(
            "gaussian_table",
            "sigma",
            "from 1/16 to 1024 grid steps",
            sigma,
            "Use discrete_gaussian, or another grid.",
        )
    return _gaussian_table(value)
