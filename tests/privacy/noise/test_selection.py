"""Permute-and-flip: its law, its promise on both sides, and what it refuses."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.selection import exponents, permute_and_flip, selection_probabilities
from gazeveil.privacy.randomness.rng import Words, source
from tests.support.laws import assert_pmf, fits

DRAWS = 200_000


def _by_hand(costs: list[int], epsilon: float, spread: int) -> np.ndarray:
    """The law by summing over all orders in which candidates may be looked at."""
    keep = np.exp(-epsilon * (np.array(costs) - min(costs)) / spread)
    out = np.zeros(len(costs))
    orders = list(itertools.permutations(range(len(costs))))
    for order in orders:
        passed = 1.0 / len(orders)
        for k in order:
            out[k] += passed * keep[k]
            passed *= 1.0 - keep[k]
    return out


@pytest.mark.parametrize("costs", [[5], [3, 3], [0, 1, 4], [7, 2, 9, 2, 30]])
def test_the_closed_form_is_the_sum_over_all_orders(costs: list[int]) -> None:
    gaps, unit = exponents(costs, Fraction(3, 2), 4)
    law = selection_probabilities(gaps / unit)
    np.testing.assert_allclose(law, _by_hand(costs, 1.5, 4), atol=1e-12)


def test_choices_follow_the_law_and_no_other_budget_s() -> None:
    costs = [7, 2, 9, 2, 12]
    drawn = permute_and_flip(costs, Fraction(3, 2), 4, Words(source(3)), DRAWS)
    assert_pmf(np.bincount(drawn, minlength=5), lambda scale: _by_hand(costs, 1.5 / scale, 4))


def test_the_exponential_mechanism_has_another_law() -> None:
    # The two are easily taken for each other: same exponents, with and without putting back.
    costs = [0, 3, 4]
    drawn = permute_and_flip(costs, Fraction(1), 4, Words(source(3)), DRAWS)
    weights = np.exp(-np.array(costs) / 4)
    assert not fits(np.bincount(drawn, minlength=3), weights / weights.sum())


def test_costs_that_change_within_the_spread_lose_at_most_epsilon_and_not_less() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(400):
        costs = rng.integers(0, 60, 6)
        # changes whose largest and least differ by at most the spread
        change = rng.integers(-10, 1) + rng.integers(0, 11, 6)
        laws = [
            selection_probabilities(g / u)
            for g, u in (exponents(c.tolist(), Fraction(2), 10) for c in (costs, costs + change))
        ]
        worst = max(worst, float(np.abs(np.log(laws[0] / laws[1])).max()))
    assert worst <= 2 + 1e-9
    # a level against one that is dear everywhere but at one candidate
    laws = [
        selection_probabilities(g / u)
        for g, u in (exponents(c, Fraction(2), 10) for c in ([50, 60, 60], [60, 60, 60]))
    ]
    far = [
        selection_probabilities(g / u)
        for g, u in (exponents(c, Fraction(2), 10) for c in ([90, 0, 0], [100, 0, 0]))
    ]
    assert np.abs(np.log(laws[0] / laws[1])).max() < 2
    assert np.abs(np.log(far[0] / far[1])).max() == pytest.approx(2, rel=1e-6)


def test_changes_beyond_the_spread_lose_more_than_epsilon() -> None:
    far = [
        selection_probabilities(g / u)
        for g, u in (exponents(c, Fraction(2), 10) for c in ([90, 0], [101, 0]))
    ]
    assert np.abs(np.log(far[0] / far[1])).max() > 2.1


def test_a_far_dearer_candidate_is_not_taken_and_numbers_do_not_overflow() -> None:
    gaps, unit = exponents([0, 10**30], Fraction(100), 1 << 20)
    assert gaps.max() < 2**62
    assert gaps[1] // unit == 1 << 18
    drawn = permute_and_flip([0, 10**30], Fraction(100), 1 << 20, Words(source(1)), 1000)
    assert not drawn.any()


def test_without_budget_every_candidate_is_as_likely() -> None:
    drawn = permute_and_flip([0, 5, 9], Fraction(0), 1, Words(source(1)), DRAWS)
    assert fits(np.bincount(drawn, minlength=3), np.full(3, 1 / 3))
    # a budget is rounded down, never up
    gaps, unit = exponents([0, 1], Fraction(3, 1 << 21), 1)
    assert Fraction(int(gaps[1]), unit) == Fraction(1, 1 << 20)


@pytest.mark.parametrize(
    ("costs", "epsilon", "spread", "words"),
    [
        ([], 1, 1, "'costs' parameter"),
        ([1, 2], -1, 1, "'epsilon' parameter"),
        ([1, 2], 1, 0, "'spread' parameter"),
        ([1, 2], 1, 1 << 21, "'spread' parameter"),
    ],
)
def test_what_makes_no_sense_is_refused(
    costs: list[int], epsilon: int, spread: int, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        exponents(costs, Fraction(epsilon), spread)
