"""Staircase noise and the OpenDP oracle's message when it is absent."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.errors import MissingExtraError, ParameterError
from gazeveil.privacy.noise import oracle
from gazeveil.privacy.noise.rng import TestStream, Words
from gazeveil.privacy.noise.staircase import Staircase, best_first, staircase_variance
from laws import assert_pmf


def law(epsilon: float, d: int, r: int, reach: int) -> np.ndarray:
    i = np.abs(np.arange(-reach, reach + 1))
    p = np.exp(-epsilon * np.where(i < r, 0, 1 + (i - r) // d))
    c = math.exp(-epsilon) / -math.expm1(-epsilon)
    return p / (2 * r - 1 + 2 * d * c)


@pytest.mark.parametrize(("epsilon", "d", "r"), [(1, 1, None), (1, 10, 3), (2, 40, None), ("1/2", 6, 6), (Fraction(7, 3), 5, 1)])
def test_staircase_has_its_probabilities(epsilon: object, d: int, r: int | None) -> None:
    noise = Staircase(epsilon, d, r)
    x = noise.draw(400_000, Words(TestStream(51)))
    reach = noise.first + 8 * d
    inside = np.abs(x) <= reach
    counts = np.append(np.bincount(x[inside] + reach, minlength=2 * reach + 1), np.count_nonzero(~inside))

    def at(factor: float) -> np.ndarray:
        p = law(float(Fraction(noise.epsilon)) / factor, d, noise.first, reach)
        return np.append(p, max(0.0, 1 - p.sum()))

    assert_pmf(counts, at)


@pytest.mark.parametrize(("epsilon", "d", "r"), [(0.3, 1, 1), (1.0, 7, 3), (4.0, 50, 10), (0.05, 3, 2)])
def test_the_variance_formula_is_the_sum(epsilon: float, d: int, r: int) -> None:
    reach = r + int(45 / epsilon) * d
    p = law(epsilon, d, r, reach)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert staircase_variance(epsilon, d, r) == pytest.approx((p * np.arange(-reach, reach + 1) ** 2).sum(), rel=1e-9)


def test_one_step_of_sensitivity_is_discrete_laplace() -> None:
    a = math.exp(-0.7)
    assert Staircase("0.7", 1).variance == pytest.approx(2 * a / (1 - a) ** 2)


def test_drawn_noise_has_the_stated_variance() -> None:
    noise = Staircase(1, 100)
    x = noise.draw(400_000, Words(TestStream(52))).astype(np.float64)
    assert abs(x.var() / noise.variance - 1) < 0.02
    assert abs(x.mean()) < 5 * math.sqrt(noise.variance / len(x))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8), Fraction(20)])
@pytest.mark.parametrize("d", [1, 2, 17, 200])
def test_the_first_step_is_the_best_one(epsilon: Fraction, d: int) -> None:
    best = staircase_variance(float(epsilon), d, best_first(epsilon, d))
    assert best == min(staircase_variance(float(epsilon), d, r) for r in range(1, d + 1))


def test_staircase_is_never_worse_than_discrete_laplace_and_far_better_at_large_epsilon() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(5), Fraction(10)):
        a = math.exp(-float(epsilon) / 1000)
        laplace = 2 * a / (1 - a) ** 2
        assert Staircase(epsilon, 1000).variance <= laplace * 1.0001
    assert Staircase(10, 1000).variance < 0.1 * laplace


def test_neighbours_never_differ_by_more_than_exp_epsilon() -> None:
    epsilon, d, r = 1.0, 7, 3
    p = np.log(law(epsilon, d, r, 200))
    for shift in range(1, d + 1):
        assert np.abs(p[shift:] - p[:-shift]).max() <= epsilon + 1e-12
    assert np.abs(p[d + 1 :] - p[: -d - 1]).max() > 1.5 * epsilon  # one step further the promise is over


def test_a_small_budget_leaves_the_table_and_comes_back() -> None:
    noise = Staircase("1/1000", 3, 2)
    x = noise.draw(200_000, Words(TestStream(53)))
    assert np.abs(x).max() > 3 * 1000
    assert abs(x.astype(np.float64).var() / noise.variance - 1) < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((0, 1), "The 'epsilon' parameter of Staircase"),
        ((101, 1), "The 'epsilon' parameter of Staircase must be from 1/1000 to 100"),
        (("1/1001", 1), "The 'epsilon' parameter of Staircase must be from 1/1000 to 100"),
        ((1, 0), "The 'sensitivity' parameter of Staircase"),
        ((1, 2**40 + 1), "The 'sensitivity' parameter of Staircase must be at most"),
        ((1, 5, 6), "The 'first' parameter of Staircase must be at most the sensitivity 5"),
        ((1, 5, 0), "The 'first' parameter of Staircase"),
    ],
)
def test_bad_parameters_are_refused(parameters: tuple[object, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Staircase(*parameters)


def test_without_opendp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtraError, match=r"'opendp'.*gazeveil\[dev\]"):
        oracle.opendp_laplace(1.0)


def test_nothing_that_protects_imports_opendp() -> None:
    import subprocess

    modules = ["exact", "geometry", "knorm", "local", "planar", "rng", "staircase", "table", "uniform"]
    code = "import sys; " + "; ".join(f"import gazeveil.privacy.noise.{m}" for m in modules) + "; sys.exit('opendp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
