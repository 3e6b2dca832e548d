"""Joining releases with each other, with raw data, over tasks and over views; and noise that names
a release.
"""

import math

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import Scores
from gazeveil.attacks.infer.record_linkage import link_records, one_to_one
from gazeveil.attacks.views import average_views
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from tests.support.trait_people import Nearest, trait_material, trait_table


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
        found = link_records(Nearest(), trait_material(gallery), probe, seed=1)
        alone.append(found.alone.value)
        together.append(found.together.value)
    assert 0.3 < np.mean(alone) < 0.9
    assert np.mean(together) > np.mean(alone) + 0.03


def test_two_releases_of_shuffled_people_join_at_chance():
    values = []
    for seed in range(20):
        gallery, probe = split(shuffled(trait_table(people=20, stimuli=4, seed=seed), seed), 2)
        found = link_records(Nearest(), trait_material(gallery), probe, seed=1)
        values.append((found.alone.value, found.together.value))
    assert (np.mean(values, axis=0) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)).all()


def test_ties_are_broken_without_regard_to_names():
    names = tuple(map(str, range(10)))
    blind = Scores(names, names, np.zeros((10, 10)))
    assert np.mean([one_to_one(blind, seed).mean() for seed in range(200)]) == pytest.approx(
        0.1, abs=0.03
    )
    assert np.array_equal(one_to_one(blind, 3), one_to_one(blind, 3))


def test_a_matching_takes_unknown_scores_and_unequal_sides():
    scores = Scores(
        ("a", "b", "c"), ("b", "x"), np.array([[0.0, 5.0, np.nan], [np.nan, np.nan, np.nan]])
    )
    assert one_to_one(scores, 1).tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match="nobody to match"):
        one_to_one(Scores((), (), np.zeros((0, 0))), 1)


def test_views_of_a_gaussian_stream_keep_a_quarter_of_the_noise_when_sixteen_are_averaged():
    cohort = gazeveil.simulate(2, 1, seconds=8, rate_hz=120, task="video", seed=2).load()
    views = [
        RecordingSet(
            mechanism("gaussian", sigma_deg=3.0, losses="keep").release(cohort, seed=s).data
        )
        for s in range(16)
    ]

    def error(recording_set):
        return np.mean(
            [
                np.hypot(a.x_deg - b.x_deg, a.y_deg - b.y_deg)[a.valid].mean()
                for a, b in zip(recording_set.cohort, cohort, strict=True)
            ]
        )

    assert error(average_views(views)) == pytest.approx(error(views[0]) / 4, rel=0.1)
