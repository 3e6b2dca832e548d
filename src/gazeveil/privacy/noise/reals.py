"""Logarithm, exponential, sine and cosine to any number of bits, on Python integers.

A real x is held as the integer nearest to x * 2**bits ("fixed point"). Every function works with
:data:`GUARD` further bits and returns a number whose distance from the truth is below 2**(2 -
bits): at most a few hundred roundings of one unit of the working precision enter each result, and
they are amplified by at most 2**24 (the 20 square roots undone in :func:`log`). This is the slow
and sure arithmetic behind the tables and behind the rare draws where double precision cannot tell
which way to round.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

#: Working bits beyond the ones asked for.
GUARD = 64

_ROOTS = 20


def log(value: int, bits: int) -> int:
    """ln(value / 2**bits) * 2**bits for value > 0.

    Halvings bring the number to [1/2, 1) and 20 square roots to within 2**-20 of 1, where ln y = 2
    atanh((y - 1) / (y + 1)) needs few terms.
    """
    work = bits + GUARD
    shift = value.bit_length()
    y = (value << work) >> shift if value.bit_length() > work else value << (work - shift)
    for _ in range(_ROOTS):
        y = math.isqrt(y << work)
    one = 1 << work
    z = ((y - one) << work) // (y + one)
    square = (z * z) >> work
    total, power, k = 0, z, 1
    while power not in (0, -1):
        total += power // k
        power = (power * square) >> work
        k += 2
    near = total << (1 + _ROOTS)
    return (near + (shift - bits) * _log2(work)) >> GUARD


@lru_cache(maxsize=8)
def _log2(work: int) -> int:
    """Ln 2 * 2**work = 2 atanh(1/3), summed with 16 more bits."""
    total, power, k = 0, (1 << (work + 16)) // 3, 1
    while power:
        total += power // k
        power //= 9
        k += 2
    return total >> 15


def exp_minus(x: Fraction, bits: int) -> int:
    """exp(-x) * 2**bits for x >= 0: the Taylor series at x / 2**h < 2**-16, then h squarings."""
    halvings = 16 + max(0, int(x).bit_length())
    work = bits + GUARD + halvings
    small = (x.numerator << work) // (x.denominator << halvings)
    total, term, k = 0, 1 << work, 0
    while term:
        total += term if k % 2 == 0 else -term
        k += 1
        term = ((term * small) >> work) // k
    for _ in range(halvings):
        total = (total * total) >> work
    return total >> (work - bits)


@lru_cache(maxsize=8)
def pi(bits: int) -> int:
    """Pi * 2**bits by Machin's formula 16 atan(1/5) - 4 atan(1/239)."""
    work = bits + GUARD

    def atan_inverse(n: int) -> int:
        total, power, k = 0, (1 << work) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    return (16 * atan_inverse(5) - 4 * atan_inverse(239)) >> GUARD


def cos_sin_of_turn(turn: int, bits: int) -> tuple[int, int]:
    """Cos and sin of 2 pi turn / 2**bits, times 2**bits, for 0 <= turn < 2**bits."""
    work = bits + GUARD
    quarter, rest = divmod(turn << 2, 1 << bits)
    angle = (rest << GUARD) * pi(work) >> (work + 1)
    square = (angle * angle) >> work
    cos, sin, term, k = 0, 0, 1 << work, 0
    while term:
        odd = ((term * angle) >> work) // (k + 1)
        cos += term if k % 4 == 0 else -term
        sin += odd if k % 4 == 0 else -odd
        term = ((term * square) >> work) // ((k + 1) * (k + 2))
        k += 2
    for _ in range(quarter):
        cos, sin = -sin, cos
    return cos >> GUARD, sin >> GUARD
