"""Detectors of papers: I-VT, I-DT, Dorr's, Larsson's and IS5T, each by its own rules.

Every detector on hand-made gaze, and on what trackers do wrong.

The detector `auto`: pursuit, settling, blinks, artefacts, and where it says that it cannot.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Events, Recording, Sphere, detect
from gazeveil.errors import DataError, ParameterError
from gazeveil.events import METHODS
from gazeveil.events.ivt import mark_okn, squared_steps
from gazeveil.events.quality import QualityWarning, quality
from gazeveil.events.trace import BridgedGaze
from tests.support.event_kinds import assert_partition, kinds
from tests.support.event_signals import SCREEN, jitter, on_screen, on_sphere, ramp, step_path, times

# --- I-VT
# --------------------------------------------------------------------------------------------------


def test_ivt_speed_is_that_of_scipys_filter() -> None:
    from scipy.signal import savgol_filter

    rng = np.random.default_rng(3)
    for n in (16, 17, 40, 5000):
        x, y = rng.normal(0, 1, (2, n))
        wanted = np.diff(savgol_filter(x, 15, 6)) ** 2 + np.diff(savgol_filter(y, 15, 6)) ** 2
        got = squared_steps(BridgedGaze.of(on_screen(x, y=y)), smooth=True)
        np.testing.assert_allclose(got[1:], wanted, rtol=1e-9, atol=1e-12)
        assert got[0] == got[1]


def ivt_plain(path: np.ndarray, **parameters: object) -> Events:
    return detect(on_screen(path), "ivt", smooth=False, **parameters)


def test_ivt_merges_a_short_fixation_into_the_saccades_around_it() -> None:
    def path_with(samples: int) -> np.ndarray:
        return np.concatenate(
            [
                np.zeros(50),
                np.linspace(0, 5, 8),
                np.full(samples, 5.0),
                np.linspace(5, 9, 8),
                np.full(50, 9.0),
            ]
        )

    path = path_with(22)
    assert kinds(ivt_plain(path)) == [
        "fixation",
        "saccade",
        "fixation",
    ]  # 23 samples without a step, 96 ms with the one before
    path = path_with(24)
    assert kinds(ivt_plain(path)) == ["fixation", "saccade"] * 2 + ["fixation"]
    assert kinds(ivt_plain(path, setting="ren2024")) == [
        "fixation",
        "saccade",
        "fixation",
    ]  # 200 ms are 50 samples


def test_ivt_gives_a_short_fixation_at_either_end_to_the_saccade() -> None:
    path = np.concatenate(
        [np.zeros(10), ramp(0, 5, 8), np.full(50, 5.0), ramp(5, 0, 8), np.zeros(10)]
    )
    assert kinds(ivt_plain(path)) == ["saccade", "fixation", "saccade"]


def test_ivt_discards_saccades_under_12_ms() -> None:
    two, three = np.zeros(100), np.zeros(100)
    two[50:], two[50] = 2.0, 1.0
    three[50:], three[50], three[51] = 3.0, 1.0, 2.0
    assert kinds(ivt_plain(two)) == ["fixation"]  # 8 ms
    events = ivt_plain(three)
    assert kinds(events) == ["fixation", "saccade", "fixation"]  # 12 ms
    assert (events.onset[1], events.offset[1]) == (50, 52)


def test_ivt_thresholds_are_those_of_the_settings() -> None:
    def drift(deg_s: float) -> np.ndarray:
        return np.arange(200) * deg_s / 250.0 - 40

    assert kinds(ivt_plain(drift(49.0))) == ["fixation"]
    assert kinds(ivt_plain(drift(51.0))) == ["saccade"]
    assert kinds(ivt_plain(drift(29.0), setting="ren2024")) == ["fixation"]
    assert kinds(ivt_plain(drift(31.0), setting="ren2024")) == ["saccade"]


def test_ivt_does_not_smear_slow_recordings() -> None:
    x = step_path(30.0, fixation_ms=500.0, saccade_ms=33.0)
    assert detect(on_screen(x, 30.0), "ivt").of("saccade").duration_s.tolist() == [
        0.0,
        0.0,
    ]  # one sample each
    smeared = detect(on_screen(x, 30.0), "ivt", smooth=True)
    assert smeared.of("saccade").duration_s.max() > 0.05


# --- I-DT
# --------------------------------------------------------------------------------------------------


def idt_by_definition(
    x: np.ndarray, y: np.ndarray, least: int, threshold: float, pairwise: bool
) -> np.ndarray:
    """The paper's procedure, word for word."""

    def wide(a: int, b: int) -> float:
        if not pairwise:
            return float(np.ptp(x[a:b]) + np.ptp(y[a:b]))
        v = SCREEN.vectors(x[a:b], y[a:b])
        return float(
            np.degrees(2 * np.arcsin(np.linalg.norm(v[:, None] - v[None], axis=-1).max() / 2))
        )

    inside = np.zeros(len(x), dtype=bool)
    start = 0
    while start + least <= len(x):
        end = start + least
        if wide(start, end) > threshold:
            start += 1
            continue
        while end < len(x) and wide(start, end + 1) <= threshold:
            end += 1
        inside[start:end] = True
        start = end
    return inside


