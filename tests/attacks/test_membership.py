"""Membership inference: certain for a raw release, weaker with larger groups, at chance under
differential privacy and for strangers.
"""

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.curves import auc, roc_area, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.infer.membership import membership, play
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from tests.support.trait_people import trait_material, trait_table


@pytest.fixture(scope="module")
def crowd():
    return trait_material(people=40, stimuli=6, rows=8, seed=3)


def by(name, **parameters):
    """Publishes tables by a mechanism."""
    chosen = mechanism(name, **parameters)
    return lambda recording_set, seed: RecordingSet(
        tables={"fixation": chosen.release(recording_set.fixations, seed=seed).data}
    )


def raw(recording_set, seed):
    return recording_set


def test_a_raw_release_tells_who_took_part_from_other_recordings(crowd):
    found = play(crowd, raw, seed=1, rounds=3)
    assert found.auc.value > 0.97
    assert found.hits[0].metric == "tpr_at_fpr_0.001"
    assert found.hits[0].value > 0.8
    assert found.hits[0].chance < 0.02


def test_larger_groups_tell_less_and_redrawn_ones_more(crowd):
    two, four, eight = (
        play(crowd, by("k-same-select", k=k), seed=1, rounds=6).auc.value for k in (2, 4, 8)
    )
    redrawn = play(crowd, by("k-same-select", k=4, reading="published"), seed=1, rounds=6).auc.value
    assert two > four > eight
    assert two > 0.75
    assert eight > 0.5  # k-anonymity does not promise that taking part stays secret
    assert redrawn > four + 0.1


def test_differential_privacy_and_marginals_leave_chance(crowd):
    for publish in (by("dp-k-same", k=4, epsilon=1), by("marginals", k=4)):
        found = play(crowd, publish, seed=1, rounds=6)
        assert found.auc.low < 0.5 < found.auc.high
        assert abs(found.auc.value - 0.5) < 0.12


def test_a_release_of_strangers_says_nothing_of_anybody():
    strangers = trait_material(people=20, stimuli=3, rows=8, seed=99)
    values = []
    for seed in range(12):
        targets = trait_material(people=40, stimuli=3, rows=8, seed=seed)
        members = np.random.default_rng(seed).permutation(targets.persons)[:20].tolist()
        values.append(membership(strangers, targets, members).auc.value)
    assert abs(np.mean(values) - 0.5) < 0.08


def test_a_release_that_holds_nothing_tells_nothing():
    cohort = gazeveil.simulate(8, 2, seconds=4, rate_hz=60, seed=1).load()
    blank = [
        r.with_(
            x_deg=np.full(len(r), np.nan),
            y_deg=np.full(len(r), np.nan),
            valid=np.zeros(len(r), dtype=bool),
        )
        for r in cohort
    ]
    assert (
        membership(
            RecordingSet(gazeveil.Cohort(blank)), RecordingSet(cohort), ["p1", "p2", "p3"]
        ).auc.value
        == 0.5
    )


def test_the_names_of_the_release_are_not_looked_at(crowd):
    people = list(crowd.persons)
    inside = crowd.select(people=people[:20], stimuli=crowd.stimuli[:3])
    table = inside.fixations
    other = Keys(
        np.char.add("x", table.keys.person),
        table.keys.stimulus,
        table.keys.session,
        table.keys.task,
        table.keys.index,
    )
    renamed = RecordingSet(
        tables={"fixation": FeatureTable(table.values, table.columns, other, table.bounds)}
    )
    targets = crowd.select(stimuli=crowd.stimuli[3:])
    assert (
        membership(renamed, targets, people[:20]).scores
        == membership(inside, targets, people[:20]).scores
    )


def test_a_release_of_windows_is_compared_with_windows():
    whole = trait_table(people=20, stimuli=4, rows=6)
    targets = RecordingSet(tables={"window": whole, "fixation": whole})
    members = targets.persons[:10]
    release = RecordingSet(tables={"window": whole.select(people=members)})
    assert membership(release, targets, members).auc.value > 0.9


def test_the_same_seed_gives_the_same_game(crowd):
    first, second = (play(crowd, by("k-same-select", k=2), seed=4, rounds=2) for _ in range(2))
    assert first.scores == second.scores
    assert repr(first.auc) == repr(second.auc)  # its p-value is NaN, which is not equal to itself


def test_targets_of_one_kind_few_people_or_one_stimulus_are_refused(crowd):
    with pytest.raises(DataError, match="took part and targets who did not"):
        membership(crowd, crowd, crowd.persons)
    with pytest.raises(DataError, match="four people and two stimuli"):
        play(trait_material(people=3), raw, seed=1)
    with pytest.raises(DataError, match="four people and two stimuli"):
        play(trait_material(stimuli=1), raw, seed=1)
    assert play(trait_material(stimuli=1), raw, seed=1, same=True).auc.value > 0.9


# --- telling two groups apart
# --------------------------------------------------------------------------------------------------


def test_the_area_counts_pairs_and_ties():
    assert roc_area([3, 2], [1, 0]) == 1.0
    assert roc_area([1], [1]) == 0.5
    assert roc_area([2, 1], [1, 1.5]) == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert roc_area([np.nan], [0.0]) == 0.0


def test_the_interval_of_an_area_has_a_width_even_where_nothing_overlaps():
    low, high = roc_area_interval(1.0, 12, 12)
    assert high == 1.0
    assert 0.7 < low < 0.95


def test_the_interval_of_an_area_covers_nineteen_times_in_twenty():
    rng = np.random.default_rng(1)
    truth = 0.76024993890652  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt(2))
    inside = 0
    for _ in range(200):
        found = auc(rng.normal(1, 1, 20), rng.normal(0, 1, 20))
        inside += found.low <= truth <= found.high
    assert 0.9 < inside / 200 < 0.995


def test_hits_at_few_false_alarms_of_a_useless_score_are_as_many_as_chance_says():
    rng = np.random.default_rng(2)
    found = [tpr_at_fpr(rng.normal(size=50), rng.normal(size=99), 0.1) for _ in range(200)]
    assert found[0].chance == pytest.approx(0.1)
    assert np.mean([f.value for f in found]) == pytest.approx(0.1, abs=0.02)
    assert tpr_at_fpr([5.0, 1.0], [2.0, 3.0], 0.001).value == 0.5
    with pytest.raises(ParameterError, match="from 0 to below 1"):
        tpr_at_fpr([1.0], [1.0], 1.0)
    with pytest.raises(DataError, match="at least one person in each"):
        auc([], [1.0])
