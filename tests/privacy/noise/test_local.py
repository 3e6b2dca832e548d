"""Frequency oracles: exact probabilities, the promise as a quotient of whole numbers, unbiased
counts with the stated variance.

Planar and K-norm noise: laws, controls, moments, and the whole-number arithmetic behind them.

Noisy places on the lattice: the noise of Kaleido with one publication to a window, and exact
where doubles cannot settle it.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, gamma

from gazeveil import Screen, Sphere
from gazeveil.compiled import compiled
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy import rational
from gazeveil.privacy.noise import knorm as knorm_module
from gazeveil.privacy.noise import planar
from gazeveil.privacy.noise.knorm import knorm
from gazeveil.privacy.noise.lattice import LatticeLaw, lattice_bits, limits
from gazeveil.privacy.noise.local import GRR, ORACLES, OUE, Subset, Tally, best_oracle, odds_below
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import TestStream, Words
from gazeveil.privacy.stream.kaleido.stage import LatticeStage, plan
from gazeveil.privacy.stream.kaleido.step import UNIFORM
from tests.support.laws import assert_distribution, assert_pmf, even

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


# --- arithmetic to any number of bits
# ---------------------------------------------------------------------------------------------


@given(value=st.integers(1, 2**300), bits=st.integers(64, 300))
def test_log_is_right_to_its_last_bits(value: int, bits: int) -> None:
    with localcontext() as context:
        context.prec = 220
        truth = (Decimal(value) / Decimal(2) ** bits).ln() * Decimal(2) ** bits
        assert abs(Decimal(rational.log(value, bits)) - truth) < 4


@given(x=st.fractions(min_value=0, max_value=500), bits=st.integers(64, 300))
@settings(max_examples=50)
def test_exp_is_right_to_its_last_bits(x: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 220
        truth = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp() * Decimal(2) ** bits
        assert abs(Decimal(rational.exp_minus(x, bits)) - truth) < 4


@compiled
def _platform(x: float) -> tuple[float, float, float, float]:
    return math.log(x), math.sqrt(x), math.cos(2.0 * math.pi * x), math.sin(2.0 * math.pi * x)


def test_the_platform_keeps_what_the_knorm_proof_assumes() -> None:
    bits = 200
    for x in np.concatenate(
        (
            np.random.default_rng(1).random(3000),
            2.0 ** -np.arange(1, 40),
            1 - 2.0 ** -np.arange(2, 50),
        )
    ).tolist():
        exact = int(Fraction(x) * (1 << bits))
        angle = Fraction(2.0 * math.pi * x) / (2 * Fraction(rational.pi(bits), 1 << bits))
        cos, sin = rational.cos_sin_of_turn(int(angle % 1 * (1 << bits)), bits)
        truths = (rational.log(exact, bits), math.isqrt(exact << bits), cos, sin)
        for got, truth in zip(_platform(x), truths, strict=True):
            assert abs(Fraction(got) - Fraction(truth, 1 << bits)) <= 2 * Fraction(
                math.ulp(got)
            ) + Fraction(1, 1 << 190)


# --- planar Laplace
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "n"), [(Fraction(1, 2), 400_000), (Fraction(1), 400_000), (Fraction(7, 2), 400_000)]
)
def test_planar_laplace_has_its_probabilities(scale: Fraction, n: int) -> None:
    z = planar_laplace(scale, n, Words(TestStream(21)))
    b = float(scale)
    reach, far = int(6 * b) + 2, int(60 * b) + 10
    inside = (np.abs(z) <= reach).all(axis=1)
    counts = np.append(
        np.bincount((z[inside] + reach) @ [2 * reach + 1, 1], minlength=(2 * reach + 1) ** 2),
        np.count_nonzero(~inside),
    )

    def law(factor: float) -> np.ndarray:
        grid = np.arange(-far, far + 1)
        p = np.exp(-np.hypot(*np.meshgrid(grid, grid)) / (b * factor))
        p /= p.sum()
        near = p[far - reach : far + reach + 1, far - reach : far + reach + 1].ravel()
        return np.append(near, max(0.0, 1 - near.sum()))

    assert_pmf(counts, law)


@pytest.mark.parametrize("scale", [1000, 2**22])
def test_planar_laplace_on_a_fine_grid_is_the_continuous_law(scale: int) -> None:
    z = planar_laplace(scale, 200_000, Words(TestStream(22))).astype(np.float64)
    r = np.hypot(z[:, 0], z[:, 1])
    assert_distribution(r, lambda v, factor: gamma.cdf(v, 2, scale=scale * factor))
    angle = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) + 0.5
    assert even(angle)
    assert abs(r.mean() / (2 * scale) - 1) < 0.02
    assert abs((r**2).mean() / (6 * scale**2) - 1) < 0.02
    assert abs(np.median(r) / (1.678 * scale) - 1) < 0.02
    np.testing.assert_allclose((z**2).mean(axis=0), 3 * scale**2, rtol=0.03)


@given(
    n=st.integers(0, 2**30 - 1),
    share=st.floats(0, 1),
    v=st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**64 - 1])),
)
def test_beyond_ring_compares_a_root_exactly(n: int, share: float, v: int) -> None:
    excess = round(share * 2 * n)
    for word in (
        v,
        *(
            max(0, min(2**64 - 1, math.isqrt((n * n + excess) << 128) - (n << 64) + d))
            for d in (-1, 0, 1)
        ),
    ):
        success, position = planar._beyond_ring(
            np.uint64(n), np.uint64(excess), np.array([word], dtype=np.uint64), 0
        )
        assert position == 1
        assert success == ((n * 2**64 + word) ** 2 < (n * n + excess) << 128)


@given(
    square=st.one_of(
        st.integers(-5, 100), st.integers(0, 2**60), st.integers(0, 2**30 - 1).map(lambda c: c * c)
    ),
    d=st.integers(-1, 1),
)
def test_root_up_is_the_first_whole_root(square: int, d: int) -> None:
    c = int(planar._root_up(square + d))
    assert c >= 0
    assert c * c >= square + d
    assert c == 0 or (c - 1) ** 2 < square + d


@given(scale=st.fractions(min_value=Fraction(1, 16), max_value=2**22))
def test_the_raised_scale_pays_for_the_last_bit(scale: Fraction) -> None:
    raised = planar.raised_scale(scale)
    # one step costs 1 / raised, and the last bits of two probabilities 2**-64 / raised
    assert (1 + Fraction(1, 2**63)) / raised <= 1 / scale
    assert raised <= scale * (1 + Fraction(1, 2**15))


@pytest.mark.parametrize("scale", [0, -1, "1/17", 2**22 + 1, "x", float("nan")])
def test_a_planar_scale_out_of_range_is_refused(scale: object) -> None:
    with pytest.raises(ParameterError, match="The 'scale_steps' parameter of planar_"):
        planar_laplace(scale, 1, Words(TestStream(1)))


# --- l2 K-norm
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2, 3, 16])
def test_the_radius_of_knorm_noise_is_gamma(dimension: int) -> None:
    z = knorm(dimension, 5000, 100_000, Words(TestStream(31))).astype(np.float64)
    r = np.sqrt((z**2).sum(axis=1))
    assert_distribution(r, lambda v, factor: gamma.cdf(v, dimension, scale=5000 * factor))
    assert abs((r**2).mean() / (dimension * (dimension + 1) * 5000**2) - 1) < 0.02


@pytest.mark.parametrize("dimension", [2, 3, 7, 16])
def test_the_direction_of_knorm_noise_is_uniform(dimension: int) -> None:
    z = knorm(dimension, 5000, 100_000, Words(TestStream(32))).astype(np.float64)
    u = z / np.sqrt((z**2).sum(axis=1, keepdims=True))
    # one coordinate of a uniform direction is 2 Beta((D-1)/2, (D-1)/2) - 1, also along a skew axis
    skew = np.random.default_rng(1).normal(size=dimension)
    skew /= np.sqrt((skew**2).sum())
    for c in (u[:, 0], u[:, -1], u @ skew):
        assert even(beta((dimension - 1) / 2, (dimension - 1) / 2).cdf((c + 1) / 2))
    assert np.sqrt((u.mean(axis=0) ** 2).sum()) < 5 / np.sqrt(len(u))
    r = np.sqrt((z**2).sum(axis=1))
    assert abs(np.corrcoef(r, u[:, 0])[0, 1]) < 5 / np.sqrt(len(u))
    assert abs(np.corrcoef(r, np.abs(u[:, 0]))[0, 1]) < 5 / np.sqrt(len(u))


def test_two_dimensions_on_a_coarse_grid_have_the_mass_of_their_cells() -> None:
    z = knorm(2, 1, 400_000, Words(TestStream(34)))
    reach, fine = 4, 64

    def law(factor: float) -> np.ndarray:
        mid = (np.arange((2 * reach + 1) * fine) + 0.5) / fine - reach - 0.5
        density = (
            np.exp(-np.hypot(*np.meshgrid(mid, mid)) / factor) / (2 * np.pi * factor**2) / fine**2
        )
        p = density.reshape(2 * reach + 1, fine, 2 * reach + 1, fine).sum(axis=(1, 3)).ravel()
        return np.append(p, 1 - p.sum())

    inside = (np.abs(z) <= reach).all(axis=1)
    counts = np.bincount((z[inside] + reach) @ [2 * reach + 1, 1], minlength=(2 * reach + 1) ** 2)
    assert_pmf(np.append(counts, np.count_nonzero(~inside)), law)


@pytest.mark.parametrize(
    ("dimension", "scale", "least"),
    [
        (1, Fraction(1000), 35),
        (2, Fraction(2**20), 35),
        (5, Fraction(1, 3), 35),
        (8, Fraction(2**26), 35),
        (9, Fraction(2**30), 20),
        (9, Fraction(2**40), 0),
    ],
)
def test_a_settled_vector_stays_whatever_the_further_bits_are(
    dimension: int, scale: Fraction, least: int
) -> None:
    uniforms = dimension + (dimension + 1) // 2
    words = TestStream(35).take(uniforms * 40)
    settled = 0
    for i in range(40):
        own = words[i * uniforms : (i + 1) * uniforms]
        out = np.zeros(dimension, dtype=np.int64)
        done, _, _ = knorm_module._settled(
            dimension, float(scale), out, 0, own, 0, np.empty(dimension + 1)
        )
        for further in (0, 2**64 - 1):
            rest = np.full(uniforms * 31, further, dtype=np.uint64)
            all_of_them = np.concatenate((own, rest))
            vectors = [
                knorm_module._surely(dimension, scale, all_of_them[: uniforms * width], width)
                for width in (4, 32)
            ]
            assert all(settled for _, settled in vectors)
            assert vectors[0] == vectors[1]
            assert done == 0 or out.tolist() == vectors[0][0]
        settled += done > 0
    assert settled >= least


def test_unsettled_vectors_are_drawn_from_more_bits() -> None:
    # one uniform below 2**-20: double precision is not asked
    own = np.array([1, 2**62, 2**61], dtype=np.uint64)
    out = np.zeros(2, dtype=np.int64)
    assert (
        knorm_module._settled(2, 100.0, out, 0, own, 0, np.empty(3))[2] == knorm_module._UNSETTLED
    )
    kernel = knorm_module._KNormKernel(2, Fraction(100))
    rest = TestStream(1).take(9)
    assert kernel(out, 0, own, 0) == (0, 0)
    assert kernel(out, 0, np.concatenate((own, rest)), 0) == (2, 12)
    assert np.hypot(*out) > 100 * 40  # -ln(2**-64) is 44


def test_a_vector_that_256_bits_do_not_settle_is_drawn_on() -> None:
    # uniforms of 2**-200 and less say nothing within 256 bits
    kernel, out = knorm_module._KNormKernel(2, Fraction(100)), np.zeros(2, dtype=np.int64)
    words = np.concatenate((np.zeros(12, dtype=np.uint64), TestStream(1).take(400)))
    assert not knorm_module._surely(2, Fraction(100), words[:12], 4)[1]
    assert kernel(out, 0, words[:95], 0) == (0, 0)
    assert kernel(out, 0, words, 0) == (2, 96)
    nothing = np.zeros(400, dtype=np.uint64)
    assert kernel(out, 0, nothing[:383], 0) == (0, 0)
    assert kernel(out, 0, nothing[:384], 0) == (
        2,
        384,
    )  # given up, as charged: it has probability 2**-8192


def test_large_scales_use_the_slow_arithmetic_and_keep_the_law() -> None:
    z = knorm(2, 2**40, 400, Words(TestStream(36))).astype(np.float64)
    r = np.hypot(z[:, 0], z[:, 1]) / 2**40
    assert even(gamma(2).cdf(r))
    assert abs(r.mean() - 2) < 5 * np.sqrt(2 / 400)


@pytest.mark.parametrize(
    ("dimension", "scale", "message"),
    [
        (0, 1, "The 'dimension' parameter of knorm must be a whole number of at least 1"),
        (4097, 1, "The 'dimension' parameter of knorm must be at most 4096"),
        (2.5, 1, "The 'dimension' parameter"),
        (2, 0, "The 'scale_steps' parameter"),
        (2, -1.0, "The 'scale_steps' parameter"),
        (2, 2**41, r"The 'scale_steps' parameter of knorm must be from 2\*\*-20 to 2\*\*40"),
        (2, float("inf"), "The 'scale_steps' parameter"),
    ],
)
def test_bad_knorm_parameters_are_refused(dimension: object, scale: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        knorm(dimension, scale, 1, Words(TestStream(1)))


SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


class Rare(TestStream):
    """Words of which every seventh says too little for double precision."""

    taken = 0

    def take(self, count: int) -> np.ndarray:
        words, place = super().take(count), np.arange(self.taken, self.taken + count)
        self.taken += count
        return np.where(place % 7 == 0, words >> np.uint64(30), words)

    def child(self, *keys: str | int) -> Rare:
        return Rare(self._seed, *self._keys, *keys)


def places(space: Any, rows: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-10, 10, (2, rows, count))
    if isinstance(space, Sphere):
        x, y = x + 180.0, y + 90.0
    return x, y, rng.random((rows, count)) > 0.1


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize("epsilon", ["30", "1", "1/50"])  # narrow and wide arcs
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(("source", "count"), [(TestStream, 3000), (Rare, 60)])
def test_noise_is_that_of_kaleido_with_one_publication_to_a_window(
    space: Any, epsilon: str, inside: bool, source: Any, count: int
) -> None:
    e, r = Fraction(epsilon), Fraction(2)
    made = plan(UNIFORM, space, e, 1, r, None, 1, 1, r)
    edges = zip(
        ("x_low", "x_high", "y_low", "y_high"), limits(space, lattice_bits(r), inside), strict=True
    )
    made = replace(made, settings=made.settings._replace(**dict(edges)))
    stage = LatticeStage(made, 2, [source(1), source(2)])
    there = places(space, 2, count)
    wanted = stage.run(np.zeros((2, count), dtype=np.int64), *(a.copy() for a in there))[1:]
    x, y, valid = (a.copy() for a in there)
    sampler = LatticeLaw(space, r, e, inside).sampler([source(1), source(2)])
    for part in (slice(0, count // 3), slice(count // 3, count)):
        own = [np.ascontiguousarray(a[:, part]) for a in (x, y, valid)]
        sampler.add(own[0], own[1], own[2])
        x[:, part], y[:, part], valid[:, part] = own
        sampler = pickle.loads(pickle.dumps(sampler))
    for ours, theirs in zip((x, y, valid), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert valid.any()


def test_noise_beyond_the_samplers_loses_all_places() -> None:
    x, y, valid = places(SCREEN, 1, 10)
    LatticeLaw(SCREEN, Fraction(2), Fraction(1, 10**9)).sampler([TestStream(1)]).add(x, y, valid)
    assert np.isnan(x).all()
    assert np.isnan(y).all()
    assert not valid.any()


def test_arrays_that_cannot_be_changed_in_place_are_refused() -> None:
    x, y, valid = places(SCREEN, 2, 10)
    sampler = LatticeLaw(SCREEN, Fraction(2), Fraction(1)).sampler([TestStream(1)])
    with pytest.raises(ValueError, match="contiguous"):
        sampler.add(x[:, ::2], y[:, ::2], valid[:, ::2])
