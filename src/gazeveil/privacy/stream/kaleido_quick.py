"""First opinions on the draws of Kaleido on a sphere: in single precision, several records at a time.

Most draws only decide between two cases and lie far from the boundary between them. What the decisions need of a record of words is made here
with numbers of 24 bits, by loops that a processor carries out four at a time. Where an opinion is closer to its boundary than the bounds below,
or is not a number, the decision is taken in double precision by :mod:`gazeveil.privacy.stream.kaleido_noise`, as if there had been no
opinion; so opinions change nothing but the time that a decision takes. Bounds: proofs/kaleido.md; the tests measure them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import fused
from gazeveil.privacy.noise.rng import WordArray

Row: TypeAlias = NDArray[np.float32]

#: Rows made of the words of points, by place: exponential that decides; for narrow scales the radius of scale 1, for wide ones a quarter turn
#: less the arc, and the arc's cosine and sine; cosine and sine of the bearing.
KEEP, REACH, COS_ARC, SIN_ARC, COS_TURN, SIN_TURN, ROWS = range(7)

#: Bounds: of an exponential, per 1 + its value; of the sine of half an arc; of the square of a chord between gaze and the direction of a
#: publication; of a logarithm of the probability of a uniform point, per 1 + its value.
EXPONENTIAL_ERROR, ARC_ERROR, SQUARE_ERROR, LEVEL_ERROR = 2.0**-20, 2.0**-19, 2.0**-13, 2.0**-16

#: Below this 1 - sin(rho / 2)**2 the direction of a publication at arc length rho is not told well enough.
LEAST_INSIDE = 2.0**-4

_ZERO, _HALF, _ONE, _TWO, _FOUR, _NAN = (np.float32(v) for v in (0.0, 0.5, 1.0, 2.0, 4.0, np.nan))
_LEAST = np.float32(2.0**-40)  # smaller uniforms are not told well enough by their first 24 bits
_LN2, _PI = np.float32(math.log(2.0)), np.float32(math.pi)
_QUARTER_TURN, _PER_QUARTER, _EIGHTH_TURN = np.float32(math.pi / 2.0), np.float32(2.0 / math.pi), np.float32(math.pi / 4.0)
_TAN_EIGHTH = np.float32(math.tan(math.pi / 8.0))
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _, _C11 = (np.float32(1.0 / math.factorial(k)) for k in range(2, 12))
_T3, _T5, _T7, _T9, _T11, _T13 = (np.float32((-1) ** (k // 2) / k) for k in (3, 5, 7, 9, 11, 13))
_H0, _H1, _H2, _H3, _H4 = (np.float32(v) for v in (0.4999568932, -0.0829165765, 0.0208801085, -0.0047398043, 0.0006005243))
_L3, _L5, _L7, _L9 = (np.float32(2.0 / k) for k in (3, 5, 7, 9))
_ROOT_HALF_BITS = np.int32(np.float32(math.sqrt(0.5)).view(np.int32))
_WORD = np.float64(2.0**-64)


@fused
def exponential(u: np.float32) -> np.float32:
    """Minus the logarithm of a positive number up to 1: -2 artanh((m - 1) / (m + 1)) for m from sqrt(1/2) to sqrt(2); NaN for very small ones."""
    bits = np.float32(u).view(np.int32)
    exponent = (bits - _ROOT_HALF_BITS) >> np.int32(23)
    m = np.int32(bits - (exponent << np.int32(23))).view(np.float32)
    s = (_ONE - m) / (m + _ONE)
    q = s * s
    e = np.float32(s * (_TWO + q * (_L3 + q * (_L5 + q * (_L7 + q * _L9)))) - np.float32(exponent) * _LN2)
    return e if u > _LEAST else _NAN


@fused
def cos_sin(quarters: np.float32) -> tuple[np.float32, np.float32]:
    """Cosine and sine of so many quarter turns, by Taylor's series within an eighth of a turn."""
    whole = np.float32(np.rint(quarters))
    d = (quarters - whole) * _QUARTER_TURN
    k = np.int32(whole)
    q = d * d
    s = d - d * q * (_C3 - q * (_C5 - q * (_C7 - q * _C9)))
    c = _ONE - q * (_C2 - q * (_C4 - q * (_C6 - q * _C8)))
    odd = (k & np.int32(1)) != np.int32(0)
    a, b = (s if odd else c), (c if odd else s)
    return (-a if ((k + np.int32(1)) & np.int32(2)) != np.int32(0) else a), (-b if (k & np.int32(2)) != np.int32(0) else b)


