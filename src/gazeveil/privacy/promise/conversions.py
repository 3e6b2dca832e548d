"""From one measure of privacy loss to another, rounded up: a number that is printed is never better
than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from gazeveil import checks

_GRID = 10**9


def raised(value: float) -> Fraction:
    """A float as a fraction that is certainly not below the number it stands for."""
    return Fraction(math.ceil(value * (1 + 1e-12) * _GRID + 1e-6), _GRID)


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """Pure epsilon-DP is epsilon**2 / 2 zCDP (Bun and Steinke 2016), exactly."""
    return epsilon * epsilon / 2


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon at which rho-zCDP gives (epsilon, delta)-DP, rounded up.

    Proposition 12 of Canonne, Kamath and Steinke 2020 holds for every order alpha > 1, so an
    inexact search for the best one costs tightness, never truth; the result is raised by one part
    in 10**12 for the rounding of the logarithms and then to the grid.
    """
    if rho == 0:
        return Fraction(0)
    r, d = float(rho) * (1 + 1e-15), _above_zero("epsilon_of_rho", delta) * (1 - 1e-15)

    def at(log_step: float) -> float:
        step = math.exp(log_step)  # alpha - 1
        alpha = 1 + step
        return alpha * r + math.log1p(-1 / alpha) - (math.log(d) + math.log(alpha)) / step

    return raised(max(0.0, _smallest(at, -30.0, 30.0)))


def _above_zero(owner: str, delta: Fraction) -> float:
    """Delta as a float, refused where it is none: Gaussian noise has no finite epsilon at delta =
    0.
    """
    d = float(delta)
    if not 0.0 < d < 1.0:
        checks.refuse(
            owner,
            "delta",
            "above 0 and below 1: with delta = 0 there is no finite epsilon",
            delta,
            "Choose one, such as 1e-6.",
        )
    return d


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value found by a grid and two refinements of it; every value
    is a valid bound.
    """
    for _ in range(3):
        points = [low + (high - low) * i / 400 for i in range(401)]
        values = [function(p) for p in points]
        best = min(range(401), key=lambda i: values[i])
        low, high = points[max(best - 1, 0)], points[min(best + 1, 400)]
    return values[best]
