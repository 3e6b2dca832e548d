"""Exact integer noise, discrete Laplace and Gaussian, compiled and sparing with random bits.

After Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020). No
floating point touches a sample. Every probability is a quotient of integers or a power of
exp(-1/4), realised from uniform bits:

* a uniform integer below m is the high part of word times m, and the words that would make the
  blocks unequal are rejected (Lemire 2019);
* a geometric number with ratio exp(-1/4) comes from one word W, read as the first bits of a uniform
  real: it is the number of thresholds 1 - exp(-j/4) that the real is not below. The thresholds are
  known to 1087 bits; where W ties with one, the next words decide;
* Bernoulli(exp(-a/b)) with a <= b draws Bernoulli(a/(b k)) for k = 1, 2, ... as "1 in k and a in
  b", so the product b k is never formed;
* discrete Laplace with scale t/s, P(x) proportional to exp(-|x| s/t): u uniform below t, kept with
  probability exp(-u/(4t)), v geometric, size (u + t v) // (4s), a sign, and minus zero starts
  again;
* discrete Gaussian with whole sigma by rejection from discrete Laplace of scale sigma, accepting
  with exp(-(|y| - sigma)**2 / (2 sigma**2)).

Limits that keep every integer below 2**64: t <= 2**40, s <= 2**20, sigma <= 2**20. v beyond 2**20
starts the draw again (probability below exp(-2**18)), |y| from 2**31 on is rejected (below
exp(-2**11)), and a real that ties with a threshold for 1087 bits counts as not below it (below 64 *
2**-1087): together a total variation below 2**-1050 per draw, see
:data:`TAIL_DELTA`. Proof: proofs/noise-exact.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import NoReturn

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy import rational
from gazeveil.privacy.randomness.rng import WordArray, Words, draw_below, high_word

MOST_T = 1 << 40
MOST_S = 1 << 20
MOST_SIGMA = 1 << 20

#: What one draw adds to delta: (1 + exp(epsilon)) times the total variation from the exact law, for
#: every epsilon up to 100. Far above the true figure, far below anything that matters.
TAIL_DELTA = Fraction(1, 1 << 900)

# Total variation of one value, or of one vector of K-norm noise, from its law: below 2**-1045.
_VARIATION_BITS = 1045

# thresholds; beyond the last the geometric law, which has no memory, starts afresh from there
_STEPS = 64
_LIMBS = 17  # 63 bits, then 16 words
_NARROW = 1 << 26  # below it two uniform integers share one word
_MOST_V = 1 << 20  # blocks of t: keeps u + t v below 2**61


def thresholds() -> tuple[WordArray, Ints]:
    """The thresholds 1 - exp(-j/4), j = 1 to 64, and where to begin looking.

    Returns
    -------
    limbs : array of uint64, shape (64, 17)
        Binary digits after the point: 63 in the first column, 64 in each further one.
    guide : array of int64, shape (256,)
        How many thresholds are at most b / 256.
    """
    bits = 63 + 64 * (_LIMBS - 1)
    work = bits + 64
    limbs = np.empty((_STEPS, _LIMBS), dtype=np.uint64)
    guide = np.zeros(256, dtype=np.int64)
    quarter = rational.exp_minus(Fraction(1, 4), work)
    power = 1 << work
    for j in range(_STEPS):
        power = (power * quarter) >> work
        value = (1 << work) - power
        # Each product adds an error of less than 5 units: the digits are sure if that cannot carry
        # out of the 64 guard bits.
        assert (value - 512) >> 64 == (value + 512) >> 64
        digits = value >> 64
        for column in range(_LIMBS - 1, 0, -1):
            limbs[j, column] = digits & ((1 << 64) - 1)
            digits >>= 64
        limbs[j, 0] = digits
        guide[(digits >> 55) + 1 :] += 1
    return limbs, guide


# Constants of the compiled code. As arguments they would be counted at every call, which costs more
# than a draw.
_DIGITS, _GUIDE = thresholds()
_FIRST = _DIGITS[:, 0].copy()


@compiled
def _tie(j: int, words: WordArray, position: int) -> tuple[bool, int]:
    """Whether the real whose first 63 bits tie with threshold j is not below it,
    by the next words.
    """
    for i in range(1, _LIMBS):
        if position >= len(words):
            return False, -1
        word = words[position]
        position += 1
        if word != _DIGITS[j, i]:
            return word > _DIGITS[j, i], position
    return True, position


@compiled
def draw_geometric(words: WordArray, position: int) -> tuple[np.uint64, np.uint64, int]:
    """A geometric number with ratio exp(-1/4), a fair bit, and the position after them."""
    total = np.uint64(0)
    while True:
        if position >= len(words):
            return total, total, -1
        word = words[position]
        position += 1
        first = word >> np.uint64(1)
        j = _GUIDE[word >> np.uint64(56)]
        while j < _STEPS and first > _FIRST[j]:
            j += 1
        if j < _STEPS and first == _FIRST[j]:
            reached, position = _tie(j, words, position)
            if position < 0:
                return total, total, -1
            j += 1 if reached else 0
        total += np.uint64(j)
        if j < _STEPS or total > np.uint64(_MOST_V):
            return total, word & np.uint64(1), position


@compiled
def draw_bernoulli_exp(
    a: np.uint64, b: np.uint64, words: WordArray, position: int
) -> tuple[bool, int]:
    """Bernoulli(exp(-a/b)) for a, b < 2**62: exp(-q) for the whole part q of a/b, then the rest."""
    whole = a // b
    if whole > np.uint64(0):
        # A geometric number with ratio exp(-1/4) reaches 4 q with probability exp(-q).
        v, _, position = draw_geometric(words, position)
        if position < 0:
            return False, -1
        if v >> np.uint64(2) < whole:
            return False, position
    rest = a - whole * b
    drawn, position = draw_below(b, words, position)
    if position < 0:
        return False, -1
    if drawn >= rest:
        return True, position
    return draw_bernoulli_exp_after(rest, b, words, position)


@compiled
def draw_bernoulli_exp_after(
    a: np.uint64, b: np.uint64, words: WordArray, position: int
) -> tuple[bool, int]:
    """Bernoulli(exp(-a/b)), a <= b, where Bernoulli(a/b) succeeded: the number of successes of
    Bernoulli(a/(b k)), k = 1, 2, ... is even.
    """
    k = np.uint64(2)
    while True:
        drawn, position = draw_below(k, words, position)
        if position < 0:
            return False, -1
        if drawn != np.uint64(0):
            break
        drawn, position = draw_below(b, words, position)
        if position < 0:
            return False, -1
        if drawn >= a:
            break
        k += np.uint64(1)
    return k % np.uint64(2) == np.uint64(1), position


@compiled
def draw_laplace_size(
    t: np.uint64, s: np.uint64, words: WordArray, position: int
) -> tuple[np.uint64, np.uint64, int]:
    """A number n >= 0 with P(n) proportional to exp(-n s/t), a fair bit, and the position after
    them.
    """
    low, half, zero = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(0)
    t4 = t << np.uint64(2)
    narrow = t < np.uint64(_NARROW)
    while True:
        # u in [0, t) and `drawn` in [0, 4t), both uniform
        if narrow:
            if position >= len(words):
                return zero, zero, -1
            word = words[position]
            position += 1
            a, b = (word & low) * t, (word >> half) * t4
            if ((a & low) < t and (a & low) < (low + np.uint64(1)) % t) or (
                (b & low) < t4 and (b & low) < (low + np.uint64(1)) % t4
            ):
                continue
            u, drawn = a >> half, b >> half
        else:
            if position + 1 >= len(words):
                return zero, zero, -1
            word, other = words[position], words[position + 1]
            position += 2
            if (word * t < t and word * t < (zero - t) % t) or (
                other * t4 < t4 and other * t4 < (zero - t4) % t4
            ):
                continue
            u, drawn = high_word(word, t), high_word(other, t4)
        if drawn < u:
            kept, position = draw_bernoulli_exp_after(u, t4, words, position)
            if position < 0:
                return zero, zero, -1
            if not kept:
                continue
        v, bit, position = draw_geometric(words, position)
        if position < 0:
            return zero, zero, -1
        if v <= np.uint64(_MOST_V):
            return (u + t * v) // (s << np.uint64(2)), bit, position


@compiled
def draw_laplace(
    t: np.uint64, s: np.uint64, words: WordArray, position: int
) -> tuple[np.int64, int]:
    """A discrete Laplace number of scale t/s and the position after it."""
    while True:
        size, negative, position = draw_laplace_size(t, s, words, position)
        if position < 0:
            return np.int64(0), -1
        if negative == np.uint64(0):
            return np.int64(size), position
        if size > np.uint64(0):
            return -np.int64(size), position


@compiled
def _laplace(
    t: np.uint64, s: np.uint64, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    while done < len(out):
        value, after = draw_laplace(t, s, words, position)
        if after < 0:
            return done, position
        out[done] = value
        done += 1
        position = after
    return done, position


@compiled
def draw_gaussians(
    sigma: np.uint64, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    """Discrete Gaussians into `out`, from the done-th on: values done and words used."""
    b = np.uint64(2) * sigma * sigma
    after = position
    while done < len(out):
        value, after = draw_laplace(sigma, np.uint64(1), words, after)
        if after < 0:
            return done, position
        size = np.uint64(abs(value))
        if size >= np.uint64(1 << 31):
            continue
        gap = size - sigma if size > sigma else sigma - size
        kept, after = draw_bernoulli_exp(gap * gap, b, words, after)
        if after < 0:
            return done, position
        if kept:
            out[done] = value
            done += 1
            position = after
    return done, position


def tail_delta(epsilon: Fraction, draws: int) -> Fraction:
    """What that many draws add to delta, each with a loss of at most epsilon: :data:`TAIL_DELTA`
    each up to 100, more beyond, at most 1.

    Beyond 100 the factor (1 + exp(epsilon)) outgrows what :data:`TAIL_DELTA` allows for; log2(1 +
    exp(x)) <= 1 + 1.443 x.
    """
    bits = 1 + math.ceil(epsilon * Fraction(1443, 1000))
    each = TAIL_DELTA if epsilon <= 100 else Fraction(1, 1 << max(0, _VARIATION_BITS - bits))
    return min(Fraction(1), draws * each)


def refuse_budget(owner: str, name: str, budget: object, least: Fraction, result: str) -> NoReturn:
    """Refuse a privacy budget below `least`: it asks for more noise than the samplers draw."""
    allowed = f"at least {float(least):.2g} here (below, noise drowns any {result})"
    refuse(owner, name, allowed, str(budget), "Nothing was released.")


def laplace_scale(scale: Fraction) -> tuple[int, int]:
    """The integers t and s with t/s >= scale that the sampler can use: rounded up where they are
    too large, never down.

    Raises
    ------
    ParameterError
        For a scale that is not positive or above 2**40.
    """
    if scale <= 0 or scale > MOST_T:
        refuse(
            "discrete_laplace",
            "scale",
            "positive and at most 2**40 grid steps",
            scale,
            "Choose a coarser grid.",
        )
    if scale.denominator <= MOST_S and scale.numerator <= MOST_T:
        return scale.numerator, scale.denominator
    s = max(1, min(MOST_S, int(MOST_T / scale)))
    return math.ceil(scale * s), s


def discrete_laplace(scale: Fraction, count: int, words: Words) -> Ints:
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
    values = checks.count("discrete_laplace", "count", count, least=0)
    return words.run(partial(_laplace, np.uint64(t), np.uint64(s)), values, 3)


def discrete_gaussian(sigma: int, count: int, words: Words) -> Ints:
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
        refuse(
            "discrete_gaussian",
            "sigma",
            "a whole number of grid steps from 1 to 2**20",
            sigma,
            "Choose another grid.",
        )
    values = checks.count("discrete_gaussian", "count", count, least=0)
    return words.run(partial(draw_gaussians, np.uint64(sigma)), values, 6)
