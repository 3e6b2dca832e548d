"""Every detector on hand-made gaze, and on what trackers do wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Events, Recording, Sphere, detect
from gazeveil.errors import ParameterError
from gazeveil.events import METHODS
from tests.support.event_kinds import assert_partition, kinds
from tests.support.event_signals import SCREEN, jitter, on_screen, on_sphere, step_path, times

ALL = tuple(METHODS)


# --- what every detector must find
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("rate_hz", [60.0, 120.0, 250.0, 1000.0, 2000.0])
def test_three_fixations_and_two_saccades_are_found_at_any_rate(
    method: str, rate_hz: float
) -> None:
    x = step_path(rate_hz)
    r = on_screen(x + jitter(len(x)), rate_hz, y=jitter(len(x), seed=1))
    events = detect(r, method)
    assert_partition(events, len(r))
    fixations, saccades = events.of("fixation"), events.of("saccade")
    assert len(saccades) == 2
    for place, centre_s in zip((0.0, 8.0, -4.0), (0.2, 0.64, 1.08), strict=True):
        middle = round(centre_s * rate_hz)
        found = fixations.where((fixations.onset <= middle) & (fixations.offset >= middle))
        assert len(found) == 1
        assert abs(x[found.onset[0] : found.offset[0] + 1].mean() - place) < 0.5


@pytest.mark.parametrize("method", ALL)
def test_the_seam_of_the_sphere_makes_no_saccade(method: str) -> None:
    n = 500
    x, y = jitter(n, 0.05), 90.0 + jitter(n, 0.05, 1)  # trembles across 0/360
    assert (np.abs(np.diff(np.mod(x, 360.0))) > 300).any()
    assert kinds(detect(on_sphere(x, y), method)) == ["fixation"]


@pytest.mark.parametrize("method", ["auto", "ivt", "dorr", "is5t", "online"])
def test_a_still_gaze_near_the_pole_is_a_fixation_whatever_the_longitude_does(method: str) -> None:
    n = 500
    x, y = (
        np.linspace(0.0, 300.0, n),
        np.full(n, 0.05),
    )  # a circle of 0.05 deg radius around the zenith
    assert kinds(detect(on_sphere(x, y), method)) == ["fixation"]
    assert kinds(detect(on_sphere(x, y), "idt", dispersion="pairwise")) == ["fixation"]


@pytest.mark.parametrize("method", ["auto", "ivt", "online"])
def test_screen_and_sphere_give_the_same_events_for_the_same_gaze(method: str) -> None:
    x = step_path(250.0)
    x = x + jitter(len(x))
    flat = on_screen(x, y=jitter(len(x), seed=1))
    lon, lat = Sphere().degrees(SCREEN.vectors(flat.x_deg, flat.y_deg))
    a, b = detect(flat, method), detect(on_sphere(lon + 180.0, lat), method)
    assert kinds(a) == kinds(b)
    assert np.abs(a.onset - b.onset).max() <= 1


@pytest.mark.parametrize("method", ALL)
def test_a_long_gap_is_a_blink_and_a_longer_one_is_not(method: str) -> None:
    n = 1000
    valid = np.ones(n, dtype=bool)
    valid[300:350] = False  # 200 ms
    valid[600:800] = False  # 800 ms
    events = detect(on_screen(jitter(n), y=jitter(n, seed=1), valid=valid), method)
    assert_partition(events, n)
    words = events.words(n)
    assert (words[300:350] == "blink").all()
    assert not (words[740:800] == "blink").any()
    assert set(words[740:800].tolist()) <= {"noise", "undefined"}
    assert (words[20:290] == "fixation").all()


@pytest.mark.parametrize("method", ALL)
def test_a_short_dropout_does_not_cut_a_fixation(method: str) -> None:
    valid = np.ones(500, dtype=bool)
    valid[200:202] = False
    x = np.where(valid, jitter(500), np.nan)
    assert kinds(detect(on_screen(x, y=jitter(500, seed=1), valid=valid), method)) == ["fixation"]


@pytest.mark.parametrize("method", ALL)
def test_missing_rows_cut_a_fixation_in_two(method: str) -> None:
    t = times(500, 250.0)
    t[250:] += 2_000_000_000
    r = Recording("p", "s", t, jitter(500), jitter(500, seed=1), space=SCREEN)
    events = detect(r, method)
    assert kinds(events) == ["fixation", "fixation"]
    assert events.offset.tolist() == [249, 499]


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_an_empty_recording_has_no_events(method: str) -> None:
    assert len(detect(on_screen(np.empty(0)), method)) == 0


@pytest.mark.parametrize("method", ALL)
def test_events_without_samples_are_returned_as_they_came(method: str) -> None:
    given_events = Events.from_words(["fixation", "saccade"], [0, 1], source="labels")
    r = Recording(
        "p", "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), events=given_events
    )
    assert detect(r, method) is given_events


@pytest.mark.parametrize("method", ["auto", "ivt", "idt", "dorr", "is5t"])
@pytest.mark.parametrize("n", [1, 2, 5, 14, 15, 16, 31])
def test_few_samples_are_no_trouble(method: str, n: int) -> None:
    for rate_hz in (25.0, 250.0, 2000.0):
        assert_partition(detect(on_screen(jitter(n), rate_hz), method), n)


@pytest.mark.parametrize("method", ALL)
def test_an_unknown_rate_leaves_samples_undefined(method: str) -> None:
    r = Recording("p", "s", np.array([5], dtype=np.int64), np.zeros(1), np.zeros(1), space=SCREEN)
    assert np.isnan(r.rate_hz)
    assert kinds(detect(r, method)) == ["undefined"]


@pytest.mark.parametrize("method", ALL)
def test_a_recording_that_is_lost_throughout_is_undefined(method: str) -> None:
    lost = np.full(400, np.nan)
    assert kinds(detect(on_screen(lost, y=lost), method)) == ["undefined"]


@pytest.mark.parametrize("method", ALL)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_recording_is_partitioned(method: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 400))
    rate_hz = data.draw(st.sampled_from([25.0, 36.0, 120.0, 250.0, 1000.0, 2000.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = data.draw(st.sampled_from([0.0, 0.02, 1.0, 10.0]))
    x = np.clip(
        np.cumsum(rng.normal(0, size, n) * (rng.random(n) < 0.2))
        + rng.normal(0, size / 10 + 1e-9, n),
        -80,
        80,
    )
    y = np.clip(rng.normal(0, size, n), -80, 80)
    valid = rng.random(n) < data.draw(st.sampled_from([0.0, 0.5, 0.97, 1.0]))
    t = times(n, rate_hz) + (rng.random(n) < 0.01).cumsum() * 100_000_000
    sphere = data.draw(st.booleans())
    x = np.where(valid, x + 180 if sphere else x, np.nan)
    r = Recording(
        "p",
        "s",
        t,
        x,
        y + 90 if sphere else y,
        valid,
        space=Sphere() if sphere else SCREEN,
        rate_hz=rate_hz,
    )
    events = detect(r, method)
    assert_partition(events, n)
    assert (events.onset_ns == t[events.onset]).all()
    assert (events.offset_ns == t[events.offset]).all()


REFUSED = [
    ("auto", {"parameter": 1}, "has no option 'parameter'. Did you mean 'parameters'?"),
    ("auto", {"parameters": 3}, "must be an AutoParameters"),
    ("auto", {"pursuit": "no"}, "must be True or False"),
    ("auto", {"pso": "fixations"}, "must be one of fixation, saccade, separate"),
    ("auto", {"network": "auto.npz"}, "must be a Network"),
    ("ivt", {"setting": "georg"}, "Did you mean 'george'?"),
    ("ivt", {"threshold_deg_s": 0}, "must be a positive finite number"),
    ("ivt", {"min_fixation_ms": -1}, "must be a finite number of at least 0"),
    ("ivt", {"smooth": 1}, "must be True, False or None"),
    ("idt", {"dispersion": "box"}, "must be one of pairwise, range"),
    ("idt", {"threshold_deg": float("nan")}, "must be a positive finite number"),
    ("dorr", {"signal": "E-H"}, "must be one of E+H, FOV"),
    ("dorr", {"onset_fast_deg_s": 20.0}, "must be at least onset_slow_deg_s (35)"),
    ("is5t", {"high_deg_s": 5.0}, "must be above low_deg_s (10)"),
    ("online", {"peak_deg_s": 10.0}, "has no option 'peak_deg_s'"),
    ("online", {"pursuit": 1}, "must be True or False"),
    ("smooth", {}, "must be one of auto, dorr, idt, is5t, ivt, online"),
]


@pytest.mark.parametrize(("method", "parameters", "message"), REFUSED)
def test_wrong_parameters_are_refused_in_one_sentence(
    method: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        detect(on_screen(jitter(50)), method, **parameters)
    assert message in str(caught.value)


def test_a_cohort_is_not_a_recording() -> None:
    with pytest.raises(ParameterError, match="must be a Recording"):
        detect([on_screen(jitter(50))])  # type: ignore[arg-type]


def test_detected_events_can_be_pickled() -> None:
    events = detect(on_screen(step_path(250.0)))
    assert kinds(pickle.loads(pickle.dumps(events))) == kinds(events)


@pytest.mark.parametrize("method", ["auto", "online"])
@pytest.mark.parametrize("degrees", [0.0, 37.0, 180.0])
def test_turned_mirrored_and_moved_gaze_gives_the_same_events(method: str, degrees: float) -> None:
    x = step_path(250.0) + jitter(len(step_path(250.0)), 0.02)
    y = jitter(len(x), 0.02, 1)
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    plain = detect(on_screen(x, y=y), method)
    turned = detect(on_screen(c * x + s * y + 1.0, y=s * x - c * y - 2.0), method)
    assert kinds(turned) == kinds(plain)
    assert turned.onset.tolist() == plain.onset.tolist()
