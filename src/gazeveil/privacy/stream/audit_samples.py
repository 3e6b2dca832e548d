"""Games for the stream mechanisms that add noise to samples or none at all: one window of steady
gaze against the same window moved by r.

The sum of the released x is the best statistic there is for independent Gaussian noise, so the
bound comes close to the account. What promises nothing has nothing to refute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.audit.games import DELTA, Game
from gazeveil.privacy.promise.conversions import epsilon_of_rho
from gazeveil.privacy.randomness.supply import derived_seed

if TYPE_CHECKING:
    from gazeveil.privacy.stream.mechanism import StreamMechanism


_RATE_HZ = 100.0
_AT_ONCE = 200_000  # samples held at a time


def _play(
    mechanism: StreamMechanism, w: int, r_deg: float, side: int, trials: int, seed: int | None
) -> Floats:
    """Sum and last value of the released x in each of many windows."""
    several = max(1, _AT_ONCE // w)
    out = np.empty((trials, 2))
    for begin in range(0, trials, several):
        n = min(several, trials - begin)
        session = mechanism.open_many(
            n, _RATE_HZ, seed=None if seed is None else derived_seed(seed, begin, side)
        )
        t = np.broadcast_to(np.arange(w) * round(1e9 / _RATE_HZ), (n, w))
        x = session.push(t, np.full((n, w), 180.0 + side * r_deg), np.full((n, w), 90.0))[1]
        out[begin : begin + n] = np.stack((np.nansum(x, axis=1), x[:, -1]), axis=1)
    return out


def samplewise(mechanism: StreamMechanism, unit: str | None) -> Game:
    """Zero-concentrated differential privacy of one window, judged as (epsilon, delta) at delta =
    1e-6; or nothing.
    """
    promise = mechanism.promise(_RATE_HZ, Sphere())
    if promise.definition == "none":
        return Game("window", None, f"{promise} There is no claim to refute.")
    # A promise about one sample has no window.
    w, r = int(promise.numbers.get("w_samples", 1)), float(promise.numbers["r_deg"])
    description = (
        f"{w} samples of steady gaze at {_RATE_HZ:g} Hz, against the same moved by {r:g} degrees."
    )
    if "epsilon" in promise.numbers:
        claimed, delta = float(promise.numbers["epsilon"]), 0.0
    else:
        claimed, delta = float(epsilon_of_rho(promise.numbers["rho"], DELTA)), float(DELTA)
        description += (
            f" rho = {float(promise.numbers['rho']):.4g} is judged as epsilon at delta = 1e-6."
        )
    return Game(
        promise.unit,
        claimed,
        description,
        lambda side, n, seed: _play(mechanism, w, r, side, n, seed),
        delta=delta,
    )
