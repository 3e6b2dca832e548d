"""A frequency oracle: what a device reports of one category, and how a curator counts reports.

A report "supports" some categories: the true one with probability p, every other one with
probability q. Counting supports over n reports and solving for the truth gives an unbiased count
with variance n (f p (1-p) + (1-f) q (1-q)) / (p-q)**2 for a category of share f (Wang, Blocki, Li
and Jha, "Locally Differentially Private Protocols for Frequency Estimation", 2017).

**Exact odds.** exp(epsilon) is irrational. E is a quotient of whole numbers just below it, so every
probability is a quotient of whole numbers and drawn exactly, and the likelihood ratio of any report
is at most E <= exp(epsilon): the promise holds as written, with no numerical error to charge.

Supports are whole numbers: :class:`Tally` adds up in any order and at any size. Proof:
proofs/noise-local.md.

The frequency oracles of local differential privacy
(:mod:`gazeveil.privacy.noise.local`).

======== ========================================================== =======================
name     report                                                     p, q
======== ========================================================== =======================
`grr`    one category: the true one or, at odds 1 : E, any other    E/(E+d-1), 1/(E+d-1)
`oue`    d bits: the true one fair, the others 1 with probability q 1/2, 1/(E+1)
`subset` k categories: the true one among them at odds k E : d - k, kE/(kE+d-k), see code
         the others uniform (Ye and Barg 2018)
======== ========================================================== =======================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.privacy import rational
from gazeveil.privacy.randomness.rng import WordArray, Words, draw_below, uniform_below
from gazeveil.privacy.rational import Number, exact

MOST_CATEGORIES = 1 << 20
MOST_EPSILON = 100

_MOST_ODDS_BITS = 41


@lru_cache(maxsize=64)
def odds_below(epsilon: Fraction) -> Fraction:
    """A quotient of whole numbers just below exp(epsilon), with numerator and denominator below
    2**41; at most 2**40.

    Examples
    --------
    >>> float(odds_below(Fraction(1)))
    2.718281828458...
    """
    bits = 256
    # exp_minus is off by less than 4 units, so this is at most exp(epsilon)
    surely = Fraction(1 << bits, rational.exp_minus(epsilon, bits) + 4)
    if surely >= 1 << (_MOST_ODDS_BITS - 1):
        return Fraction(1 << (_MOST_ODDS_BITS - 1))
    whole = 1 << (_MOST_ODDS_BITS - int(surely).bit_length())
    return Fraction(int(surely * whole), whole)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many reports support each category; tallies of the same oracle add up.

    Parameters
    ----------
    supports : array of int64, shape (categories,)
        Reports that support each category.
    reports : int
        How many reports there were.
    """

    supports: Ints
    reports: int

    def __add__(self, other: Tally) -> Tally:
        if len(self.supports) != len(other.supports):
            raise DataError(
                f"Tallies of {len(self.supports)} and {len(other.supports)} categories do not add"
                " up. Use one oracle for all reports."
            )
        return Tally(self.supports + other.supports, self.reports + other.reports)


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A way to report one of d categories privately, and to count the reports.

    Parameters
    ----------
    epsilon : Fraction or other number
        Budget of one report, above 0 and at most 100 (beyond about 27 the odds stay at 2**40).
    categories : int
        d, 2 to 2**20.
    """

    name: ClassVar[str]

    epsilon: Number
    categories: int

    def __post_init__(self) -> None:
        value = exact(self.name, "epsilon", self.epsilon, above=0)
        if value > MOST_EPSILON or odds_below(value) <= 1:
            checks.refuse(self.name, "epsilon", f"from 1e-9 to {MOST_EPSILON}", self.epsilon)
        object.__setattr__(self, "epsilon", value)
        if checks.count(self.name, "categories", self.categories, least=2) > MOST_CATEGORIES:
            checks.refuse(
                self.name, "categories", "at most 2**20", self.categories, "Use a coarser grid."
            )

    @cached_property
    def odds(self) -> Fraction:
        """E, the largest likelihood ratio of any report: at most exp(epsilon)."""
        return odds_below(Fraction(self.epsilon))

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """Probability that a report supports its true category."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """Probability that a report supports any one other category."""

    @abstractmethod
    def _draw(self, truth: Ints, words: Words) -> NDArray[np.generic]: ...

    @abstractmethod
    def _supports(self, reports: Ints) -> Ints: ...

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, int]:
        """Shape and exclusive upper limit of one report's numbers: (width, limit)."""

    def report(self, categories: ArrayLike, words: Words) -> NDArray[np.generic]:
        """One private report per true category.

        Parameters
        ----------
        categories : array of int, shape (n,)
            True categories, 0 to d - 1.
        words : Words
            Random bits.

        Returns
        -------
        array, n rows; their shape does not depend on the categories
        """
        truth = np.atleast_1d(np.asarray(categories))
        if (
            truth.ndim != 1
            or truth.dtype.kind not in "iu"
            or (len(truth) and not (truth.min() >= 0 and truth.max() < self.categories))
        ):
            raise DataError(
                f"{self.name} reports whole numbers from 0 to {self.categories - 1}, one per row."
                " Nothing was reported."
            )
        return self._draw(truth.astype(np.int64), words)

    def tally(self, reports: ArrayLike) -> Tally:
        """Count the supports of reports.

        Raises
        ------
        DataError
            For reports that this oracle cannot have made.
        """
        rows = np.asarray(reports)
        width, limit = self._shape
        if (
            rows.ndim != 2
            or rows.shape[1] != width
            or rows.dtype.kind not in "iu"
            or (rows.size and not (rows.min() >= 0 and rows.max() < limit))
        ):
            raise DataError(
                f"These are no reports of {self.name}: rows of {width} whole numbers from 0 to"
                f" {limit - 1} are needed."
            )
        return Tally(self._supports(rows), len(rows))

    def estimate(self, tally: Tally) -> Floats:
        """Unbiased counts of the true categories; they may be negative."""
        return np.asarray(
            (tally.supports - tally.reports * float(self.q)) / float(self.p - self.q),
            dtype=np.float64,
        )

    def variance(self, n: int, f: Number = 0) -> Fraction:
        """Variance of the estimated count of a category that a share f of n people has."""
        share = exact(self.name, "f", f, least=0)
        p, q = self.p, self.q
        return n * (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


@compiled
def _unary(
    truth: Ints,
    top: np.uint64,
    bottom: np.uint64,
    room: NDArray[np.uint8],
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Rows of bits: 1 with probability top / bottom, and one half at the true category, byte by
    byte of the binary expansion. They are written into `room`, one row for each value of the run.
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
        top, bottom = self.odds.numerator, self.odds.denominator
        # One uniform number below the common denominator settles which category it is.
        common = top + bottom * (self.categories - 1)
        drawn = uniform_below(np.full(len(truth), common), words)
        other = (drawn - top) // bottom
        return np.where(drawn < top, truth, other + (other >= truth))[:, None]

    def _supports(self, reports: Ints) -> Ints:
        return np.bincount(reports[:, 0], minlength=self.categories).astype(np.int64)


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
        kernel = partial(_unary, truth, np.uint64(q.numerator), np.uint64(q.denominator), room)
        # one value per report; about a byte per bit
        words.run(kernel, len(truth), self.categories // 8 + 2)
        return room

    def _supports(self, reports: Ints) -> Ints:
        return reports.sum(axis=0, dtype=np.int64)


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
        marks = np.full(self.categories, -1, dtype=np.int64)
        chance = np.uint64(p.numerator), np.uint64(p.denominator)
        kernel = partial(_subsets, truth, *chance, self.categories, k, marks)
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
    {"grr": GRR, "subset": Subset, "oue": OUE}
)


def best_oracle(epsilon: Number, categories: int) -> FrequencyOracle:
    """The oracle with the least variance for a rare category; on a tie the one named first.

    Parameters
    ----------
    epsilon : Fraction or other number
        Budget of one report.
    categories : int
        How many.

    Examples
    --------
    >>> best_oracle(1, 4).name, best_oracle(1, 1000).name
    ('grr', 'subset')
    """
    made = [oracle(epsilon, categories) for oracle in ORACLES.values()]
    return min(made, key=lambda oracle: oracle.variance(1))
