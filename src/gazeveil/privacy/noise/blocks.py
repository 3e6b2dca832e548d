"""Exact discrete Gaussian noise of any whole sigma from one small table, mostly from one word each.

A size is written as j 2**k + u with 2**k steps to a block, 64 to 128 blocks to sigma. The block j
comes from an alias table of exp(-(j 2**k)**2 / (2 sigma**2)) (:mod:`gazeveil.privacy.noise.table`),
u is k fair bits, and the pair is kept with probability exp(-a / c), a = 2 j 2**k u + u**2 and
c = 2 sigma**2; a sign is one more bit, and minus zero starts again. The product of the table's law
and of what is kept is exp(-(j 2**k + u)**2 / (2 sigma**2)).

One word holds all of it: its highest 40 bits pick a slot of the table, its lowest bit is the sign,
k bits are u, and the others are the first bits of a uniform real V that decides what is kept. Where
V is surely not below a / c the pair is kept, whatever its later bits are: in 98 of 100 draws. In
the others integers decide, as in :mod:`gazeveil.privacy.noise.exact`. No floating point touches
a sample, and what the table cannot say is drawn with 1,200 further bits. Proof:
proofs/noise-blocks.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise import reals
from gazeveil.privacy.noise.exact import MOST_SIGMA, draw_bernoulli_exp_after
from gazeveil.privacy.noise.table import Law, alias_table
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.randomness.uniform import draw_below

#: Bits of a word that pick a slot: 9 or more are left for V, and about one value in 2**31 escapes.
SLOT_BITS = 40

_BLOCK_BITS = 7  # sigma has fewer than 2**7 blocks
_ALIAS_BITS = 16


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
        The outcome that says that nobody owns the slot.
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
