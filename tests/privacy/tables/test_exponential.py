"""exponential-dp: the published law and its true loss, and the corrected one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import gumbel_l

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.exponential import ExponentialDP, published_loss
from tests.support.laws import assert_distribution, discrete_laplace_cdf, laplace_cdf


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
