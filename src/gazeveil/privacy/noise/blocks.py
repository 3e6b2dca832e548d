"""Exact discrete Gaussian noise of any whole sigma from one small table, mostly from one word each.

A size is written as j 2**k + u with 2**k steps to a block, 64 to 128 blocks to sigma. The block j
comes from an alias table of exp(-(j 2**k)**2 / (2 sigma**2)) (:class:`AliasTable`),
u is k fair bits, and the pair is kept with probability exp(-a / c), a = 2 j 2**k u + u**2 and
c = 2 sigma**2; a sign is one more bit, and minus zero starts again. The product of the table's law
and of what is kept is exp(-(j 2**k + u)**2 / (2 sigma**2)).

One word holds all of it: its highest 40 bits pick a slot of the table, its lowest bit is the sign,
k bits are u, and the others are the first bits of a uniform real V that decides what is kept. Where
V is surely not below a / c the pair is kept, whatever its later bits are: in 98 of 100 draws. In
the others integers decide, as in :mod:`gazeveil.privacy.noise.exact`. No floating point touches
a sample, and what the table cannot say is drawn with 1,200 further bits. Proof:
proofs/noise-blocks.md.

Alias tables in whole numbers: a law on a few thousand outcomes, drawn with one word.

A table (Walker 1977, Vose 1991) shares 2**63 equal slots: outcome x owns the whole part of
p(x) 2**63, and one word picks the slot. The few unassigned slots are the outcome "escape", drawn
about once in 2**50 values. There the outcome is chosen among the fractions of slots with 1,200
further bits, on Python's integers. So the table is fast and every probability is right to 2**-1200.
Proof: proofs/noise-table.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy import rational
from gazeveil.privacy.noise.exact import MOST_SIGMA, draw_bernoulli_exp_after
from gazeveil.privacy.randomness.rng import WordArray, Words, draw_below

#: Bits of a word that pick a slot where the word's lowest bit is a sign and nothing else is needed.
WHOLE_WORD = 63

#: Weights of the outcomes 0, 1, ... in units of 2**-bits, each right to 2**64 units, with a sum of
#: at least 2**bits.
Law: TypeAlias = Callable[[int], Sequence[int]]

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
        """Number of unassigned slots."""
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
        """Draw the outcome of an unassigned slot, and return it with the position after it. x is
        drawn in proportion to the excess of p(x) 2**slot_bits over the slots of x. The position is
        -1 when the words ran out.
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


#: Bits of a word that pick a slot: 9 or more are left for V, and about one value in 2**31 escapes.
SLOT_BITS = 40

_BLOCK_BITS = 7  # sigma has fewer than 2**7 blocks
_ALIAS_BITS = 16


def half_gaussian(sigma: Fraction) -> Law:
    """exp(-x**2 / (2 sigma**2)) for x = 0, 1, ..."""

    def law(bits: int) -> list[int]:
        factor = rational.exp_minus(1 / (2 * sigma**2), bits)
        step = rational.exp_minus(1 / sigma**2, bits)
        weights = [1 << bits]
        while weights[-1] >> 64:
            weights.append((weights[-1] * factor) >> bits)
            factor = (factor * step) >> bits
        return weights

    return law


class BlockLaw(NamedTuple):
    """One Gaussian as the kernel takes it.

    Parameters
    ----------
    k : int
        2**k steps to a block.
    first : int
        Bits of V that the first word holds: 63 - 40 - k.
    c : numpy.uint64
        2 sigma**2.
    shift : int
        A column of the table has 2**shift slots.
    columns : array of uint64
        Slots that a column keeps, times 2**16, plus the outcome of the others.
    escape : int
        The outcome of an unassigned slot.
    """

    k: int
    first: int
    c: np.uint64
    shift: int
    columns: WordArray
    escape: int


@compiled
def keep(
    law: BlockLaw, j: np.uint64, word: np.uint64, words: WordArray, position: int
) -> tuple[bool, np.int64, int]:
    """Whether the value of block j that a word says is kept, the value, and the position after
    what decided it; position -1 when the words ran out.
    """
    one, zero = np.uint64(1), np.uint64(0)
    u = (word >> one) & ((one << np.uint64(law.k)) - one)
    v = (word >> np.uint64(law.k + 1)) & ((one << np.uint64(law.first)) - one)
    start = j << np.uint64(law.k)
    size, negative = start + u, word & one
    value = np.int64(size) if negative == zero else -np.int64(size)
    a = u * (start + size)
    bound, reached = a << np.uint64(law.first), v * law.c
    if reached >= bound:
        return bool(size > zero or negative == zero), value, position
    if reached + law.c > bound:
        # V begins with v and may lie on either side: the rest of it is a uniform real of its own.
        drawn, position = draw_below(law.c, words, position)
        if position < 0 or drawn >= bound - reached:
            return position >= 0, value, position
    kept, position = draw_bernoulli_exp_after(a, law.c, words, position)
    return kept, value, position