@fused
def angle(y: np.float32, x: np.float32) -> np.float32:
    """Angle of (x, y) in radians for y not below 0, by Taylor's series up to a sixteenth of a turn."""
    ax = abs(x)
    steep = y > ax
    t = (ax if steep else y) / (y if steep else ax)
    far = t > _TAN_EIGHTH
    t = (t - _ONE) / (t + _ONE) if far else t
    q = t * t
    a = t + t * q * (_T3 + q * (_T5 + q * (_T7 + q * (_T9 + q * (_T11 + q * _T13)))))
    a = a + _EIGHTH_TURN if far else a
    a = _QUARTER_TURN - a if steep else a
    return np.float32(_PI - a if x < _ZERO else a)


@fused
def log_cosh(y: np.float32) -> np.float32:
    """Logarithm of the hyperbolic cosine of a number from -1.26 to 1.26, within 2**-18: a fitted polynomial."""
    q = y * y
    p = q * q
    return np.float32(q * ((_H0 + q * _H1) + p * ((_H2 + q * _H3) + p * _H4)))


@fused
def sine(x: np.float32) -> np.float32:
    """Sine from 0 to a quarter turn, by Taylor's series."""
    q = x * x
    return np.float32(x - x * q * (_C3 - q * (_C5 - q * (_C7 - q * (_C9 - q * _C11)))))


@fused
def test_error(threshold: float, test_scale: float) -> float:
    """A bound on the error of threshold + noise, in radians, wherever that lies between 0 and pi."""
    return 2.0 * ((test_scale + math.pi + threshold) * EXPONENTIAL_ERROR)


@fused
def tests(words: WordArray, limit: Row, threshold: float, test_scale: float) -> None:
    """Squares of the chords that decide tests, one for each word; NaN where the opinion is open."""
    thr, scale, error = np.float32(threshold), np.float32(test_scale), np.float32(test_error(threshold, test_scale))
    for k in range(len(limit)):
        limit[k] = np.float32((np.float64(words[k] >> np.uint64(1)) + 0.5) * np.float64(2.0**-63))
    for k in range(len(limit)):
        limit[k] = exponential(limit[k])
    for k in range(len(limit)):
        limit[k] = limit[k] if words[k] & np.uint64(1) else -limit[k]
    for k in range(len(limit)):
        tau = thr + scale * limit[k]
        _, half = cos_sin(min(max(tau, _ZERO), _PI) * (_HALF * _PER_QUARTER))
        square = _FOUR * half * half
        square = square if abs(tau) > error else _NAN
        square = square if abs(tau - _PI) > error else _NAN
        # asked in this way, so that what is not a number stays so
        square = np.float32(-1.0) if tau < -error else square
        limit[k] = np.float32(8.0) if tau > _PI + error else square


@fused
def _uniform(word: np.uint64) -> np.float32:
    return np.float32((np.float64(word) + 0.5) * _WORD)


@fused
def bearings(words: WordArray, per: int, cos_turn: Row, sin_turn: Row) -> None:
    """COS_TURN and SIN_TURN of tries whose word for the bearing is in front."""
    for k in range(len(sin_turn)):
        sin_turn[k] = np.float32(np.float64(words[k * per]) * (4.0 * _WORD))
    for k in range(len(sin_turn)):
        cos_turn[k], sin_turn[k] = cos_sin(sin_turn[k])


@fused
def narrow_arcs(words: WordArray, per: int, keep: Row, radius: Row, spare: Row) -> None:
    """KEEP and the radius of scale 1 of tries whose first word is in front."""
    for k in range(len(keep)):
        radius[k] = _uniform(words[k * per])
    for k in range(len(keep)):
        spare[k] = _uniform(words[k * per + 3])
    for k in range(len(keep)):
        keep[k] = _uniform(words[k * per + 1])
    for k in range(len(keep)):
        radius[k] = exponential(radius[k])
    for k in range(len(keep)):
        radius[k] += exponential(spare[k])
    for k in range(len(keep)):
        keep[k] = exponential(keep[k])


