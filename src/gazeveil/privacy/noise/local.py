"""The frequency oracles of local differential privacy
(:mod:`gazeveil.privacy.noise.frequency_oracle`).

======== ========================================================== =======================
name     report                                                     p, q
======== ========================================================== =======================
`grr`    one category: the true one or, at odds 1 : E, any other    E/(E+d-1), 1/(E+d-1)
`oue`    d bits: the true one fair, the others 1 with probability q 1/2, 1/(E+1)
`olh`    a random hash of all categories into g values, and the     E/(E+g-1), 1/g
         hashed value through `grr`
`subset` k categories: the true one among them at odds k E : d - k, kE/(kE+d-k), see code
         the others uniform (Ye and Barg 2018)
======== ========================================================== =======================

OLH hashes by a linear map over a prime field, for which two categories collide with probability
exactly 1/g.

Compiled parts of the frequency oracles: bits with an exact probability, random subsets, and the
counting of hashes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.privacy.noise.frequency_oracle import FrequencyOracle
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.randomness.uniform import draw_below, uniform_below
from gazeveil.privacy.rational import Number


@compiled
def _unary(
    truth: Ints,
    top: np.uint64,
    bottom: np.uint64,
    room: NDArray[np.uint8],
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Rows of bits: 1 with probability top / bottom, and one half at the true category, byte by
    byte of the binary expansion.
    """
    eight, byte = np.uint64(8), np.uint64(255)
    first, left = (top << eight) // bottom, (top << eight) % bottom
    while done < len(truth):
        after, held, word = position, 0, np.uint64(0)
        true = truth[done]
        for i in range(room.shape[1]):
            limit, rest = (np.uint64(128), np.uint64(0)) if i == true else (first, left)
            while True:
                if held == 0:
                    if after >= len(words):
                        return done, position
                    word, held = words[after], 8
                    after += 1
                drawn = word & byte
                word >>= eight
                held -= 1
                if drawn != limit or rest == np.uint64(0):
                    break
                # a tie: the next byte is compared with the next digit of the probability
                limit, rest = (rest << eight) // bottom, (rest << eight) % bottom
            room[done, i] = np.uint8(drawn < limit)
        done += 1
        position = after
    return done, position


