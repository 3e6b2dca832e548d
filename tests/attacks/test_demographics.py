"""Demographics with gaze (David-John et al. 2023): k-anonymous ranges stop nobody who also looks at
the gaze, and k-same stops it only inside the ranges.
"""

import math

import numpy as np
import pytest

from gazeveil.attacks.base import Scores
from gazeveil.attacks.infer.attributes import demographic_attack, groups_of
from gazeveil.errors import DataError
from gazeveil.privacy.demographics import Demographics
from gazeveil.privacy.tables.ksame import KSameSelect
from tests.support.trait_people import Blind, Nearest, trait_material, trait_table

#: Ages and genders of the 31 people of the supplement.
AGES = (
    43,
    27,
    29,
    32,
    28,
    26,
    23,
    30,
    28,
    26,
    52,
    26,
    35,
    50,
    33,
    31,
    32,
    36,
    38,
    29,
    23,
    31,
    27,
    31,
    23,
    24,
    23,
    27,
    23,
    23,
    32,
)
WOMEN = frozenset((1, 4, 6, 8, 20, 21, 24))
PEOPLE = {f"p{i:02}": {"age": a, "gender": "F" if i in WOMEN else "M"} for i, a in enumerate(AGES)}


def sides(seed=1):
    """A table to publish and other recordings of the same 31 people that the attacker holds."""
    whole = trait_table(people=31, stimuli=12, seed=seed)
    first = np.isin(whole.keys.stimulus, [f"s{i:02}" for i in range(6)])
    return whole.where(first), trait_material(whole.where(~first))


def rate(table, probe, released, attack=None):
    return demographic_attack(attack or Nearest(), trait_material(table), probe, released, seed=1)


@pytest.mark.parametrize(
    ("k", "sizes"), [(4, (4, 5, 6, 7, 9)), (6, (6, 7, 9, 9)), (8, (8, 10, 13)), (15, (15, 16))]
)
def test_the_supplements_groups_have_its_sizes(k, sizes):
    groups = groups_of(Demographics(k, reading="published").release(PEOPLE).data)
    assert tuple(sorted(list(groups.values()).count(g) for g in set(groups.values()))) == sizes


@pytest.mark.parametrize("k", [4, 6, 8, 15])
def test_demographics_alone_leave_a_guess_and_the_gaze_names_the_person(k):
    released = Demographics(k, reading="published").release(PEOPLE).data
    table, probe = sides()
    result, _ = rate(table, probe, released)
    assert result.chance <= 1 / k
    assert result.value > 0.8
    assert result.p_value < 1e-6
    blind, _ = rate(table, probe, released, Blind())
    assert blind.low <= blind.chance <= blind.high


def test_k_same_across_the_ranges_does_not():
    # Groups of 4 over everybody, ranges of at least 4: the filter leaves few of a target's group,
    # often the target alone.
    released = Demographics(4).release(PEOPLE).data
    across = []
    for seed in range(6):
        table, probe = sides(seed)
        across.append(rate(KSameSelect(4).release(table, seed=seed).data, probe, released)[0].value)
    assert np.mean(across) > 0.25 + 3 * math.sqrt(0.25 * 0.75 / (31 * 6))


def test_filtering_first_names_people_of_one_group_only():
    released = Demographics(4).release(PEOPLE).data
    table, probe = sides()
    groups = groups_of(released)
    _, scores = rate(table, probe, released)
    for row, person in enumerate(scores.probes):
        assert {
            groups[scores.known[i]] for i in np.flatnonzero(np.isfinite(scores.values[row]))
        } == {groups[person]}


def test_somebody_without_a_score_is_still_a_candidate_inside_the_group():
    class Lost(Nearest):
        def identify(self, gallery, probe, seed):
            names = gallery.persons, probe.persons
            return Scores(*names, np.full((len(names[1]), len(names[0])), np.nan))

    released = Demographics(4).release(PEOPLE).data
    result, scores = rate(*sides(), released, Lost())
    assert np.isfinite(scores.values).sum(axis=1).min() >= 4
    assert result.value == pytest.approx(result.chance)


def test_people_without_released_demographics_are_named():
    table, probe = sides()
    released = dict(Demographics(4).release(PEOPLE).data)
    del released["p03"]
    with pytest.raises(DataError, match="'p03' has no released demographics"):
        rate(table, probe, released)
