"""Games for heat maps: one viewer who looks at one cell against one who looks at another."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import DELTA, Game, asked_unit
from gazeveil.privacy.maps.weights import WEIGHT, viewer_weights
from gazeveil.privacy.noise.exact import laplace_scale
from gazeveil.privacy.promise.conversions import epsilon_of_rho
from gazeveil.privacy.randomness.rng import Words, source

if TYPE_CHECKING:
    from gazeveil.privacy.maps.heatmap import HeatmapGaussian, HeatmapLaplace

_PAIR = (
    "One stimulus, one viewer: all gaze in the left half of a map of two cells, against all in the"
    " right half."
)


def _play(
    mechanism: HeatmapLaplace | HeatmapGaussian, side: int, trials: int, seed: int | None
) -> Floats:
    x = np.full(4, 90.0 + 180.0 * side)
    weights = viewer_weights(
        Recording(
            "p", "s", np.arange(4) * 10**7, x, np.full(4, 90.0), space=Sphere(), rate_hz=100.0
        ),
        1,
        2,
    )
    cells = (
        weights + mechanism.noise(1, 2 * trials, Words(source(seed, "audit"))).reshape(trials, 2)
    ) / WEIGHT
    # Between 0 and 1 the likelihood ratio of Laplace noise is linear, outside it is constant.
    clipped = np.clip(cells, 0.0, 1.0)
    return np.stack((clipped[:, 0] - clipped[:, 1], cells[:, 0] - cells[:, 1]), axis=1)


def heatmap_laplace(mechanism: HeatmapLaplace, unit: str | None) -> Game:
    """Pure differential privacy of all maps of a person; the exact loss is the L1 distance over the
    scale of the noise.
    """
    t, s = laplace_scale(mechanism.scale_steps(1))
    exact = float(Fraction(2 * WEIGHT * s, t))
    audited = asked_unit(unit, "user", ("user",))
    return Game(
        audited,
        float(mechanism.epsilon),
        _PAIR,
        lambda side, n, seed: _play(mechanism, side, n, seed),
        exact,
    )


def heatmap_gaussian(mechanism: HeatmapGaussian, unit: str | None) -> Game:
    """Zero-concentrated differential privacy, judged as (epsilon, delta) at delta = 1e-6."""
    # What rho itself implies. The curve of continuous Gaussian noise is a little lower, and nobody
    # has promised it.
    claimed = float(epsilon_of_rho(mechanism.rho, DELTA))
    description = f"{_PAIR} rho = {mechanism.rho} is judged as epsilon at delta = 1e-6."
    return Game(
        asked_unit(unit, "user", ("user",)),
        claimed,
        description,
        lambda s, n, seed: _play(mechanism, s, n, seed),
        delta=float(DELTA),
    )
