"""Joining releases with each other and with raw data."""

import math

import numpy as np
import pytest

from gazeveil.attacks.infer import people
from gazeveil.attacks.infer.people import RecordLinkage
from gazeveil.features.table import FeatureTable, Keys
from tests.support.trait_people import Nearest, trait_material, trait_table


@pytest.fixture(autouse=True)
def _nearest(monkeypatch):
    monkeypatch.setattr(people, "attack_by_name", lambda _: Nearest())


def split(table, stimuli):
    """The first stimuli, and the others as a recording set."""
    first = np.isin(table.keys.stimulus, [f"s{i:02}" for i in range(stimuli)])
    return table.where(first), trait_material(table.where(~first))


def shuffled(table, seed=1):
    """The same recordings given to other people, anew for each
    stimulus: nobody stays themselves."""
    rng = np.random.default_rng(seed)
    person = table.keys.person.copy()
    for stimulus in np.unique(table.keys.stimulus):
        rows = np.flatnonzero(table.keys.stimulus == stimulus)
        person[rows] = rng.permutation(person[rows])
    return FeatureTable(
        table.values,
        table.columns,
        Keys(person, table.keys.stimulus, table.keys.session, table.keys.task, table.keys.index),
        table.bounds,
    )


def test_matching_all_names_at_once_beats_one_by_one_where_scores_are_weak():
    alone, together = [], []
    for seed in range(5):
        gallery, probe = split(
            trait_table(people=30, stimuli=4, apart=0.35, noise=0.5, seed=seed), 2
        )
        both = RecordLinkage().run(probe, trait_material(gallery), seed=1).results
        alone.append(both[0].value)
        together.append(both[1].value)
    assert 0.3 < np.mean(alone) < 0.9
    assert np.mean(together) > np.mean(alone) + 0.03


def test_two_releases_of_shuffled_people_join_at_chance():
    values = []
    for seed in range(20):
        gallery, probe = split(shuffled(trait_table(people=20, stimuli=4, seed=seed), seed), 2)
        found = RecordLinkage().run(probe, trait_material(gallery), seed=1).results
        values.append([r.value for r in found])
    assert (np.mean(values, axis=0) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)).all()
