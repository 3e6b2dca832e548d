"""Noise of Kaleido: settled by double precision, or drawn on until it is.

The laws are continuous and so are their exact values; what is released is a bit or a point of a public lattice:

* the test bit `d <= l + eta`, eta Laplace with scale b;
* on a screen the point x + Z rounded to the lattice, Z planar Laplace (density proportional to exp(-|z| / b), radius b (E1 + E2));
* on the sphere a point at arc length rho and uniform bearing from x, its density by area proportional to exp(-rho / b), so the arc length
  has density proportional to exp(-rho / b) sin(rho): planar Laplace arc lengths kept with probability sin(rho) / rho, or, for wide b,
  those of uniform points kept with probability exp(-rho / b). It is rounded to the lattice of whole steps of x and y.

A value is a function of a few uniform reals of which the sampler knows 63 or 64 bits. Doubles give the value and a bound on its error;
where every decision is farther from its boundary than that bound, the released bit or point is settled whatever the further bits are.
Otherwise :mod:`gazeveil.privacy.stream.kaleido_sure` draws the reals on to 512 bits and decides with whole numbers. So what is released
follows the exact law, up to 2**-400 per draw, if the platform's doubles follow IEEE 754: the functions are those of
:mod:`gazeveil.privacy.stream.kaleido_math`. Proof: proofs/kaleido.md.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.compiled import fused
from gazeveil.privacy.stream.kaleido_math import cos_sin, log, turn_of

#: Assumption of every guarantee that rests on these samplers.
ASSUMPTION = "the platform's doubles follow IEEE 754"

#: Scale in radians above which uniform points are proposed.
WIDE_RAD = 1.4

#: What a sampler answers.
SETTLED, UNSETTLED, REJECTED = range(3)

#: Error of cosine and sine of the arc length of a uniform point.
WIDE_ERROR = 2.0**-42

_TURN = 2.0**-64
_PER_RADIAN = 0.5 / math.pi
_LEAST_WORD, _LARGE_WORD = np.uint64(1 << 44), np.uint64(1 << 56)  # below the first, 64 bits say too little about the logarithm


@fused
def laplace_unit(word: np.uint64) -> tuple[float, float]:
    """Laplace noise of scale 1 from one word, and a bound on its error: the last bit is the sign, the others begin a uniform.

    Words from 2**44 on tell the uniform to within 2**-42 of itself, large ones to within 2**-50; below, the bound is infinite.
    """
    e = -log((np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63)
    cut = 2.0**-50 if word > _LARGE_WORD else (2.0**-42 if word >= _LEAST_WORD else np.inf)
    return (e if word & np.uint64(1) else -e), cut + (1.0 + e) * 2.0**-48


@fused
def near_or_far(square: float, threshold: float, scale: float, unit: float, error: float) -> tuple[bool, int]:
    """Whether sqrt(square) <= threshold + scale * unit, for a whole `square` within its rounding, and whether that is settled.

    No root is taken: for tau = threshold + scale * unit above zero the question is whether square <= tau**2.
    """
    eta = scale * unit
    tau = threshold + eta
    # doubled because the bound is itself rounded
    error = 2.0 * (scale * error + (abs(threshold) + abs(eta)) * 2.0**-51)
    if not abs(tau) > error:
        return False, UNSETTLED
    margin = tau * tau - square
    if tau > 0.0 and not abs(margin) > 3.0 * tau * error + square * 2.0**-50:
        return False, UNSETTLED
    return tau > 0.0 and margin > 0.0, SETTLED


@fused
def test_passes(distance: float, threshold: float, scale: float, word: np.uint64) -> tuple[bool, int]:
    """Whether distance <= threshold + Laplace(scale), for a whole distance, and whether that is settled."""
    unit, error = laplace_unit(word)
    return near_or_far(distance * distance, threshold, scale, unit, error)


@fused
def arc_limit(threshold: float, scale: float, unit: float, error: float) -> tuple[float, float]:
    """The squared chord of an arc of threshold + scale * unit radians, and a bound on the error of comparing one with it.

    An arc is at most tau, from 0 to pi, if the square of its chord is at most 4 sin(tau / 2)**2. Where no arc is that short the limit is
    below every square, where every arc is, above; where doubles cannot tell which case it is, the bound is infinite.
    """
    eta = scale * unit
    tau = threshold + eta
    error = 2.0 * (scale * error + (abs(threshold) + abs(eta)) * 2.0**-51)
    _, half = cos_sin(min(max(tau, 0.0), math.pi) * (0.5 * _PER_RADIAN))
    limit = 4.0 * half * half if tau > 0.0 else -1.0
    limit = limit if tau < math.pi else 8.0
    # the derivative of 4 sin(tau / 2)**2 is at most 2; directions are within 2**-47, chords at most 2
    sure = error <= 1.0 and abs(tau) > error and abs(tau - math.pi) > error
    return limit, (4.0 * error + 2.0**-42 if sure else np.inf)


@fused
def arc_test_passes(square: float, threshold: float, scale: float, word: np.uint64) -> tuple[bool, int]:
    """Whether an arc is at most threshold + Laplace(scale), in radians, and whether that is settled; `square` is that of its chord."""
    unit, error = laplace_unit(word)
    limit, bound = arc_limit(threshold, scale, unit, error)
    return square < limit, (SETTLED if abs(limit - square) > bound else UNSETTLED)


@fused
def planar_unit(one: np.uint64, two: np.uint64, three: np.uint64) -> tuple[float, float, float, float]:
    """Planar Laplace noise of scale 1 from three words: radius, a bound on its error, cosine and sine of its bearing."""
    e = -log((np.float64(one) + 0.5) * _TURN * ((np.float64(two) + 0.5) * _TURN))
    least = min(one, two)
    cut = 2.0**-48 if least > _LARGE_WORD else (2.0**-43 if least >= _LEAST_WORD else np.inf)
    cos, sin = cos_sin(np.float64(three) * _TURN)
    # the turn is known to within 2**-53, cosine and sine to within 2**-50
    return e, cut + e * 2.0**-46, cos, sin


@fused
def lattice_point(scale: float, radius: float, error: float, cos: float, sin: float) -> tuple[np.int64, np.int64, int]:
    """The noise rounded to whole steps, and whether it is settled."""
    rho, bound = scale * radius, 2.0 * scale * error
    zx, zy = rho * cos, rho * sin
    nx, ny = np.rint(zx), np.rint(zy)
    if not (bound < 0.25 and abs(zx - nx) < 0.5 - bound and abs(zy - ny) < 0.5 - bound):
        return np.int64(0), np.int64(0), UNSETTLED
    return np.int64(nx), np.int64(ny), SETTLED


@fused
def screen_noise(scale: float, one: np.uint64, two: np.uint64, three: np.uint64) -> tuple[np.int64, np.int64, int]:
    """Planar Laplace noise rounded to whole steps, and whether it is settled."""
    radius, error, cos, sin = planar_unit(one, two, three)
    return lattice_point(scale, radius, error, cos, sin)


@fused
def axes(ix: np.int64, iy: np.int64, step: float) -> tuple[float, float, float, float]:
    """Of a lattice point of the sphere: cosine and sine of its longitude, height and distance from the axis; each within 2**-49.

    Its direction is (distance sin lon, height, distance cos lon).
    """
    cos_lon, sin_lon = cos_sin(ix * step * (1.0 / 360.0) - 0.5)
    up, flat = cos_sin(iy * step * (1.0 / 360.0))
    return cos_lon, sin_lon, up, flat


@fused
def uniform_arc(one: np.uint64, two: np.uint64) -> tuple[float, float, float]:
    """Arc length of a uniform point, its cosine and sine; see :func:`sphere_unit`."""
    u = (np.float64(one) + 0.5) * _TURN
    cos_rho, sin_rho = 1.0 - 2.0 * u, 2.0 * math.sqrt(u * (1.0 - u))
    # the sine is steep at both ends, so words at the ends are not settled
    rho = turn_of(sin_rho, cos_rho) * (2.0 * math.pi)
    return (rho if one >= _LEAST_WORD and one <= ~_LEAST_WORD and two >= _LEAST_WORD else np.nan), cos_rho, sin_rho


@fused
def bearing(word: np.uint64) -> tuple[float, float]:
    """Cosine and sine of the turn that a word begins."""
    return cos_sin(np.float64(word) * _TURN)


@fused
def exponential(word: np.uint64) -> float:
    """Minus the logarithm of the uniform that a word begins."""
    return -log((np.float64(word) + 0.5) * _TURN)


@fused
def sphere_unit(one: np.uint64, two: np.uint64, three: np.uint64) -> tuple[float, float, float, float, float, float]:
    """What a try on the sphere takes from its words whatever the scale.

    The arc length of a uniform point (within 2**-41; NaN where the words say too little), its cosine and sine (within 2**-42), the
    exponential that decides whether it is kept, cosine and sine of the bearing.
    """
    rho, cos_rho, sin_rho = uniform_arc(one, two)
    cos_turn, sin_turn = bearing(three)
    return rho, cos_rho, sin_rho, exponential(two), cos_turn, sin_turn


@fused
def wide_kept(scale_rad: float, rho: float, e: float) -> int:
    """Whether the uniform point is kept: with probability exp(-rho / scale), that is, if rho is below an exponential of that scale."""
    limit = scale_rad * e
    margin = limit - rho
    if not abs(margin) > 2.0 * scale_rad * (2.0**-43 + e * 2.0**-48) + 2.0**-40:
        return UNSETTLED
    return SETTLED if margin > 0.0 else REJECTED


@fused
def narrow_unit(one: np.uint64, four: np.uint64) -> tuple[float, float]:
    """Planar Laplace radius of scale 1 and a bound on its error, infinite where the words say too little."""
    least = min(one, four)
    e = -log((np.float64(one) + 0.5) * _TURN * ((np.float64(four) + 0.5) * _TURN))
    cut = 2.0**-48 if least > _LARGE_WORD else (2.0**-43 if least >= _LEAST_WORD else np.inf)
    return e, cut + (1.0 + e) * 2.0**-48


@fused
def narrow_kept(scale_rad: float, e: float, error: float, two: np.uint64) -> tuple[float, float, float, int]:
    """Cosine and sine of the arc length scale * e, their error, and whether it is kept: with probability sin(rho) / rho."""
    rho = scale_rad * e
    rho_error = scale_rad * error
    if not abs(rho - math.pi) > 2.0 * rho_error + 2.0**-50:
        return 1.0, 0.0, 0.0, UNSETTLED
    if rho > math.pi:
        return 1.0, 0.0, 0.0, REJECTED
    cos_rho, sin_rho = cos_sin(rho * _PER_RADIAN)
    gap = sin_rho - rho * ((np.float64(two) + 0.5) * _TURN)
    if abs(gap) < 2.0 * (2.0 * rho_error + 2.0**-47):
        return 1.0, 0.0, 0.0, UNSETTLED
    return cos_rho, sin_rho, rho_error, (SETTLED if gap > 0.0 else REJECTED)


@fused
def narrow_arc(scale_rad: float, one: np.uint64, two: np.uint64, four: np.uint64) -> tuple[float, float, float, int]:
    """Cosine and sine of a planar Laplace arc length, their error, and whether it is kept."""
    e, error = narrow_unit(one, four)
    return narrow_kept(scale_rad, e, error, two)


@fused
def moved(
    cos_lon: float, sin_lon: float, up: float, flat: float, cos_rho: float, sin_rho: float, cos_turn: float, sin_turn: float
) -> tuple[float, float, float]:
    """The direction at that arc length and bearing from the place whose :func:`axes` are given."""
    east, north = sin_rho * cos_turn, sin_rho * sin_turn
    # in the plane of the meridian: along the axis, and away from it; then across it
    out = cos_rho * flat - north * up
    return out * sin_lon + east * cos_lon, cos_rho * up + north * flat, out * cos_lon - east * sin_lon


@fused
def rounded_direction(x: float, y: float, z: float, step: float, rho_error: float) -> tuple[np.int64, np.int64, int]:
    """The lattice point of a direction, and whether it is settled."""
    away = math.sqrt(x * x + z * z)
    if away < 2.0**-20:
        return np.int64(0), np.int64(0), UNSETTLED
    per_step = 1.0 / step  # a power of two
    at_x = (turn_of(x, z) + 0.5) * (360.0 * per_step)
    at_y = turn_of(away, y) * (360.0 * per_step)
    nx, ny = np.rint(at_x), np.rint(at_y)
    # an error of the direction is one of at most as many radians of y, and 1 / away times that of x
    error = 4.0 * rho_error + 2.0**-44
    bound_y = 2.0 * (error * 60.0 + 2.0**-41) * per_step
    bound_x = 4.0 * bound_y if away > 0.25 else bound_y / away
    if not (bound_x < 0.25 and bound_y < 0.25 and abs(at_x - nx) < 0.5 - bound_x and abs(at_y - ny) < 0.5 - bound_y):
        return np.int64(0), np.int64(0), UNSETTLED
    return np.int64(nx), np.int64(ny), SETTLED


@fused
def sphere_noise(
    cos_lon: float, sin_lon: float, up: float, flat: float, scale_rad: float, step: float, one: np.uint64, two: np.uint64, three: np.uint64, four: np.uint64
) -> tuple[np.int64, np.int64, int]:
    """One try of a lattice point around the place whose :func:`axes` are given: settled, unsettled or rejected.

    Words: arc length, whether it is kept, bearing, and the second exponential of the arc length where the scale is not wide.
    """
    rho, cos_rho, sin_rho, e, cos_turn, sin_turn = sphere_unit(one, two, three)
    rho_error = WIDE_ERROR
    if scale_rad > WIDE_RAD:
        kept = wide_kept(scale_rad, rho, e)
    else:
        cos_rho, sin_rho, rho_error, kept = narrow_arc(scale_rad, one, two, four)
    if kept != SETTLED:
        return np.int64(0), np.int64(0), kept
    x, y, z = moved(cos_lon, sin_lon, up, flat, cos_rho, sin_rho, cos_turn, sin_turn)
    return rounded_direction(x, y, z, step, rho_error)
