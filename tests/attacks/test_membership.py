"""Membership inference: certain for a raw release, weaker with larger groups, at chance under
differential privacy and for strangers.
"""

import numpy as np
import pytest

from gazeveil.attacks.curves import auc, roc_area, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.infer.attributes import MembershipInference, judged, nearness
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


def membership(release, targets, members):
    """The area under the curve, of raw recordings against a release."""
    return judged(nearness(release, targets), members, "").result("auc")


def play(crowd, publish, rounds):
    """A random half of the people is published, and the attacker holds other stimuli of all."""
    rng = np.random.default_rng(1)
    areas = []
    for seed in range(rounds):
        members = rng.permutation(crowd.persons)[: len(crowd.persons) // 2].tolist()
        mixed = rng.permutation(crowd.stimuli).tolist()
        shown, held = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
        release = publish(crowd.select(people=members, stimuli=shown), seed)
        areas.append(membership(release, crowd.select(stimuli=held), members).value)
    return float(np.mean(areas))


def test_a_raw_release_tells_who_took_part_from_other_recordings(crowd):
    people, half = list(crowd.persons), crowd.stimuli[:3]
    release = crowd.select(people=people[:20], stimuli=half)
    found = MembershipInference().run(crowd.select(stimuli=crowd.stimuli[3:]), release)
    assert found.result("auc").value > 0.97
    strict = found.result("tpr_at_fpr_0.001")
    assert strict.value > 0.8
    assert strict.chance < 0.05


def test_larger_groups_tell_less_and_redrawn_ones_more(crowd):
    two, four, eight = (play(crowd, by("k-same-select", k=k), rounds=12) for k in (2, 4, 8))
    redrawn = play(crowd, by("k-same-select", k=4, reading="published"), rounds=12)
    assert two > four > eight
    assert two > 0.75
    assert eight > 0.5  # k-anonymity does not promise that taking part stays secret
    assert redrawn > four + 0.1


def test_differential_privacy_and_marginals_leave_chance(crowd):
    for publish in (by("dp-k-same", k=4, epsilon=1), by("marginals", k=4)):
        assert abs(play(crowd, publish, rounds=12) - 0.5) < 0.12


def test_a_release_of_strangers_says_nothing_of_anybody():
    strangers = trait_material(people=20, stimuli=3, rows=8, seed=99)
    values = []
    for seed in range(12):
        targets = trait_material(people=40, stimuli=3, rows=8, seed=seed)
        members = np.random.default_rng(seed).permutation(targets.persons)[:20].tolist()
        values.append(membership(strangers, targets, members).value)
    assert abs(np.mean(values) - 0.5) < 0.08


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
    assert nearness(renamed, targets) == nearness(inside, targets)


def test_a_release_of_windows_is_compared_with_windows():
    whole = trait_table(people=20, stimuli=4, rows=6)
    targets = RecordingSet(tables={"window": whole, "fixation": whole})
    members = targets.persons[:10]
    release = RecordingSet(tables={"window": whole.select(people=members)})
    assert membership(release, targets, members).value > 0.9


def test_targets_of_one_kind_are_refused(crowd):
    with pytest.raises(DataError, match="took part and targets who did not"):
        membership(crowd, crowd, crowd.persons)


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
