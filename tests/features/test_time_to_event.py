"""Features of the time to the next event: what they are on a known path, and that they know nothing
of what comes after.
"""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import ParameterError
from gazeveil.features.time_to_event import (
    BOUNDS,
    COLUMNS,
    moment_features,
    offsets_deg,
    time_to_event_features,
    time_to_next_s,
)
from gazeveil.gaze.events import Events
from tests.support.recordings import real_cohort

SCREEN = Screen(1600, 900, 480.0, 270.0, 600.0)
RATE_HZ = 250.0


def two_jumps() -> Recording:
    """Rests of 1 s, 10 degrees to the right at 1 s and 5 down at 2 s, each jump in 40 ms."""
    t_s = np.arange(round(3 * RATE_HZ)) / RATE_HZ
    x = 10 * np.clip((t_s - 1.0) / 0.04, 0, 1)
    y = 5 * np.clip((t_s - 2.0) / 0.04, 0, 1)
    noise = np.random.default_rng(1).normal(0, 0.01, (2, len(t_s)))
    t_ns = np.round(t_s * 1e9).astype(np.int64)
    return Recording("a", "s", t_ns, x + noise[0], y + noise[1], space=SCREEN, rate_hz=RATE_HZ)


def at(seconds: list[float]) -> dict[str, np.ndarray]:
    now = np.round(np.array(seconds) * 1e9).astype(np.int64)
    return dict(zip(COLUMNS, moment_features(two_jumps(), now).T, strict=True))


def test_features_of_a_known_path() -> None:
    told = at([0.8, 1.5, 2.8])
    assert told["last_amplitude_deg"][0] == 0
    np.testing.assert_allclose(told["last_amplitude_deg"][1:], [10, 5], atol=0.6)
    np.testing.assert_allclose(told["last_right"], [0, 1, 0], atol=0.1)
    np.testing.assert_allclose(told["last_down"], [0, 0, 1], atol=0.1)
    np.testing.assert_allclose(told["since_saccade_s"], [0.8, 0.46, 0.76], atol=0.04)
    np.testing.assert_allclose(told["last_fixation_s"], [0, 1.0, 0.96], atol=0.05)
    np.testing.assert_allclose(told["saccades_hz"], [0, 0.5, 1.0])
    assert (told["dispersion_deg"] < 0.1).all()
    assert (told["saccade_now"] == 0).all()


def test_a_saccade_is_under_way_and_gaze_drifts_with_it() -> None:
    told = at([1.035])
    assert told["saccade_now"][0] == 1
    assert told["since_saccade_s"][0] == 0
    assert told["drift_right_deg"][0] > 0.5
    assert abs(told["drift_down_deg"][0]) < 0.1
    assert told["speed_deg_s"][0] > 50


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_after_a_moment_changes_its_features(seed: int) -> None:
    recording = next(iter(gazeveil.simulate(1, 1, 6.0, 120.0, seed=seed)))
    now = recording.t_ns[0] + np.arange(5, 60, 7) * 100_000_000
    whole = moment_features(recording, now)
    for i, moment in enumerate(now.tolist()):
        known = recording.slice(0, int(np.searchsorted(recording.t_ns, moment, side="right")))
        alone = moment_features(known, np.array([moment]))
        np.testing.assert_allclose(alone[0], whole[i], atol=1e-9)


def test_samples_that_come_late_are_known_late() -> None:
    recording = two_jumps()
    late = recording.t_ns + 300_000_000
    now = np.array([1_200_000_000])
    assert moment_features(recording, now)[0, COLUMNS.index("last_amplitude_deg")] > 9
    assert moment_features(recording, now, late)[0, COLUMNS.index("last_amplitude_deg")] == 0


def test_time_to_the_next_event() -> None:
    words = np.array(["fixation"] * 5 + ["saccade"] * 2 + ["fixation"] * 3)
    events = Events.from_words(words, np.arange(10) * 100_000_000)
    wait = time_to_next_s(events, np.array([0, 450_000_000, 500_000_000]))
    np.testing.assert_allclose(wait, [0.5, 0.05, np.nan])
    assert np.isnan(time_to_next_s(events, np.array([0]), kind="blink")).all()


def test_there_is_no_seam_on_a_sphere() -> None:
    ways = offsets_deg(Sphere(), *(np.array([v]) for v in (359.0, 90.0, 2.0, 88.0)))
    np.testing.assert_allclose(ways, [[3.0, -2.0]], atol=0.01)


def test_the_table_has_bounds_and_what_is_to_be_told() -> None:
    cohort = gazeveil.simulate(2, 1, 4.0, 120.0, seed=1)
    table = time_to_event_features(cohort, every_s=0.2)
    assert table.columns == COLUMNS
    assert np.isfinite(table.values).all()
    assert len(table.annotations["time_to_event_s"]) == len(table) == 40
    assert np.nanmin(table.annotations["time_to_event_s"]) > 0
    with pytest.raises(ParameterError, match="every_s"):
        time_to_event_features(cohort, every_s=0)


def test_lost_gaze_and_empty_recordings_give_zeros() -> None:
    recording = two_jumps()
    lost = recording.with_(valid=np.zeros(len(recording), dtype=bool))
    now = np.array([500_000_000])
    assert moment_features(lost, now)[0, 1:].tolist() == [0.0] * 11
    assert moment_features(recording.slice(0, 0), now).tolist() == [[0.0] * 12]


def test_public_bounds_hold_real_moments() -> None:
    cohort = real_cohort("gazecom")
    some = cohort.select(people=sorted(cohort.people)[:2], stimuli=cohort.stimuli[:2])
    table = time_to_event_features(some)
    low, high = np.array(list(BOUNDS.values())).T
    assert ((table.values >= low) & (table.values <= high)).mean() > 0.999
