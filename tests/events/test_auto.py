"""The detector `auto`: pursuit, settling, blinks, artefacts, and where it says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil import Recording, detect
from gazeveil.events.quality import QualityWarning, quality
from tests.support.event_kinds import assert_partition, kinds
from tests.support.event_signals import SCREEN, jitter, on_screen, ramp, step_path

# --- the default detector
# --------------------------------------------------------------------------------------------------


def test_a_steady_drift_is_pursuit_and_can_be_switched_off() -> None:
    path = np.concatenate(
        [np.zeros(100), ramp(0, 5, 10), 5 + np.arange(200) * 0.03, ramp(11, 0, 12), np.zeros(100)]
    )
    r = on_screen(path + jitter(len(path)), y=jitter(len(path), seed=1))
    assert kinds(detect(r)) == ["fixation", "saccade", "pursuit", "saccade", "fixation"]
    assert "pursuit" not in kinds(detect(r, pursuit=False))


def test_settling_is_an_event_of_its_own_where_the_rate_shows_it() -> None:
    def settling(rate_hz: float) -> Recording:
        after = np.arange(round(0.4 * rate_hz)) / rate_hz
        ring = 0.35 * np.exp(-after / 0.012) * np.sin(2 * np.pi * 45 * after)
        path = np.concatenate(
            [np.zeros(round(0.3 * rate_hz)), ramp(0, 8, round(0.04 * rate_hz)), 8.0 + ring]
        )
        return on_screen(path, rate_hz)

    events = detect(settling(1000.0))
    assert kinds(events) == ["fixation", "saccade", "pso", "fixation"]
    assert 0.005 < events.duration_s[2] < 0.035
    assert kinds(detect(settling(250.0))) == ["fixation", "saccade", "fixation"]


def test_a_lid_that_drags_gaze_down_is_part_of_the_blink() -> None:
    down = np.concatenate(
        [np.zeros(200), ramp(0, 6, 8), np.full(20, 6.0), ramp(6, 0, 8), np.zeros(200)]
    )
    valid = np.ones(len(down), dtype=bool)
    valid[208:228] = False
    events = detect(on_screen(jitter(len(down)), y=down + jitter(len(down), seed=1), valid=valid))
    assert kinds(events) == ["fixation", "blink", "fixation"]
    assert events.onset[1] <= 201
    assert events.offset[1] >= 234


def test_a_short_loss_is_a_blink_only_if_the_lid_moved() -> None:
    valid = np.ones(500, dtype=bool)
    valid[200:208] = False  # 32 ms
    assert kinds(detect(on_screen(jitter(500), y=jitter(500, seed=1), valid=valid))) == ["fixation"]
    dragged = jitter(500, seed=1)
    dragged[195:200], dragged[208:213] = ramp(0, 3, 5), ramp(3, 0, 5)
    assert kinds(detect(on_screen(jitter(500), y=dragged, valid=valid))) == [
        "fixation",
        "blink",
        "fixation",
    ]


def test_a_blink_does_not_swallow_the_saccades_that_follow_it() -> None:
    hops = step_path(250.0, tuple(6.0 * (k % 2) for k in range(10)), 250.0)
    path = np.concatenate([np.zeros(100), hops])
    valid = np.ones(len(path), dtype=bool)
    valid[40:75] = False
    events = detect(on_screen(path, valid=valid))
    assert (events.words(len(path))[40:75] == "blink").all()
    assert len(events.of("saccade")) == 9
    assert len(events.of("blink")) == 1


def test_no_fixation_moves_fast_whatever_the_network_says() -> None:
    """A stroke of 3 deg within 20 ms beside a loss was never in the training recordings."""
    valid = np.ones(500, dtype=bool)
    valid[200:208] = False
    y = jitter(500, seed=1)
    y[195:200], y[208:213] = ramp(0, 3, 5), ramp(3, 0, 5)
    words = detect(on_screen(jitter(500), y=y, valid=valid)).words(500)
    assert "fixation" not in words[196:199]


def test_the_corner_of_the_screen_means_no_eye() -> None:
    x, y = jitter(500), jitter(500, seed=1)
    corner = SCREEN.from_px([0.0], [0.0])
    x[200:260], y[200:260] = corner[0][0], corner[1][0]
    events = detect(on_screen(x, y=y))
    assert kinds(events) == ["fixation", "blink", "fixation"]


def test_gaze_beside_the_screen_is_noise() -> None:
    half = SCREEN.width_deg / 2
    path = np.concatenate(
        [
            np.full(200, half - 3),
            ramp(half - 3, half + 3, 10),
            np.full(100, half + 3.0),
            ramp(half + 3, half - 3, 10),
            np.full(200, half - 3),
        ]
    )
    words = detect(on_screen(path)).words(len(path))
    assert (words[215:305] == "noise").all()
    assert (words[:190] == "fixation").all()


def test_a_noisy_tracker_is_smoothed_until_its_fixations_stay_whole() -> None:
    x = step_path(250.0, (0.0, 10.0, -5.0, 6.0), 500.0)
    r = on_screen(x + jitter(len(x), 0.3), y=jitter(len(x), 0.3, 1))
    assert kinds(detect(r)).count("saccade") == 3
    assert kinds(detect(r, pursuit=False)).count("fixation") == 4
    assert kinds(detect(r, "ivt")).count("fixation") != 4


@pytest.mark.parametrize("rate_hz", [250.0, 1000.0])
def test_settling_goes_where_one_wants_it(rate_hz: float) -> None:
    x = step_path(rate_hz, (0.0, 8.0), 400.0)
    start = int(np.flatnonzero(x == 8.0)[0])
    after = np.arange(len(x) - start) / rate_hz
    x[start:] += 0.8 * np.exp(-after / 0.012) * np.sin(2 * np.pi * 25.0 * after)
    r = on_screen(x + jitter(len(x), 0.005), rate_hz, y=jitter(len(x), 0.005, 1))
    own, joined, left = (detect(r, pso=choice) for choice in ("separate", "saccade", "fixation"))
    assert kinds(own) == ["fixation", "saccade", "pso", "fixation"]
    assert kinds(joined) == kinds(left) == ["fixation", "saccade", "fixation"]
    assert left.of("saccade").offset[0] < joined.of("saccade").offset[0]
    assert kinds(detect(r)) == kinds(own if rate_hz >= 400 else joined)


@pytest.mark.parametrize(("rate_hz", "noise_deg"), [(20.0, 0.1), (250.0, 2.5)])
def test_outside_what_it_was_shown_to_handle_auto_says_so_and_uses_dispersion(
    rate_hz: float, noise_deg: float
) -> None:
    x = step_path(rate_hz, (0.0, 16.0, -12.0), 900.0)
    r = on_screen(x + jitter(len(x), noise_deg), rate_hz, y=jitter(len(x), noise_deg, 1))
    with pytest.warns(QualityWarning, match="was not shown to handle this recording") as caught:
        events = detect(r)
    assert f"{rate_hz:.0f} Hz" in str(caught[0].message) or "noise" in str(caught[0].message)
    assert events.source == "auto (idt)"
    assert_partition(events, len(r))
    fixations = events.of("fixation")
    assert 3 <= len(fixations) <= 6  # noise may cut one in two
    for k, place in enumerate((0.0, 16.0, -12.0)):
        middle = int((k + 0.5) * len(x) / 3)
        (found,) = np.flatnonzero((fixations.onset <= middle) & (fixations.offset >= middle))
        inside = slice(fixations.onset[found], fixations.offset[found] + 1)
        assert np.median(r.x_deg[inside]) == pytest.approx(place, abs=1.0)
    assert "pursuit" not in kinds(events)
    assert quality(r, events).concerns


def test_a_recording_it_can_handle_gets_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    events = detect(on_screen(step_path(36.0), 36.0))
    assert events.source == "auto"
    assert not [w for w in recwarn if issubclass(w.category, QualityWarning)]
