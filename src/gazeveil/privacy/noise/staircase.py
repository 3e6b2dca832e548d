"""The staircase mechanism on whole numbers: the least noise for pure DP of one number.

Geng and Viswanath, "The Optimal Noise-Adding Mechanism in Differential Privacy" (2016): for integer queries of sensitivity D

    P(i) proportional to exp(-epsilon k)   where   k = 0 for |i| < r,   k = 1 + floor((|i| - r) / D) else,

with a first step r from 1 to D. Moving the centre by at most D changes k by at most one, so it is epsilon-DP. For small epsilon it is as
good as Laplace; for large epsilon its variance falls like exp(-2 epsilon / 3), where Laplace has 2 / epsilon**2.

**Sampling.** |i| = G D + c: one table lookup gives the geometric G (ratio exp(-epsilon)) together with whether c < r (weight r) or
c >= r (weight (D - r) exp(-epsilon)); c is then uniform in its range, a sign is drawn, and minus zero starts again. Only the table is not
exact, to :data:`~gazeveil.privacy.noise.table.TABLE_DELTA`. Proof: proofs/noise-staircase.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.compiled import compiled
from gazeveil.privacy.exactly import Number, exact
from gazeveil.privacy.noise import reals
from gazeveil.privacy.noise.exact import _below
from gazeveil.privacy.noise.rng import WordArray, Words
from gazeveil.privacy.noise.table import TABLE_DELTA, AliasTable, alias_table, look_up

MOST_SENSITIVITY = 1 << 40

_MOST_LEVELS = 1000
_MOST_TOTAL = 1 << 20


@compiled
def _staircase(
    shift: int,
    keep: WordArray,
    alias: NDArray[np.int64],
    escape: int,
    levels: int,
    first: int,
    sensitivity: int,
    out: NDArray[np.int64],
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int, bool]:
    """Values until one escapes or the words run out."""
    after = position
    while done < len(out):
        whole = 0
        while True:
            x, negative, after = look_up(shift, keep, alias, words, after)
            if after < 0:
                return done, position, False
            if x == escape:
                return done, position, True
            if x < 2 * levels:
                break
            whole += levels  # beyond the table the law starts afresh from there
        whole += x >> 1
        if whole > _MOST_TOTAL:
            continue
        upper = x & 1
        drawn, after = _below(np.uint64(sensitivity - first if upper == 1 else first), words, after)
        if after < 0:
            return done, position, False
        size = whole * sensitivity + np.int64(drawn) + upper * first
        if negative == np.uint64(1):
            if size == 0:
                continue
            size = -size
        out[done] = size
        done += 1
        position = after
    return done, position, False


@dataclass(frozen=True)
class Staircase:
    """Staircase noise for one whole number.

    Parameters
    ----------
    epsilon : Fraction or other number
        1/1000 to 100.
    sensitivity : int
        By how many steps neighbours differ, 1 to 2**40.
    first : int, optional
        r, the width of the first step, 1 to sensitivity; by default the one with the least variance.

    Examples
    --------
    >>> from gazeveil.privacy.noise.rng import Words, source
    >>> noise = Staircase(5, 1000)
    >>> noise.first, round(noise.variance), noise.draw(3, Words(source(1))).shape
    (145, 29711, (3,))
    """

    epsilon: Number
    sensitivity: int
    first: int | None = None

    def __post_init__(self) -> None:
        epsilon = exact("Staircase", "epsilon", self.epsilon, above=0)
        if not Fraction(1, 1000) <= epsilon <= 100:
            checks.refuse("Staircase", "epsilon", "from 1/1000 to 100", self.epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        size = checks.count("Staircase", "sensitivity", self.sensitivity)
        if size > MOST_SENSITIVITY:
            checks.refuse("Staircase", "sensitivity", "at most 2**40 grid steps", self.sensitivity, "Choose a coarser grid.")
        r = best_first(epsilon, size) if self.first is None else checks.count("Staircase", "first", self.first)
        if r > size:
            checks.refuse("Staircase", "first", f"at most the sensitivity {size}", self.first)
        object.__setattr__(self, "first", r)

    @property
    def delta_num(self) -> Fraction:
        """What one value adds to delta, for every epsilon up to 100."""
        return TABLE_DELTA

    @property
    def variance(self) -> float:
        """Variance of one value in steps squared, in closed form."""
        return staircase_variance(float(Fraction(self.epsilon)), self.sensitivity, self.first or 1)

    @cached_property
    def _levels(self) -> int:
        return min(_MOST_LEVELS, max(1, math.ceil(20 / Fraction(self.epsilon))))

    def _law(self, bits: int) -> list[int]:
        """Weights of 2 G + (0 for c < r, 1 for c >= r), then of all further levels together."""
        r, more = self.first or 1, self.sensitivity - (self.first or 1)
        ratio = reals.exp_minus(Fraction(self.epsilon), bits)
        weights: list[int] = []
        level = 1 << bits
        for _ in range(self._levels):
            following = (level * ratio) >> bits
            weights += [level * r, following * more]
            level = following
        block = (r << bits) + more * ratio  # r + (D - r) exp(-epsilon), and a geometric series of it
        return [*weights, level * block // ((1 << bits) - ratio)]

    @cached_property
    def _table(self) -> AliasTable:
        return alias_table(self._law)

    def __call__(self, out: NDArray[np.int64], done: int, words: WordArray, position: int) -> tuple[int, int]:
        """The kernel that :meth:`Words.run` runs."""
        table, first = self._table, self.first or 1
        fixed = (63 - table.bits, table.keep, table.alias, len(table.owned), self._levels, first, self.sensitivity)
        while True:
            done, position, escaped = _staircase(*fixed, out, done, words, position)
            if not escaped:
                return done, position
            value, after = self._one(words, position)
            if after < 0:
                return done, position
            out[done] = value
            done, position = done + 1, after

    def _one(self, words: WordArray, position: int) -> tuple[int, int]:
        """One value, escapes included, and the position after it: what the compiled loop does, in plain Python."""
        first = self.first or 1
        while True:
            whole, x, negative = 0, 2 * self._levels, 0
            while x == 2 * self._levels:
                x, negative, position = self._table.look_up(words, position)
                if position < 0:
                    return 0, -1
                whole += min(x // 2, self._levels)
            if whole > _MOST_TOTAL:
                continue
            upper = x % 2
            drawn, position = _below(np.uint64(self.sensitivity - first if upper else first), words, position)
            if position < 0:
                return 0, -1
            size = whole * self.sensitivity + int(drawn) + upper * first
            if size > 0 or negative == 0:
                return (-size if negative else size), position

    def draw(self, count: int, words: Words) -> NDArray[np.int64]:
        """That many values."""
        return words.run(self, checks.count("Staircase", "count", count, least=0), 3)


def staircase_variance(epsilon: float, sensitivity: int, first: int) -> float:
    """Variance of the integer staircase: sums of squares of the steps, weighted by powers of b = exp(-epsilon).

    With m_k = r + (k - 1) D the step k >= 1 holds D numbers on each side, whose squares sum to D m_k**2 + m_k D (D - 1) + D (D - 1) (2 D - 1) / 6.
    """
    b, d, r = math.exp(-epsilon), float(sensitivity), float(first)
    c = -math.expm1(-epsilon)
    s0, s1, s2 = b / c, b * b / c**2, b * b * (1 + b) / c**3  # sums over k >= 1 of b**k times 1, k - 1, (k - 1)**2
    inner = (r - 1) * r * (2 * r - 1) / 6
    square, linear = r * r * s0 + 2 * r * d * s1 + d * d * s2, r * s0 + d * s1
    outer = d * square + d * (d - 1) * linear + d * (d - 1) * (2 * d - 1) / 6 * s0
    return 2 * (inner + outer) / (2 * r - 1 + 2 * d * s0)


def best_first(epsilon: Fraction, sensitivity: int) -> int:
    """The first step with the least variance.

    The continuous optimum is gamma D with gamma = -b/(1-b) + ((b - 2 b**2 + 2 b**4 - b**5) / 2)**(1/3) / (1-b)**2 (Geng and
    Viswanath); the whole numbers around it are compared. An inexact choice would cost variance, never privacy.
    """
    e = float(epsilon)
    b, c = math.exp(-e), -math.expm1(-e)
    # b - 2 b**2 + 2 b**4 - b**5 = b (1 - b)**3 (1 + b)
    gamma = (-b + (b * (1 + b) / 2) ** (1 / 3)) / c
    near = round(gamma * sensitivity)
    reach = 2 + sensitivity.bit_length()
    allowed = range(max(1, near - reach), min(sensitivity, max(near, 1) + reach) + 1)
    return min(allowed, key=lambda r: staircase_variance(e, sensitivity, r))
