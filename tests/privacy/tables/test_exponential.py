"""exponential-dp: the published law and its true loss, and the corrected one.

The staircase in the l2 norm: its law, its promise and its limits.

marginals: the empty test of the published reading, and the noise of the corrected one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, gumbel_l

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.noise.knorm import (
    best_gamma,
    most_sensitivity,
    shell_noise,
    shells,
    staircase_variance,
)
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables import marginals as module
from gazeveil.privacy.tables.exponential import ExponentialDP, published_loss
from gazeveil.privacy.tables.marginals import (
    PARTS,
    BinnedRows,
    Marginals,
    bin_codes,
    inside,
    on_simplex,
    sample_bins,
)
from gazeveil.privacy.tables.recordings import sequences
from tests.support.laws import ALPHA, assert_distribution, discrete_laplace_cdf, laplace_cdf


def table(values, recordings=None, bounds=(0.0, 1.0), task=""):
    """A table of recordings of equal length; values of shape (recordings, rows, features)."""
    values = np.asarray(values, dtype=float)
    n, rows, features = values.shape
    names = recordings or [(f"p{i}", "s", "", task) for i in range(n)]
    keys = Keys.of_recordings(names, [np.arange(rows)] * n)
    return FeatureTable(
        values.reshape(-1, features),
        tuple(f"f{j}" for j in range(features)),
        keys,
        None if bounds is None else [bounds] * features,
    )


def published_cdf(x, epsilon, delta, t_max):
    """With u = x/b, half of F(u - c) + 1 - F(-u - c), where F(z) = 1 - exp(-exp(z))."""
    u, c = np.asarray(x) * epsilon / (2 * delta), math.log(2 * t_max * delta / epsilon)
    with np.errstate(over="ignore"):
        return 0.5 * (-np.expm1(-np.exp(u - c)) + np.exp(-np.exp(-u - c)))


def spread(n, rows, features=1):
    """Values whose range is exactly [0, 1] in every feature."""
    values = np.full((n, rows, features), 0.5)
    values[0, 0], values[-1, -1] = 0.0, 1.0
    return values


# --- the published law
# --------------------------------------------------------------------------------------------------


def test_published_noise_follows_the_law_that_its_recipe_has():
    data = spread(1000, 100)
    released = ExponentialDP(1, reading="published").release(table(data), seed=1).data.values
    noise = released - data.reshape(-1, 1)
    assert_distribution(noise, lambda x, s: published_cdf(x / s, 1, 1.0, 100))


def test_published_noise_pads_each_recording_to_the_longest_of_its_task():
    keys = Keys.of_recordings(
        [("a", "s", "", ""), ("b", "s", "", ""), ("a", "u", "", "")],
        [np.arange(3), np.arange(5), np.arange(2)],
    )
    values = np.arange(10.0)[:, None]
    out = (
        ExponentialDP(10**9, reading="published")
        .release(FeatureTable(values, ("x",), keys), seed=2)
        .data
    )
    assert [len(rows) for rows in out.recordings().values()] == [5, 5, 2]
    assert np.allclose(out.select(people="a", stimuli="s").values[:, 0], [0, 1, 2, 2, 2], atol=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "t_max", "at_largest_shift"),
    [
        (1, 1, 1, 1.07),
        (1, 1, 100, 5.18),
        (2, 1, 100, 7.63),
        (10, 1, 100, 10.4),
        (10, 1e-3, 100, 44.0),
        (1, 1e-4, 100, 18.7),
        (2, 1000, 100, 17.2),
    ],
)
def test_one_value_of_published_loses_more_than_is_claimed(epsilon, delta, t_max, at_largest_shift):
    loss = published_loss(epsilon, delta, t_max)
    assert loss >= at_largest_shift * (1 - 0.002)
    assert (
        loss <= at_largest_shift * 1.012
    )  # other shifts are worse only where the noise has a hole
    assert loss > epsilon


def test_published_loss_is_the_largest_ratio_found_by_brute_force():
    rng = np.random.default_rng(5)
    for _ in range(12):
        epsilon, delta, t_max = (
            10 ** rng.uniform(-1, 1.5),
            10 ** rng.uniform(-3, 2),
            int(rng.integers(1, 500)),
        )
        loss = published_loss(epsilon, delta, t_max)
        c = np.log(2 * t_max * delta / epsilon)
        u = rng.uniform(-1, 1, 300_000) * (abs(c) + epsilon / 2 + 10)
        v = u + rng.uniform(-1, 1, len(u)) * epsilon / 2
        v[::2] = u[::2] + epsilon / 2
        # The logarithm of a standard exponential is a left Gumbel variable.
        high, low = (np.logaddexp(gumbel_l.logpdf(w - c), gumbel_l.logpdf(-w - c)) for w in (u, v))
        ratio = (high - low).max()
        assert 0.97 * loss <= ratio <= loss * (1 + 1e-6)


# --- the corrected mechanism
# --------------------------------------------------------------------------------------------------


def test_corrected_noise_is_discrete_laplace_with_scale_length_times_range_over_epsilon():
    data = np.full((1000, 100, 1), 0.25)
    released = ExponentialDP(2).release(table(data), seed=4).data.values
    noise = (released - 0.25) * 2**16
    assert np.array_equal(noise, np.rint(noise))
    assert_distribution(noise, discrete_laplace_cdf(100 * 2**16 / 2), step=1.0)
    assert_distribution(noise / 2**16, laplace_cdf(100 / 2))
    assert (noise / 2**16).var() == pytest.approx(2 * (100 / 2) ** 2, rel=0.02)


def test_intended_noise_is_laplace_with_twice_the_scale():
    data = spread(1000, 100)
    released = ExponentialDP(2, reading="intended").release(table(data), seed=4).data.values
    assert_distribution(released - data.reshape(-1, 1), laplace_cdf(2 * 100 / 2))


@pytest.mark.parametrize(("per", "user"), [("recording-feature", 6), ("recording", 3), ("user", 1)])
def test_the_budget_of_a_larger_unit_is_shared_by_what_it_holds(per, user):
    names = [("a", "s", "", ""), ("b", "s", "", ""), ("a", "u", "", ""), ("a", "v", "", "")]
    data = table(np.full((4, 5, 2), 0.5), names)
    release = ExponentialDP(1, per=per, length=5).release(data)
    g = release.guarantee
    assert g.status == "proved"
    assert g.unit == per
    assert g.epsilon == 1
    assert g.user == {"epsilon": Fraction(user)}
    deviation = np.sqrt(
        ExponentialDP(1, per=per)
        .release(table(np.full((4, 2000, 2), 0.5), names), seed=1)
        .data.values.var()
    )
    assert deviation == pytest.approx(np.sqrt(2) * 2000 * 6 / user, rel=0.1)


def test_shape_of_a_corrected_release_depends_on_public_parameters_alone():
    keys = Keys.of_recordings(
        [("a", "s", "", ""), ("b", "s", "", "")], [np.arange(3), np.arange(9)]
    )
    first = FeatureTable(np.linspace(-5, 5, 12)[:, None], ("x",), keys, [[0.0, 1.0]])
    keys = Keys.of_recordings(
        [("a", "s", "", ""), ("b", "s", "", "")], [np.arange(7), np.arange(1)]
    )
    second = FeatureTable(np.full((8, 1), np.nan), ("x",), keys, [[0.0, 1.0]])
    out = [ExponentialDP(1, length=6).release(t) for t in (first, second)]
    assert out[0].data.values.shape == out[1].data.values.shape == (12, 1)
    assert out[0].data.recordings().keys() == out[1].data.recordings().keys()
    assert np.isfinite(out[1].data.values).all()
    assert out[0].guarantee == out[1].guarantee
    assert out[0].provenance.to_dict() == out[1].provenance.to_dict()
    assert dict(out[0].curator_notes) == {"clamped": 8, "missing": 0, "padded": 3, "trimmed": 3}
    assert dict(out[1].curator_notes) == {"clamped": 0, "missing": 7, "padded": 5, "trimmed": 1}


@pytest.mark.parametrize("reading", ["published", "intended"])
def test_what_scales_by_the_data_is_refuted_and_prints_no_promise(reading):
    g = (
        mechanism("exponential-dp", epsilon="1", reading=reading)
        .release(table(spread(3, 4)))
        .guarantee
    )
    assert g.status == "refuted"
    assert g.epsilon is None
    assert g.epsilon_claimed == 1
    assert "makes no privacy promise" in str(g)


def test_a_constant_feature_is_protected_like_any_other_when_corrected():
    out = ExponentialDP(1).release(table(np.full((4, 50, 1), 0.3)), seed=1).data.values
    assert out.std() > 30


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"epsilon": 0},
            "'epsilon' parameter of exponential-dp must be an exact number above 0. Got 0",
        ),
        ({"epsilon": -1}, "above 0"),
        ({"epsilon": "much"}, "an exact number"),
        ({"epsilon": float("nan")}, "an exact number"),
        ({"epsilon": 1, "per": "chunk"}, "one of recording, recording-feature, user"),
        (
            {"epsilon": 1, "length": 0},
            "'length' parameter of exponential-dp must be a whole number of at least 1",
        ),
        ({"epsilon": 1, "reading": "improved"}, "one of corrected, intended, published"),
    ],
)
def test_wrong_parameters_get_one_sentence(parameters, words):
    with pytest.raises(ParameterError, match=words):
        ExponentialDP(**parameters)


@pytest.mark.parametrize(
    ("reading", "data", "error", "words"),
    [
        (
            "corrected",
            table(np.zeros((2, 3, 1)), bounds=None),
            DataError,
            "needs public bounds for every feature",
        ),
        ("corrected", table(np.zeros((2, 0, 1))), DataError, "rows and features. Got 0 rows"),
        ("corrected", "a table", ParameterError, "a FeatureTable"),
        ("published", table(np.zeros((2, 3, 1))), DataError, "'f0' is constant"),
        ("intended", table(np.zeros((2, 3, 1))), DataError, "'f0' is constant"),
        (
            "published",
            table([[[0.0], [np.nan]]]),
            DataError,
            "no rule for missing values, and row 1 of 'f0'",
        ),
    ],
)
def test_unusable_tables_get_one_sentence_and_no_release(reading, data, error, words):
    with pytest.raises(error, match=words):
        ExponentialDP(1, reading=reading).release(data)


def test_a_budget_that_the_sampler_cannot_serve_is_refused():
    with pytest.raises(
        ParameterError, match=r"'epsilon' parameter of exponential-dp must be at least 6e-06 here"
    ):
        ExponentialDP(1e-9).release(table(np.zeros((2, 100, 1))))


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


def made(
    people=6, rows=50, features=2, stimuli=("s",), seed=0, bounds=(0.0, 1.0), low=0.2, high=0.9
):
    rng = np.random.default_rng(seed)
    names = [(f"p{i}", s, "", "") for i in range(people) for s in stimuli]
    keys = Keys.of_recordings(names, [np.arange(rows)] * len(names))
    return FeatureTable(
        rng.uniform(low, high, (len(keys), features)),
        tuple(f"f{i}" for i in range(features)),
        keys,
        None if bounds is None else [bounds] * features,
    )


# --- the published reading
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0001, 2, 1000])
def test_the_published_test_passes_whenever_there_are_k_records_whatever_gamma_is(gamma):
    table = made(people=3, rows=4)
    for k in range(2, 13):
        assert len(Marginals(k, gamma=gamma, reading="published").release(table).data) == 12
    for k in (13, 14, 100):
        with pytest.raises(DataError, match="passes the test: it has 12 records, fewer than k"):
            Marginals(k, gamma=gamma, reading="published").release(table)


def test_k_and_gamma_change_nothing_in_a_published_release():
    table = made()
    values = [
        Marginals(k, gamma=g, reading="published").release(table, seed=3).data.values
        for k, g in ((2, 2), (50, 9))
    ]
    assert np.array_equal(*values)


def test_a_published_release_keeps_names_and_lengths_and_tells_the_range_of_the_data():
    table = made(stimuli=("a", "b"))
    out = Marginals(2, reading="published").release(table).data
    assert list(out.recordings()) == list(table.recordings())
    assert [len(r) for r in out.recordings().values()] == [50] * 12
    assert (out.values.min(axis=0) >= table.values.min(axis=0)).all()
    assert (out.values.max(axis=0) <= table.values.max(axis=0)).all()


def test_a_published_release_makes_no_promise_and_says_why():
    g = Marginals(4, reading="published").release(made()).guarantee
    assert (g.definition, g.k) == ("none", None)
    assert "makes no privacy promise" in str(g)
    assert "ignores its seed" in str(g)


# --- bins, sampling, projection
# --------------------------------------------------------------------------------------------------


def test_sampled_bins_follow_their_marginal_and_controls_do_not():
    pmf = np.array([[0.1, 0.0, 0.4, 0.5], [0.25, 0.25, 0.25, 0.25]])
    bins = sample_bins(pmf, 100_000, np.random.default_rng(1))
    for feature in range(2):
        seen = np.bincount(bins[:, feature], minlength=4)
        on = pmf[feature] > 0
        assert seen[~on].sum() == 0

        def fits(p, seen=seen, on=on):
            return (
                chi2.sf(((seen[on] - 100_000 * p[on]) ** 2 / (100_000 * p[on])).sum(), on.sum() - 1)
                > ALPHA
            )

        assert fits(pmf[feature])
        for factor in (0.95, 1.05):
            wrong = pmf[feature].copy()
            wrong[-1] *= factor
            assert not fits(wrong / wrong.sum())


def test_columns_are_drawn_independently():
    table = made(people=4, rows=5000, features=3)
    values = table.values.copy()
    values[:, 1] = values[:, 0]
    tied = FeatureTable(values, table.columns, table.keys, table.bounds)
    for reading in ("corrected", "published"):
        out = Marginals(2, epsilon=100, reading=reading).release(tied, seed=2).data.values
        correlation = np.abs(np.corrcoef(out.T) - np.eye(3)).max()
        assert correlation < 5 / np.sqrt(len(out))


def test_every_value_lies_in_its_bin_and_bins_follow_the_printed_rule():
    values = np.array([[0.0], [0.1], [0.2999], [0.3], [0.999], [1.0], [1.7], [-3.0], [np.nan]])
    assert bin_codes(values, np.array([0.0]), np.array([1.0]), 10)[:, 0].tolist() == [
        0,
        1,
        2,
        3,
        9,
        9,
        9,
        0,
        -1,
    ]
    codes = np.arange(30)[:, None] % 7
    inner = inside(
        np.repeat(codes, 1000, axis=0),
        np.array([-2.0]),
        np.array([5.0]),
        7,
        np.random.default_rng(0),
    )
    assert (
        bin_codes(inner, np.array([-2.0]), np.array([5.0]), 7) == np.repeat(codes, 1000, axis=0)
    ).mean() > 0.9999
    assert (inner >= -2 + np.repeat(codes, 1000, axis=0)).all()
    assert (inner <= -1 + np.repeat(codes, 1000, axis=0)).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_projection_gives_the_nearest_probabilities(values):
    v = np.array(values)
    p = on_simplex(v)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    # Nearest: moving mass between two bins never comes closer.
    scale = max(1.0, np.abs(v).max())
    for i in np.flatnonzero(p > 0):
        assert (v[i] - p[i] >= v - p - 1e-9 * scale).all()


# --- the corrected reading
# --------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40))
def test_replacing_a_person_changes_the_histograms_by_at_most_twice_their_weight(
    seed, first, second
):
    rng = np.random.default_rng(seed)

    def weights(rows):
        codes = rng.integers(-1, 5, (rows, 3))
        return BinnedRows(
            np.zeros(rows, dtype=np.int64), rng.integers(0, 2, rows), codes, 1, 2
        ).weights(5)

    one, other = weights(first), weights(second)
    assert (one.sum(axis=2) <= PARTS).all()
    assert np.abs(one - other).sum(axis=2).max() <= 2 * PARTS
    extreme = BinnedRows(
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((1, 1), dtype=np.int64),
        1,
        1,
    )
    moved = BinnedRows(extreme.person, extreme.task, extreme.codes + 1, 1, 1)
    assert np.abs(extreme.weights(5) - moved.weights(5)).sum() == 2 * PARTS  # the bound is attained


def test_everybody_has_the_same_weight_however_many_rows_they_have():
    names = [("a", "s", "", ""), ("b", "s", "", "")]
    keys = Keys.of_recordings(names, [np.arange(1), np.arange(999)])
    table = FeatureTable(
        np.concatenate([[[0.1]], np.full((999, 1), 0.9)]), ("x",), keys, [[0.0, 1.0]]
    )
    out = Marginals(2, bins=2, epsilon=10**6).release(table, seed=1).data.values
    assert (out < 0.5).mean() == pytest.approx(0.5, abs=0.05)


def test_noise_on_the_histograms_is_discrete_laplace_of_twice_the_weight_over_epsilon(monkeypatch):
    seen = []
    monkeypatch.setattr(
        module, "on_simplex", lambda values: seen.append(values) or on_simplex(values)
    )
    table = made(people=5, rows=3, features=40, stimuli=("a", "b"))
    Marginals(2, bins=2000, epsilon=2).release(table, seed=6)
    seqs = sequences("t", table)
    codes = bin_codes(table.values, np.zeros(40), np.ones(40), 2000)
    counts = BinnedRows.of(seqs, codes, sorted(seqs.people), ["a", "b"]).weights(2000)
    noise = seen[0] * PARTS * 5 - counts
    assert np.allclose(noise, np.rint(noise), atol=1e-6)
    assert_distribution(np.rint(noise), discrete_laplace_cdf(2 * PARTS / 2), step=1.0)
    # Closed form of the error of one histogram: B times 2 (2 / epsilon)**2.
    error = ((noise / PARTS) ** 2).sum(axis=2).mean()
    assert error == pytest.approx(2000 * 2 * (2 / 2) ** 2, rel=0.02)


@pytest.mark.parametrize(("per", "user"), [("recording-feature", 6), ("recording", 3), ("user", 1)])
def test_the_budget_is_shared_by_features_and_tasks(per, user):
    g = Marginals(2, per=per, length=9).release(made(stimuli=("a", "b", "c"))).guarantee
    assert (g.unit, g.epsilon, g.status) == (per, 1, "proved")
    assert g.user == {"epsilon": Fraction(user)}


def test_shape_and_names_of_a_corrected_release_are_public():
    one, other = made(people=4, rows=9, seed=1), made(people=4, rows=2, seed=2)
    out = [Marginals(2, length=5).release(t).data for t in (one, other)]
    assert list(out[0].recordings()) == list(out[1].recordings())
    assert out[0].values.shape == out[1].values.shape == (20, 2)
    assert not set(out[0].keys.person.tolist()) & set(one.keys.person.tolist())
    assert out[0].values.min() >= 0
    assert out[0].values.max() <= 1


def test_missing_values_and_values_outside_the_bounds_are_counted_for_the_curator_alone():
    table = made(people=3, rows=4)
    values = table.values.copy()
    values[0, 0], values[1, 1] = np.nan, 7.0
    release = Marginals(2).release(FeatureTable(values, table.columns, table.keys, table.bounds))
    assert {"clamped": 1, "missing": 1}.items() <= release.curator_notes.items()
    assert np.isfinite(release.data.values).all()


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"k": 1}, "'k' parameter of marginals must be a whole number of at least 2. Got 1"),
        ({"k": 4, "gamma": 1}, "'gamma' parameter of marginals must be an exact number above 1"),
        ({"k": 4, "bins": 1}, "'bins' parameter of marginals must be a whole number of at least 2"),
        (
            {"k": 4, "epsilon": 0},
            "'epsilon' parameter of marginals must be an exact number above 0",
        ),
        ({"k": 4, "epsilon": -2}, "above 0"),
        ({"k": 4, "per": "chunk"}, "one of recording, recording-feature, user"),
    ],
)
def test_wrong_parameters_get_one_sentence_marginals(parameters, words):
    with pytest.raises(ParameterError, match=words):
        Marginals(**parameters)


@pytest.mark.parametrize(
    ("parameters", "data", "error", "words"),
    [
        (
            {"k": 7},
            made(people=6),
            DataError,
            "with k = 7 needs at least 7 people, and this table has 6",
        ),
        ({"k": 2}, made(bounds=None), DataError, "needs public bounds"),
        ({"k": 2}, made(rows=0), DataError, "Got 0 rows"),
        (
            {"k": 2, "reading": "published"},
            FeatureTable(
                [[np.nan], [1.0]], ("x",), Keys(["a"] * 2, ["s"] * 2, [""] * 2, [""] * 2, [0, 1])
            ),
            DataError,
            "no rule",
        ),
        ({"k": 2, "epsilon": 1e-12}, made(), ParameterError, "must be at least 1.2e-07 here"),
    ],
)
def test_unusable_tables_get_one_sentence_and_no_release_marginals(parameters, data, error, words):
    with pytest.raises(error, match=words):
        mechanism("marginals", **parameters).release(data)
