"""marginals: the empty test of the published reading, and the noise of the corrected one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables import marginals as module
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
from tests.support.laws import ALPHA, assert_distribution, discrete_laplace_cdf


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
    assert dict(release.curator_notes) == {"clamped": 1, "missing": 1}
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
def test_wrong_parameters_get_one_sentence(parameters, words):
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
def test_unusable_tables_get_one_sentence_and_no_release(parameters, data, error, words):
    with pytest.raises(error, match=words):
        mechanism("marginals", **parameters).release(data)
