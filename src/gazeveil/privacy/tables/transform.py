"""Transforms in whole numbers: the coefficients of a block of grid values, and how far two
neighbours can lie apart in them, exactly.

A real transform in floating point rounds, and a promise then has to bound every rounding of a
library's fast transform. Here there is nothing to bound: the rows of the transform are multiplied
by 2**bits and rounded to whole numbers once, which makes a public integer matrix. Its product with
a vector of whole numbers is a whole number, and because `bits` is chosen such that no partial sum
exceeds 2**53, the product of two float64 matrices gives it exactly, in whatever order the sums are
formed.

With A the ideal rows and |E| < 1 the rounding of the integer matrix 2**bits A + E, a difference d
of two vectors moves the D coefficients by at most

    2**bits |A d|_1 + D |d|_1   in L1,        2**bits |A d|_2 + sqrt(D) |d|_1   in L2.

Where the coefficients are finer than the noise needs, they are divided by 2**shift and rounded,
which adds at most 1 per coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.noise.exact import MOST_T
from gazeveil.privacy.tables.recordings import STEPS

#: Values of a block and differences of two of them are at most this large.
_MOST_BITS = 17


def bits_for(n: int) -> int:
    """Fractional bits of the integer matrix for blocks of `n` values."""
    return min(30, 53 - _MOST_BITS - max(1, math.ceil(math.log2(n))) if n > 1 else 30)


def coefficients(rows: Floats, blocks: Ints) -> Ints:
    """The integer transform of every block, exactly.

    Parameters
    ----------
    rows : array of float64, shape (coefficients, n)
        The ideal transform, entries within [-1, 1].
    blocks : array of int64, shape (n, blocks)
        Whole numbers of at most 2**17.
    """
    whole = rows * float(1 << bits_for(len(blocks)))
    np.rint(whole, out=whole)
    return (whole @ blocks.astype(np.float64)).astype(np.int64)


@dataclass(frozen=True)
class CoefficientGrid:
    """The grid the coefficients are rounded to.

    Parameters
    ----------
    bits, shift : int
        A coefficient in grid steps is the integer transform over 2**shift; one step is 2**(shift -
        bits) of the ideal transform.
    sensitivity : int
        How far two neighbours lie apart, in grid steps, rounding included.
    """

    bits: int
    shift: int
    sensitivity: int

    @property
    def step(self) -> float:
        """One grid step in units of the ideal transform."""
        return math.ldexp(1.0, self.shift - self.bits)

    def rounded(self, whole: Ints) -> Ints:
        """The integer transform on the grid: division by 2**shift, rounded, in integers."""
        return (whole + (1 << self.shift >> 1)) >> self.shift


def grid_l1(
    owner: str,
    n: int,
    dimension: int,
    apart_squared: int,
    apart_sum: int,
    epsilon: Fraction,
    most: int,
) -> CoefficientGrid:
    """The finest grid on which L1 sensitivity over epsilon is at most `most` steps.

    Parameters
    ----------
    owner : str
        For the message.
    n, dimension : int
        Values of a block, and coefficients.
    apart_squared : int
        Square of the largest L1 distance of the ideal coefficients of neighbours.
    apart_sum : int
        Largest L1 distance of two neighbouring blocks.
    epsilon : Fraction
        Budget of a block.
    most : int
        Largest scale the sampler takes.
    """
    bits = bits_for(n)
    fine = math.isqrt(apart_squared << (2 * bits)) + 1 + dimension * apart_sum
    return _grid(owner, bits, fine, dimension, epsilon, most)


def grid_l2(
    owner: str,
    n: int,
    dimension: int,
    apart_squared: int,
    apart_sum: int,
    epsilon: Fraction,
    most: int,
) -> CoefficientGrid:
    """The finest grid on which L2 sensitivity over epsilon is at most `most` steps; parameters as
    for :func:`grid_l1`.
    """
    bits = bits_for(n)
    root = math.isqrt(dimension) + 1
    fine = math.isqrt(apart_squared << (2 * bits)) + 1 + root * apart_sum
    return _grid(owner, bits, fine, root, epsilon, most)


def _grid(
    owner: str, bits: int, fine: int, rounding: int, epsilon: Fraction, most: int
) -> CoefficientGrid:
    shift = 0
    while (-(-fine >> shift) + rounding) / epsilon > most:
        shift += 1
        if fine >> shift < rounding:
            checks.refuse(
                owner,
                "epsilon",
                "large enough that its noise fits into 64-bit integers",
                epsilon,
                "Give a larger epsilon.",
            )
    return CoefficientGrid(bits, shift, fine if shift == 0 else -(-fine >> shift) + rounding)


def coarsening(n: int, epsilon: Fraction) -> int:
    """By how many powers of two the public grid is coarsened so that the sampler's whole numbers
    suffice; 0 for all usual budgets.
    """
    coarse = 0
    while n * (STEPS >> coarse) / epsilon > MOST_T:
        coarse += 1
        if STEPS >> coarse == 0:
            checks.refuse(
                "lpa",
                "epsilon",
                f"at least {n} / 2**40 for one feature of one recording of {n} rows",
                epsilon,
                "Give a larger epsilon.",
            )
    return coarse


def laplace_steps(n: int, epsilon: Fraction, coarse: int = 0) -> Fraction:
    """Scale of the noise in steps of the (coarsened) grid: the L1 sensitivity n (hi - lo) over
    epsilon.
    """
    return Fraction(n * (STEPS >> coarse)) / epsilon
