"""Logarithm, exponential, sine and cosine to any number of bits, on Python integers.

A real x is held as an integer near x * 2**bits ("fixed point"). Functions are those of mpmath with
:data:`GUARD` further bits, so what they return is less than 4 units from the truth. This is the
slow and sure arithmetic behind the tables and behind the rare draws where double precision cannot
tell which way to round.
"""

from __future__ import annotations

from fractions import Fraction

from mpmath import libmp

#: Working bits beyond the ones asked for.
GUARD = 64


def log(value: int, bits: int) -> int:
    """ln(value / 2**bits) * 2**bits for value > 0."""
    return int(libmp.to_fixed(libmp.mpf_log(libmp.from_man_exp(value, -bits), bits + GUARD), bits))


def exp_minus(x: Fraction, bits: int) -> int:
    """exp(-x) * 2**bits for x >= 0."""
    work = bits + GUARD
    power = libmp.from_rational(-x.numerator, x.denominator, work + int(x).bit_length())
    return int(libmp.to_fixed(libmp.mpf_exp(power, work), bits))


def pi(bits: int) -> int:
    """Pi * 2**bits."""
    return int(libmp.pi_fixed(bits))


def cos_sin_of_turn(turn: int, bits: int) -> tuple[int, int]:
    """Cos and sin of 2 pi turn / 2**bits, times 2**bits, for 0 <= turn < 2**bits."""
    found = libmp.mpf_cos_sin_pi(libmp.from_man_exp(turn, 1 - bits), bits + GUARD)
    cos, sin = (int(libmp.to_fixed(value, bits)) for value in found)
    return cos, sin


def turn_of(sine: int, cosine: int, bits: int) -> int:
    """Turns in [0, 1), times 2**bits, of a direction."""
    work = bits + GUARD
    angle = libmp.mpf_atan2(libmp.from_int(sine), libmp.from_int(cosine), work)
    turn = libmp.mpf_div(angle, libmp.mpf_shift(libmp.mpf_pi(work), 1), work)
    return int(libmp.to_fixed(turn, bits)) % (1 << bits)
