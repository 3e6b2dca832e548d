"""k-same-select: at least k people share everything that is released, whatever the sizes, gaps and
lengths.
"""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.randomness.rng import Words, shuffled, source, uniform_below
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.ksame import KSameSelect, blocks, random_groups
from tests.support.recordings import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import ksame_attack  # the model is written once, for the benchmark and for this test


def made(lengths, features=2, values=None, seed=0, bounds=(0.0, 1.0)):
    """A table from {(person, stimulus[, task]): rows}; values uniform on [0, 1], or one number."""
    recordings = [(k[0], k[1], "", k[2] if len(k) > 2 else "") for k in lengths]
    keys = Keys.of_recordings(recordings, [np.arange(n) for n in lengths.values()])
    shape = len(keys), features
    drawn = np.random.default_rng(seed).random(shape) if values is None else np.full(shape, values)
    columns = tuple(f"f{i}" for i in range(features))
    return FeatureTable(drawn, columns, keys, None if bounds is None else [bounds] * features)


def objects(table, people):
    """Everything released under each name, as bytes."""
    k = table.keys
    found = {}
    for person in people:
        rows = np.flatnonzero(k.person == person)
        rows = rows[np.lexsort((k.index[rows], k.task[rows], k.session[rows], k.stimulus[rows]))]
        names = list(
            zip(
                k.stimulus[rows].tolist(),
                k.session[rows].tolist(),
                k.task[rows].tolist(),
                k.index[rows].tolist(),
                strict=True,
            )
        )
        found[person] = repr(names).encode() + table.values[rows].tobytes()
    return found


def people(n):
    return [f"person {i:03}" for i in range(n)]


# --- k-anonymity
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_every_size_of_cohort_from_k_to_five_k_gives_groups_of_k_to_two_k_minus_one(k):
    for n in range(k, 5 * k + 1):
        table = made({(p, "s"): 2 for p in people(n)}, seed=n)
        out = KSameSelect(k).release(table).data
        shared = Counter(objects(out, people(n)).values())
        assert sum(shared.values()) == n
        assert all(k <= size <= 2 * k - 1 for size in shared.values()), (n, shared.values())


@settings(max_examples=60)
@given(st.data())
def test_whatever_is_missing_and_however_long_at_least_k_people_share_all_that_is_released(data):
    k = data.draw(st.integers(2, 4))
    n = data.draw(st.integers(k, 4 * k))
    stimuli = ["a", "b", "c"]
    lengths = {
        (p, s): data.draw(st.integers(1, 5))
        for p in people(n)
        for s in stimuli
        if data.draw(st.booleans())
    }
    lengths.setdefault((people(n)[0], "a"), 2)
    table = made(lengths, seed=data.draw(st.integers(0, 9)))
    values = table.values.copy()
    values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
    present = {key[0] for key in lengths}
    table = FeatureTable(values, table.columns, table.keys, table.bounds)
    try:
        out = KSameSelect(k).release(table).data
    except DataError:  # too few people, or nothing that k of them share
        return
    assert np.isfinite(out.values).all()
    released = set(out.keys.person.tolist())
    assert released <= present
    assert all(size >= k for size in Counter(objects(out, released).values()).values())


def test_published_shares_its_release_with_fewer_than_k_where_k_does_not_divide_the_cohort():
    out = KSameSelect(4, reading="published").release(made({(p, "s"): 3 for p in people(18)})).data
    assert min(Counter(objects(out, people(18)).values()).values()) == 2


def test_published_shares_nothing_over_two_tasks_and_one_partition_does():
    table = made({(p, s): 3 for p in people(20) for s in ("a", "b", "c")})
    redrawn = Counter(
        objects(
            KSameSelect(4, reading="published").release(table, seed=1).data, people(20)
        ).values()
    )
    assert min(redrawn.values()) == 1
    named = made({(p, s, "reading"): 3 for p in people(20) for s in ("a", "b", "c")})
    once = Counter(
        objects(
            KSameSelect(4, reading="published").release(named, seed=1).data, people(20)
        ).values()
    )
    assert min(once.values()) == 4  # stimuli of one named task share its groups


# --- the algorithm
# --------------------------------------------------------------------------------------------------


def test_members_get_the_mean_of_those_who_have_the_vector_up_to_the_kth_longest():
    lengths = {("a", "s"): 5, ("b", "s"): 3, ("c", "s"): 2}
    table = made(lengths)
    out = KSameSelect(2).release(table).data
    a, b, c = (table.select(people=p).values for p in "abc")
    wanted = np.stack([(a[0] + b[0] + c[0]) / 3, (a[1] + b[1] + c[1]) / 3, (a[2] + b[2]) / 2])
    for person in "abc":
        assert np.allclose(out.select(people=person).values, wanted, rtol=0, atol=1e-15)


def test_members_without_a_stimulus_get_it_too_and_a_stimulus_of_few_is_left_out_for_all():
    lengths = {(p, "seen"): 2 for p in "abc"} | {
        ("a", "rare"): 2,
        ("b", "most"): 2,
        ("c", "most"): 4,
    }
    release = KSameSelect(2).release(made(lengths))
    assert {(k[0], k[1]) for k in release.data.recordings()} == {
        (p, s) for p in "abc" for s in ("most", "seen")
    }
    assert release.curator_notes["suppressed"] == 1
    assert "suppressed" not in str(release.provenance.to_dict())


def test_sums_are_kept_where_everybody_contributes():
    table = made({(p, s): 7 for p in people(23) for s in "ab"}, features=5)
    out = KSameSelect(4).release(table).data
    # Means have the weight of their group, so sums over all people are the raw ones.
    assert (
        np.abs(out.values.sum(axis=0) - table.values.sum(axis=0)).max()
        <= 1e-9 * np.abs(table.values).sum()
    )


