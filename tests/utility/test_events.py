"""Events by person and by stimulus: medians, and what mixing people shows in which figure."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.registry import utility
from tests.support.pieces import RawPieces, jumpers


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(jumpers(people=6, stimuli=2, stay_s=0.6)).prepared(("fixation", "saccade"))


def measured(
    raw: RecordingSet, test: RecordingSet, text: str = "events"
) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility(text).measure(raw, raw, test, 0)}


def longer(table: FeatureTable, factor: float) -> FeatureTable:
    values = table.values.copy()
    values[:, table.columns.index("duration")] *= factor
    return FeatureTable(values, table.columns, table.keys, table.bounds)


@pytest.mark.parametrize("text", ["events", "events:by=stimulus"])
def test_fixations_a_tenth_longer_have_a_median_a_tenth_off(raw: RecordingSet, text: str) -> None:
    tables = {"fixation": longer(raw.fixations, 1.1), "saccade": raw.saccades}
    found = measured(raw, RecordingSet(None, tables), text)
    assert found["fixation_duration_median_error"].value == pytest.approx(0.1)
    assert found["saccade_amplitude_median_error"].value == 0.0


def test_mixing_people_shows_by_person_and_not_by_stimulus(raw: RecordingSet) -> None:
    names = sorted({r.person for r in raw.cohort or ()})
    swap = dict(zip(names, names[::-1], strict=True))
    mixed = RecordingSet(Cohort([r.with_(person=swap[r.person]) for r in raw.cohort or ()]))
    by_person, by_stimulus = (
        measured(raw, mixed, f"events:by={by}")["saccade_amplitude_wasserstein_deg"]
        for by in ("person", "stimulus")
    )
    assert by_person.value > 0.5
    assert by_person.of == "person"
    assert by_stimulus.value == pytest.approx(0.0, abs=1e-9)
    assert by_stimulus.of == "stimulus"
    assert by_stimulus.names == ("s0", "s1")


def test_pieces_are_compared_stimulus_by_stimulus_with_cut_recordings(raw: RecordingSet) -> None:
    cut = protect(raw, RawPieces(), seed=2)
    found = measured(raw, cut)
    assert {r.of for r in found.values()} == {"stimulus"}
    assert all(r.value == pytest.approx(0.0, abs=1e-9) for r in found.values())
    noisy = measured(raw, protect(raw, RawPieces(noise_deg=2.0), seed=2))
    assert noisy["fixation_duration_median_error"].value > 0.3


def test_a_release_without_events_has_lost_the_whole_median(raw: RecordingSet) -> None:
    lost = Cohort([r.with_(valid=np.zeros(len(r), dtype=np.bool_)) for r in raw.cohort or ()])
    found = measured(raw, RecordingSet(lost))
    assert found["fixation_duration_median_error"].value == 1.0
    assert found["saccade_amplitude_median_error"].value == 1.0


def test_another_word_is_refused() -> None:
    with pytest.raises(ParameterError, match="auto, person, stimulus"):
        utility("events:by=clip")
