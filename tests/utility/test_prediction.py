"""Gaze prediction 100 ms ahead."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gazeveil
from gazeveil import Cohort, Recording, Sphere
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.geometry import Space, angle_deg
from gazeveil.utility.moments import LAGS, from_plane, moments_of, to_plane
from gazeveil.utility.prediction import Prediction
from gazeveil.utility.registry import utility
from tests.support.strategies import recordings


def stream(
    x: np.ndarray,
    y: np.ndarray,
    rate_hz: float = 100.0,
    person: str = "a",
    stimulus: str = "s",
    space: Space | None = None,
) -> Recording:
    t = np.round(np.arange(len(x)) * 1e9 / rate_hz).astype(np.int64)
    return Recording(person, stimulus, t, x, y, space=space or Sphere(), rate_hz=rate_hz)


def pursuit(
    person: str,
    speed_deg_s: float = 20.0,
    start_deg: float = 100.0,
    seconds: float = 6.0,
    rate_hz: float = 100.0,
    noise_deg: float = 0.0,
) -> Recording:
    n = round(seconds * rate_hz)
    rng = np.random.default_rng(len(person) + ord(person[0]))
    x = np.mod(
        start_deg + speed_deg_s * np.arange(n) / rate_hz + rng.normal(0, noise_deg, n), 360.0
    )
    return stream(x, np.full(n, 90.0) + rng.normal(0, noise_deg, n), rate_hz, person)


def figures(
    raw: Cohort, train: Cohort, test: Cohort, seed: int = 0, **parameters: object
) -> dict[str, float]:
    a, b, c = (RecordingSet(m) for m in (raw, train, test))
    return {r.metric: r.value for r in utility("prediction", **parameters).measure(a, b, c, seed)}


# --- geometry
# --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_the_plane_keeps_angles_and_leads_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centre, other = (
        v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, 20, 3))
    )
    flat = to_plane(centre, other[:, None, :])[:, 0]
    np.testing.assert_allclose(np.linalg.norm(flat, axis=1), angle_deg(centre, other), atol=1e-9)
    np.testing.assert_allclose(from_plane(centre, flat), other, atol=1e-9)


# --- moments
# --------------------------------------------------------------------------------------------------


def test_the_past_is_held_and_the_truth_is_the_raw_gaze_at_the_horizon() -> None:
    recorded = pursuit("a", speed_deg_s=10.0)
    slow = recorded.with_(
        t_ns=recorded.t_ns[::5],
        x_deg=recorded.x_deg[::5],
        y_deg=recorded.y_deg[::5],
        valid=recorded.valid[::5],
        rate_hz=20.0,
    )
    moments = moments_of(recorded, slow, 0.1, 0.5, 0.07)
    x_truth, _ = Sphere().degrees(moments.truth)
    x_now, _ = Sphere().degrees(moments.now)
    now_s = 0.5 + 0.07 * np.arange(len(moments))
    np.testing.assert_allclose(x_truth, 100 + 10 * (now_s + 0.1), atol=1e-6)
    np.testing.assert_allclose(x_now, 100 + 10 * np.floor(now_s / 0.05 + 1e-9) * 0.05, atol=1e-6)
    at = np.round(np.arange(LAGS) * 0.01, 9)
    held = (
        10
        * (np.floor((now_s[:, None] - at) / 0.05 + 1e-9) - np.floor(now_s[:, None] / 0.05 + 1e-9))
        * 0.05
    )
    np.testing.assert_allclose(moments.past_deg[:, :, 0], held, atol=1e-6)
    np.testing.assert_allclose(moments.past_deg[:, :, 1], 0, atol=1e-6)


def test_nothing_of_the_future_is_used() -> None:
    recorded = pursuit("a")
    later = recorded.x_deg.copy()
    later[301:] = 10.0
    cut = recorded.with_(x_deg=later)
    a, b = (moments_of(recorded, r, 0.1, 0.5, 0.1) for r in (recorded, cut))
    known = 0.5 + 0.1 * np.arange(len(a)) <= 3.0 + 1e-9
    np.testing.assert_array_equal(a.past_deg[known], b.past_deg[known])
    assert not np.array_equal(a.past_deg[~known], b.past_deg[~known])


def test_a_released_sample_is_known_when_its_raw_sample_came_whatever_its_own_time_says() -> None:
    recorded = pursuit("a")
    late = recorded.with_(t_ns=recorded.t_ns + np.arange(len(recorded)) * 3_000_000, rate_hz=77.0)
    a, b = (moments_of(recorded, r, 0.1, 0.5, 0.05) for r in (recorded, late))
    np.testing.assert_array_equal(a.past_deg, b.past_deg)


def test_moments_in_and_after_a_long_loss_do_not_count() -> None:
    recorded = pursuit("a")
    valid = np.ones(len(recorded), dtype=np.bool_)
    valid[200:300] = False
    lossy = recorded.with_(valid=valid)
    t = 0.5 + 0.1 * np.arange(60)
    whole = moments_of(recorded, recorded, 0.1, 0.5, 0.1)
    released = moments_of(recorded, lossy, 0.1, 0.5, 0.1)
    untold = moments_of(lossy, recorded, 0.1, 0.5, 0.1)
    stale = (t > 1.99 + 0.075) & (t < 3.0 - 1e-9)
    unknown = (t + 0.1 > 1.99 + 1e-9) & (t + 0.1 < 3.0 - 1e-9)
    some = t <= 5.99 - 0.1 + 1e-9
    assert len(whole) == some.sum()
    assert len(released) == (some & ~stale).sum()
    assert len(untold) == (some & ~unknown).sum()


@given(recordings(), recordings())
def test_moments_of_any_two_recordings_are_finite(recorded: Recording, release: Recording) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = (
            release.with_(space=recorded.space)
            if type(release.space) is type(recorded.space)
            else recorded
        )
        moments = moments_of(recorded, release, 0.1, 0.2, 0.05)
    assert np.isfinite(moments.past_deg).all()
    assert np.isfinite(moments.truth).all()


# --- models
# --------------------------------------------------------------------------------------------------


def test_hold_is_late_by_the_horizon_and_the_others_follow_a_pursuit() -> None:
    cohort = Cohort(
        [
            pursuit(p, speed_deg_s=20.0, start_deg=s)
            for p, s in (("a", 0.0), ("b", 120.0), ("c", 300.0), ("d", 345.0))
        ]
    )
    got = figures(cohort, cohort, cohort)
    assert got["hold_error_deg"] == pytest.approx(2.0, abs=0.01)  # also over the seam
    assert got["linear_error_deg"] < 0.01
    assert got["error_deg"] < 0.05


def test_the_model_learns_what_the_training_material_shows() -> None:
    """Trained on raw gaze that rests, a model cannot follow; trained on gaze
    that moves, it does."""
    moving = Cohort([pursuit(p, 30.0) for p in "abcde"])
    resting = Cohort([pursuit(p, 0.0, noise_deg=0.2) for p in "abcde"])
    a, b = RecordingSet(moving), RecordingSet(resting)
    people = Prediction().split(a, b, a, 0)
    assert len(people[0]) == 3
    mixed = RecordingSet(
        Cohort(
            [
                *(r for r in resting if r.person in people[0]),
                *(r for r in moving if r.person in people[1]),
            ]
        )
    )
    naive = Prediction().measure(mixed, mixed, mixed, 0)[0].value
    trained = Prediction().measure(a, a, a, 0)[0].value
    assert trained < 0.05
    assert naive > 1.0


def test_training_on_noisy_material_makes_the_best_of_noise() -> None:
    rng = np.random.default_rng(0)
    cohort = Cohort([stream(np.full(1000, 180.0), np.full(1000, 90.0), person=p) for p in "abcdef"])
    noisy = Cohort(
        [
            r.with_(x_deg=r.x_deg + rng.normal(0, 5, 1000), y_deg=r.y_deg + rng.normal(0, 5, 1000))
            for r in cohort
        ]
    )
    frozen, again = figures(cohort, cohort, noisy), figures(cohort, noisy, noisy)
    assert frozen["error_deg"] == pytest.approx(
        frozen["hold_error_deg"], rel=0.01
    )  # gaze that rests teaches nothing
    # The mean of 50 samples is sqrt(50) times nearer than one of them.
    assert again["error_deg"] < 0.3 * again["hold_error_deg"]


def test_figures_are_the_mean_angle_of_a_plain_loop() -> None:
    clips = [
        r
        for p in "ab"
        for r in (
            pursuit(p, 25.0, noise_deg=1.0),
            pursuit(p, 5.0, noise_deg=1.0).with_(stimulus="t"),
        )
    ]
    cohort = Cohort(clips)
    recording_set = RecordingSet(cohort)
    result = Prediction(model="hold", every_s=0.1).measure(
        recording_set, recording_set, recording_set, 3
    )[1]
    person = result.names[0]
    errors = [
        float(angle_deg(r.vectors[now], r.vectors[now + 10]))
        for r in cohort.select(people=[person])
        for now in range(50, len(r) - 10, 10)
    ]
    assert len(result.names) == 1
    assert result.value == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("model", ["hold", "linear", "ridge"])
def test_the_model_is_the_one_asked_for_and_the_floors_stay(model: str) -> None:
    cohort = Cohort([pursuit(p, 15.0, noise_deg=0.5) for p in "abcd"])
    got = figures(cohort, cohort, cohort, model=model)
    floors = {"hold": got["hold_error_deg"], "linear": got["linear_error_deg"]}
    assert floors["hold"] != floors["linear"]
    if model == "ridge":
        assert got["error_deg"] < min(floors.values())
    else:
        assert got["error_deg"] == floors[model]


def test_people_are_split_by_the_seed_and_nobody_is_on_both_sides() -> None:
    cohort = Cohort([pursuit(p) for p in "abcdefghij"])
    recording_set = RecordingSet(cohort)
    first, again, other = (
        Prediction().split(recording_set, recording_set, recording_set, s) for s in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert len(first[0]) == 6
    assert sorted(first[0] + first[1]) == list("abcdefghij")
    assert Prediction().measure(recording_set, recording_set, recording_set, 1)[0].names == first[1]


def test_a_person_whose_gaze_was_lost_is_left_out_and_said_so() -> None:
    cohort = Cohort([pursuit(p) for p in "abcd"])
    recording_set = RecordingSet(cohort)
    tested = Prediction().split(recording_set, recording_set, recording_set, 0)[1]
    nothing = {
        "x_deg": np.full(600, np.nan),
        "y_deg": np.full(600, np.nan),
        "valid": np.zeros(600, dtype=np.bool_),
    }
    lossy = RecordingSet(
        Cohort([r.with_(**nothing) if r.person == tested[0] else r for r in cohort])
    )
    result = Prediction().measure(recording_set, recording_set, lossy, 0)[0]
    assert np.isnan(result.parts[0])
    assert np.isfinite(result.value)
    assert "1 people have no released gaze" in result.note
    lost = RecordingSet(Cohort([r.with_(**nothing) for r in cohort]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(
            np.isnan(r.value) for r in Prediction().measure(recording_set, recording_set, lost, 0)
        )
        untrained = Prediction().measure(recording_set, lost, recording_set, 0)
    assert np.isnan(untrained[0].value)
    assert "no gaze to learn from" in untrained[0].note
    assert np.isfinite(untrained[1].value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"model": "oracle"},
        {"horizon_s": 0},
        {"past_s": -1},
        {"train_share": 1.0},
        {"every_s": "often"},
        {"penalty": -1},
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        utility("prediction", **parameters)


def test_training_towards_released_gaze_differs_from_training_towards_raw_gaze() -> None:
    cohort = gazeveil.simulate(5, 2, seconds=8, rate_hz=60, seed=4).load()
    raw = RecordingSet(cohort)
    noisy = RecordingSet(gazeveil.mechanism("gaussian", sigma_deg=4).release(cohort, seed=1).data)
    towards_raw, towards_released = (
        utility(f"prediction:target={target}").measure(raw, noisy, raw, 0)[0].value
        for target in ("raw", "released")
    )
    assert towards_raw != towards_released
    with pytest.raises(ParameterError, match="raw, released"):
        utility("prediction:target=true")
