"""The posterior mean of a place given its noisy one: what `posterior-mean` releases."""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled

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
