"""Distances of durations and amplitudes, rates and the main sequence: by hand, under mechanisms,
and where a release left nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.events import distance, main_sequence
from gazeveil.utility.registry import utility

METRICS = (
    "fixation_duration_wasserstein_s",
    "saccade_amplitude_wasserstein_deg",
    "fixation_rate_error_hz",
    "saccade_rate_error_hz",
    "main_sequence_slope_error",
    "peak_velocity_error_deg_s",
    "fixation_duration_median_error",
    "saccade_amplitude_median_error",
)


def recording_set(
    durations: dict[str, NDArray[np.float64]],
    amplitudes: dict[str, NDArray[np.float64]],
    slope: float = 0.5,
    level: float = 100.0,
) -> RecordingSet:
    """Tables with one recording per person; peak velocity is level * amplitude**slope, saccades
    last 0.05 s.
    """
    tables = {}
    for kind, by, columns in (
        ("fixation", durations, ("duration",)),
        ("saccade", amplitudes, ("duration", "amplitude", "ang_vel_max")),
    ):
        values = np.concatenate([*(v for v in by.values()), np.empty(0)])
        full = (
            values[:, None]
            if kind == "fixation"
            else np.column_stack(
                [np.full(len(values), 0.05), values, level * np.abs(values) ** slope]
            )
        )
        keys = Keys.of_recordings(
            [(p, "clip", "1", "") for p in by], [np.arange(len(v)) for v in by.values()]
        )
        tables[kind] = FeatureTable(full, columns, keys)
    return RecordingSet(None, tables)


def figures(raw: RecordingSet, test: RecordingSet) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility("events").measure(raw, raw, test, 0)}


def test_every_figure_is_the_one_by_hand() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set({"p": np.full(50, 0.2)}, {"p": amplitude})
    test = recording_set({"p": np.full(30, 0.3)}, {"p": amplitude[:20] + 2}, slope=0.7, level=80.0)
    found = figures(raw, test)
    time_s = 50 * 0.2 + 40 * 0.05
    assert tuple(found) == METRICS
    assert found["fixation_duration_wasserstein_s"].value == pytest.approx(0.1)
    assert found["saccade_amplitude_wasserstein_deg"].value == pytest.approx(
        distance(amplitude, amplitude[:20] + 2)
    )
    assert found["fixation_rate_error_hz"].value == pytest.approx(20 / time_s)
    assert found["saccade_rate_error_hz"].value == pytest.approx(20 / time_s)
    assert found["main_sequence_slope_error"].value == pytest.approx(0.2)
    assert found["peak_velocity_error_deg_s"].value == pytest.approx(
        abs(100 * 5**0.5 - 80 * 5**0.7)
    )
    assert found["fixation_duration_median_error"].value == pytest.approx(0.1 / 0.2)
    assert found["saccade_amplitude_median_error"].value == pytest.approx(
        abs(5 - np.median(amplitude[:20] + 2)) / 5
    )


def test_the_recordings_themselves_have_no_error_and_parts_are_people() -> None:
    raw = RecordingSet(gazeveil.simulate(3, 2, seconds=15, rate_hz=120, seed=1).load())
    for name, result in figures(raw, raw).items():
        assert result.value == 0, name
        assert result.names == ("p1", "p2", "p3")


def test_more_noise_moves_events_farther() -> None:
    cohort = gazeveil.simulate(4, 2, seconds=15, rate_hz=120, seed=1).load()
    raw = RecordingSet(cohort).prepared(("fixation", "saccade"))
    little, much = (
        figures(
            raw,
            RecordingSet(gazeveil.mechanism("gaussian", sigma_deg=s).release(cohort, seed=1).data),
        )
        for s in ("0.05", "2")
    )
    for name in METRICS[:3]:
        assert much[name].value > 2 * little[name].value, name
    assert all(np.isfinite(r.value) for r in little.values())


def test_a_person_left_without_events_is_as_far_as_events_of_size_zero() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set(
        {"p": np.full(50, 0.2), "q": np.full(50, 0.2)}, {"p": amplitude, "q": amplitude}
    )
    none = np.empty(0)
    release = RecordingSet(
        None,
        {
            k: t.where(t.keys.person == "p")
            for k, t in (("fixation", raw.fixations), ("saccade", raw.saccades))
        },
    )
    alone = figures(raw, release)
    assert alone["fixation_duration_wasserstein_s"].names == (
        "p",
    )  # a table release does not say that q was there
    cohort = gazeveil.simulate(2, 1, seconds=10, rate_hz=120, seed=1).load()
    lost = Cohort(
        [r.with_(valid=np.zeros(len(r), dtype=np.bool_)) if r.person == "p2" else r for r in cohort]
    )
    whole = RecordingSet(cohort)
    found = figures(whole, RecordingSet(lost))
    theirs = whole.fixations.values[whole.fixations.keys.person == "p2", 0]
    assert found["fixation_duration_wasserstein_s"].parts[1] == pytest.approx(theirs.mean())
    assert found["fixation_duration_wasserstein_s"].parts[0] == 0
    assert found["main_sequence_slope_error"].names == ("p1",)
    assert "1 of 2 people" in found["main_sequence_slope_error"].note
    assert distance(theirs, none) == pytest.approx(theirs.mean())


def test_a_release_under_other_names_is_compared_with_everybody_together() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set(
        {"p": np.full(50, 0.2), "q": np.full(50, 0.4)}, {"p": amplitude, "q": amplitude}
    )
    release = recording_set(
        {"s1": np.full(50, 0.2), "s2": np.full(50, 0.4)}, {"s1": amplitude, "s2": amplitude}
    )
    found = figures(raw, release)
    assert found["fixation_duration_wasserstein_s"].value == 0
    assert found["fixation_duration_wasserstein_s"].names == ("everybody",)
    assert "other names" in found["fixation_rate_error_hz"].note


def test_main_sequences_need_saccades_that_differ() -> None:
    rng = np.random.default_rng(0)
    amplitude = rng.uniform(1, 20, 500)
    slope, intercept = main_sequence(
        amplitude, 90 * amplitude**0.55 * np.exp(rng.normal(0, 0.1, 500))
    )
    assert slope == pytest.approx(0.55, abs=0.02)
    assert np.exp(intercept) == pytest.approx(90, rel=0.05)
    for few in (amplitude[:9], np.full(50, 3.0), np.full(50, -1.0), np.full(50, np.nan)):
        assert np.isnan(main_sequence(few, np.full(len(few), 100.0))).all()


def test_what_cannot_be_compared_is_refused_in_one_sentence() -> None:
    raw = recording_set({"p": np.full(50, 0.2)}, {"p": np.linspace(1, 9, 40)})
    empty = RecordingSet(
        None, {"fixation": raw.fixations.where([]), "saccade": raw.saccades.where([])}
    )
    with pytest.raises(DataError, match="nobody has both"):
        utility("events").measure(empty, empty, raw, 0)
    with pytest.raises(DataError, match="'amplitude'"):
        utility("events").measure(
            raw,
            raw,
            RecordingSet(
                None, {"fixation": raw.fixations, "saccade": raw.saccades.drop("amplitude")}
            ),
            0,
        )
