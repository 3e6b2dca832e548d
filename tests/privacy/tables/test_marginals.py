"""marginals: the empty test of the published reading, the noise of the corrected one, and the
randomised test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.run import audit
from gazeveil.privacy.plausible_deniability import (
    cell_width,
    cells,
    charge_candidates,
    deterministic_pass,
    pass_probability,
    plausible_counts,
    randomised_pass,
)
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.marginals import mechanism as module
from gazeveil.privacy.tables.marginals.histograms import (
    PARTS,
    BinnedRows,
    bin_codes,
    inside,
    on_simplex,
    sample_bins,
)
from gazeveil.privacy.tables.marginals.mechanism import Marginals
from gazeveil.privacy.tables.sequences.recordings import sequences
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


def gap():
    return FeatureTable(
        [[np.nan], [1.0]], ("x",), Keys(["a"] * 2, ["s"] * 2, [""] * 2, [""] * 2, [0, 1])
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
    # The reason: with the same probability under every seed all records share one cell of the grid,
    # whatever its width.
    counts = plausible_counts(
        np.full((5, 12), -7.3), np.zeros(5, dtype=np.int64), cell_width(gamma)
    )
    assert counts.tolist() == [12] * 5
    assert deterministic_pass(counts, 12).all()
    assert not deterministic_pass(counts, 13).any()


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


def test_constant_features_stay_constant_when_published():
    table = made()
    values = table.values.copy()
    values[:, 0] = 0.25
    out = (
        Marginals(2, reading="published")
        .release(FeatureTable(values, table.columns, table.keys))
        .data
    )
    assert (out.values[:, 0] == 0.25).all()


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


def test_with_a_large_budget_the_marginals_of_each_task_come_through():
    table = made(people=10, rows=200, stimuli=("a", "b"), low=0.0, high=0.3)
    values = table.values + np.where(table.keys.stimulus == "b", 0.6, 0.0)[:, None]
    out = (
        Marginals(2, epsilon=1000)
        .release(FeatureTable(values, table.columns, table.keys, table.bounds), seed=1)
        .data
    )
    assert out.select(stimuli="a").values.mean() == pytest.approx(0.15, abs=0.02)
    assert out.select(stimuli="b").values.mean() == pytest.approx(0.75, abs=0.02)


def test_missing_values_and_values_outside_the_bounds_are_counted_for_the_curator_alone():
    table = made(people=3, rows=4)
    values = table.values.copy()
    values[0, 0], values[1, 1] = np.nan, 7.0
    release = Marginals(2).release(FeatureTable(values, table.columns, table.keys, table.bounds))
    assert dict(release.curator_notes) == {"clamped": 1, "missing": 1}
    assert np.isfinite(release.data.values).all()


def test_an_audit_finds_nearly_the_whole_budget_spent_and_no_more():
    for m in (Marginals(4), Marginals(2, epsilon=3, per="user", bins=5)):
        found = audit(m, confidence=0.999999)
        assert not found.refuted
        # 0.90 with a deviation of 0.02, and 0.93 with 0.004: below 0.75 by chance in no run.
        assert 0.75 * found.epsilon_claimed <= found.statistical <= found.epsilon_claimed
    assert not audit(Marginals(4, reading="published"), confidence=0.999999).refuted


# --- the randomised test
# --------------------------------------------------------------------------------------------------


def test_cells_of_the_grid_hold_their_upper_end():
    assert cells(np.log([1.0, 0.75, 0.5000001, 0.3]), cell_width(2)).tolist() == [0, 0, 0, 1]
    assert cells(np.log([2.0, 3.0]), cell_width(2)).tolist() == [-1, -2]
    assert np.isnan(cells(-np.inf, cell_width(2)))


def test_people_in_the_cell_of_the_seed_are_counted_and_impossible_ones_never():
    log_p = np.log(np.array([[0.4, 0.3, 0.26, 0.2, 1e-9]]))
    assert plausible_counts(log_p, np.array([0]), cell_width(2)).tolist() == [3]
    with np.errstate(divide="ignore"):
        assert plausible_counts(
            np.log(np.array([[0.4, 0.0, 0.0]])), np.array([0]), cell_width(2)
        ).tolist() == [1]


@pytest.mark.parametrize(("epsilon0", "k"), [(1, 4), ("1/2", 10)])
def test_the_randomised_test_passes_with_the_probability_of_its_noise(epsilon0, k):
    words = Words(source(8, "pd"))
    for count in range(2 * k):
        passed = randomised_pass(np.full(100_000, count), k, epsilon0, words).mean()
        p = float(pass_probability(count, k, epsilon0))
        assert abs(passed - p) < 5 * math.sqrt(p * (1 - p) / 100_000) + 1e-9
    assert pass_probability(k, k, epsilon0) == pytest.approx(
        1 / (1 + math.exp(-float(Fraction(epsilon0))))
    )


def released(shares, q, k, gamma, epsilon0):
    """Probability of each kept value in one released vector, by the formula of the proof: shares
    has shape (people, values).
    """
    n = len(shares)
    with np.errstate(divide="ignore"):
        at = cells(np.log(shares), cell_width(gamma))
    passing = np.zeros_like(shares)
    for person in range(n):
        passing[person] = pass_probability((at == at[person]).sum(axis=0), k, epsilon0)
    seeded = (shares * passing).sum(axis=0) / n
    rejected = (shares * (1 - passing)).sum() / n
    return (1 - 1 / n) * (seeded + rejected * q) + q / n


@settings(max_examples=150)
@given(st.data())
def test_one_candidate_costs_at_most_what_is_charged_on_every_pair_of_small_neighbours(data):
    n, values = data.draw(st.integers(3, 8)), data.draw(st.integers(2, 4))
    k, gamma = data.draw(st.integers(2, 8)), data.draw(st.sampled_from([1.5, 2, 4]))
    rows = st.lists(st.integers(0, 3), min_size=values, max_size=values).filter(
        lambda r: sum(r) > 0
    )
    shares = np.array([data.draw(rows) for _ in range(n)], dtype=float)
    other = shares.copy()
    other[0] = data.draw(rows)
    shares, other = (s / s.sum(axis=1, keepdims=True) for s in (shares, other))
    q = np.array(data.draw(rows), dtype=float)
    q /= q.sum()
    p, p2 = (released(s, q, k, gamma, 1) for s in (shares, other))
    for t in range(1, k):
        # charge picks one t by the limit on delta; the statement holds for each.
        epsilon, delta = charge_candidates(
            k, gamma, 1, n, 1, float(pass_probability(t, k, 1)) * 1.001
        )
        assert np.maximum(p - math.exp(float(epsilon)) * p2, 0).sum() <= float(delta) + 1e-12
        assert epsilon >= 1 + math.log1p(float(gamma) / t) - 1e-9


def test_a_visible_rejection_would_break_the_charge():
    # One person like nobody else: rejections have probability about 1/N with them and almost none
    # without.
    n, k = 50, 25
    shares = np.tile([1.0, 0.0], (n, 1))
    shares[0] = [0.0, 1.0]
    same = np.tile([1.0, 0.0], (n, 1))

    def rejection(s):
        with np.errstate(divide="ignore"):
            at = cells(np.log(s), cell_width(2))
        passing = np.stack([pass_probability((at == c).sum(axis=0), k, 1) for c in at])
        return float((s * (1 - passing)).sum() / n)

    epsilon, delta = charge_candidates(k, 2, 1, n, 1, 1e-6)
    assert rejection(shares) - math.exp(float(epsilon)) * rejection(same) > 100 * float(delta)
    # Hidden behind seedless vectors it holds, whatever those are.
    for q in ([0.5, 0.5], [1.0, 0.0], [0.0, 1.0]):
        a, b = (released(s, np.array(q), k, 2, 1) for s in (shares, same))
        assert np.maximum(a - math.exp(float(epsilon)) * b, 0).sum() <= float(delta)
        assert np.maximum(b - math.exp(float(epsilon)) * a, 0).sum() <= float(delta)


def test_the_code_releases_vectors_with_the_probabilities_of_the_formula():
    # Five people, two bins; person 0 differs from the rest.
    rows = {0: [1, 1, 1, 1], 1: [0, 0, 0, 1], 2: [0, 0, 0, 1], 3: [0, 0, 0, 1], 4: [0, 0, 0, 0]}
    names = [(str(p), "s", "", "") for p in rows]
    keys = Keys.of_recordings(names, [np.arange(4)] * 5)
    values = np.concatenate([np.array(r)[:, None] * 0.5 + 0.2 for r in rows.values()])
    coded = bin_codes(values, np.array([0.0]), np.array([1.0]), 2)
    table = FeatureTable(values, ("x",), keys, [[0.0, 1.0]])
    seqs = sequences("t", table)
    rows_ = BinnedRows.of(seqs, coded, sorted(seqs.people), ["s"])
    m = Marginals(3, pd="randomised", bins=2, delta=1)
    pmf = np.array([[0.9, 0.1]])
    drawn = sample_bins(pmf, 200_000, np.random.default_rng(0))
    m._seeded(drawn, rows_, 0, pmf, Words(source(5, "seeded")))
    shares = np.array([[0.0, 1.0], [0.75, 0.25], [0.75, 0.25], [0.75, 0.25], [1.0, 0.0]])
    p = released(shares, pmf[0], 3, 2, 1)[1]
    assert abs(drawn.mean() - p) < 5 * math.sqrt(p * (1 - p) / 200_000)
    assert abs(drawn.mean() - 0.1) > 0.03  # a seedless generator would give this


def test_all_candidates_of_a_randomised_release_are_charged():
    table = made(people=30, rows=2, features=2)
    release = Marginals(20, pd="randomised", length=3, gamma=2).release(table)
    g = release.guarantee
    candidates = 30 * 3
    assert (g.definition, g.unit, g.status) == ("epsilon-delta-dp", "user", "proved")
    assert g.numbers["epsilon"] == 2 + charge_candidates(20, 2, 1, 30, candidates, "1e-6")[0]
    assert 0 < g.numbers["delta"] <= Fraction(1, 10**6)
    assert len(release.data) == candidates
    with pytest.raises(
        ParameterError, match=r"keeps delta within 1e-06 only for k of at least \d+"
    ):
        Marginals(4, pd="randomised", length=3).release(table)


def test_the_least_k_that_the_message_names_is_accepted():
    with pytest.raises(ParameterError) as caught:
        charge_candidates(4, 2, 1, 30, 90, "1e-6")
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert charge_candidates(least, 2, 1, 30, 90, "1e-6")[1] <= Fraction(1, 10**6)
    with pytest.raises(ParameterError):
        charge_candidates(least - 1, 2, 1, 30, 90, "1e-6")


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
        ({"k": 4, "pd": "fuzzy"}, "one of deterministic, randomised"),
        (
            {"k": 4, "pd": "randomised", "reading": "published"},
            "deterministic in the published reading",
        ),
        ({"k": 4, "kept": 0}, "'kept' parameter of marginals must be a whole number of at least 1"),
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
        (
            {"k": 2, "pd": "randomised", "kept": 3},
            made(features=2),
            ParameterError,
            "at most 2, the number of features",
        ),
        ({"k": 2, "epsilon": 1e-12}, made(), ParameterError, "must be at least 1.2e-07 here"),
    ],
)
def test_unusable_tables_get_one_sentence_and_no_release(parameters, data, error, words):
    with pytest.raises(error, match=words):
        mechanism("marginals", **parameters).release(data)


def test_a_delta_that_is_no_probability_is_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="'delta' parameter of marginals must be at most 1"):
        Marginals(4, pd="randomised", delta=10**6)
