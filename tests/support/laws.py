"""One way to test that noise follows its law: accept the law, and reject the law with 5 % more and
5 % less noise.

Samples are carried to uniforms by the law's distribution function (randomised inside the steps of a
discrete law), and judged by two tests, each at half the false-alarm rate: Kolmogorov-Smirnov, and
the mean of |2u - 1|, which moves with the scale of the noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: False-alarm rate of one acceptance.
ALPHA = 1e-6

#: Fewer samples cannot tell 5 % more noise from the law at this rate.
LEAST = 100_000

Cdf = Callable[[NDArray[np.float64], float], NDArray[np.float64]]


def even(u: NDArray[np.float64], alpha: float = ALPHA) -> bool:
    """Whether draws look uniform, by Kolmogorov and Smirnov.

    Massart's bound 2 exp(-2 n d^2) holds for every n and is the exact chance but for a few per
    cent where it is small; scipy's exact one is a sum over all draws, up to a second for a million.
    """
    ordered, rank = np.sort(u), np.arange(len(u) + 1) / len(u)
    far = max((rank[1:] - ordered).max(), (ordered - rank[:-1]).max())
    return bool(2 * np.exp(-2 * len(u) * far**2) > alpha)


def follows(
    samples: ArrayLike,
    cdf: Cdf,
    scale: float = 1.0,
    alpha: float = ALPHA,
    step: float | None = None,
) -> bool:
    """Whether samples look like draws from `cdf(x, scale)`; `step` is the distance of the values of
    a discrete law.
    """
    from scipy.stats import norm

    x = np.asarray(samples, dtype=np.float64).ravel()
    high = cdf(x, scale)
    if step is None:
        u = high
    else:
        low = cdf(x - step, scale)
        u = low + np.random.default_rng(20240229).random(len(x)) * (high - low)
    if np.isnan(u).any() or (u < 0).any() or (u > 1).any():
        return False
    spread = (np.abs(2 * u - 1).mean() - 0.5) * np.sqrt(12 * len(u))
    return bool(2 * norm.sf(abs(spread)) > alpha / 2) and even(u, alpha / 2)


def assert_distribution(
    samples: ArrayLike,
    cdf: Cdf,
    alpha: float = ALPHA,
    control: float = 0.05,
    step: float | None = None,
) -> None:
    """Assert that samples follow `cdf(x, 1)` and neither `cdf(x, 1 + control)` nor `cdf(x, 1 -
    control)`.

    Parameters
    ----------
    samples : array
        At least 100,000 independent draws.
    cdf : callable
        `cdf(x, scale)`: the distribution function with the noise made `scale` times as large.
    alpha : float
        False-alarm rate.
    control : float
        How much more and less noise must be rejected.
    step : float, optional
        Distance of neighbouring values where the law is discrete.
    """
    assert np.size(samples) >= LEAST, (
        f"{np.size(samples)} samples are too few to reject the controls"
    )
    assert follows(samples, cdf, 1.0, alpha, step), "the samples do not follow their law"
    for scale in (1 - control, 1 + control):
        assert not follows(samples, cdf, scale, alpha, step), (
            f"a law with {scale:g} times the noise was not rejected"
        )


def laplace_cdf(b: float) -> Cdf:
    """The Laplace law with scale b, for :func:`assert_distribution`."""

    def cdf(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        tail = 0.5 * np.exp(-np.abs(x) / (b * scale))
        return np.where(x < 0, tail, 1 - tail)

    return cdf


def discrete_laplace_cdf(t: float) -> Cdf:
    """The discrete Laplace law P(x) proportional to exp(-|x| / t) on whole numbers; use with
    step=1.
    """

    def cdf(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        a, whole = np.exp(-1 / (t * scale)), np.floor(x)
        return np.where(whole < 0, a ** (-whole) / (1 + a), 1 - a ** (whole + 1) / (1 + a))

    return cdf


def fits(counts: ArrayLike, probabilities: ArrayLike, alpha: float = ALPHA) -> bool:
    """Whether counts of cells look like draws with these probabilities: chi-square, rare cells put
    together.
    """
    from scipy.stats import chi2

    seen, p = (
        np.asarray(counts, dtype=np.float64).ravel(),
        np.asarray(probabilities, dtype=np.float64).ravel(),
    )
    assert len(seen) == len(p), "a count and a probability for every cell"
    assert abs(p.sum() - 1) < 1e-9, "probabilities must sum to 1: add a cell for the rest"
    expected = p * seen.sum()
    common = expected >= 10
    seen, expected = (
        np.append(seen[common], seen[~common].sum()),
        np.append(expected[common], expected[~common].sum()),
    )
    if expected[-1] < 10:  # too few for a cell of their own
        seen = np.append(seen[:-2], seen[-2] + seen[-1])
        expected = np.append(expected[:-2], expected[-2] + expected[-1])
    return bool(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > alpha)


def assert_pmf(
    counts: ArrayLike,
    law: Callable[[float], ArrayLike],
    alpha: float = ALPHA,
    control: float = 0.05,
) -> None:
    """Assert that counts of cells fit `law(1)` and neither `law(1 + control)` nor `law(1 -
    control)`.

    Parameters
    ----------
    counts : array of int
        How often each cell was drawn; the last cell may be "anything else".
    law : callable
        `law(scale)`: probabilities of the cells with the noise made `scale` times as large.
    alpha, control : float
        As for :func:`assert_distribution`.
    """
    assert np.sum(counts) >= LEAST, f"{np.sum(counts)} samples are too few to reject the controls"
    assert fits(counts, law(1.0), alpha), "the counts do not fit their law"
    for scale in (1 - control, 1 + control):
        assert not fits(counts, law(scale), alpha), (
            f"a law with {scale:g} times the noise was not rejected"
        )
