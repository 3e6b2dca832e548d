"""dp-k-same: identical copies for at least k people, noise for a whole person, and less of it than
a release per person needs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.table_errors import unclamped_groups
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy.audit.run import audit
from gazeveil.privacy.composition import compose
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.dp_ksame import DPKSame, Sizes
from tests.privacy.tables.test_ksame import made, objects, people
from tests.support.laws import assert_distribution, discrete_laplace_cdf


def released(table):
    """Everything released under each name, as bytes."""
    return objects(table, np.unique(table.keys.person).tolist())


# --- k-anonymity
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4])
def test_at_least_k_people_share_everything_whatever_they_saw(k):
    rng = np.random.default_rng(k)
    for n in range(k, 5 * k + 1):
        lengths = {
            (p, s): int(rng.integers(1, 6))
            for p in people(n)
            for s in "abc"
            if rng.random() < 0.6 or s == "a"
        }
        out = DPKSame(k, 1000).release(made(lengths)).data
        shared = Counter(released(out).values())
        assert sum(shared.values()) == n
        assert all(k <= size <= 2 * k - 1 for size in shared.values())
        assert {key[1] for key in out.recordings() if key[0] == people(n)[0]} == {
            s for _, s in lengths
        }


def test_one_guarantee_says_both():
    g = (
        mechanism("dp-k-same:k=3,epsilon=1/2,length=4")
        .release(made({(p, "s"): 4 for p in people(7)}))
        .guarantee
    )
    assert (g.definition, g.unit, g.epsilon, g.k, g.status) == (
        "epsilon-dp",
        "user",
        Fraction(1, 2),
        3,
        "proved",
    )
    assert "Besides, at least 3 people share every released record." in str(g)
    # Budgets add up, k-anonymity does not.
    assert compose([g, g]).epsilon == 1
    assert compose([g, g]).k is None


def test_smaller_units_say_what_they_add_up_to():
    table = made({(p, s): 4 for p in people(5) for s in "abc"}, features=2)
    for per, user in (("recording-feature", 6), ("recording", 3)):
        g = DPKSame(2, 1, per=per, length=4).release(table).guarantee
        assert (g.unit, g.epsilon, dict(g.user)) == (per, 1, {"epsilon": Fraction(user)})


# --- how far a person reaches
# --------------------------------------------------------------------------------------------------


def moved(m, first, second):
    """L2 distance of what two tables put under the noise, and the sensitivity it is for, joint
    noise.
    """
    works = [m._prepare(t) for t in (first, second)]
    assert works[0].sizes == works[1].sizes
    sizes = works[0].sizes
    chosen = m.plan(sizes)
    grid = m.drawn_noise(chosen, sizes).grid
    group = [np.arange(len(works[0].people))]
    sums = [grid.rounded(m._sums(w, group, chosen)) for w in works]
    return (sums[0] - sums[1]).astype(float), grid.sensitivity


@settings(max_examples=40)
@given(st.data())
def test_replacing_a_person_and_their_recordings_moves_the_sums_by_at_most_the_sensitivity(data):
    stimuli, most = "abc", data.draw(st.integers(1, 3))
    rest = (
        {("x", s): 3 for s in stimuli[:most]}
        | {("y", s): 3 for s in stimuli[-most:]}
        | {("z", "b"): 3}
    )

    def person(seed):
        rng = np.random.default_rng(seed)
        own = data.draw(st.lists(st.sampled_from(stimuli), min_size=1, max_size=most, unique=True))
        lengths = {("me", s): data.draw(st.integers(1, 6)) for s in own}
        table = made(lengths | rest, seed=0)
        values = table.values.copy()
        mine = table.keys.person == "me"
        values[mine] = rng.choice([-5.0, 0.0, 0.5, 1.0, 7.0, np.nan], (int(mine.sum()), 2))
        return FeatureTable(values, table.columns, table.keys, table.bounds)

    size = data.draw(st.sampled_from([1, 3, 6]))
    epsilon = data.draw(st.sampled_from(["1/1000", "1", "1000000"]))
    joint = DPKSame(2, epsilon, length=6, D=size, noise="joint")
    tables = [made(rest | {("me", "a"): 1}) for _ in range(2)]
    tables = [_with_rest(t, person(seed)) for seed, t in enumerate(tables)]
    if joint._prepare(tables[0]).sizes != joint._prepare(tables[1]).sizes:
        return  # which stimuli there are at all is public
    difference, sensitivity = moved(joint, *tables)
    assert np.sqrt((difference**2).sum()) <= sensitivity
    separate = DPKSame(2, epsilon, length=6, D=size, noise="separate")
    difference, sensitivity = moved(separate, *tables)
    assert np.sqrt((difference**2).sum(axis=3)).max() <= sensitivity


def _with_rest(table, other):
    """The other people's rows of one table with the person of another."""
    mine = other.keys.person == "me"
    theirs = table.keys.person != "me"
    return FeatureTable.concat([other.where(mine), table.where(theirs)])


