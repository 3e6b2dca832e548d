"""Our detectors and mechanisms inside pymovements."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.adapters.pymovements import from_pymovements, to_pymovements
from gazeveil.privacy.pymovements import protect_gaze, register_in_pymovements
from gazeveil.privacy.registry import mechanism

pm: Any = pytest.importorskip("pymovements")

SCREEN = Screen(1280, 1024, 380.0, 300.0, 680.0)


def recording() -> Recording:
    x = np.concatenate((np.zeros(60), np.linspace(0, 8, 6), np.full(60, 8.0)))
    x[[10, 11]] = np.nan
    rng = np.random.default_rng(1)
    return Recording(
        "a",
        "dot",
        np.arange(126) * 4_000_000,
        x + rng.normal(0, 0.02, 126),
        rng.normal(0, 0.02, 126),
        space=SCREEN,
        rate_hz=250,
    )


@pytest.mark.parametrize("method", ["ivt", "online"])
def test_a_detector_in_pymovements_finds_what_ours_finds(method: str) -> None:
    assert f"gazeveil_{method}" in register_in_pymovements()
    one = recording()
    gaze: Any = to_pymovements(one)
    gaze.detect(f"gazeveil_{method}")
    ours = gazeveil.detect(one, method)
    ours = ours.where(ours.kind != "undefined")
    frame = gaze.events.frame
    assert frame["name"].to_list() == ours.kind.tolist()
    assert (frame["onset"] * 1_000_000).to_list() == ours.onset_ns.tolist()
    assert (frame["offset"] * 1_000_000).to_list() == ours.offset_ns.tolist()
    assert "saccade" in frame["name"].to_list()


def test_a_transform_releases_what_the_mechanism_releases() -> None:
    register_in_pymovements()
    one = recording()
    gaze: Any = to_pymovements(one)
    gaze.transform("gazeveil_gaussian", sigma_deg=2, seed=5)
    expected = gazeveil.mechanism("gaussian", sigma_deg=2).release(
        one.with_(person="gaze", stimulus="pymovements"), seed=5
    )
    back = from_pymovements(gaze)
    assert isinstance(back, Recording)
    np.testing.assert_allclose(back.x_deg[back.valid], expected.data.x_deg[expected.data.valid])
    assert back.valid.tolist() == expected.data.valid.tolist()
    assert np.abs(back.x_deg - one.x_deg)[one.valid].mean() > 0.5


def test_each_trial_is_protected_by_itself() -> None:
    register_in_pymovements()
    frame = pl.DataFrame(
        {"time": [0, 4, 0, 4], "trial": [1, 1, 2, 2], "x": [1.0] * 4, "y": [2.0] * 4}
    )
    experiment = pm.Experiment(
        screen=pm.Screen(1280, 1024, 38.0, 30.0, 68.0, "upper left"),
        eyetracker=pm.EyeTracker(sampling_rate=250),
    )
    gaze = pm.Gaze(
        frame, experiment, time_column="time", position_columns=["x", "y"], trial_columns="trial"
    )
    gaze.transform("gazeveil_gaussian", sigma_deg=1)
    places = np.array(gaze.samples["position"].to_list())
    assert places.shape == (4, 2)
    assert not np.isclose(places, [1.0, 2.0]).any()


EYE = np.zeros((126, 2))


@pytest.mark.parametrize(
    ("more", "transform", "words"),
    [
        ({"pupil": np.ones(126)}, "gaussian", "The columns pupil hold raw gaze"),
        ({"labels": {"hand": np.full(126, "a")}}, "gaussian", "The columns label:hand hold raw"),
        ({"left_deg": EYE, "right_deg": EYE}, "gaussian", "6 components"),
        ({}, "temporal", "changes the number of samples"),
    ],
)
def test_what_a_transform_would_leave_raw_is_refused(
    more: dict[str, Any], transform: str, words: str
) -> None:
    register_in_pymovements()
    options = {"gaussian": {"sigma_deg": 2}, "temporal": {"K": 3}}[transform]
    gaze: Any = to_pymovements(recording().with_(**more))
    with pytest.raises(DataError, match=words):
        gaze.transform(f"gazeveil_{transform}", **options)


@pytest.mark.parametrize("text", ["gaussian:sigma_deg=2", "temporal:K=5", "smoothing"])
def test_any_stream_mechanism_protects_a_gaze(text: str) -> None:
    gaze = to_pymovements(recording().with_(pupil=np.ones(126)))
    out = protect_gaze(gaze, text, seed=1)
    one = from_pymovements(gaze)
    assert isinstance(one, Recording)
    wanted = mechanism(text if ":" in text else text + ":").release(one, seed=1)
    back = from_pymovements(out)
    assert isinstance(back, Recording)
    kept = wanted.data.valid
    np.testing.assert_array_equal(back.x_deg[back.valid], wanted.data.x_deg[kept])
    np.testing.assert_array_equal(back.y_deg[back.valid], wanted.data.y_deg[kept])
    assert out.metadata["guarantee"] == str(wanted.guarantee)
    assert "pupil" not in out.samples.columns
    assert "pupil" in protect_gaze(gaze, text, keep=("pupil",)).samples.columns


def test_what_cannot_be_protected_is_refused() -> None:
    with pytest.raises(ParameterError, match="mechanism on streams"):
        protect_gaze(to_pymovements(recording()), "lpa:epsilon=1")
    with pytest.raises(ParameterError, match="pymovements Gaze"):
        protect_gaze([1, 2], "temporal:K=2")
