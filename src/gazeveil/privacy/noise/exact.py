"""Exact integer noise after Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), compiled.

Every probability is a quotient of integers or exp of minus one, realised with uniform integers alone: no floating point touches a
sample. All integers stay below 2**63 by the limits checked here:

* a uniform integer below m uses one 64-bit word and rejects the last, incomplete block of size m: no modulo bias;
* Bernoulli(exp(-a/b)) with a <= b draws Bernoulli(a/(b k)) for k = 1, 2, ... as "1 in k and a in b", so the product b k is never formed;
* discrete Laplace with scale t/s, P(x) proportional to exp(-|x| s/t), with t <= 2**40 and s <= 2**20: a value is t*v + u with v geometric;
  v beyond 2**20 (probability below exp(-2**20)) starts the draw again;
* discrete Gaussian with whole sigma <= 2**20 by rejection from discrete Laplace of scale sigma, accepting with
  exp(-(|y| - sigma)**2 / (2 sigma**2)); |y| beyond 2**31 (probability below exp(-2**11)) is rejected.

The two cut tails have probabilities far below 2**-1000 and are charged as :data:`TAIL_DELTA` per draw.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.rng import WordArray, Words

MOST_T = 1 << 40
MOST_S = 1 << 20
MOST_SIGMA = 1 << 20

#: Bound on the probability that a cut tail touches one draw; far above the true figure, far below anything that matters.
TAIL_DELTA = Fraction(1, 1 << 1000)

_OUT_OF_WORDS = -1


@compiled
def _below(m: np.uint64, words: WordArray, position: int) -> tuple[np.uint64, int]:
    """A uniform integer in [0, m) and the position after it; position -1 when the words ran out."""
    top = np.uint64(0xFFFFFFFFFFFFFFFF)
    # 2**64 mod m words at the top form the incomplete block.
    incomplete = (top % m + np.uint64(1)) % m
    limit = top - incomplete
    while True:
        if position >= len(words):
            return np.uint64(0), -1
        word = words[position]
        position += 1
        if word <= limit:
            return word % m, position


@compiled
def _bernoulli_exp_fraction(a: np.uint64, b: np.uint64, words: WordArray, position: int) -> tuple[bool, int]:
    """Bernoulli(exp(-a/b)) for 0 <= a <= b: the number of successes of Bernoulli(a/(b k)), k = 1, 2, ... is even."""
    k = np.uint64(1)
    while True:
        if k > np.uint64(1):
            drawn, position = _below(k, words, position)
            if position < 0:
                return False, -1
            if drawn != np.uint64(0):
                break
        drawn, position = _below(b, words, position)
        if position < 0:
            return False, -1
        if drawn >= a:
            break
        k += np.uint64(1)
    return k % np.uint64(2) == np.uint64(1), position


@compiled
def _bernoulli_exp(a: np.uint64, b: np.uint64, words: WordArray, position: int) -> tuple[bool, int]:
    """Bernoulli(exp(-a/b)) for any a >= 0: exp(-1) as often as b fits into a, then the rest."""
    one = np.uint64(1)
    while a > b:
        kept, position = _bernoulli_exp_fraction(one, one, words, position)
        if position < 0:
            return False, -1
        if not kept:
            return False, position
        a -= b
    return _bernoulli_exp_fraction(a, b, words, position)


@compiled
def _laplace_one(t: np.uint64, s: np.uint64, words: WordArray, position: int) -> tuple[np.int64, int]:
    one, zero = np.uint64(1), np.uint64(0)
    while True:
        u, position = _below(t, words, position)
        if position < 0:
            return np.int64(0), -1
        kept, position = _bernoulli_exp_fraction(u, t, words, position)
        if position < 0:
            return np.int64(0), -1
        if not kept:
            continue
        v = zero
        while True:
            more, position = _bernoulli_exp_fraction(one, one, words, position)
            if position < 0:
                return np.int64(0), -1
            if not more:
                break
            v += one
            if v > np.uint64(1 << 20):
                break
        if v > np.uint64(1 << 20):
            continue
        size = (u + t * v) // s
        if position >= len(words):
            return np.int64(0), -1
        negative = words[position] & one
        position += 1
        if negative == one and size == zero:
            continue
        value = np.int64(size)
        return (-value if negative == one else value), position


@compiled
def _laplace(t: np.uint64, s: np.uint64, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
    while done < len(out):
        value, after = _laplace_one(t, s, words, position)
        if after < 0:
            return done, position
        out[done] = value
        done += 1
        position = after
    return done, position


@compiled
def _gaussian(sigma: np.uint64, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
    one = np.uint64(1)
    while done < len(out):
        after = position
        while True:
            value, after = _laplace_one(sigma, one, words, after)
            if after < 0:
                return done, position
            size = np.uint64(abs(value))
            if size >= np.uint64(1 << 31):
                continue
            gap = size - sigma if size > sigma else sigma - size
            kept, after = _bernoulli_exp(gap * gap, np.uint64(2) * sigma * sigma, words, after)
            if after < 0:
                return done, position
            if kept:
                break
        out[done] = value
        done += 1
        position = after
    return done, position


class _LaplaceKernel:
    def __init__(self, t: int, s: int) -> None:
        self.t, self.s = np.uint64(t), np.uint64(s)

    def __call__(self, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
        return _laplace(self.t, self.s, out, done, words, position)


class _GaussianKernel:
    def __init__(self, sigma: int) -> None:
        self.sigma = np.uint64(sigma)

    def __call__(self, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
        return _gaussian(self.sigma, out, done, words, position)


def laplace_scale(scale: Fraction) -> tuple[int, int]:
    """The integers t and s with t/s >= scale that the sampler can use: rounded up where they are too large, never down.

    Raises
    ------
    ParameterError
        For a scale that is not positive or above 2**40.
    """
    if scale <= 0 or scale > MOST_T:
        refuse("discrete_laplace", "scale", "positive and at most 2**40 grid steps", scale, "Choose a coarser grid.")
    if scale.denominator <= MOST_S and scale.numerator <= MOST_T:
        return scale.numerator, scale.denominator
    s = max(1, min(MOST_S, int(MOST_T / scale)))
    return math.ceil(scale * s), s


def discrete_laplace(scale: Fraction, count: int, words: Words) -> NDArray[np.int64]:
    """Integers with P(x) proportional to exp(-|x| / scale).

    Parameters
    ----------
    scale : Fraction
        In grid steps; rounded up by :func:`laplace_scale` where its terms are too large.
    count : int
        How many.
    words : Words
        Random bits.
    """
    t, s = laplace_scale(scale)
    return words.run(_LaplaceKernel(t, s), count, 12)


def discrete_gaussian(sigma: int, count: int, words: Words) -> NDArray[np.int64]:
    """Integers with P(x) proportional to exp(-x**2 / (2 sigma**2)).

    Parameters
    ----------
    sigma : int
        Whole grid steps, 1 to 2**20.
    count : int
        How many.
    words : Words
        Random bits.
    """
    if isinstance(sigma, bool) or not isinstance(sigma, int) or not 1 <= sigma <= MOST_SIGMA:
        refuse("discrete_gaussian", "sigma", "a whole number of grid steps from 1 to 2**20", sigma, "Choose another grid.")
    return words.run(_GaussianKernel(sigma), count, 26)