def test_the_sensitivity_is_attained():
    lengths = {(p, s): 8 for p in "abcd" for s in "uv"}
    low, high = (made(lengths, values=0.5) for _ in range(2))
    pair = []
    for table, end in ((low, 0.0), (high, 1.0)):
        values = table.values.copy()
        values[table.keys.person == "a"] = end
        pair.append(FeatureTable(values, table.columns, table.keys, table.bounds))
    difference, sensitivity = moved(DPKSame(4, 1, D=1, noise="joint"), *pair)
    assert np.sqrt((difference**2).sum()) > 0.999 * sensitivity


# --- the noise
# --------------------------------------------------------------------------------------------------


def test_separate_noise_is_discrete_laplace_divided_by_the_size_of_the_group():
    table = made({(p, s): 4 for p in people(20) for s in "abcdefghij"}, features=2000, values=0.5)
    m = DPKSame(
        4, "1/2", per="recording-feature", D=1, shrink="none"
    )  # below 1 the law is no staircase
    assert m.plan(Sizes(4, 2000, 10, 10)).noise.joint is False
    out = unclamped_groups(m, table, seed=3)
    firsts = list({v: k for k, v in released(out).items()}.values())
    assert len(firsts) == 5
    # The mean coefficient of four equal values is twice the value; the group is four people.
    noise = (np.concatenate([out.select(people=p).values[::4] for p in firsts]) - 0.5) * 2 * 4
    sizes = Sizes(4, 2000, 10, 10)
    grid = m.drawn_noise(m.plan(sizes), sizes).grid
    steps = noise * 2**16 / grid.step
    assert np.allclose(steps, np.rint(steps), atol=1e-3)
    assert_distribution(np.rint(steps), discrete_laplace_cdf(2 * grid.sensitivity), step=1.0)
    # sqrt(4) ranges over epsilon, give or take the grid
    assert grid.sensitivity * grid.step / 2**16 == pytest.approx(2.0, rel=1e-3)


def test_groups_without_a_recording_of_some_members_divide_by_all_members():
    lengths = {(p, "s"): 3 for p in "abcd"} | {("a", "rare"): 3}
    out = (
        DPKSame(4, 10**9, per="recording-feature", D=1, shrink="none")
        .release(made(lengths, values=0.9))
        .data
    )
    assert np.allclose(out.select(stimuli="s").values, 0.9, atol=1e-3)
    assert np.allclose(out.select(stimuli="rare").values, 0.5 + 0.4 / 4, atol=1e-3)
    assert set(out.select(stimuli="rare").keys.person.tolist()) == set("abcd")


def test_shape_does_not_tell_what_a_person_saw_or_for_how_long():
    rest = {(p, s): 5 for p in "abc" for s in "uv"}
    tables = [made(rest | {("d", "u"): 9, ("d", "v"): 1}), made(rest | {("d", "v"): 2}, seed=3)]
    out = [DPKSame(2, 1, length=4).release(t) for t in tables]
    assert list(out[0].data.recordings()) == list(out[1].data.recordings())
    assert out[0].data.values.shape == out[1].data.values.shape
    assert out[0].guarantee == out[1].guarantee


