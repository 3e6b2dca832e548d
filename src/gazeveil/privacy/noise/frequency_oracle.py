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
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.privacy.noise import reals
from gazeveil.privacy.randomness.rng import Words
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
    surely = Fraction(1 << bits, reals.exp_minus(epsilon, bits) + 4)
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

    def simulate(self, counts: ArrayLike, generator: np.random.Generator) -> Tally:
        """A tally as reports of these true counts would give it, without making them: for studies,
        never for protection.

        Each category's support has its exact law. Supports of several categories are drawn
        independently, as they are for `oue`; for the other oracles that leaves out a small
        correlation of order 1/d.
        """
        true = np.asarray(counts, dtype=np.int64)
        n = int(true.sum())
        supports = generator.binomial(true, float(self.p)) + generator.binomial(
            n - true, float(self.q)
        )
        return Tally(supports.astype(np.int64), n)
