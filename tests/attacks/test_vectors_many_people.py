"""Vectors of recordings are made once, and as the plain ways make them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import welch

import gazeveil
from gazeveil.attacks.vectors import extended, kinds, steps
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors


@pytest.fixture(scope="module")
def whole() -> RecordingSet:
    return RecordingSet(gazeveil.simulate(3, 4, 8.0, 100.0, seed=2).load())


def test_the_spectrum_is_scipys(whole: RecordingSet) -> None:
    found = extended.vectors(whole)
    assert whole.cohort is not None
    for i, recording in enumerate(whole.cohort):
        velocity = extended.velocities(recording)[0][0]
        frequency, power = welch(np.nan_to_num(velocity), fs=100.0, nperseg=400, detrend=False)
        for low, high in pairwise(extended.BANDS_HZ):
            inside = (frequency >= low) & (frequency < high)
            value = found.values[i, found.columns.index(f"spectrum_x_{low:g}_{high:g}hz")]
            if high > 50.0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(np.log(max(power[inside].mean(), 1e-4)), abs=1e-9)


@pytest.mark.parametrize("features", ["summary", "extended", "trajectory"])
def test_vectors_of_a_part_are_rows_of_the_whole(
    whole: RecordingSet, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole.prepared(("fixation", "saccade"))
    alone = whole.select(stimuli=whole.stimuli[:2])
    part = whole.select(stimuli=whole.stimuli[:2])
    part.part_of = whole
    wanted = recording_vectors(alone, features)
    recording_vectors(whole, features)
    calls: list[RecordingSet] = []
    make = kinds._MAKERS[features]

    def watched(recording_set: RecordingSet) -> RecordingVectors:
        calls.append(recording_set)
        return make(recording_set)

    monkeypatch.setitem(kinds._MAKERS, features, watched)
    found = recording_vectors(part, features)
    # The trajectory is described against the others of the same side, so it is made for the part.
    assert len(calls) == (1 if features == "trajectory" else 0)
    assert found.keys == wanted.keys
    assert found.columns == wanted.columns
    np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.parametrize("features", ["summary", "extended", "steps"])
def test_vectors_of_sets_put_together_are_taken_from_the_sets(
    whole: RecordingSet, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole.prepared(("fixation", "saccade"))
    parts = [whole.select(stimuli=whole.stimuli[:2]), whole.select(stimuli=whole.stimuli[1:3])]
    for part in parts:
        part.part_of = whole
    both = RecordingSet.together(parts)
    fresh = RecordingSet.together(parts)
    fresh.made_of = None
    wanted = recording_vectors(fresh, features)
    for part in parts:
        recording_vectors(part, features)
    calls: list[object] = []
    for module, name in ((steps, "_alone"), (extended, "place_statistics")):
        monkeypatch.setattr(module, name, lambda *given: calls.append(given))
    found = recording_vectors(both, features)
    assert not calls
    assert found.keys == wanted.keys == both.keys
    assert found.columns == wanted.columns
    np.testing.assert_array_equal(found.values, wanted.values)


def test_steps_of_another_noise_scale_are_worked_out_anew(whole: RecordingSet) -> None:
    """Raw recordings beside a release whose noise scale is public: no scale fits both."""
    assert whole.cohort is not None
    rng = np.random.default_rng(0)
    scales = {r.key: rng.uniform(0.5, 20.0, len(r)) for r in whole.cohort}
    release = RecordingSet(whole.cohort, noise_scale_deg=lambda r: scales[r.key])
    weighed, plain = recording_vectors(release, "steps"), recording_vectors(whole, "steps")
    assert not np.allclose(weighed.values, plain.values, equal_nan=True)
    both = RecordingSet.together([whole, release])
    alone = [c for c, block in enumerate(plain.blocks) if block == "steps"]
    found = recording_vectors(both, "steps").values[:, alone]
    np.testing.assert_array_equal(found, np.concatenate([plain.values, plain.values])[:, alone])
