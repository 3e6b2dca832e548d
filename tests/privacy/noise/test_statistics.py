"""The tests of noise are tested themselves: what they must accept, and the mutants they must
reject.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.laws import (
    assert_distribution,
    assert_pmf,
    discrete_laplace_cdf,
    fits,
    follows,
    laplace_cdf,
)

N = 100_000


def draws(seed: int, scale: float = 3.0) -> np.ndarray:
    return np.random.default_rng(seed).laplace(scale=scale, size=N)


def whole(seed: int, t: float = 3.0) -> np.ndarray:
    g = np.random.default_rng(seed).geometric(1 - np.exp(-1 / t), size=(2, N))
    return g[0] - g[1]


def cells(x: np.ndarray, reach: int = 40) -> np.ndarray:
    return np.append(np.bincount(np.clip(x, -reach, reach) + reach, minlength=2 * reach + 1), 0)


def law(t: float, reach: int = 40):
    def at(scale: float) -> np.ndarray:
        a = np.exp(-1 / (t * scale))
        p = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
        p[[0, -1]] = a**reach / (1 + a)
        return np.append(p, 0.0)

    return at


def test_the_right_noise_is_accepted() -> None:
    assert_distribution(draws(1), laplace_cdf(3.0))
    assert_distribution(whole(1), discrete_laplace_cdf(3.0), step=1.0)
    assert_pmf(cells(whole(1)), law(3.0))


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_five_percent_more_or_less_noise_fails(factor: float) -> None:
    with pytest.raises(AssertionError, match="do not follow"):
        assert_distribution(draws(2, 3.0 * factor), laplace_cdf(3.0))
    with pytest.raises(AssertionError, match="do not follow"):
        assert_distribution(whole(2, 3.0 * factor), discrete_laplace_cdf(3.0), step=1.0)
    with pytest.raises(AssertionError, match="do not fit"):
        assert_pmf(cells(whole(2, 3.0 * factor)), law(3.0))


def test_a_law_that_ignores_its_scale_fails_because_the_controls_pass() -> None:
    with pytest.raises(AssertionError, match="was not rejected"):
        assert_distribution(draws(4), lambda x, scale: laplace_cdf(3.0)(x, 1.0))
    with pytest.raises(AssertionError, match="was not rejected"):
        assert_pmf(cells(whole(4)), lambda scale: law(3.0)(1.0))


def test_false_alarms_come_at_the_stated_rate() -> None:
    alarms = sum(
        not follows(draws(seed)[:2000], laplace_cdf(3.0), alpha=0.1) for seed in range(300)
    )
    assert (
        12 <= alarms <= 50
    )  # 30 expected at most (two tests, not independent); five standard deviations
    alarms = sum(
        not fits(cells(whole(seed)[:20_000]), law(3.0)(1.0), alpha=0.1) for seed in range(300)
    )
    assert 8 <= alarms <= 56