@compiled
def _draw(
    law: BlockLaw, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int, bool]:
    """Values from the done-th on, until a slot escapes or the words run out: values done, words
    used, and whether the word at that position escapes.

    What is kept at once is reckoned without branches, of which half would be guessed wrong;
    everything else is left to :func:`keep`.
    """
    one, zero = np.uint64(1), np.uint64(0)
    shift, k, first = np.uint64(law.shift), np.uint64(law.k), np.uint64(law.first)
    within, steps = (one << shift) - one, (one << k) - one
    bits_of_v, low = (one << first) - one, np.uint64((1 << _ALIAS_BITS) - 1)
    columns, c, escape = law.columns, law.c, np.uint64(law.escape)
    while done < len(out) and position < len(words):
        word = words[position]
        slot = word >> np.uint64(64 - SLOT_BITS)
        column = slot >> shift
        entry = columns[column]
        other = zero - np.uint64((slot & within) >= (entry >> np.uint64(_ALIAS_BITS)))
        j = column ^ ((column ^ (entry & low)) & other)
        u = (word >> one) & steps
        v = (word >> (k + one)) & bits_of_v
        start = j << k
        size, sign = start + u, np.int64(word & one)
        # Products are below 2**53: a < c < 2**(2 k + 15), first = 23 - k and k <= 14.
        if (v * c < (u * (start + size)) << first) | (j == escape) | ((size == zero) & (sign == 1)):
            if j == escape:
                return done, position, True
            kept, value, after = keep(law, j, word, words, position + 1)
            if after < 0:
                return done, position, False
            position = after
            if kept:
                out[done] = value
                done += 1
            continue
        out[done] = (np.int64(size) ^ -sign) + sign
        done += 1
        position += 1
    return done, position, False


class BlockSampler:
    """Discrete Gaussians of one sigma.

    Parameters
    ----------
    sigma : int
        Whole grid steps, 1 to 2**20.
    """

    def __init__(self, sigma: int) -> None:
        k = max(0, sigma.bit_length() - _BLOCK_BITS)
        self.table = alias_table(half_gaussian(Fraction(sigma, 1 << k)), SLOT_BITS)
        columns = (self.table.keep << np.uint64(_ALIAS_BITS)) | self.table.alias.astype(np.uint64)
        self.law = BlockLaw(
            k,
            63 - SLOT_BITS - k,
            np.uint64(2 * sigma * sigma),
            SLOT_BITS - self.table.bits,
            columns,
            len(self.table.owned),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """The kernel that :meth:`Words.run` runs."""
        while True:
            done, position, escaped = _draw(self.law, out, done, words, position)
            if not escaped:
                return done, position
            j, after = self.table.escape(words, position + 1)
            if after < 0:
                return done, position
            kept, value, after = keep(self.law, np.uint64(j), words[position], words, after)
            if after < 0:
                return done, position
            position = after
            if kept:
                out[done] = value
                done += 1


@lru_cache(maxsize=32)
def block_sampler(sigma: int) -> BlockSampler:
    """The sampler of a sigma; making one takes some milliseconds, the last 32 are kept."""
    return BlockSampler(sigma)


def gaussian_by_blocks(sigma: int, count: int, words: Words) -> Ints:
    """Integers with P(x) proportional to exp(-x**2 / (2 sigma**2)).

    The law is that of :func:`~gazeveil.privacy.noise.exact.discrete_gaussian`, some ten times as
    fast where many values have one sigma.

    Parameters
    ----------
    sigma : int
        Whole grid steps, 1 to 2**20.
    count : int
        How many.
    words : Words
        Random bits.

    Raises
    ------
    ParameterError
        For another sigma or count.
    """
    if isinstance(sigma, bool) or not isinstance(sigma, int) or not 1 <= sigma <= MOST_SIGMA:
        checks.refuse(
            "gaussian_by_blocks",
            "sigma",
            "a whole number of grid steps from 1 to 2**20",
            sigma,
            "Choose another grid.",
        )
    values = checks.count("gaussian_by_blocks", "count", count, least=0)
    return words.run(block_sampler(sigma), values, 1)
