"""Logarithm, sine with cosine, and arc tangent for compiled loops: tables and short series, with bounds on their errors.

The platform's functions cost more than everything else Kaleido does, and how exact they are is somebody else's promise. These are a table
lookup and a few products each; the tables are rounded from :mod:`gazeveil.privacy.noise.reals`. Doubles are assumed to follow IEEE 754
(sums, products, quotients and square roots correctly rounded); fused products and sums, with one rounding instead of two, are only more exact. Bounds, shown in
proofs/kaleido.md and measured by the tests:

* :func:`log`: within (1 + |ln x|) 2**-49;
* :func:`cos_sin`: within 2**-50 of cosine and sine of 2 pi times the turns given;
* :func:`turn_of`: within 2**-51 turns.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import fused
from gazeveil.privacy.noise import reals

_BITS = 160
_LOG_BITS, _SECTORS, _ARCS, _TERMS = 10, 1024, 256, 7


def _rounded(value: int, bits: int = _BITS) -> float:
    return float(Fraction(value, 1 << bits))


def _log_tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Reciprocals of the middles of 1024 intervals of [1, 2), rounded, and minus the logarithms of what they became."""
    inverse = np.array([float(Fraction(2048, 2049 + 2 * i)) for i in range(1 << _LOG_BITS)])
    logs = np.array([-_rounded(reals.log((Fraction(v).numerator << _BITS) // Fraction(v).denominator, _BITS)) for v in inverse])
    return inverse, logs


def _circle() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [reals.cos_sin_of_turn(((2 * i + 1) << _BITS) // (2 * _SECTORS), _BITS) for i in range(_SECTORS)]
    return np.array([_rounded(c) for c, _ in pairs]), np.array([_rounded(s) for _, s in pairs])


def _arc_table() -> NDArray[np.float64]:
    """Taylor coefficients of the arc tangent in turns around k / 256.

    The first by the integral's series after halving the angle six times; the others are those of 1 / (1 + t*t), one power up.
    """
    one, pi = 1 << _BITS, reals.pi(_BITS)
    found = []
    for k in range(_ARCS + 1):
        t = (k << _BITS) // _ARCS
        for _ in range(6):  # atan t = 2 atan(t / (1 + sqrt(1 + t*t)))
            root = _isqrt((one << _BITS) + t * t)
            t = (t << _BITS) // (one + root)
        total, power, square, n = 0, t, (t * t) >> _BITS, 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power = (power * square) >> _BITS
            n += 2
        at = Fraction(k, _ARCS)
        rest = [1 / (1 + at * at)]  # (1 + (t + d)**2) times the series is 1
        while len(rest) < _TERMS - 1:
            rest.append(-(2 * at * rest[-1] + (rest[-2] if len(rest) > 1 else 0)) / (1 + at * at))
        per_turn = Fraction(one, 2 * pi)
        found.append([float(Fraction(total << 6, 2 * pi)), *(float(c / (i + 1) * per_turn) for i, c in enumerate(rest))])
    return np.array(found)


def _isqrt(value: int) -> int:
    from math import isqrt

    return isqrt(value)


_INVERSE, _LOGS = _log_tables()
_COS, _SIN = _circle()
_ATAN = _arc_table()
_LN2 = _rounded(-reals.log(1 << (_BITS - 1), _BITS))
_PER_SECTOR = float(Fraction(2 * reals.pi(_BITS), _SECTORS << _BITS))


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
    """The direction of (x, y) in turns, from -1/2 to 1/2; not for (0, 0)."""
    # Without branches, of which half would be guessed wrong: sizes compare as their bits do, and |a - 1/4| and |a - 1/2| fold the octants.
    one, size = np.uint64(1), np.uint64((1 << 63) - 1)
    bits_x, bits_y = np.float64(x).view(np.uint64), np.float64(y).view(np.uint64)
    ax, ay = bits_x & size, bits_y & size
    steep = (ax - ay) >> np.uint64(63)
    swap = (ax ^ ay) & (np.uint64(0) - steep)
    t = np.uint64(ay ^ swap).view(np.float64) / np.uint64(ax ^ swap).view(np.float64)
    k = np.uint64(t * 256.0 + 0.5)
    d = t - np.float64(k) * 0.00390625
    a = _ATAN[k, 0] + d * (_ATAN[k, 1] + d * (_ATAN[k, 2] + d * (_ATAN[k, 3] + d * (_ATAN[k, 4] + d * (_ATAN[k, 5] + d * _ATAN[k, 6])))))
    a = abs(a - 0.25 * np.float64(steep & one))
    a = abs(a - 0.5 * np.float64(bits_x >> np.uint64(63)))
    return math.copysign(a, y)