@pytest.mark.parametrize("dispersion", ["range", "pairwise"])
@pytest.mark.parametrize("seed", range(3))
def test_idt_is_the_papers_procedure(dispersion: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    x = np.cumsum(rng.normal(0, 0.08, n)) + 2.0 * rng.integers(0, 2, n // 50).repeat(50)
    y = np.cumsum(rng.normal(0, 0.08, n))
    found = detect(on_screen(x, y=y), "idt", dispersion=dispersion).words(n) == "fixation"
    wanted = idt_by_definition(x, y, 25, 1.0, dispersion == "pairwise")
    assert wanted.any()
    assert (found == wanted).all()


def test_idt_scales_longitude_by_latitude() -> None:
    n, y = 200, np.full(200, 30.0)  # 60 degrees up: one degree of longitude is half a degree
    x = 100.0 + np.tile([0.0, 1.9], n // 2)
    assert kinds(detect(on_sphere(x, y), "idt")) == ["fixation"]
    assert kinds(detect(on_sphere(x + np.tile([0.0, 0.2], n // 2), y), "idt")) == ["saccade"]


# --- Dorr, OKN, I-S5T
# --------------------------------------------------------------------------------------------------


def test_dorr_needs_the_fast_threshold_once_and_keeps_the_slow_one() -> None:
    slow, fast = np.full(20, 0.3), np.full(4, 0.8)  # 75 and 200 deg/s
    only_slow = np.cumsum(np.concatenate([np.zeros(50), slow, np.zeros(50)]))
    assert "saccade" not in kinds(detect(on_screen(only_slow), "dorr"))
    path = np.cumsum(np.concatenate([np.zeros(50), slow, fast, slow, np.zeros(50)]))
    saccade = detect(on_screen(path - 8), "dorr").of("saccade")
    assert (saccade.onset.tolist(), saccade.offset.tolist()) == ([50], [93])


def test_dorr_ends_a_saccade_after_200_ms_and_drops_those_under_15_ms() -> None:
    long = np.cumsum(np.concatenate([np.zeros(40), np.full(120, 0.65), np.zeros(40)])) - 40
    saccades = detect(on_screen(long), "dorr").of("saccade")
    assert saccades.offset[0] - saccades.onset[0] + 1 == 50
    short = np.cumsum(np.concatenate([np.zeros(40), np.full(3, 0.8), np.zeros(40)]))
    assert "saccade" not in kinds(detect(on_screen(short), "dorr"))
    enough = np.cumsum(np.concatenate([np.zeros(40), np.full(4, 0.8), np.zeros(40)]))
    assert kinds(detect(on_screen(enough), "dorr")).count("saccade") == 1


def test_dorr_takes_a_drift_for_no_fixation() -> None:
    drift = np.arange(250) * 0.03  # 7.5 deg/s
    assert kinds(detect(on_screen(drift), "dorr")) == ["undefined"]
    assert kinds(detect(on_screen(drift / 10), "dorr")) == ["fixation"]


def test_low_confidence_takes_the_saccades_beside_it_into_the_blink() -> None:
    path = np.concatenate(
        [
            np.zeros(100),
            ramp(0, 8, 8),
            np.full(4, 8.0),
            np.full(20, 8.0),
            np.full(4, 8.0),
            ramp(8, 0, 8),
            np.zeros(100),
        ]
    )
    confidence = np.ones(len(path))
    assert kinds(detect(on_screen(path, confidence=confidence), "dorr")).count("saccade") == 2
    confidence = confidence.copy()
    confidence[112:132] = 0.4
    events = detect(on_screen(path, confidence=confidence), "dorr")
    assert "saccade" not in kinds(events)
    assert kinds(events).count("blink") == 1


def test_fov_needs_the_eye_in_the_head() -> None:
    with pytest.raises(DataError, match="needs eye-in-head data"):
        detect(on_screen(jitter(50)), "dorr", signal="FOV")
    path = step_path(250.0)
    eye = np.stack((path, 0 * path), axis=1)
    still = on_sphere(np.full(len(path), 180.0), np.full(len(path), 90.0), eye_in_head_deg=eye)
    assert kinds(detect(still, "dorr")) == ["fixation"]
    assert kinds(detect(still, "dorr", signal="FOV")).count("saccade") == 2


def nystagmus(beats: int) -> np.ndarray:
    """Slow phases of 20 deg/s to the right for 200 ms, fast phases back."""
    slow = np.arange(1, 51) * 0.08
    return np.concatenate([np.concatenate([slow, 4.0 - ramp(0, 4, 6)]) for _ in range(beats)])


def test_okn_needs_two_intervals_in_a_row() -> None:
    for beats, found in ((2, False), (3, True)):
        path = nystagmus(beats)
        fast = np.array([[50 + 56 * b, 55 + 56 * b] for b in range(beats)])
        marks = mark_okn(np.stack((path, 0 * path)), fast, 250.0, np.zeros(len(path), dtype=bool))
        assert marks.any() == found
    assert np.flatnonzero(marks)[[0, -1]].tolist() == [50, 55 + 112]


def test_okn_leaves_out_doubtful_samples_and_saccades_that_go_on() -> None:
    path = nystagmus(4)
    fast = np.array([[50 + 56 * b, 55 + 56 * b] for b in range(4)])
    doubtful = np.zeros(len(path), dtype=bool)
    doubtful[60:70] = True
    assert not mark_okn(np.stack((path, 0 * path)), fast, 250.0, doubtful)[60:70].any()
    stairs = np.concatenate([step_path(250.0, tuple(np.arange(5) * 5.0), 200.0)])
    fast = np.array([[50 + 60 * b, 59 + 60 * b] for b in range(4)])
    assert not mark_okn(
        np.stack((stairs, 0 * stairs)), fast, 250.0, np.zeros(len(stairs), dtype=bool)
    ).any()


TIERS = [
    # gaze, head, eye speed in deg/s, primary, secondary
    (2.0, 0.0, 2.0, "fixation", ""),
    (2.0, 20.0, -18.0, "fixation", "vor"),
    (20.0, 0.0, 20.0, "pursuit", ""),
    (20.0, 20.0, 0.0, "pursuit", "head_pursuit"),
    (30.0, 10.0, 20.0, "pursuit", "vor"),
    (80.0, 0.0, 80.0, "noise", ""),
    (12.0, 0.0, 12.0, "pursuit", ""),
    (12.0, 18.0, -6.0, "fixation", ""),  # the head's motion lifts the threshold to 13 deg/s
]


@pytest.mark.parametrize(("gaze", "head", "eye", "primary", "secondary"), TIERS)
def test_is5t_follows_its_table(
    gaze: float, head: float, eye: float, primary: str, secondary: str
) -> None:
    s = np.arange(125) / 125.0
    level = np.full(125, 90.0)
    eye_deg = np.degrees(np.arctan(np.stack((np.tan(np.radians(eye * s)), 0 * s), axis=1)))
    r = on_sphere(
        180 + gaze * s,
        level,
        125.0,
        head_deg=np.stack((180 + head * s, level, 0 * s), axis=1),
        eye_in_head_deg=eye_deg,
    )
    events = detect(r, "is5t")
    assert kinds(events) == [primary]
    assert events.secondary is not None
    assert events.secondary.tolist() == [secondary]


def test_is5t_works_without_a_head_and_finds_nystagmus() -> None:
    events = detect(on_screen(nystagmus(5) - 2), "is5t")
    assert events.secondary is not None
    assert set(events.secondary.tolist()) == {"", "okn"}
    assert {
        k for k, s in zip(kinds(events), events.secondary.tolist(), strict=True) if s == "okn"
    } == {"saccade", "pursuit"}


@pytest.mark.parametrize("dispersion", ["range", "pairwise"])
def test_fixations_that_follow_one_another_at_once_stay_apart(dispersion: str) -> None:
    """At 20 Hz a saccade leaves no sample between two fixations."""
    x = np.repeat([0.0, 10.0, 3.0], 20)
    events = detect(on_screen(x, 20.0), "idt", dispersion=dispersion)
    assert events.kind.tolist() == ["fixation"] * 3
    assert events.onset.tolist() == [0, 20, 40]


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
    assert detect(on_screen(step_path(36.0), 36.0)).source == "auto"
    assert not [w for w in recwarn if issubclass(w.category, QualityWarning)]
