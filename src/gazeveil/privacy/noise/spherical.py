"""The noise of a place on the sphere: density by area proportional to exp(-arc / b), in doubles
with a bound on their error.

The bearing is uniform. Areas are proportional to the square of the chord s = 2 sin(rho / 2), so
the chord of an arc rho has density proportional to s exp(-rho / b).

* Narrow b: chords are proposed as planar Laplace radii of scale b cos(phi) and kept with
  probability exp(-(rho - s / cos(phi) + 2 (tan(phi) - phi)) / b), the exponent being the distance
  of rho to a tangent; `shrink` is cos(phi), `lead` is 2 (tan(phi) - phi), public numbers of
  :func:`tangent`. A tangent that fits one scale keeps next to nothing at a much narrower one:
  there phi is 0 (:data:`FITTING`), which :func:`most_tries` bounds.
* Wide b: a uniform point is proposed together with the one opposite, at arc length pi - rho. The
  first is kept with probability exp(-rho / b) / M, the other with probability exp(-(pi - rho) / b)
  / M, M = 1 + exp(-pi / b), which is never less than the two together; one of them is kept with
  probability b**2 / (1 + b**2).

A kept point is rounded to the lattice of whole steps of x and y. A try is a function of three or
four uniform reals of which 64 bits are known. Where every decision is farther from its boundary
than the error of its double, the outcome is settled whatever the further bits are; otherwise
:mod:`gazeveil.privacy.noise.bigint` draws the reals on to 512 bits and decides with whole numbers.
So the released point follows the exact law, up to 2**-400 per draw, if the platform's doubles
follow IEEE 754. Proof: proofs/kaleido.md.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.compiled import fused
from gazeveil.privacy.noise.arithmetic import cos_sin, exp, log, turn_of

#: Scale in radians above which uniform points are proposed.
WIDE_RAD = 1.25

#: A law of several scales has the tangent of one scale, and takes it from this part of that scale
#: on; chords of narrower noise are proposed with phi = 0. The two keep as many where
#: 2 (t - atan(t)) = b ln(1 + t**2), t being the scale that fits: from 0.60 t (t = 1.25) to 2/3 t
#: (t = 0).
FITTING = 0.625

#: Tries of a point on average, at most: no plan is made that may need more.
MOST_TRIES = 4.0

#: The tangent at chord 0, as :func:`tangent` gives it.
PLANAR = 1.0, 0.0

#: What a sampler answers.
SETTLED, UNSETTLED, REJECTED = range(3)

#: Error of :func:`wide_arc`.
WIDE_ERROR = 2.0**-42

#: Words below the first say too little about their logarithm; above the second they say more.
LEAST_WORD, LARGE_WORD = np.uint64(1 << 44), np.uint64(1 << 56)

_TURN = 2.0**-64
_PER_RADIAN, _QUARTER = 0.5 / math.pi, 0.5 * math.pi
_KEPT_ERROR = 2.0**-38  # of levels and of probabilities of wide arcs


def words_of_try(scale_rad: float) -> int:
    """Words of one try: a narrow one has four."""
    return 4 if scale_rad <= WIDE_RAD else 3


def tangent(scale_rad: float) -> tuple[float, float]:
    """The cosine of an angle phi, and 2 (tan(phi) - phi), rounded up: the largest of s / cos(phi) -
    rho over all chords s.

    The arc rho = 2 asin(s / 2) is convex in its chord, so it lies above its tangent of slope 1 /
    cos(phi). That holds whatever the scale of the noise; at phi = atan(scale) most is kept.
    """
    if scale_rad < 2.0**-10:
        return PLANAR
    shrink = math.cos(math.atan(scale_rad))
    return shrink, 2.0 * (math.sqrt(1.0 - shrink * shrink) / shrink - math.acos(shrink)) + 2.0**-40


def most_tries(least_rad: float, most_rad: float, shrink: float, lead: float) -> float:
    """As many tries as a point takes on average, or more, at any scale from `least_rad` to
    `most_rad` and with one tangent.

    A narrow try is kept with probability (1 + exp(-pi / b)) exp(-lead / b) / ((1 + b**2)
    shrink**2). Without the first factor, which is 1 or more, the logarithm of the inverse is convex
    in 1 / b, so that it is largest at one of the ends. A wide one is kept with probability b**2 /
    (1 + b**2).
    """
    most = 1.0
    if least_rad <= WIDE_RAD:
        for b in (least_rad, min(most_rad, WIDE_RAD)):
            most = max(most, (1.0 + b * b) * shrink * shrink * math.exp(min(lead / b, 700.0)))
    if most_rad > WIDE_RAD:
        most = max(most, 1.0 + max(least_rad, WIDE_RAD) ** -2)
    return most


@fused
def axes(ix: np.int64, iy: np.int64, step: float) -> tuple[float, float, float, float]:
    """Of a lattice point of the sphere: cosine and sine of its longitude, height and distance from
    the axis; each within 2**-49.

    Its direction is (distance sin lon, height, distance cos lon).
    """
    cos_lon, sin_lon = cos_sin(ix * step * (1.0 / 360.0) - 0.5)
    up, flat = cos_sin(iy * step * (1.0 / 360.0))
    return cos_lon, sin_lon, up, flat


@fused
def bearing(word: np.uint64) -> tuple[float, float]:
    """Cosine and sine of the turn that a word begins."""
    return cos_sin(np.float64(word) * _TURN)


@fused
def exponential(word: np.uint64) -> float:
    """Minus the logarithm of the uniform that a word begins, within 2**-43 and 2**-48 of itself;
    NaN where the word says too little.
    """
    e = -log((np.float64(word) + 0.5) * _TURN)
    return e if word >= LEAST_WORD else np.nan


@fused
def narrow_unit(one: np.uint64, four: np.uint64) -> tuple[float, float]:
    """Planar Laplace radius of scale 1 and a bound on its error, infinite where the words say too
    little.
    """
    least = min(one, four)
    e = -log((np.float64(one) + 0.5) * _TURN * ((np.float64(four) + 0.5) * _TURN))
    cut = 2.0**-48 if least > LARGE_WORD else (2.0**-43 if least >= LEAST_WORD else np.inf)
    return e, cut + (1.0 + e) * 2.0**-48


@fused
def narrow_arc(
    scale_rad: float, radius: float, error: float, shrink: float
) -> tuple[float, float, float]:
    """Cosine and sine of the arc of a chord, and the error of the arc; radius and error are those
    of :func:`narrow_unit`.
    """
    half = 0.5 * scale_rad * shrink * radius
    inside = 1.0 - half * half
    cosine = math.sqrt(max(inside, 2.0**-60))  # of half the arc
    steep = 8.0 if cosine > 0.125 else 1.0 / cosine
    return (
        inside - half * half,
        2.0 * half * cosine,
        2.0 * (scale_rad * error + half * 2.0**-50) * steep,
    )


@fused
def narrow_kept(
    scale_rad: float, radius: float, error: float, e: float, shrink: float, lead: float
) -> int:
    """Whether the arc of a chord is kept; e is the :func:`exponential` that decides."""
    half = 0.5 * scale_rad * shrink * radius
    longest = 0.5 * (scale_rad * (e + radius) - lead)  # half of the longest arc that is kept
    bound = scale_rad * (2.0 * error + 2.0**-43 + (e + radius) * 2.0**-47) + 2.0**-49
    # the sine of a quarter turn is above all halves of chords, that of 0 below
    _, sine = cos_sin(min(max(longest, 0.0), _QUARTER) * _PER_RADIAN)
    margin = sine - half
    if not abs(margin) > 2.0 * bound + 2.0**-48:
        return UNSETTLED
    return SETTLED if margin > 0.0 else REJECTED


@fused
def wide_arc(one: np.uint64) -> tuple[float, float]:
    """Cosine and sine of the arc to a uniform point; each within 2**-42 if the word is not at an
    end.
    """
    # u begins the uniform and v is 1 - u, as exact as u at its end
    u, v = (np.float64(one) + 0.5) * _TURN, (np.float64(~one) + 0.5) * _TURN
    return v - u, 2.0 * math.sqrt(u * v)


@fused
def wide_kept(scale_rad: float, one: np.uint64, two: np.uint64) -> tuple[int, float]:
    """Whether a uniform point or the one opposite is kept, and the side: 1 for the point, -1 for
    the one opposite.
    """
    cos_rho, sin_rho = wide_arc(one)
    rho = turn_of(sin_rho, cos_rho) * (2.0 * math.pi)
    per_radian = 1.0 / scale_rad
    level = (np.float64(two) + 0.5) * _TURN * (1.0 + exp(-math.pi * per_radian))
    here, opposite = exp(-rho * per_radian), exp((rho - math.pi) * per_radian)
    settled = one >= LEAST_WORD and one <= ~LEAST_WORD and abs(here - level) > _KEPT_ERROR
    if settled and level < here:
        return SETTLED, 1.0
    if not (settled and abs(here + opposite - level) > _KEPT_ERROR):
        return UNSETTLED, 1.0
    return (SETTLED if level < here + opposite else REJECTED), -1.0


@fused
def arc_kept(
    scale_rad: float, one: np.uint64, two: np.uint64, four: np.uint64, shrink: float, lead: float
) -> tuple[int, float]:
    """Whether a try of an arc is kept, and its side."""
    if scale_rad > WIDE_RAD:
        return wide_kept(scale_rad, one, two)
    radius, error = narrow_unit(one, four)
    return narrow_kept(scale_rad, radius, error, exponential(two), shrink, lead), 1.0


@fused
def arc(
    scale_rad: float, one: np.uint64, four: np.uint64, shrink: float, side: float
) -> tuple[float, float, float]:
    """Cosine and sine of an arc that is kept, both with the other sign on the other side, and their
    error.
    """
    if scale_rad > WIDE_RAD:
        cos_rho, sin_rho = wide_arc(one)
        return side * cos_rho, side * sin_rho, WIDE_ERROR
    radius, error = narrow_unit(one, four)
    return narrow_arc(scale_rad, radius, error, shrink)


@fused
def direction_at(
    up: float, flat: float, cos_rho: float, sin_rho: float, cos_turn: float, sin_turn: float
) -> tuple[float, float, float]:
    """The direction at that arc length and bearing from a place of that height and distance from
    the axis.

    Its parts are along the meridian of the place away from the axis, across it, and along the axis.
    """
    north = sin_rho * sin_turn
    return cos_rho * flat - north * up, sin_rho * cos_turn, cos_rho * up + north * flat


@fused
def rounded_turns(
    column: float, row: float, away: float, step: float, error: float
) -> tuple[np.int64, np.int64, int]:
    """Lattice column and row of a direction, given in turns, and whether they are settled.

    `away` is the distance from the axis, `error` the arc by which the direction may be off.
    """
    per_step = 1.0 / step  # a power of two
    at_x, at_y = column * (360.0 * per_step), row * (360.0 * per_step)
    nx, ny = np.rint(at_x), np.rint(at_y)
    # an error of the direction is one of at most as many radians of y, and 1 / away times that of x
    bound_y = 2.0 * ((4.0 * error + 2.0**-44) * 60.0 + 2.0**-41) * per_step
    bound_x = 8.0 * bound_y if away > 0.125 else bound_y / away
    sure = (
        (away > 2.0**-20)
        & (bound_x < 0.25)
        & (abs(at_x - nx) < 0.5 - bound_x)
        & (abs(at_y - ny) < 0.5 - bound_y)
    )
    return np.int64(nx), np.int64(ny), (SETTLED if sure else UNSETTLED)


@fused
def sphere_point(
    iy: np.int64,
    scale_rad: float,
    step: float,
    one: np.uint64,
    three: np.uint64,
    four: np.uint64,
    shrink: float,
    side: float,
) -> tuple[np.int64, np.int64, int]:
    """The lattice point of a try that is kept, around a place of row iy: its column, counted from
    the place's, its row, and whether it is settled.
    """
    up, flat = cos_sin(iy * step * (1.0 / 360.0))
    cos_rho, sin_rho, error = arc(scale_rad, one, four, shrink, side)
    cos_turn, sin_turn = bearing(three)
    out, east, height = direction_at(up, flat, cos_rho, sin_rho, cos_turn, sin_turn)
    away = math.sqrt(out * out + east * east)
    per = 1.0 / away
    return rounded_turns(turn_of(east * per, out * per), turn_of(away, height), away, step, error)
