"""The noise of exponential-dp as printed and as intended, and the true loss of the printed law."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.privacy.rational import Number, exact


def published_noise(
    epsilon: float, delta: Floats, t_max: int, shape: tuple[int, ...], draw: np.random.Generator
) -> Floats:
    """+-ln(y) / (lambda t_max) with y exponential of mean 1/lambda: the recipe as printed."""
    rate = epsilon / (2 * t_max * delta)
    standard = draw.standard_exponential(shape)
    while (zero := standard == 0).any():  # the logarithm has no value there
        standard[zero] = draw.standard_exponential(int(zero.sum()))
    sign = np.where(draw.integers(0, 2, shape) == 1, 1.0, -1.0)
    noise: Floats = sign * np.log(standard / rate) / (rate * t_max)
    return noise


def intended_noise(
    epsilon: float, delta: Floats, t_max: int, shape: tuple[int, ...], draw: np.random.Generator
) -> Floats:
    """Laplace noise with scale 2 t_max delta / epsilon."""
    return draw.laplace(0.0, np.broadcast_to(2 * t_max * delta / epsilon, shape))


def published_log_density(x: Floats, epsilon: Number, delta: float, t_max: int) -> Floats:
    """Logarithm of the density of the published noise, up to a constant."""
    b, c = _law(epsilon, delta, t_max)
    return _log_density(np.asarray(x, dtype=np.float64) / b, c)


def published_loss(epsilon: Number, delta: float = 1.0, t_max: int = 100, values: int = 1) -> float:
    """The true privacy loss of the published noise: the largest log ratio of two densities whose
    centres differ by at most delta.

    The supremum over outputs and over all shifts up to delta (the largest shift is not always the
    worst one). Noise is independent from value to value, so the loss of `values` of them is that
    many times the loss of one. The result is a density ratio at two points that were evaluated,
    lowered by far more than the rounding of its evaluation: it never overstates, so it may serve to
    refute a claim. It falls short of the supremum by less than one part in a million.

    Parameters
    ----------
    epsilon : number
        As claimed.
    delta : float
        Range of the feature in its unit; the published law is not free of it.
    t_max : int
        Vectors of the longest recording.
    values : int
        How many values of a recording change.

    Examples
    --------
    >>> round(published_loss(1, 1.0, 100), 2), round(published_loss(10, 1.0, 100), 1)
    (5.18, 10.4)
    """
    claimed = float(exact("published_loss", "epsilon", epsilon, above=0))
    _, c = _law(
        epsilon,
        checks.positive("published_loss", "delta", delta),
        checks.count("published_loss", "t_max", t_max),
    )
    shift = claimed / 2  # delta in units of b
    # Beyond the outer tails the density falls like exp(-|u|) and the loss tends to the shift
    # itself, from below.
    u = np.linspace(-1.0, 1.0, 200_001) * (abs(c) + shift + 50.0)

    def at_shift(x: float) -> float:
        pair = _log_density(np.array([x, x + shift]), c)
        return float(pair[0] - pair[1])

    # Within a window the density is lowest at an end of it or at a local minimum; against a local
    # minimum a local maximum is worst, or an end.
    coarse = _log_density(u, c) - _log_density(u + shift, c)
    best = max(_highest(at_shift, u, int(coarse.argmax())), at_shift(-shift), at_shift(0.0))
    density = _log_density(u, c)
    rises = np.sign(np.diff(density))
    peaks, troughs = (np.flatnonzero((rises[:-1] == s) & (rises[1:] == -s)) + 1 for s in (1, -1))
    for peak in peaks.tolist():
        for trough in troughs.tolist():
            if abs(u[peak] - u[trough]) <= shift:
                best = max(best, float(density[peak] - density[trough]))
    return checks.count("published_loss", "values", values) * best * (1 - 1e-9)


def _law(epsilon: Number, delta: float, t_max: int) -> tuple[float, float]:
    e = float(exact("exponential-dp", "epsilon", epsilon, above=0))
    return 2 * delta / e, math.log(2 * t_max * delta / e)


def _log_density(u: Floats, c: float) -> Floats:
    """Logarithm of the published density in units of b: half of f(u - c) + f(-u - c) with f(z) =
    exp(z - exp(z)).
    """
    with np.errstate(over="ignore"):
        density: Floats = np.logaddexp(u - c - np.exp(u - c), -u - c - np.exp(-u - c)) - math.log(2)
    return density


def _highest(function: Callable[[float], float], u: Floats, place: int) -> float:
    """The highest value of a function near a place of a grid."""
    from scipy.optimize import minimize_scalar

    low, high = float(u[max(place - 1, 0)]), float(u[min(place + 1, len(u) - 1)])
    lowest = minimize_scalar(
        lambda x: -function(x), bounds=(low, high), method="bounded", options={"xatol": 1e-13}
    )
    return max(function(float(u[place])), -float(lowest.fun))
