"""The test of Kaleido: whether gaze is near what is shown, settled by double precision or drawn on
until it is.

The test bit is `d <= l + eta`, eta Laplace with scale b; distances are in steps on a screen, arcs
in radians on a sphere. Doubles give eta and a bound on its error; where the answer is closer to its
boundary than that, :mod:`gazeveil.privacy.noise.bigint` decides with whole numbers. Points are
drawn by :mod:`gazeveil.privacy.noise.lattice` and :mod:`gazeveil.privacy.noise.spherical`. Proof:
proofs/kaleido.md.

The posterior mean of a place given its noisy one: what `posterior-mean` releases.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.arithmetic import cos_sin, log
from gazeveil.privacy.noise.spherical import LARGE_WORD, LEAST_WORD, SETTLED, UNSETTLED

_PER_RADIAN = 0.5 / math.pi


@fused
def laplace_unit(word: np.uint64) -> tuple[float, float]:
    """Laplace noise of scale 1 from one word, and a bound on its error: the last bit is the sign,
    the others begin a uniform.

    Words from 2**44 on tell the uniform to within 2**-42 of itself, large ones to within 2**-50;
    below, the bound is infinite.
    """
    e = -log((np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63)
    cut = 2.0**-50 if word > LARGE_WORD else (2.0**-42 if word >= LEAST_WORD else np.inf)
    return (e if word & np.uint64(1) else -e), cut + (1.0 + e) * 2.0**-48


@fused
def near_or_far(
    square: float, threshold: float, scale: float, unit: float, error: float
) -> tuple[bool, int]:
    """Whether sqrt(square) <= threshold + scale * unit, for a whole `square` within its rounding,
    and whether that is settled.

    No root is taken: for tau = threshold + scale * unit above zero the question is whether square
    <= tau**2.
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
def test_passes(
    distance: float, threshold: float, scale: float, word: np.uint64
) -> tuple[bool, int]:
    """Whether distance <= threshold + Laplace(scale), for a whole distance, and whether that is
    settled.
    """
    unit, error = laplace_unit(word)
    return near_or_far(distance * distance, threshold, scale, unit, error)


@fused
def arc_limit(threshold: float, scale: float, unit: float, error: float) -> tuple[float, float]:
    """The squared chord of an arc of threshold + scale * unit radians, and a bound on the error of
    comparing one with it.

    An arc is at most tau, from 0 to pi, if the square of its chord is at most 4 sin(tau / 2)**2.
    Where no arc is that short the limit is below every square, where every arc is, above; where
    doubles cannot tell which case it is, the bound is infinite.
    """
    eta = scale * unit
    tau = threshold + eta
    error = 2.0 * (scale * error + (abs(threshold) + abs(eta)) * 2.0**-51)
    _, half = cos_sin(min(max(tau, 0.0), math.pi) * (0.5 * _PER_RADIAN))
    limit = 4.0 * half * half if tau > 0.0 else -1.0
    limit = limit if tau < math.pi else 8.0
    # the derivative of 4 sin(tau / 2)**2 is at most 2; directions are within 2**-47, chords at most
    # 2
    sure = error <= 1.0 and abs(tau) > error and abs(tau - math.pi) > error
    return limit, (4.0 * error + 2.0**-42 if sure else np.inf)


@fused
def arc_test_passes(
    square: float, threshold: float, scale: float, word: np.uint64
) -> tuple[bool, int]:
    """Whether an arc is at most threshold + Laplace(scale), in radians, and whether that is
    settled; `square` is that of its chord.
    """
    unit, error = laplace_unit(word)
    limit, bound = arc_limit(threshold, scale, unit, error)
    return square < limit, (SETTLED if abs(limit - square) > bound else UNSETTLED)


#: Nodes of the quadrature.
QUADRATURE = 16


@compiled
def _mean_on_axis(z: float, prior: float, variance: float) -> float:
    return z * (prior * prior / (prior * prior + variance)) if prior > 0.0 else z


@compiled
def _log_weight(
    log: float, x: float, y: float, variance: float, prior_x: float, prior_y: float
) -> float:
    for prior, z in ((prior_x, x), (prior_y, y)):
        if prior > 0.0:
            total = prior * prior + variance
            log -= 0.5 * math.log(total) + 0.5 * z * z / total
    return log


@compiled
def posterior_mean(
    x: float, y: float, scale: float, prior_x: float, prior_y: float, quadrature: Floats
) -> tuple[float, float]:
    """Mean of the place given the noisy one, both from the prior's centre: planar Laplace is normal
    with variance 2 b**2 Gamma(3/2).
    """
    highest = -np.inf
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * quadrature[0, i]
        log = _log_weight(quadrature[1, i], x, y, v, prior_x, prior_y)
        highest = max(highest, log)
    total, mean_x, mean_y = 0.0, 0.0, 0.0
    for i in range(QUADRATURE):
        v = 2.0 * scale * scale * quadrature[0, i]
        log = _log_weight(quadrature[1, i], x, y, v, prior_x, prior_y)
        weight = math.exp(log - highest)
        total += weight
        mean_x += weight * _mean_on_axis(x, prior_x, v)
        mean_y += weight * _mean_on_axis(y, prior_y, v)
    return mean_x / total, mean_y / total
