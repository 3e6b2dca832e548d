"""Exact numbers for budgets: a float means the decimal it was written as, never its binary
neighbour.

Logarithm, exponential, sine and cosine to any number of bits, on Python integers.

A real x is held as an integer near x * 2**bits ("fixed point"). Functions are those of mpmath with
:data:`GUARD` further bits, so what they return is less than 4 units from the truth. This is the
slow and sure arithmetic behind the tables and behind the rare draws where double precision cannot
tell which way to round.
"""

from __future__ import annotations

import math
import numbers
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from mpmath import libmp

from gazeveil.checks import refuse

#: What a user may write for a budget: 1, "1/3", "0.1", 0.1, Fraction(1, 3).
Number: TypeAlias = int | float | str | Fraction | Decimal


def exact(
    owner: str,
    name: str,
    value: object,
    least: Fraction | int | None = None,
    above: Fraction | int | None = None,
) -> Fraction:
    """The exact number a user meant.

    Parameters
    ----------
    owner, name : str
        For the message.
    value : int, float, str, Fraction or Decimal
        0.1 means 1/10; text may be a decimal or a quotient.
    least, above : optional
        Smallest value allowed; largest value not allowed any more.

    Examples
    --------
    >>> exact("lpa", "epsilon", 0.1)
    Fraction(1, 10)
    >>> exact("lpa", "epsilon", "2/3")
    Fraction(2, 3)
    """
    wanted = (
        "an exact number"
        + (f" of at least {least}" if least is not None else "")
        + (f" above {above}" if above is not None else "")
    )
    if isinstance(value, bool) or not isinstance(value, numbers.Real | str | Decimal):
        refuse(owner, name, wanted, value, "Write it as 1, 0.5, '1/3' or a Fraction.")
    try:
        if isinstance(value, numbers.Rational):
            result = Fraction(int(value.numerator), int(value.denominator))
        elif isinstance(value, str):
            result = Fraction(_of_ordinary_size(value.strip()))
        elif isinstance(value, Decimal):
            result = Fraction(_of_ordinary_size(str(value)))
        else:
            # repr gives the shortest decimal that names this double: what the user typed.
            result = Fraction(repr(float(value)))
    except (ValueError, ZeroDivisionError, InvalidOperation, OverflowError):
        refuse(owner, name, wanted, value, "Write it as 1, 0.5, '1/3' or a Fraction.")
    if (least is not None and result < least) or (above is not None and result <= above):
        refuse(owner, name, wanted, value)
    return result


def _of_ordinary_size(text: str) -> str:
    """The text of a number, unless writing it out exactly would fill the memory."""
    _, _, exponent = text.lower().partition("e")
    if exponent and len(exponent.replace("_", "").lstrip("+-0")) > 3:
        raise ValueError("an exponent of more than three digits")
    return text


def short_bound(value: Fraction) -> str:
    """An upper bound that need not be exact, in four digits, rounded up.

    Examples
    --------
    >>> short_bound(Fraction(1, 3 * 2**90)), short_bound(Fraction(0))
    ('2.693e-28', '0')
    """
    if value == 0:
        return "0"
    context = Context(prec=4, rounding=ROUND_CEILING)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator))).lower()


def format_exact(value: Fraction, down: bool = False) -> str:
    """A number as people read it: whole, a decimal of at most eight places where that is exact,
    else a quotient with its decimal, rounded against the promise.

    `down` is for numbers whose larger value would be the better promise, like a radius that is
    protected.

    Examples
    --------
    >>> format_exact(Fraction(1, 10)), format_exact(Fraction(48)), format_exact(Fraction(1, 3))
    ('0.1', '48', '1/3 (about 0.3334)')
    >>> format_exact(Fraction("26.740389404296875"))
    'about 26.75'
    """
    if value.denominator == 1:
        return str(value.numerator)
    if 10**8 % value.denominator == 0:
        return format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    # Not by way of a float: the smallest and the largest numbers have none, and would print as 0 or
    # not at all.
    rounded = Context(prec=4, rounding=ROUND_FLOOR if down else ROUND_CEILING).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
    digits = f"{float(rounded):g}" if abs(rounded.adjusted()) < 300 else f"{rounded:g}"
    return (
        f"{value.numerator}/{value.denominator} (about {digits})"
        if value.denominator <= 10**4
        else f"about {digits}"
    )


def round_up(value: Fraction, places: int) -> float:
    """The smallest decimal with that many significant places that is not below the value: a promise
    is never rounded in its favour.
    """
    if value == 0:
        return 0.0
    scale = Fraction(10) ** (places - 1 - math.floor(math.log10(abs(float(value)))))
    return float(Fraction(math.ceil(value * scale)) / scale)


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
