"""Detectors of papers: I-VT, I-DT, Dorr's, Larsson's and IS5T, each by its own rules."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil import Events, detect
from gazeveil.errors import DataError
from gazeveil.events.ivt import mark_okn, squared_steps
from gazeveil.events.trace import BridgedGaze
from tests.support.event_kinds import kinds
from tests.support.event_signals import SCREEN, jitter, on_screen, on_sphere, ramp, step_path

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
@pytest.mark.parametrize("seed", range(6))
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
