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


def test_two_releases_of_shuffled_people_join_at_chance():
    values = []
    for seed in range(20):
        gallery, probe = split(shuffled(trait_table(people=20, stimuli=4, seed=seed), seed), 2)
        found = RecordLinkage().run(probe, trait_material(gallery), seed=1).results
        values.append([r.value for r in found])
    assert (np.mean(values, axis=0) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)).all()