def test_published_pads_with_the_last_vector_and_cuts_back_to_the_own_length():
    table = made({("a", "s"): 4, ("b", "s"): 2})
    out = KSameSelect(2, reading="published").release(table).data
    a, b = (table.select(people=p).values for p in "ab")
    assert np.allclose(out.select(people="a").values, (a + b[[0, 1, 1, 1]]) / 2)
    assert np.allclose(out.select(people="b").values, (a[:2] + b) / 2)


def test_values_that_few_have_measured_become_the_midpoint():
    table = made({(p, "s"): 2 for p in "abc"}, bounds=(0.0, 10.0))
    values = table.values.copy()
    values[[0, 2], 0] = np.nan  # two of three people miss the first value of f0
    out = KSameSelect(2).release(FeatureTable(values, table.columns, table.keys, table.bounds))
    assert out.data.values[0, 0] == 5.0
    assert out.data.values[0, 1] == pytest.approx(values[[0, 2, 4], 1].mean())
    assert out.curator_notes["missing"] == 2


def test_values_outside_the_bounds_are_clamped_and_counted_for_the_curator():
    table = made({(p, "s"): 2 for p in "ab"})
    values = table.values.copy()
    values[0, 0], values[1, 1] = 40.0, np.nan
    release = KSameSelect(2).release(FeatureTable(values, table.columns, table.keys, table.bounds))
    assert release.curator_notes["clamped"] == 1
    assert release.data.values[0, 0] == pytest.approx((1.0 + values[2, 0]) / 2)


# --- the guarantee
# --------------------------------------------------------------------------------------------------


def test_corrected_proves_k_and_published_does_not():
    table = made({(p, "s"): 3 for p in people(9)})
    g = mechanism("k-same-select:k=3").release(table).guarantee
    assert (g.status, g.k, g.definition) == ("proved", 3, "k-anonymity")
    assert "At least 3 people share every released record" in str(g)
    assert KSameSelect(3).release(table, seed=1).guarantee.status == "claimed"
    published = KSameSelect(3, reading="published").release(table).guarantee
    assert (published.status, published.k, published.numbers["k"]) == ("refuted", None, Fraction(3))


@pytest.mark.parametrize("k", [4, 8])
def test_an_attacker_finds_more_than_one_in_k_where_groups_are_redrawn_and_not_where_they_stay(k):
    for tasks in (1, 3, 10, 50):
        corrected, guesses = ksame_attack.rate(k, tasks, "corrected", 20)
        assert corrected <= ksame_attack.bound(k, guesses), tasks
    published, guesses = ksame_attack.rate(k, 50, "published", 20)
    assert published > 0.85 > ksame_attack.bound(k, guesses)


# --- choices
# --------------------------------------------------------------------------------------------------


def test_shuffles_are_uniform_over_all_orders():
    words = Words(source(3, "shuffle"))
    seen = Counter(tuple(shuffled(4, words).tolist()) for _ in range(24_000))
    assert len(seen) == 24
    chi2 = sum((n - 1000) ** 2 / 1000 for n in seen.values())
    assert chi2 < 73  # false alarms below 1e-6 at 23 degrees of freedom


def test_choices_are_uniform_below_limits_that_do_not_divide_a_word():
    drawn = uniform_below(np.full(300_000, 3), Words(source(4, "below")))
    assert np.abs(np.bincount(drawn, minlength=3) - 100_000).max() < 5 * np.sqrt(300_000 * 2 / 9)
    assert uniform_below([1, 1], Words(source(None))).tolist() == [0, 0]


def test_groups_are_dealt_out_and_blocks_are_cut():
    words = Words(source(None))
    assert sorted(len(g) for g in random_groups(18, 4, words)) == [4, 4, 5, 5]
    assert sorted(len(g) for g in random_groups(7, 4, words)) == [7]
    assert [len(g) for g in blocks(18, 4, words)] == [4, 4, 4, 4, 2]
    assert sorted(np.concatenate(random_groups(18, 4, words)).tolist()) == list(range(18))
    assert len({random_groups(18, 4, words)[0].tobytes() for _ in range(20)}) > 10


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"k": 1}, "'k' parameter of k-same-select must be a whole number of at least 2. Got 1"),
        ({"k": 0}, "at least 2"),
        ({"k": 2.5}, "a whole number"),
        ({"k": True}, "a whole number"),
    ],
)
def test_wrong_parameters_get_one_sentence(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KSameSelect(**parameters)


@pytest.mark.parametrize("reading", ["corrected", "published"])
def test_more_than_there_are_people_is_refused(reading):
    with pytest.raises(DataError, match="with k = 4 needs at least 4 people, and this table has 3"):
        KSameSelect(4, reading=reading).release(made({(p, "s"): 2 for p in "abc"}))


def test_people_who_share_no_recording_are_refused():
    with pytest.raises(DataError, match="No stimulus, session and task has data of 2 members"):
        KSameSelect(2).release(made({(p, f"own {p}"): 2 for p in "abcd"}))


def test_missing_values_need_bounds_when_corrected_and_are_refused_when_published():
    table = made({(p, "s"): 2 for p in "ab"}, bounds=None)
    values = table.values.copy()
    values[0, 0] = np.nan
    broken = FeatureTable(values, table.columns, table.keys)
    with pytest.raises(DataError, match="this table has no bounds"):
        KSameSelect(2).release(broken)
    with pytest.raises(DataError, match="no rule for missing values"):
        KSameSelect(2, reading="published").release(broken)


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="Got 0 rows"):
        KSameSelect(2).release(made({("a", "s"): 0}))