class UnaryKernel:
    """Rows of bits: 1 with probability top / bottom, fair at the true category. Written into
    `room`, one value of the run per row.
    """

    def __init__(self, truth: Ints, top: int, bottom: int, room: NDArray[np.uint8]) -> None:
        self.truth, self.top, self.bottom, self.room = (
            truth,
            np.uint64(top),
            np.uint64(bottom),
            room,
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """See :data:`gazeveil.privacy.randomness.rng.Kernel`."""
        return _unary(self.truth, self.top, self.bottom, self.room, done, words, position)


@compiled
def _subsets(
    truth: Ints,
    top: np.uint64,
    bottom: np.uint64,
    categories: int,
    size: int,
    marks: Ints,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Subsets by Floyd's method: the others are drawn from the d - 1 categories without the truth.
    `marks` says who is in which row.
    """
    while done < len(out):
        row = done // size
        true = truth[row]
        drawn, after = draw_below(bottom, words, position)
        if after < 0:
            return done, position
        filled = 0
        if drawn < top:
            out[done] = true
            filled = 1
        wanted = size - filled
        for j in range(categories - 1 - wanted, categories - 1):
            drawn, after = draw_below(np.uint64(j + 1), words, after)
            if after < 0:
                marks[:] = -1  # the row is drawn again from its beginning
                return done, position
            pick = np.int64(drawn)
            if marks[pick] == row:
                pick = np.int64(j)
            marks[pick] = row
            out[done + filled] = pick + (1 if pick >= true else 0)
            filled += 1
        done += size
        position = after
    return done, position


class SubsetKernel:
    """Rows of `size` categories, the true one among them with probability top / bottom."""

    def __init__(self, truth: Ints, top: int, bottom: int, categories: int, size: int) -> None:
        self.arguments = (
            truth,
            np.uint64(top),
            np.uint64(bottom),
            categories,
            size,
            np.full(categories, -1, dtype=np.int64),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        """See :data:`gazeveil.privacy.randomness.rng.Kernel`."""
        return _subsets(*self.arguments, out, done, words, position)


@compiled
def hash_supports(reports: Ints, written: Ints, field: int) -> Ints:
    """How many reports (coefficients, hashed value) support each category, given in digits."""
    supports = np.zeros(len(written), dtype=np.int64)
    digits = written.shape[1]
    for r in range(len(reports)):
        for v in range(len(written)):
            total = 0
            for i in range(digits):
                total += reports[r, i] * written[v, i]
            supports[v] += total % field == reports[r, digits]
    return supports


_MOST_FIELD = 1 << 20


class GRR(FrequencyOracle):
    """Generalised randomised response (Kairouz, Bonawitz and Ramage 2016)."""

    name: ClassVar[str] = "grr"

    @property
    def p(self) -> Fraction:
        """E / (E + d - 1)."""
        return self.odds / (self.odds + self.categories - 1)

    @property
    def q(self) -> Fraction:
        """1 / (E + d - 1)."""
        return 1 / (self.odds + self.categories - 1)

    @property
    def _shape(self) -> tuple[int, int]:
        return 1, self.categories

    def _draw(self, truth: Ints, words: Words) -> NDArray[np.generic]:
        return _respond(truth, self.odds, self.categories, words)[:, None]

    def _supports(self, reports: Ints) -> Ints:
        return np.bincount(reports[:, 0], minlength=self.categories).astype(np.int64)


def _respond(truth: Ints, odds: Fraction, categories: int, words: Words) -> Ints:
    """The truth at odds E : 1 against every other category: one uniform number below the common
    denominator settles which.
    """
    return _settle(
        truth, odds, uniform_below(np.full(len(truth), _denominator(odds, categories)), words)
    )


def _denominator(odds: Fraction, categories: int) -> int:
    return odds.numerator + odds.denominator * (categories - 1)


def _settle(truth: Ints, odds: Fraction, drawn: Ints) -> Ints:
    place = (drawn - odds.numerator) // odds.denominator
    return np.where(drawn < odds.numerator, truth, place + (place >= truth))


class OUE(FrequencyOracle):
    """Optimised unary encoding (Wang et al. 2017)."""

    name: ClassVar[str] = "oue"

    @property
    def p(self) -> Fraction:
        """One half."""
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        """1 / (E + 1), not below 1 / (exp(epsilon) + 1)."""
        return 1 / (self.odds + 1)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.categories, 2

    def _draw(self, truth: Ints, words: Words) -> NDArray[np.generic]:
        q = self.q
        room = np.empty((len(truth), self.categories), dtype=np.uint8)
        kernel = UnaryKernel(truth, q.numerator, q.denominator, room)
        # one value per report; about a byte per bit
        words.run(kernel, len(truth), self.categories // 8 + 2)
        return room

    def _supports(self, reports: Ints) -> Ints:
        return reports.sum(axis=0, dtype=np.int64)


class OLH(FrequencyOracle):
    """Optimised local hashing (Wang et al. 2017) with a linear hash over a prime field.

    A category is written in base g, g prime, and hashed to the sum of its digits times random
    coefficients, modulo g. A report is the coefficients and the hashed value: a few numbers below
    g, however many categories there are.
    """

    name: ClassVar[str] = "olh"

    @cached_property
    def field(self) -> int:
        """g: the prime beside E + 1, where the variance is least, that gives less; at most the
        first prime after 2**20.
        """
        best = max(2, min(round(self.odds + 1), _MOST_FIELD))
        return min(
            (_prime(best, -1), _prime(best, 1)),
            key=lambda g: _rare(self.odds / (self.odds + g - 1), Fraction(1, g)),
        )

    @property
    def p(self) -> Fraction:
        """E / (E + g - 1)."""
        return self.odds / (self.odds + self.field - 1)

    @property
    def q(self) -> Fraction:
        """1 / g, exactly."""
        return Fraction(1, self.field)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._digits + 1, self.field

    @property
    def _digits(self) -> int:
        digits, reach = 1, self.field
        while reach < self.categories:
            digits, reach = digits + 1, reach * self.field
        return digits

    def _written(self, categories: Ints) -> Ints:
        return categories[:, None] // self.field ** np.arange(self._digits) % self.field

    def _draw(self, truth: Ints, words: Words) -> NDArray[np.generic]:
        g = self.field
        limits = np.tile([*([g] * self._digits), _denominator(self.odds, g)], len(truth))
        drawn = uniform_below(limits, words).reshape(len(truth), self._digits + 1)
        hashed = (drawn[:, :-1] * self._written(truth)).sum(axis=1) % g
        return np.column_stack((drawn[:, :-1], _settle(hashed, self.odds, drawn[:, -1])))

    def _supports(self, reports: Ints) -> Ints:
        return hash_supports(
            reports.astype(np.int64), self._written(np.arange(self.categories)), self.field
        )


@lru_cache(maxsize=64)
def _prime(n: int, step: int) -> int:
    """The prime at n or beside it, up or down, for n >= 2."""
    while any(n % k == 0 for k in range(2, math.isqrt(n) + 1)):
        n += step
    return n


def _rare(p: Fraction, q: Fraction) -> Fraction:
    """Variance per report of the count of an empty category."""
    return q * (1 - q) / (p - q) ** 2


class Subset(FrequencyOracle):
    """Subset selection (Ye and Barg 2018; Wang et al. 2016)."""

    name: ClassVar[str] = "subset"

    @cached_property
    def size(self) -> int:
        """k: the whole number beside d / (E + 1), where the variance is least, that gives less;
        from 1 to d - 1.
        """
        best = self.categories / (self.odds + 1)
        near = {min(max(1, k), self.categories - 1) for k in (math.floor(best), math.ceil(best))}
        return min(sorted(near), key=lambda k: _rare(self._p(k), self._q(k)))

    def _p(self, k: int) -> Fraction:
        return k * self.odds / (k * self.odds + self.categories - k)

    def _q(self, k: int) -> Fraction:
        p = self._p(k)
        return (p * (k - 1) + (1 - p) * k) / (self.categories - 1)

    @property
    def p(self) -> Fraction:
        """The truth is in the subset: k E / (k E + d - k)."""
        return self._p(self.size)

    @property
    def q(self) -> Fraction:
        """Another category is: (p (k - 1) + (1 - p) k) / (d - 1)."""
        return self._q(self.size)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.size, self.categories

    def _draw(self, truth: Ints, words: Words) -> NDArray[np.generic]:
        p, k = self.p, self.size
        kernel = SubsetKernel(truth, p.numerator, p.denominator, self.categories, k)
        rows = words.run(kernel, len(truth) * k, 2).reshape(len(truth), k)
        return np.sort(rows, axis=1)  # the order of drawing would tell the truth

    def _supports(self, reports: Ints) -> Ints:
        if (
            self.size > 1
            and len(reports)
            and (np.diff(np.sort(reports, axis=1), axis=1) == 0).any()
        ):
            raise DataError(
                "These are no reports of subset: a category occurs twice in one of them."
            )
        return np.bincount(reports.ravel(), minlength=self.categories).astype(np.int64)


#: All oracles by name.
ORACLES: Mapping[str, type[FrequencyOracle]] = MappingProxyType(
    {"grr": GRR, "subset": Subset, "oue": OUE, "olh": OLH}
)


def best_oracle(
    epsilon: Number, categories: int, among: tuple[str, ...] = ("grr", "subset", "oue", "olh")
) -> FrequencyOracle:
    """The oracle with the least variance for a rare category; on a tie the one named first.

    Parameters
    ----------
    epsilon : Fraction or other number
        Budget of one report.
    categories : int
        How many.
    among : tuple of str
        Which ones to choose from: without `subset` it is `grr` below about 3 exp(epsilon) + 2
        categories, else `oue`; `olh` has the shortest reports.

    Examples
    --------
    >>> best_oracle(1, 4).name, best_oracle(1, 1000, among=("grr", "oue")).name
    ('grr', 'oue')
    """
    if not among:
        checks.refuse(
            "best_oracle", "among", "at least one of " + ", ".join(sorted(ORACLES)), among
        )
    made = [
        ORACLES[checks.one_of("best_oracle", "among", name, ORACLES)](epsilon, categories)
        for name in among
    ]
    return min(made, key=lambda oracle: oracle.variance(1))
