"""Large tables are set aside: nobody who holds a recording set holds them, and nobody notices."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

import gazeveil
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import KEYS, FeatureTable
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Cohort


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(3, 3, 4.0, 60.0, seed=5).load()


def same(a: FeatureTable, b: FeatureTable) -> bool:
    keys = all(np.array_equal(a.keys[name], b.keys[name]) for name in KEYS)
    types = all(a.keys[name].dtype == b.keys[name].dtype for name in KEYS)
    values = np.array_equal(a.values, b.values, equal_nan=True)
    return keys and types and values and a.columns == b.columns and a.counts == b.counts


def test_a_large_table_is_read_where_somebody_looks_and_held_by_nobody_else(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = RecordingSet(cohort)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    held = RecordingSet(cohort)
    first = held.saccades
    assert held.saccades is first
    watched = weakref.ref(first)
    del first
    gc.collect()
    assert watched() is None
    assert same(held.saccades, wanted.saccades)
    assert same(held.fixations, wanted.fixations)
    assert not held.saccades.values.flags.writeable
    assert np.array_equal(held.saccades.bounds, wanted.saccades.bounds)  # type: ignore[arg-type]


def test_parts_sums_and_pickles_of_sets_have_the_same_tables(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> list[RecordingSet]:
        whole = RecordingSet(cohort, people={}).prepared(("fixation", "saccade"))
        part = whole.select(stimuli=cohort.stimuli[:2])
        return [whole, part, RecordingSet.together([whole, part])]

    wanted = made()
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    found = made()
    with monkeypatch.context() as watched:
        watched.setattr(scratch.ScratchFile, "put", lambda *_: pytest.fail("written again"))
        found[0].where(lambda key: True)
    sent = pickle.loads(pickle.dumps(found[1]))
    for a, b in zip([*wanted, wanted[1]], [*found, sent], strict=True):
        assert list(a.tables) == list(b.tables) == ["fixation", "saccade"]
        assert all(same(a.tables[name], b.tables[name]) for name in a.tables)
