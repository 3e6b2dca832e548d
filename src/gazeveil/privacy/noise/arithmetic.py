"""Logarithm, exponential, sine with cosine, and directions for compiled loops: tables and short
series, with bounds on their errors.

The platform's functions cost more than everything else a sampler does, and how exact they are is
not documented. These are a table lookup and a few products each; the tables are rounded
from :mod:`gazeveil.privacy.rational`. Doubles are assumed to follow IEEE 754 (sums, products,
quotients and square roots correctly rounded); fused products and sums, with one rounding instead of
two, are only more exact. Bounds, shown in proofs/kaleido.md and measured by the tests:

* :func:`log`: within (1 + |ln x|) 2**-49;
* :func:`exp`: within 2**-49 of itself;
* :func:`cos_sin`: within 2**-50 of cosine and sine of 2 pi times the turns given;
* :func:`turn_of`: within 2**-51 turns, and a fifth of what the sum of squares is off.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import fused
from gazeveil.privacy import rational

#: Assumption of every guarantee that rests on these functions.
ASSUMPTION = "the platform's doubles follow IEEE 754"

_BITS = 160
_LOG_BITS, _SECTORS = 10, 1024


def _rounded(value: int, bits: int = _BITS) -> float:
    return float(Fraction(value, 1 << bits))


def _log_tables() -> tuple[Floats, Floats]:
    """Reciprocals of the middles of 1024 intervals of [1, 2), rounded, and minus the logarithms of
    what they became.
    """
    inverse = np.array([float(Fraction(2048, 2049 + 2 * i)) for i in range(1 << _LOG_BITS)])
    logs = np.array(
        [
            -_rounded(
                rational.log((Fraction(v).numerator << _BITS) // Fraction(v).denominator, _BITS)
            )
            for v in inverse
        ]
    )
    return inverse, logs


def _circle() -> tuple[Floats, Floats]:
    pairs = [
        rational.cos_sin_of_turn(((2 * i + 1) << _BITS) // (2 * _SECTORS), _BITS)
        for i in range(_SECTORS)
    ]
    return np.array([_rounded(c) for c, _ in pairs]), np.array([_rounded(s) for _, s in pairs])


_INVERSE, _LOGS = _log_tables()
_COS, _SIN = _circle()
_LN2 = _rounded(-rational.log(1 << (_BITS - 1), _BITS))
_EXACT_LN2 = Fraction(-rational.log(1 << (_BITS - 1), _BITS), 1 << _BITS)
_POWERS = np.array(
    [
        2.0 * _rounded(rational.exp_minus(_EXACT_LN2 * Fraction(256 - i, 256), _BITS))
        for i in range(256)
    ]
)
# ln 2 / 256 in two parts, of which the first times a whole number below 2**15 is exact
_PART_HIGH = math.ldexp(math.floor(math.ldexp(_LN2 / 256.0, 44)), -44)
_PART_LOW = float(_EXACT_LN2 / 256 - Fraction(_PART_HIGH))
_PARTS_PER_UNIT = 256.0 / _LN2
_PER_SECTOR = float(Fraction(2 * rational.pi(_BITS), _SECTORS << _BITS))
# the arc sine in turns, over its argument t, as a polynomial in t * t: the best one for |t| up to
# sin(pi / 16), within 2**-57 turns
_A = (
    0.1591549430918956,
    0.026525823848386244,
    0.011936620806150464,
    0.007105122152625107,
    0.004836024968444668,
    0.0035406606787788315,
    0.0031032322441929133,
)
_COS_16TH, _SIN_16TH = (_rounded(v) for v in rational.cos_sin_of_turn(1 << (_BITS - 4), _BITS))
_ROOT_HALF = _rounded(rational.cos_sin_of_turn(1 << (_BITS - 3), _BITS)[0])
_TAN_32ND, _TAN_3_32NDS = (
    math.tan(math.pi / 16.0),
    math.tan(3.0 * math.pi / 16.0),
)  # near enough: they only choose between two ways


@fused
def log(x: float) -> float:
    """Natural logarithm of a normal positive double."""
    # unsigned, so that no index can be meant to count from the end
    bits = np.float64(x).view(np.uint64)
    place = (bits >> np.uint64(42)) & np.uint64(1023)
    m = np.uint64((bits & np.uint64((1 << 52) - 1)) | np.uint64(1023 << 52)).view(np.float64)
    r = m * _INVERSE[place] - 1.0
    series = r - r * r * (0.5 - r * (1.0 / 3.0 - r * (0.25 - r * 0.2)))
    return float((np.float64(bits >> np.uint64(52)) - 1023.0) * _LN2 + (_LOGS[place] + series))


@fused
def exp(x: float) -> float:
    """Exponential of a number from -64 to 0."""
    parts = np.rint(x * _PARTS_PER_UNIT)
    k = np.int64(parts)
    r = (x - parts * _PART_HIGH) - parts * _PART_LOW
    series = r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0))))
    power = np.uint64(np.uint64((k >> 8) + 1023) << np.uint64(52)).view(np.float64)
    near = _POWERS[np.uint64(k & 255)]
    return float((near + near * series) * power)


@fused
def cos_sin(turns: float) -> tuple[float, float]:
    """Cosine and sine of 2 pi turns, for turns from -2**20 to 2**20; turns are taken as exact."""
    sectors = turns * 1024.0
    whole = np.floor(sectors)
    d = (sectors - whole - 0.5) * _PER_SECTOR
    k = np.uint64(np.int64(whole) & 1023)
    q = d * d
    s = d - d * q * (1.0 / 6.0 - q * (1.0 / 120.0))
    c = q * (0.5 - q * (1.0 / 24.0 - q * (1.0 / 720.0)))  # 1 - cosine
    cos, sin = _COS[k], _SIN[k]
    return cos - (cos * c + sin * s), sin + (cos * s - sin * c)


@fused
def turn_of(y: float, x: float) -> float:
    """The direction of (x, y) in turns, from -1/2 to 1/2, for numbers with x*x + y*y = 1 up to some
    rounding.
    """
    # Without branches, of which half would be guessed wrong: folded into an eighth of a turn, then
    # turned back by 0, a sixteenth or an eighth of a turn.
    ax, ay = abs(x), abs(y)
    steep = ay > ax
    a, b = (ay if steep else ax), (ax if steep else ay)
    some, most = b > a * _TAN_32ND, b > a * _TAN_3_32NDS
    c, s, at = (_COS_16TH if some else 1.0), (_SIN_16TH if some else 0.0), (0.0625 if some else 0.0)
    c, s, at = (_ROOT_HALF if most else c), (_ROOT_HALF if most else s), (0.125 if most else at)
    t = b * c - a * s  # the sine of the rest
    q = t * t
    p = q * q
    series = (_A[0] + q * _A[1]) + p * ((_A[2] + q * _A[3]) + p * ((_A[4] + q * _A[5]) + p * _A[6]))
    turn = at + t * series
    turn = 0.25 - turn if steep else turn
    turn = 0.5 - turn if x < 0.0 else turn
    return math.copysign(turn, y)
