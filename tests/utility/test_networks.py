"""The networks as analysts: they see the head, they beat what cannot, and nobody is trained on and
tested.

Gaze prediction 100 ms ahead.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gazeveil
from gazeveil import Cohort, Recording, Sphere, simulate
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.geometry import Space, angle_deg
from gazeveil.papers import protocols
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.classify import windows_of
from gazeveil.utility.moments import LAGS, from_plane, moments_of, to_plane
from gazeveil.utility.prediction import (
    RATIOS,
    Prediction,
    best_kalman,
    kalman_weights,
    line_weights,
)
from gazeveil.utility.registry import utility
from tests.support import paper_files
from tests.support.strategies import recordings
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


def led_by_the_head(person: str, seed: int, seconds: float = 12.0) -> Recording:
    """Gaze that jumps to where the head pointed 120 ms before."""
    rng = np.random.default_rng(seed)
    n = round(seconds * 50)
    place = np.repeat(rng.uniform(-8, 8, (n // 15 + 2, 2)), 15, axis=0)[: n + 6]
    head = np.column_stack((place[6:] + np.array([180.0, 90.0]), np.zeros(n)))
    gaze = place[:-6] + np.array([180.0, 90.0])
    t = np.arange(n) * 20_000_000
    return Recording(person, "s", t, gaze[:, 0], gaze[:, 1], rate_hz=50.0, head_deg=head)


def figures(results: tuple[UtilityResult, ...]) -> dict[str, float]:
    return {r.metric: r.value for r in results}


def test_the_predictor_sees_the_head_also_beside_a_release_that_has_none() -> None:
    raw = RecordingSet(Cohort([led_by_the_head(p, i) for i, p in enumerate("abcd")]))
    assert raw.cohort is not None
    noise = gazeveil.mechanism("gaussian:sigma_deg=0.5,reading=published")
    release = RecordingSet(noise.release(raw.cohort, seed=1).data)
    assert next(iter(release.cohort or ())).head_deg is None
    seeing, blind = (
        figures(utility(f"prediction:model=dgaze,steps=35,head={head}").measure(*sets, 0))
        for head, sets in (("recorded", (raw, raw, release)), ("none", (raw, raw, release)))
    )
    assert seeing["error_deg"] < 0.85 * blind["error_deg"]
    assert seeing["error_deg"] < 0.85 * seeing["hold_error_deg"]
    floors = ("hold_error_deg", "linear_error_deg", "kalman_error_deg")
    assert [seeing[f] for f in floors] == [blind[f] for f in floors]


def test_the_kalman_filter_is_exact_on_a_line_and_averages_noise() -> None:
    past = -np.arange(LAGS) * 0.01
    for ratio in RATIOS[3:]:
        weights = kalman_weights(ratio, 0.1, 0.5)
        assert weights.sum() == pytest.approx(1.0)
        assert 20.0 * past @ weights == pytest.approx(2.0, abs=0.05)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 5, (4000, LAGS, 2))
    chosen = best_kalman([noise], [np.zeros((4000, 2))], 0.1, 0.5)
    spread = np.linalg.norm(np.einsum("nlk,l->nk", noise, chosen), axis=1).mean()
    line = np.linalg.norm(np.einsum("nlk,l->nk", noise, line_weights(0.1, 0.5)), axis=1).mean()
    assert spread < 0.5 * line


@pytest.fixture(scope="module")
def nodding() -> RecordingSet:
    """Two activities that only the head tells apart: gaze in the world is the same."""
    made = []
    for i, person in enumerate("abcdef"):
        for j, task in enumerate(("nods", "shakes")):
            r = next(iter(simulate(1, 1, 12.0, 50.0, seed=i)))
            swing = 8.0 * np.sin(np.arange(len(r)) / 10 + i)
            head = np.full((len(r), 3), [180.0, 90.0, 0.0])
            head[:, 1 - j] += swing
            made.append(
                r.with_(person=person, task=task, head_deg=head, eye_in_head_deg=None, truth=None)
            )
    return RecordingSet(Cohort(made), None, FeaturePipeline(window_s=4.0, step_s=2.0))


def test_the_recogniser_sees_the_head_and_without_it_is_at_chance(nodding: RecordingSet) -> None:
    asked = "activity:classifier=ehtask,steps=25,test_share=0.5,head="
    seeing = figures(utility(asked + "recorded").measure(nodding, nodding, nodding, 0))
    blind = figures(utility(asked + "none").measure(nodding, nodding, nodding, 0))
    assert seeing["accuracy"] > 0.9
    assert blind["accuracy"] == pytest.approx(0.5, abs=0.15)


def test_the_network_is_asked_about_the_windows_of_the_forest(nodding: RecordingSet) -> None:
    for recording in nodding.cohort or ():
        rows = nodding.windows.recordings()[recording.key]
        made = windows_of(recording, recording, nodding.pipeline, "corrected", "recorded")
        assert made.shape == (len(rows), 6, 100)
    network = utility("activity:classifier=ehtask,steps=1")
    assert network.needs == ("samples",)
    assert utility("activity").needs == ("window",)
    assert not network.can(RecordingSet(None, {"window": nodding.windows}))


def test_a_window_holds_what_was_released_and_loses_what_was_lost() -> None:
    t = np.arange(100) * 40_000_000
    x = np.where(np.arange(100) < 50, 350.0, 10.0)
    head = np.tile([0.0, 90.0, 0.0], (100, 1))
    r = Recording("a", "s", t, x, np.full(100, 90.0), rate_hz=25.0, head_deg=head)
    valid = np.ones(100, dtype=bool)
    valid[60:80] = False
    lossy = r.with_(valid=valid)
    pipeline = FeaturePipeline(window_s=4.0, step_s=4.0)
    window = windows_of(r, lossy, pipeline, "corrected", "recorded")[0]
    np.testing.assert_allclose(window[0, [0, 49, 50, 99]], [-10, -10, 10, 10], atol=1e-4)
    # The mean of a window that spans longitude 0 is at 0, not at 180.
    assert np.nanmax(np.abs(window[4])) < 25
    assert np.isnan(window[0, 63:80]).all()
    assert not np.isnan(window[0, 80:]).any()
    assert not np.isnan(window[2]).any()
    published = windows_of(r, r, pipeline, "published", "recorded")[0]
    np.testing.assert_allclose(published[4, [0, 99]], [170.0, -170.0], atol=1e-4)


def test_both_run_on_the_public_arrays(tmp_path: Path) -> None:
    paper_files.dgaze(tmp_path, rows=12)
    rows = gazeveil.read(tmp_path / "dgaze", format="dgaze", rows_as_people=True, with_target=True)
    raw = RecordingSet(rows)
    assert np.shape(next(iter(rows)).metadata["saliency"]) == (1152,)
    for reading in ("published", "corrected"):
        asked = f"prediction-of-rows:past_s=0.49,model=dgaze,steps=2,reading={reading}"
        got = protocols.utility(asked).measure(raw, raw, raw, 0)
        assert np.isfinite([r.value for r in got]).all()
        assert len(got[0].names) == 12
    paper_files.ehtask(tmp_path, rows=8)
    windows = RecordingSet(
        gazeveil.read(tmp_path / "ehtask", format="ehtask", rows_as_people=True),
        None,
        FeaturePipeline(window_s=10.0, step_s=5.0),
    )
    for reading in ("published", "corrected"):
        asked = f"activity-of-rows:classifier=ehtask,steps=2,reading={reading}"
        got = protocols.utility(asked).measure(windows, windows, windows, 0)
        assert 0 <= got[0].value <= 1
        assert len(got[0].names) == 8


@pytest.mark.parametrize(
    "text",
    [
        "prediction:reading=published",
        "prediction:model=dgaze,reading=improved",
        "prediction:model=dgaze,head=raw",
        "prediction:model=dgaze,steps=0",
        "activity:reading=published",
        "activity:classifier=ehtask,head=raw",
        "task:classifier=ehtask",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        utility(text)


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


def figures_of(
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
    got = figures_of(cohort, cohort, cohort)
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
    frozen, again = figures_of(cohort, cohort, noisy), figures_of(cohort, noisy, noisy)
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
    got = figures_of(cohort, cohort, cohort, model=model)
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
