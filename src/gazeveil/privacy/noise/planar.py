"""Planar Laplace noise on the whole-number lattice: P(z) proportional to exp(-|z| / scale) for z in
Z x Z, |z| Euclidean.

The planar Laplace mechanism of geo-indistinguishability (Andres et al. 2013) on a public grid. The
normaliser does not depend on the centre, so for points of the grid the promise is exact: moving a
point by d steps changes no probability by more than exp(d / scale).

Sampling uses whole numbers alone:

1. a ring n >= 0 with weight (n + 1) exp(-n / scale): the sum of two geometric numbers;
2. a candidate: a row y in [-(n + 1), n + 1), one of the two columns c, c + 1 where c >= |y| is the
   first with c*c + y*y >= n*n, and one of four quarter turns: 16 (n + 1) of them. It stands if it
   is in the ring n <= |z| < n + 1 and in the quarter -x < y <= x. Every lattice point but the
   origin is exactly one candidate, and so is the origin with turn 0;
3. it is kept with probability exp(-(|z| - n) / scale). |z| - n is the fractional part of a square
   root; Bernoulli(|z| - n) compares a 64-bit uniform V with it by whole numbers, (n + V)**2 < x*x +
   y*y, exact but for the last bit of V.

That last bit can change a probability by a factor exp(2**-64 / scale). Two different points of a
grid are at least one step apart, so a scale raised by less than a part in 2**15 (for most scales
2**20) pays for it, and the promise of the scale asked for holds purely. Proof:
proofs/noise-planar.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import MOST_S, draw_laplace_size, laplace_scale
from gazeveil.privacy.randomness.rng import WordArray, Words, draw_below, high_word
from gazeveil.privacy.rational import Number, exact

LEAST_SCALE = Fraction(1, 16)
MOST_SCALE = 1 << 22

#: What one point adds to delta because the tail is cut at 2**30 steps, for neighbours at most 2**29
#: steps apart.
PLANAR_DELTA = Fraction(1, 1 << 160)

_MOST_RING = 1 << 30


@compiled
def _root_up(square: np.int64) -> np.int64:
    """The smallest c >= 0 with c*c >= square, for square < 2**61; the double is only where the
    search begins.
    """
    if square <= 0:
        return np.int64(0)
    c = np.int64(np.sqrt(np.float64(square)))
    while c * c >= square and c > 0:
        c -= 1
    while c * c < square:
        c += 1
    return c


@compiled
def _beyond_ring(
    n: np.uint64, excess: np.uint64, words: WordArray, position: int
) -> tuple[bool, int]:
    """Bernoulli(sqrt(n*n + excess) - n): whether 2 n V + V*V < excess for V = word / 2**64."""
    if position >= len(words):
        return False, -1
    v = words[position]
    twice = n << np.uint64(1)
    low = twice * v
    carried = np.uint64(1) if low + high_word(v, v) < low else np.uint64(0)
    return bool(high_word(twice, v) + carried < excess), position + 1


@compiled
def _kept(
    t: np.uint64, s: np.uint64, n: np.uint64, excess: np.uint64, words: WordArray, position: int
) -> tuple[bool, int]:
    """Bernoulli(exp(-(sqrt(n*n + excess) - n) s / t)): as often as s/t needs factors, exp(-g) with
    g = (...) s / (t parts) <= 1.
    """
    zero = np.uint64(0)
    parts = (s + t - np.uint64(1)) // t
    for _ in range(parts):
        k = np.uint64(1)
        while True:
            # success with probability g / k: 1 in k, and s in t * parts, and the fractional part of
            # the root
            success, drawn = True, zero
            if k > np.uint64(1):
                drawn, position = draw_below(k, words, position)
                if position < 0:
                    return False, -1
                success = bool(drawn == zero)
            if success:
                drawn, position = draw_below(t * parts, words, position)
                if position < 0:
                    return False, -1
                success = bool(drawn < s)
            if success:
                success, position = _beyond_ring(n, excess, words, position)
                if position < 0:
                    return False, -1
            if not success:
                break
            k += np.uint64(1)
        if k % np.uint64(2) == zero:
            return False, position
    return True, position


@compiled
def _planar(
    t: np.uint64, s: np.uint64, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    after = position
    while done < len(out):
        first, _, after = draw_laplace_size(t, s, words, after)
        if after < 0:
            return done, position
        second, _, after = draw_laplace_size(t, s, words, after)
        if after < 0:
            return done, position
        if first + second >= np.uint64(_MOST_RING):
            continue
        n = np.int64(first + second)
        drawn, after = draw_below(np.uint64(16 * (n + 1)), words, after)
        if after < 0:
            return done, position
        slot = np.int64(drawn)
        turn, y = slot & 3, (slot >> 3) - (n + 1)
        outer = (n + 1) * (n + 1)
        if 2 * y * y >= outer:
            continue  # |z| >= sqrt(2) |y| in the quarter: outside the ring
        x = max(_root_up(n * n - y * y), abs(y)) + ((slot >> 2) & 1)
        square = x * x + y * y
        if square >= outer or (y == -x and (n > 0 or turn > 0)):
            continue
        excess = square - n * n
        if excess > 0:
            kept, after = _kept(t, s, np.uint64(n), np.uint64(excess), words, after)
            if after < 0:
                return done, position
            if not kept:
                continue
        for _ in range(turn):
            x, y = -y, x
        out[done], out[done + 1] = x, y
        done += 2
        position = after
    return done, position


def raised_scale(scale_steps: Number) -> Fraction:
    """The scale that the sampler uses: above the one asked for by less than a part in 2**15, for
    most scales 2**20.
    """
    scale = exact("planar_laplace", "scale_steps", scale_steps, above=0)
    if not LEAST_SCALE <= scale <= MOST_SCALE:
        checks.refuse(
            "planar_laplace",
            "scale_steps",
            "from 1/16 to 2**22 grid steps",
            scale_steps,
            "Choose another grid.",
        )
    t, s = laplace_scale(scale)
    # as many parts as fit, up to where two uniform integers share a word
    finer = max(1, min((1 << 25) // t, MOST_S // s))
    return Fraction(t * finer + 1, s * finer)


def planar_laplace(scale_steps: Number, count: int, words: Words) -> Ints:
    """Points of the lattice with P(z) proportional to exp(-|z| / scale), the scale being
    :func:`raised_scale`.

    Added to points of the grid they keep no more than d steps apart within a factor exp(d /
    scale_steps), up to :data:`PLANAR_DELTA`.

    Parameters
    ----------
    scale_steps : Fraction or other number
        In grid steps, 1/16 to 2**22.
    count : int
        How many points.
    words : Words
        Random bits.

    Returns
    -------
    array of int64, shape (count, 2)
        With a fine grid the mean distance is 2 scale and the mean squared distance 6 scale**2.
    """
    scale = raised_scale(scale_steps)
    many = checks.count("planar_laplace", "count", count, least=0)
    kernel = partial(_planar, np.uint64(scale.numerator), np.uint64(scale.denominator))
    return words.run(kernel, 2 * many, 8).reshape(many, 2)
