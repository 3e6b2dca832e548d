"""Frequency oracles: exact probabilities, the promise as a quotient of whole numbers, unbiased
counts with the stated variance.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy import rational
from gazeveil.privacy.noise.local import GRR, ORACLES, OUE, Subset, Tally, best_oracle, odds_below
from gazeveil.privacy.randomness.rng import TestStream, Words

N = 200_000


@given(epsilon=st.fractions(min_value=Fraction(1, 10**6), max_value=100))
def test_the_odds_are_just_below_exp_epsilon(epsilon: Fraction) -> None:
    odds = odds_below(epsilon)
    # exp(epsilon) lies between these two
    low, high = (Fraction(1 << 600, rational.exp_minus(epsilon, 600) + d) for d in (4, -4))
    assert odds <= low
    assert odds == 2**40 or odds > high * (1 - Fraction(1, 2**39))
    assert odds.numerator < 2**42
    assert odds.denominator <= 2**41


def likelihoods(oracle, truth: int) -> dict[object, Fraction]:
    """Exact probabilities of all reports of one truth, from the definition of each oracle."""
    d, e = oracle.categories, oracle.odds
    if isinstance(oracle, GRR):
        return {v: (e if v == truth else 1) / (e + d - 1) for v in range(d)}
    if isinstance(oracle, OUE):
        q = oracle.q
        return {
            bits: math.prod(
                (
                    Fraction(1, 2) if v == truth else (q if bit else 1 - q)
                    for v, bit in enumerate(bits)
                ),
                start=Fraction(1),
            )
            for bits in itertools.product((0, 1), repeat=d)
        }
    k = oracle.size
    whole = math.comb(d - 1, k - 1) * e + math.comb(d - 1, k)
    return {s: (e if truth in s else 1) / whole for s in itertools.combinations(range(d), k)}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("epsilon", "d"), [("1/10", 4), (1, 3), (1, 6), (2, 7)])
def test_no_report_is_more_than_exp_epsilon_times_as_likely(
    name: str, epsilon: object, d: int
) -> None:
    oracle = ORACLES[name](epsilon, d)
    laws = [likelihoods(oracle, truth) for truth in range(d)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(a[r] / b[r] for a in laws for b in laws for r in a)
    assert worst == oracle.odds
    assert float(worst) <= math.exp(float(Fraction(epsilon)))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("epsilon", "d"), [(1, 3), (1, 6)])
def test_p_and_q_are_the_probabilities_of_support(name: str, epsilon: object, d: int) -> None:
    oracle = ORACLES[name](epsilon, d)
    for truth in range(d):
        support = np.zeros(d, dtype=object)
        for report, probability in likelihoods(oracle, truth).items():
            row = np.atleast_2d(np.array(report, dtype=np.int64))
            support = support + oracle.tally(row).supports.astype(object) * probability
        assert [Fraction(s) for s in support] == [
            oracle.p if v == truth else oracle.q for v in range(d)
        ]


@pytest.mark.parametrize("name", ORACLES)
def test_reports_have_their_exact_probabilities(name: str) -> None:
    from scipy.stats import chisquare

    oracle = ORACLES[name](1, 6)
    truth = 2
    reports = oracle.report(np.full(N, truth), Words(TestStream(41)))
    seen = Counter(map(tuple, np.asarray(reports).tolist()))
    law = {(r if isinstance(r, tuple) else (r,)): p for r, p in likelihoods(oracle, truth).items()}
    assert set(seen) <= set(law)
    assert chisquare([seen[r] for r in law], [float(p) * N for p in law.values()]).pvalue > 1e-6
    other = {
        (r if isinstance(r, tuple) else (r,)): p
        for r, p in likelihoods(ORACLES[name]("1.05", 6), truth).items()
    }
    if set(other) == set(law):  # the control: 5 % more budget
        assert chisquare([seen[r] for r in law], [float(other[r]) * N for r in law]).pvalue < 1e-6


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("epsilon", "d"), [("1/2", 30), (2, 30)])
def test_counts_are_unbiased_and_have_the_stated_variance(
    name: str, epsilon: object, d: int
) -> None:
    oracle = ORACLES[name](epsilon, d)
    batches, size, share = 2000, 100, Fraction(3, 10)
    truth = (
        np.tile(np.arange(size) < size * share, batches).astype(np.int64) * 4
    )  # category 4 has a share of 0.3, category 0 the rest
    reports = oracle.report(truth, Words(TestStream(42)))
    estimates = np.array(
        [oracle.estimate(oracle.tally(part)) for part in np.split(reports, batches)]
    )
    rare = np.delete(estimates, [0, 4], axis=1)
    expected = float(oracle.variance(size))
    # rare categories: 2,000 batches of 28 nearly independent cells
    assert abs(rare.mean()) < 5 * math.sqrt(expected / rare.size) * 3
    assert abs(rare.var() / expected - 1) < 0.02
    common = float(oracle.variance(size, share))
    assert abs(estimates[:, 4].mean() - 30) < 5 * math.sqrt(common / batches)
    assert abs(estimates[:, 4].var() / common - 1) < 5 * math.sqrt(2 / batches)


def test_oue_variance_is_the_closed_form_of_theory() -> None:
    oracle = OUE(1, 1000)
    e, f = oracle.odds, Fraction(1, 7)
    assert oracle.variance(50, f) == 50 * (4 * e / (e - 1) ** 2 + f)


@given(
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    name=st.sampled_from(sorted(ORACLES)),
    data=st.data(),
)
def test_tallies_add_up_in_any_order(cuts: list[int], name: str, data: st.DataObject) -> None:
    oracle = ORACLES[name](1, 7)
    words = Words(TestStream(43))
    parts = [oracle.tally(oracle.report(np.arange(c) % 7, words)) for c in cuts]
    mixed = data.draw(st.permutations(parts))
    total, other = sum(parts[1:], parts[0]), sum(mixed[1:], mixed[0])
    np.testing.assert_array_equal(total.supports, other.supports)
    assert total.reports == other.reports == sum(cuts)
    assert total.supports.dtype == np.int64


@pytest.mark.parametrize("name", ORACLES)
def test_the_shape_of_reports_does_not_depend_on_the_truth(name: str) -> None:
    oracle = ORACLES[name](1, 12)
    shapes = {
        (r.shape, r.dtype)
        for r in (oracle.report(np.full(50, v), Words(TestStream(44))) for v in range(12))
    }
    assert len(shapes) == 1


def test_the_best_oracle_has_the_least_variance() -> None:
    for epsilon in ("1/4", 1, 3):
        for d in (2, 5, 12, 60, 500):
            best = best_oracle(epsilon, d)
            assert best.variance(1) == min(o(epsilon, d).variance(1) for o in ORACLES.values())


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("epsilon", ["1/1000000", 40, 100])
def test_extreme_budgets_stay_within_whole_numbers(name: str, epsilon: object) -> None:
    oracle = ORACLES[name](epsilon, 2**10)
    x = np.arange(200) * 5
    reports = oracle.report(x, Words(TestStream(45)))
    if epsilon != "1/1000000" and name in ("grr", "subset"):
        assert oracle.tally(reports).supports[x].min() >= 1  # at these odds the truth always stands


@pytest.mark.parametrize(
    ("epsilon", "categories", "message"),
    [
        (0, 5, "'epsilon' parameter"),
        (-1, 5, "'epsilon' parameter"),
        ("1e-15", 5, "'epsilon' parameter"),
        (101, 5, "'epsilon' parameter"),
        (1, 1, "'categories' parameter"),
        (1, 2**20 + 1, "'categories' parameter"),
        (1, 2.5, "'categories' parameter"),
    ],
)
def test_bad_parameters_are_refused(epsilon: object, categories: object, message: str) -> None:
    for name, oracle in ORACLES.items():
        with pytest.raises(ParameterError, match=message) as caught:
            oracle(epsilon, categories)
        assert name in str(caught.value)


@pytest.mark.parametrize("truth", [[-1], [7], [0.5], [[1, 2]], ["a"]])
def test_categories_that_are_none_are_refused(truth: object) -> None:
    for oracle in ORACLES.values():
        with pytest.raises(DataError, match="reports whole numbers from 0 to 6"):
            oracle(1, 7).report(truth, Words(TestStream(1)))


@pytest.mark.parametrize("reports", [[1, 2], [[9] * 7], [[-1] * 7], [[0.5] * 7], [[0] * 9]])
def test_reports_of_another_make_are_refused(reports: object) -> None:
    for oracle in ORACLES.values():
        with pytest.raises(DataError, match="These are no reports of"):
            oracle(1, 7).tally(reports)


def test_a_subset_with_a_repeated_category_is_refused() -> None:
    with pytest.raises(DataError, match="occurs twice"):
        Subset("1/10", 7).tally([[1, 1, 2]])


def test_tallies_of_different_oracles_do_not_add_up() -> None:
    with pytest.raises(DataError, match="do not add up"):
        Tally(np.zeros(3, dtype=np.int64), 1) + Tally(np.zeros(4, dtype=np.int64), 1)