@fused
def wide_arcs(words: WordArray, per: int, keep: Row, reach: Row, cos_arc: Row, sin_arc: Row) -> None:
    """KEEP, a quarter turn less the arc, and the arc's cosine and sine, of tries whose first word is in front."""
    for k in range(len(keep)):
        reach[k] = _uniform(words[k * per])
    for k in range(len(keep)):
        cos_arc[k] = _uniform(~words[k * per])  # one less the other, as exact at its end
    for k in range(len(keep)):
        keep[k] = _uniform(words[k * per + 1])
    for k in range(len(keep)):
        cos_arc[k], sin_arc[k] = cos_arc[k] - reach[k], _TWO * np.float32(np.sqrt(reach[k] * cos_arc[k]))
    for k in range(len(keep)):
        reach[k] = _QUARTER_TURN - angle(sin_arc[k], cos_arc[k])
    for k in range(len(keep)):
        keep[k] = exponential(keep[k])


@fused
def narrow_try(one: np.uint64, two: np.uint64, four: np.uint64) -> tuple[np.float32, np.float32]:
    """What :func:`narrow_arcs` says of one try."""
    e, spare = exponential(_uniform(one)), exponential(_uniform(four))
    return exponential(_uniform(two)), np.float32(e + spare)


@fused
def wide_try(one: np.uint64, two: np.uint64) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """What :func:`wide_arcs` says of one try."""
    u, v = _uniform(one), _uniform(~one)
    cos_arc, sin_arc = np.float32(v - u), _TWO * np.float32(np.sqrt(u * v))
    return exponential(_uniform(two)), np.float32(_QUARTER_TURN - angle(sin_arc, cos_arc)), cos_arc, np.float32(sin_arc)


@fused
def narrow_answers(keep: Row, reach: Row, scale_rad: float, shrink: float, lead: float) -> None:
    """Where the scale is known: margins by which narrow tries are kept, NaN where the opinion is open, into `keep`, and their side into `reach`."""
    scale, cosine, ahead = np.float32(scale_rad), np.float32(shrink), np.float32(lead)
    for k in range(len(keep)):
        half, longest = _HALF * scale * cosine * reach[k], _HALF * (scale * (keep[k] + reach[k]) - ahead)
        margin = sine(min(max(longest, _ZERO), _QUARTER_TURN)) - half
        bound = np.float32(2.0) * (scale * (_TWO + keep[k] + reach[k]) * np.float32(EXPONENTIAL_ERROR) + np.float32(ARC_ERROR))
        keep[k], reach[k] = (margin if abs(margin) > bound else _NAN), _ONE


@fused
def wide_answers(keep: Row, reach: Row, scale_rad: float) -> None:
    """The same for wide tries."""
    per_radian, error = np.float32(1.0 / scale_rad), np.float32(LEVEL_ERROR)
    most = log_cosh(_QUARTER_TURN * per_radian)
    for k in range(len(keep)):
        level, e = reach[k] * per_radian, keep[k]
        margin, likely, bound = e - most + log_cosh(level), e - most - _LN2 + level, (_ONE + e) * error
        margin = margin if abs(margin) > bound else _NAN
        keep[k], reach[k] = (margin if abs(likely) > bound else _NAN), (_ONE if likely > _ZERO else -_ONE)


@fused
def look(
    x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], at: NDArray[np.int64], step: float,
    cos_lon: Row, sin_lon: Row, up: Row, flat: Row, across: Row, along: Row,
) -> None:  # fmt: skip
    """Axes of the lattice points of gaze at some samples, and the other two parts of its direction."""
    per_step, quarters = 1.0 / step, step / 90.0
    first = at[0]
    if at[-1] - first == len(at) - 1:  # all samples in a row, which several at a time can be read of
        x_there, y_there = x_deg[first : first + len(at)], y_deg[first : first + len(at)]
        for k in range(len(at)):
            across[k], along[k] = np.float32(np.rint(x_there[k] * per_step) * quarters - 2.0), np.float32(np.rint(y_there[k] * per_step) * quarters)
    else:
        for k in range(len(at)):
            across[k], along[k] = np.float32(np.rint(x_deg[at[k]] * per_step) * quarters - 2.0), np.float32(np.rint(y_deg[at[k]] * per_step) * quarters)
    for k in range(len(at)):
        cos_lon[k], sin_lon[k] = cos_sin(across[k])
    for k in range(len(at)):
        up[k], flat[k] = cos_sin(along[k])
    for k in range(len(at)):
        across[k], along[k] = flat[k] * sin_lon[k], flat[k] * cos_lon[k]
