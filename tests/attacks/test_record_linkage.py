"""Joining releases with each other, with raw data, over tasks and over views; and noise that names
a release.
"""

import math

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import Scores
from gazeveil.attacks.infer.record_linkage import (
    by_tasks,
    by_views,
    fingerprint,
    link_records,
    one_to_one,
)
from gazeveil.attacks.views import average_views
from gazeveil.errors import DataError, ParameterError
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


@pytest.mark.parametrize("k", [4, 8])
def test_k_same_leaks_with_more_tasks_where_groups_are_redrawn_and_not_with_one_partition(k):
    counts = (1, 3, 10, 30)
    rates = {}
    for reading in ("published", "corrected"):
        curves = []
        for seed in range(5):
            table, raw = split(trait_table(people=20, stimuli=31, seed=seed), 30)
            release = (
                mechanism("k-same-select", k=k, reading=reading).release(table, seed=seed).data
            )
            curves.append(
                [
                    p.result.value
                    for p in by_tasks(
                        Nearest(), trait_material(release), raw, counts, seed=1, repetitions=1
                    )
                ]
            )
        rates[reading] = np.mean(curves, axis=0)
    bound = 1 / k + 3 * math.sqrt((1 - 1 / k) / k / 100)
    assert (rates["corrected"] <= bound).all()
    assert rates["published"][-1] > max(0.5, bound)
    assert rates["published"][-1] > rates["published"][0] + 0.3


def test_more_tasks_than_released_are_refused():
    table, raw = split(trait_table(stimuli=4), 2)
    with pytest.raises(ParameterError, match="at most 2"):
        by_tasks(Nearest(), trait_material(table), raw, (3,), seed=1)


def test_views_of_noisy_rows_give_people_away_again():
    table, _ = split(trait_table(people=20, stimuli=4, seed=4), 2)
    gallery, probe = (
        trait_material(table),
        trait_table(people=20, stimuli=4, seed=4).select(stimuli=["s02", "s03"]),
    )
    rng = np.random.default_rng(1)
    views = [
        trait_material(
            FeatureTable(
                probe.values + 6 * rng.normal(size=probe.values.shape),
                probe.columns,
                probe.keys,
                probe.bounds,
            )
        )
        for _ in range(64)
    ]
    one, some, many = (
        p.result.value for p in by_views(Nearest(), gallery, views, (1, 8, 64), seed=1)
    )
    assert one < 0.4
    assert one < some < many
    assert many > 0.8
    with pytest.raises(ParameterError, match="at most 64"):
        by_views(Nearest(), gallery, views, (65,), seed=1)


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


@pytest.fixture(scope="module")
def nobody():
    """20 people x 3 documents x 48 features of pure noise: there is nothing of a person in it."""
    return trait_table(people=20, stimuli=3, apart=0.0, noise=1.0, features=48, rows=128)


@pytest.mark.parametrize("reading", ["published", "corrected"])
def test_fpa_of_one_coefficient_names_the_release_by_its_noise_and_two_releases_share_nothing(
    nobody, reading
):
    fpa = mechanism("fpa", epsilon=0.48, k=1, reading=reading)
    one, two = fingerprint(
        Nearest(), *(trait_material(fpa.release(nobody, seed=s).data) for s in (1, 2)), seed=1
    )
    assert one.value == 1.0  # both halves hold the same noise; nobody's gaze is in it
    assert two.p_value > 0.01
    assert two.value < 0.3


def test_without_a_mechanism_there_is_no_fingerprint(nobody):
    raw = trait_material(nobody)
    one, two = fingerprint(Nearest(), raw, raw, seed=1)
    assert one.p_value > 0.01
    assert one == two
