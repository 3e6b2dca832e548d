"""Noise of Kaleido: settled by double precision, or drawn on until it is.

The laws are continuous and so are their exact values; what is released is a bit or a point of a public lattice:

* the test bit `d <= l + eta`, eta Laplace with scale b;
* on a screen the point x + Z rounded to the lattice, Z planar Laplace (density proportional to exp(-|z| / b), radius b (E1 + E2));
* on the sphere a point at arc length rho and uniform bearing from x, its density by area proportional to exp(-rho / b), so the arc length
  has density proportional to exp(-rho / b) sin(rho): planar Laplace arc lengths kept with probability sin(rho) / rho, or, for b above two
  radians, uniform ones kept with probability sin(rho) exp(-rho / b). It is rounded to the lattice of whole steps of x and y.

A value is a function of a few uniform reals of which the sampler knows 63 or 64 bits. Doubles give the value and a bound on its error;
where every decision is farther from its boundary than that bound, the released bit or point is settled whatever the further bits are.
Otherwise :mod:`gazeveil.privacy.stream.kaleido_sure` draws the reals on to 512 bits and decides with whole numbers. So what is released
follows the exact law, up to 2**-400 per draw, if the platform's log, sqrt, sin, cos, exp and atan2 are within two units in the last place.
Proof: proofs/kaleido.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.privacy.noise.rng import WordArray

#: Assumption of every guarantee that rests on these samplers.
ASSUMPTION = "the platform's log, sqrt, sin, cos, exp and atan2 are within two units in the last place"

#: Scale in radians from which arc lengths are proposed uniformly.
WIDE_RAD = 2.0

#: What a sampler answers: the position after it, this, or `UNSETTLED - where` with the position of the try that doubles cannot settle.
NEEDS_WORDS, UNSETTLED = -1, -2

_TWO_PI = 2.0 * math.pi
_LEAST_WORD = np.uint64(1 << 44)  # below it 64 bits say too little about the logarithm


@compiled
def test_passes(distance: float, distance_error: float, threshold: float, scale: float, words: WordArray, position: int) -> tuple[bool, int]:
    """Whether distance <= threshold + Laplace(scale), and the position after; one word."""
    if position >= len(words):
        return False, NEEDS_WORDS
    word = words[position]
    if word < _LEAST_WORD:
        return False, UNSETTLED - position
    uniform = (np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63
    e = -math.log(uniform)
    eta = scale * e if word & np.uint64(1) else -scale * e
    margin = threshold + eta - distance
    # cut-off and rounding of the uniform, the logarithm, the threshold and the sums; doubled because the bound is itself rounded
    bound = 2.0 * (scale * (2.0**-62 / uniform + e * 2.0**-51 + 2.0**-52) + distance_error + (abs(threshold) + abs(eta) + distance) * 2.0**-51)
    if not abs(margin) > bound:
        return False, UNSETTLED - position
    return margin > 0.0, position + 1


@compiled
def screen_noise(scale: float, words: WordArray, position: int) -> tuple[np.int64, np.int64, int]:
    """Planar Laplace noise rounded to whole steps, and the position after; three words."""
    zero = np.int64(0)
    if position + 3 > len(words):
        return zero, zero, NEEDS_WORDS
    one, two = words[position], words[position + 1]
    if one < _LEAST_WORD or two < _LEAST_WORD:
        return zero, zero, UNSETTLED - position
    u1, u2 = (np.float64(one) + 0.5) * 2.0**-64, (np.float64(two) + 0.5) * 2.0**-64
    e = -math.log(u1 * u2)
    e_error = 2.0**-64 / u1 + 2.0**-64 / u2 + e * 2.0**-51 + 2.0**-51
    turn = np.float64(words[position + 2]) * (_TWO_PI * 2.0**-64)
    rho = scale * e
    zx, zy = rho * math.cos(turn), rho * math.sin(turn)
    bound = 2.0 * (scale * e_error + rho * 2.0**-48)
    nx, ny = np.rint(zx), np.rint(zy)
    if not (bound < 0.25 and abs(zx - nx) < 0.5 - bound and abs(zy - ny) < 0.5 - bound):
        return zero, zero, UNSETTLED - position
    return np.int64(nx), np.int64(ny), position + 3


@compiled
def unit_vector(ix: np.int64, iy: np.int64, step: float, out: NDArray[np.float64]) -> None:
    """Direction of a lattice point of the sphere, and the cosine and sine of its longitude after it; each within 2**-49."""
    lon, down = (ix * step - 180.0) * (math.pi / 180.0), iy * step * (math.pi / 180.0)
    sin_lon, cos_lon, flat = math.sin(lon), math.cos(lon), math.sin(down)
    out[0], out[1], out[2] = flat * sin_lon, math.cos(down), flat * cos_lon
    out[3], out[4], out[5] = cos_lon, sin_lon, flat


@compiled
def arc(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Angle in radians between two unit vectors; within 2**-46 for vectors within 2**-49."""
    cx, cy, cz = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    return math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled
