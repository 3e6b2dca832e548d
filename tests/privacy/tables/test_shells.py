"""The staircase in the l2 norm: its law, its promise and its limits."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.shells import (
    best_gamma,
    most_sensitivity,
    shell_noise,
    shells,
    staircase_variance,
)
from gazeveil.privacy.randomness.rng import Words, source
from tests.support.laws import assert_distribution  # the tests' own module of this name


def radius_cdf(dimension: int, epsilon: float, first: float, step: float):
    """Distribution of the radius, the staircase made wider or narrower by `scale`."""

    def cdf(x: np.ndarray, scale: float) -> np.ndarray:
        outer = (first + step * np.arange(80)) * scale
        inner = np.concatenate(([0.0], outer[:-1]))
        mass = np.exp(-epsilon * np.arange(80)) * (
            (outer / outer[0]) ** dimension - (inner / outer[0]) ** dimension
        )
        below = np.concatenate(([0.0], np.cumsum(mass))) / mass.sum()
        shell = np.minimum(np.searchsorted(outer, x), 79)
        share = (x**dimension - inner[shell] ** dimension) / (
            outer[shell] ** dimension - inner[shell] ** dimension
        )
        return np.clip(below[shell] + mass[shell] / mass.sum() * share, 0, 1)

    return cdf


@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 1), (2, 3), (3, 10), (8, 8)])
def test_the_radius_follows_the_staircase_and_the_direction_is_uniform(dimension, epsilon):
    gamma, variance = best_gamma(dimension, float(epsilon))
    step = most_sensitivity(dimension, Fraction(epsilon), gamma)
    law = shells(dimension, Fraction(epsilon), step, gamma)
    z = shell_noise(law, 100_000, Words(source(dimension, "shells"))).astype(np.float64)
    radius = np.linalg.norm(z, axis=1)
    assert_distribution(
        radius, radius_cdf(dimension, law.inner_epsilon, float(law.radius[0]), float(step))
    )
    assert np.linalg.norm((z / radius[:, None]).mean(axis=0)) < 5 / np.sqrt(len(z)) * np.sqrt(
        dimension
    )
    assert law.variance == pytest.approx(variance * step**2, rel=1e-4)
    assert (z**2).mean() == pytest.approx(law.variance, rel=0.1)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_ratio_of_two_neighbouring_whole_vectors_is_within_the_promise_by_counting_all_of_them(
    dimension,
):
    law = shells(dimension, Fraction(2), 20, 1.0)
    weights = np.diff(
        np.concatenate(
            (
                [0],
                [(int(h) << 64) + int(low) for h, low in zip(law.high, law.low, strict=True)],
                [1 << 128],
            )
        ).astype(object)
    )
    shown = 4 if dimension < 3 else 2  # shells counted in full
    reach = int(law.radius[shown - 1])
    squares = np.arange(-reach, reach + 1, dtype=np.int64) ** 2
    total = sum(np.ix_(*[squares] * dimension)) if dimension > 1 else squares
    edges = [-1, *(int(r) ** 2 for r in law.radius[:shown])]
    counts = [int(np.count_nonzero((total > a) & (total <= b))) for a, b in pairwise(edges)]
    density = [Fraction(int(w), c) for w, c in zip(weights[:shown], counts, strict=True)]
    for lower, upper in zip(density[1:], density[:-1], strict=True):
        assert 0 < np.log(float(upper / lower)) <= 2


@pytest.mark.parametrize(
    ("dimension", "sensitivity", "epsilon", "gamma"),
    [
        (1, 10, 1, 0.5),
        (1, 50, 3, 0.2),
        (2, 30, 2, 0.3),
        (1, 1 << 20, 10, 0.05),
        (64, 1 << 18, 60, 0.5),
    ],
)
def test_no_shell_has_more_or_less_weight_than_its_share(dimension, sensitivity, epsilon, gamma):
    # The doubles of the weights sum to 1 up to 1e-16, which once all went to the last shell: ten
    # powers of ten above what was charged as delta.
    law = shells(dimension, Fraction(epsilon), sensitivity, gamma)
    ends = [
        0,
        *((int(h) << 64) + int(low) for h, low in zip(law.high, law.low, strict=True)),
        1 << 128,
    ]
    weights = [Fraction(b - a, 1 << 128) for a, b in pairwise(ends)]
    assert weights[-1] <= law.delta
    outer, inner = law.radius.astype(float), np.concatenate(([0.0], law.radius[:-1].astype(float)))
    ideal = (
        -law.inner_epsilon * np.arange(len(outer))
        + dimension * np.log(outer)
        + np.log1p(-((inner / outer) ** dimension))
    )
    ideal -= np.logaddexp.reduce(ideal)
    for weight, log in zip(weights, ideal.tolist(), strict=True):
        if log > -92 * np.log(2.0):
            assert np.log(float(weight)) == pytest.approx(log, abs=2.0**-34)


def test_a_whole_vector_is_as_likely_as_any_other_of_its_shell():
    law = shells(2, Fraction(3), 9, 1.0)
    z = shell_noise(law, 300_000, Words(source(6)))
    inside = [(a, b) for a, b in product(range(-9, 10), repeat=2) if a * a + b * b <= 81]
    seen = dict.fromkeys(inside, 0)
    for v in map(tuple, z[(z**2).sum(axis=1) <= 81].tolist()):
        seen[v] += 1
    counts = np.array(list(seen.values()))
    expected = counts.mean()
    from scipy.stats import chi2

    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1) > 1e-6


def test_in_one_dimension_the_variance_is_the_least_that_any_noise_has():
    # Geng and Viswanath 2014, theorem for the squared error
    for epsilon in (1.0, 3.0, 10.0):
        b = np.exp(-epsilon)
        least = (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2
        assert best_gamma(1, epsilon)[1] == pytest.approx(least, rel=2e-3)
        assert best_gamma(1, epsilon)[1] >= least * (1 - 1e-9)


def test_for_many_coordinates_and_a_small_budget_it_is_the_exponential_law():
    assert staircase_variance(30, 1.0, 0.5)[0] == pytest.approx(31.0, rel=1e-6)
    assert best_gamma(20, 100.0)[1] < 0.01 * 21 / 100**2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, Fraction(2), 100, 0.5), "'dimension' parameter of shells"),
        ((65, Fraction(2), 100, 0.5), "at most 64"),
        ((2, Fraction(1, 2), 100, 0.5), "at least 1"),
        ((2, Fraction(2), 100, 1e-9), "2\\*\\*-12 to 1"),
        ((2, Fraction(2), 1 << 40, 0.5), "coarser grid"),
        ((8, Fraction(2), 10, 0.5), "finer grid"),
    ],
)
def test_what_cannot_be_kept_exact_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        shells(*arguments)
