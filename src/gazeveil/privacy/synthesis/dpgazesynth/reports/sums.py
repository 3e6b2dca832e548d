"""Sums of optimised unary reports, drawn as sums: the law of n devices' reports added up, without n
times d bits.

Each of n reports has one bit per category: fair at its own category, else 1 with probability q. The
number of ones at a category that `counts` of the n reports hold is Binomial(counts, 1/2) +
Binomial(n - counts, q), independently over categories. A curator in the same process needs these
numbers and nothing else, so drawing them gives the same release, with the same probabilities, as
drawing every bit.

A binomial number of any size is a sum of binomial numbers of 1, 2, 4, ..., 4096 trials, each from
an alias table in whole numbers (:mod:`gazeveil.privacy.noise.blocks`): right to 2**-1200 per draw.
Proof: proofs/dpgazesynth.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.blocks import AliasTable, alias_table, look_up
from gazeveil.privacy.noise.frequency_oracle import Tally
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.rng import WordArray, Words

_BITS = 12  # the largest table has 2**12 trials

# More than the rounding of 4096 products can take away.
_GUARD = 64


def _law(trials: int, chance: Fraction, bits: int) -> Sequence[int]:
    """Binomial probabilities in units of 2**-bits, from the likeliest number of ones outwards."""
    top, rest = chance.numerator, chance.denominator - chance.numerator
    likeliest = int((trials + 1) * chance)
    weights = [0] * (trials + 1)
    weights[likeliest] = 1 << (bits + _GUARD)
    for k in range(likeliest, trials):
        weights[k + 1] = weights[k] * (trials - k) * top // ((k + 1) * rest)
    for k in range(likeliest, 0, -1):
        weights[k - 1] = weights[k] * k * rest // ((trials - k + 1) * top)
    return weights


@lru_cache(maxsize=256)
def _table(trials: int, chance: Fraction) -> AliasTable:
    return alias_table(lambda bits: _law(trials, chance, bits))


@compiled
def _add(
    times: Ints,
    shift: Ints,
    begin: Ints,
    escape: Ints,
    keep: WordArray,
    alias: Ints,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int, bool]:
    """Sums of `times[i, j]` draws of table j, until one escapes or the words run out."""
    while done < len(out):
        total, after = 0, position
        for j in range(len(shift)):
            for _ in range(times[done, j]):
                x, _, after = look_up(
                    shift[j],
                    keep[begin[j] : begin[j + 1]],
                    alias[begin[j] : begin[j + 1]],
                    words,
                    after,
                )
                if after < 0:
                    return done, position, False
                if x == escape[j]:
                    return done, position, True
                total += x
        out[done] = total
        done += 1
        position = after
    return done, position, False


class _Binomials:
    """The kernel of :func:`binomials`."""

    def __init__(self, times: Ints, tables: Sequence[AliasTable]) -> None:
        self.times, self.tables = times, tables
        self.arrays = (
            np.array([63 - t.bits for t in tables], dtype=np.int64),
            np.cumsum([0, *(len(t.keep) for t in tables)]).astype(np.int64),
            np.array([len(t.owned) for t in tables], dtype=np.int64),
            np.concatenate([t.keep for t in tables]),
            np.concatenate([t.alias for t in tables]),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        while True:
            done, position, escaped = _add(self.times, *self.arrays, out, done, words, position)
            if not escaped:
                return done, position
            total, after = 0, position
            for table, times in zip(self.tables, self.times[done].tolist(), strict=True):
                for _ in range(times):
                    x, _, after = table.look_up(words, after) if after >= 0 else (0, 0, -1)
                    total += x
            if after < 0:
                return done, position
            out[done] = total
            done, position = done + 1, after


def binomials(trials: Ints, chance: Fraction, words: Words) -> Ints:
    """For each number of trials how many succeed, if each does with probability `chance` (between 0
    and 1, both excluded).
    """
    whole = np.asarray(trials, dtype=np.int64)
    if len(whole) == 0 or whole.max() == 0:
        return np.zeros(len(whole), dtype=np.int64)
    bits = min(_BITS, int(whole.max()).bit_length() - 1)
    times = np.column_stack([*((whole >> j) & 1 for j in range(bits)), whole >> bits])
    tables = [_table(1 << j, chance) for j in range(bits + 1)]
    return words.run(
        _Binomials(np.ascontiguousarray(times), tables),
        len(whole),
        max(1, int(times.sum(axis=1).mean())),
    )


def added_up(oracle: OUE, counts: Ints, words: Words) -> Tally:
    """The tally of OUE reports of which `counts` are about each category."""
    reports = int(counts.sum())
    ones = binomials(counts, oracle.p, words) + binomials(reports - counts, oracle.q, words)
    return Tally(ones, reports)
