"""The exact epsilon of Gaussian noise, beside which conversions that hold for all zCDP are put."""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import log_ndtr

from gazeveil.privacy.promise.loss import raised


def epsilon_of_gaussian(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon at which Gaussian noise with that rho gives (epsilon, delta)-DP, rounded up.

    Balle and Wang 2018: delta(epsilon) = Phi(s/2 - epsilon/s) - exp(epsilon) Phi(-s/2 - epsilon/s)
    with s = sqrt(2 rho).
    """
    s, d = math.sqrt(2 * float(rho)) * (1 + 1e-15), float(delta)

    def delta_at(epsilon: float) -> float:
        high = float(log_ndtr(s / 2 - epsilon / s))
        low = epsilon + float(log_ndtr(-s / 2 - epsilon / s))
        return -math.exp(high) * math.expm1(low - high) if low < high else 0.0

    low, high = 0.0, 1.0
    while delta_at(high) > d:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > d else (low, middle)
    return raised(high)