def test_values_stay_within_the_bounds_and_missing_ones_are_filled():
    table = made({(p, "s"): 4 for p in people(6)}, bounds=(-2.0, 3.0))
    values = table.values.copy()
    values[::3, 0], values[1, 1] = np.nan, 99.0
    release = DPKSame(2, "1/100", shrink="none").release(
        FeatureTable(values, table.columns, table.keys, table.bounds)
    )
    assert release.data.values.min() >= -2
    assert release.data.values.max() <= 3
    assert release.curator_notes["missing"] == 8
    assert release.curator_notes["clamped"] == 1


def test_groups_are_drawn_without_the_data():
    first, second = (
        DPKSame(4, 10**9).release(made({(p, "s"): 3 for p in people(20)}, seed=s), seed=5).data
        for s in (1, 2)
    )

    def partition(table):
        groups = {}
        for person, everything in released(table).items():
            groups.setdefault(everything, set()).add(person)
        return sorted(map(sorted, groups.values()))

    assert partition(first) == partition(second)


def test_an_audit_catches_noise_for_one_person_of_two_groups(monkeypatch):
    # Half the noise: what a sensitivity divided by the group, and the noise divided again, would
    # draw.
    whole = DPKSame.drawn_noise

    def halved(m, *given):
        noise = whole(m, *given)
        return replace(noise, law=noise.law / 2)

    monkeypatch.setattr(DPKSame, "drawn_noise", halved)
    found = audit(DPKSame(4, "1/2"))
    assert found.statistical > found.epsilon_claimed


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"k": 1, "epsilon": 1},
            "'k' parameter of dp-k-same must be a whole number of at least 2. Got 1",
        ),
        ({"k": 5000, "epsilon": 1}, "at most 1024"),
        (
            {"k": 4, "epsilon": 0},
            "'epsilon' parameter of dp-k-same must be an exact number above 0",
        ),
        ({"k": 4, "epsilon": -1}, "above 0"),
        ({"k": 4, "epsilon": 1, "per": "chunk"}, "one of recording, recording-feature, user"),
        ({"k": 4, "epsilon": 1, "noise": "shared"}, "one of joint, separate"),
        (
            {"k": 4, "epsilon": 1, "noise": "joint", "per": "recording-feature"},
            "separate where the budget is for one recording-feature",
        ),
        ({"k": 4, "epsilon": 1, "shrink": "much"}, "one of none, wiener"),
        (
            {"k": 4, "epsilon": 1, "D": 0},
            "'D' parameter of dp-k-same must be a whole number of at least 1",
        ),
    ],
)
def test_wrong_parameters_get_one_sentence(parameters, words):
    with pytest.raises(ParameterError, match=words):
        DPKSame(**parameters)


@pytest.mark.parametrize(
    ("parameters", "data", "error", "words"),
    [
        (
            {"k": 4},
            made({(p, "s"): 2 for p in "abc"}),
            DataError,
            "with k = 4 needs at least 4 people, and this table has 3",
        ),
        (
            {"k": 2},
            made({(p, "s"): 2 for p in "abc"}, bounds=None),
            DataError,
            "needs public bounds",
        ),
        ({"k": 2}, made({("a", "s"): 0}), DataError, "Got 0 rows"),
        (
            {"k": 2, "D": 3},
            made({(p, "s"): 2 for p in "abc"}),
            ParameterError,
            "at most the length of 2 rows",
        ),
        (
            {"k": 2, "noise": "joint"},
            made({(p, "s"): 1 for p in "ab"}, features=5000),
            ParameterError,
            "separate for tables of this size",
        ),
    ],
)
def test_unusable_tables_get_one_sentence_and_no_release(parameters, data, error, words):
    with pytest.raises(error, match=words):
        DPKSame(epsilon=1, **parameters).release(data)