def sphere_noise(v: NDArray[np.float64], scale_rad: float, step: float, words: WordArray, position: int) -> tuple[np.int64, np.int64, int]:
    """A lattice point around v (as :func:`unit_vector` gives it), and the position after; four words a try, three where the scale is wide."""
    zero = np.int64(0)
    wide = scale_rad > WIDE_RAD
    need = 3 if wide else 4
    while True:
        if position + need > len(words):
            return zero, zero, NEEDS_WORDS
        one, keep = words[position], (np.float64(words[position + 1]) + 0.5) * 2.0**-64
        if one < _LEAST_WORD:
            return zero, zero, UNSETTLED - position
        u1 = (np.float64(one) + 0.5) * 2.0**-64
        if wide:
            rho = math.pi * float(u1)
            rho_error = 2.0**-49
            sin_rho = math.sin(rho)
            gap, gap_error = sin_rho * math.exp(-rho / scale_rad) - keep, 2.0**-47
        else:
            two = words[position + 3]
            if two < _LEAST_WORD:
                return zero, zero, UNSETTLED - position
            u2 = (np.float64(two) + 0.5) * 2.0**-64
            e = -math.log(u1 * u2)
            rho = scale_rad * e
            rho_error = scale_rad * (2.0**-64 / u1 + 2.0**-64 / u2 + e * 2.0**-51 + 2.0**-51)
            if abs(rho - math.pi) < 2.0 * rho_error + 2.0**-50:
                return zero, zero, UNSETTLED - position
            if rho > math.pi:
                position += need
                continue
            sin_rho = math.sin(rho)
            gap, gap_error = sin_rho - rho * keep, 2.0 * rho_error + 2.0**-48
        if abs(gap) < 2.0 * gap_error:
            return zero, zero, UNSETTLED - position
        if gap < 0.0:
            position += need
            continue
        turn = np.float64(words[position + 2]) * (_TWO_PI * 2.0**-64)
        cos_rho = math.cos(rho)
        east, north = sin_rho * math.cos(turn), sin_rho * math.sin(turn)
        # v, its east (cos lon, 0, -sin lon) and its north (-up sin lon, flat, -up cos lon), up = v[1]
        x = cos_rho * v[0] + east * v[3] - north * v[1] * v[4]
        y = cos_rho * v[1] + north * v[5]
        z = cos_rho * v[2] - east * v[4] - north * v[1] * v[3]
        flat = math.sqrt(x * x + z * z)
        v_error = 4.0 * rho_error + 2.0**-45
        if flat < 2.0**-20:
            return zero, zero, UNSETTLED - position
        at_x = (math.atan2(x, z) * (180.0 / math.pi) + 180.0) / step
        at_y = math.atan2(flat, y) * (180.0 / math.pi) / step
        nx, ny = np.rint(at_x), np.rint(at_y)
        bound_y = 2.0 * (v_error * 60.0 + 2.0**-43) / step
        bound_x = 2.0 * (v_error * 60.0 / flat + 2.0**-43) / step
        if not (bound_x < 0.25 and bound_y < 0.25 and abs(at_x - nx) < 0.5 - bound_x and abs(at_y - ny) < 0.5 - bound_y):
            return zero, zero, UNSETTLED - position
        return np.int64(nx), np.int64(ny), position + need
