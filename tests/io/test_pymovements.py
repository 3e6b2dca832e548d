"""pymovements' Gaze and Dataset, both ways."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.adapters.pymovements import from_pymovements, to_pymovements

pm: Any = pytest.importorskip("pymovements")

SCREEN = Screen(1280, 1024, 380.0, 300.0, 680.0)


def experiment(origin: str = "upper left", **tracker: object) -> object:
    return pm.Experiment(
        screen=pm.Screen(1280, 1024, 38.0, 30.0, 68.0, origin),
        eyetracker=pm.EyeTracker(sampling_rate=250, **tracker),
    )


def recording(
    seed: int = 0,
    person: str = "a b",
    stimulus: str = "clip",
    whole_ms: bool = True,
    sphere: bool = False,
    eyes: bool = True,
    **more: object,
) -> Recording:
    rng = np.random.default_rng(seed)
    n = 30
    t = np.arange(n) * 4_000_000 + (0 if whole_ms else 123_457)
    gaze = rng.uniform(1, 170, (3, n, 2)) if sphere else rng.normal(0, 8, (3, n, 2))
    valid = rng.random(n) > 0.2
    gaze[0, ~valid] = np.nan
    words = np.where(np.arange(n) < 15, "fixation", "saccade")
    fields: dict[str, Any] = {
        "left_deg": gaze[1] if eyes else None,
        "right_deg": gaze[2] if eyes else None,
        "pupil": rng.uniform(2, 5, n),
        "labels": {"hand": words},
        "events": Events.from_words(words, t),
        "messages": (Message(int(t[3]), "start"), Message(int(t[9]), "stop")),
        "space": Sphere() if sphere else SCREEN,
        "rate_hz": 250.0,
        "metadata": {"pupil_unit": "mm"},
    }
    x_deg, y_deg = gaze[0, :, 0], gaze[0, :, 1]
    return Recording(person, stimulus, t, x_deg, y_deg, valid, **(fields | more))


def same(one: Recording, other: Recording | Cohort) -> None:
    assert other.key == one.key
    assert type(other.space) is type(one.space)
    if isinstance(one.space, Screen) and isinstance(other.space, Screen):
        np.testing.assert_allclose(
            [other.space.width_mm, other.space.distance_mm],
            [one.space.width_mm, one.space.distance_mm],
        )
    for name in ("t_ns", "x_deg", "y_deg", "valid", "left_deg", "right_deg", "pupil"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert other.rate_hz == one.rate_hz
    assert other.labels["hand"].tolist() == one.labels["hand"].tolist()
    for name in ("kind", "onset", "offset", "onset_ns", "offset_ns"):
        assert getattr(other.events, name).tolist() == getattr(one.events, name).tolist(), name
    assert other.messages == one.messages


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000), whole_ms=st.booleans(), sphere=st.booleans(), eyes=st.booleans()
)
def test_a_recording_comes_back_from_a_gaze(
    seed: int, whole_ms: bool, sphere: bool, eyes: bool
) -> None:
    one = recording(
        seed, whole_ms=whole_ms, sphere=sphere, eyes=eyes, session="2", task="free viewing"
    )
    same(one, from_pymovements(to_pymovements(one)))


def test_pymovements_can_work_with_the_gaze() -> None:
    x = np.concatenate((np.zeros(50), np.linspace(0, 8, 6), np.full(50, 8.0)))
    one = Recording(
        "a", "dot", np.arange(106) * 4_000_000, x, np.zeros(106), space=SCREEN, rate_hz=250
    )
    gaze: Any = to_pymovements(one)
    assert gaze.samples["time"].dtype == pl.Int64
    gaze.pos2vel("neighbors")
    gaze.detect("ivt", velocity_threshold=30.0, minimum_duration=40)
    back = from_pymovements(gaze)
    assert "fixation" in back.events.kind.tolist()
    first = back.events.of("fixation")
    assert back.t_ns[first.onset].tolist() == first.onset_ns.tolist()


@pytest.mark.parametrize("origin", ["upper left", "center"])
def test_pixels_become_the_degrees_pymovements_makes_of_them(origin: str) -> None:
    frame = pl.DataFrame({"time": [0, 4, 8], "x": [123.0, 640.0, None], "y": [865.0, 100.0, None]})
    gaze = pm.Gaze(
        frame, experiment(origin), time_column="time", time_unit="ms", pixel_columns=["x", "y"]
    )
    ours = from_pymovements(gaze.clone())
    gaze.pix2deg()
    theirs = (
        np.array(gaze.samples["position"].list.get(0)),
        np.array(gaze.samples["position"].list.get(1)),
    )
    np.testing.assert_allclose(ours.x_deg[:2], theirs[0][:2].astype(float), atol=1e-9)
    np.testing.assert_allclose(ours.y_deg[:2], theirs[1][:2].astype(float), atol=1e-9)
    assert ours.valid.tolist() == [True, True, False]
    # Pixel 865 of 1024 lies below the middle, and y grows downwards.
    assert origin == "center" or ours.y_deg[0] > 0


def test_binocular_positions_become_two_eyes_and_their_mean() -> None:
    frame = pl.DataFrame(
        {"time": [0, 4], "lx": [1.0, None], "ly": [2.0, None], "rx": [3.0, 5.0], "ry": [2.0, 1.0]}
    )
    gaze = pm.Gaze(
        frame,
        experiment(),
        time_column="time",
        time_unit="ms",
        position_columns=["lx", "ly", "rx", "ry"],
    )
    one = from_pymovements(gaze, person="p", stimulus="s")
    assert one.left_deg[0].tolist() == [1.0, 2.0]
    np.testing.assert_allclose(one.x_deg, [2.0, 5.0], atol=0.01)
    assert one.key == ("p", "s", "1", "")


def test_pupils_of_both_eyes_become_their_mean() -> None:
    frame = pl.DataFrame(
        {
            "time": [0, 4, 8],
            "pixel": [[640.0, 512.0, 650.0, 512.0], [1.0, 2.0, 3.0, 4.0], None],
            "pupil": [[288.0, 306.0], [288.0, None], None],
        }
    )
    gaze = pm.Gaze(frame, experiment(left=True, right=True), time_column="time")
    one = from_pymovements(gaze)
    np.testing.assert_array_equal(one.pupil, [297.0, 288.0, np.nan])
    assert one.valid.tolist() == [True, True, False]
    assert one.left_deg is not None
    assert one.right_deg is not None


def test_one_eye_is_known_from_the_tracker() -> None:
    frame = pl.DataFrame({"time": [0, 4], "x": [1.0, 2.0], "y": [2.0, 2.0]})
    one = from_pymovements(
        pm.Gaze(
            frame,
            experiment(left=False, right=True),
            time_column="time",
            position_columns=["x", "y"],
        )
    )
    assert one.left_deg is None
    assert one.right_deg is not None


def test_names_come_from_the_metadata_and_event_words_from_their_stem() -> None:
    frame = pl.DataFrame({"time": [0, 4, 8, 12], "x": [1.0] * 4, "y": [2.0] * 4})
    events = pm.Events(name=["fixation_eyelink", "wobble"], onsets=[0, 8], offsets=[4, 12])
    meta = {"subject_id": 7, "text_id": "t3", "session_id": 2, "task": "TEX"}
    gaze = pm.Gaze(
        frame, experiment(), events, metadata=meta, time_column="time", position_columns=["x", "y"]
    )
    one = from_pymovements(gaze)
    assert one.key == ("7", "t3", "2", "TEX")
    assert one.events.kind.tolist() == ["fixation", "undefined"]
    assert one.events.onset.tolist() == [0, 2]
    assert one.events.offset.tolist() == [1, 3]


def test_a_cohort_becomes_a_list_and_comes_back() -> None:
    cohort = Cohort([recording(0, "a"), recording(1, "b", sphere=True)])
    gazes: Any = to_pymovements(cohort)
    again = from_pymovements(gazes)
    for one, other in zip(cohort, again, strict=True):
        same(one, other)


def test_gazes_that_say_the_same_are_numbered_sessions() -> None:
    gaze = to_pymovements(recording())
    again = from_pymovements([gaze, gaze])
    assert [k[2] for k in again.keys] == ["1", "1.2"]


def gaze_of(columns: dict[str, list[float]], **options: object) -> object:
    return pm.Gaze(pl.DataFrame(columns), **options)


@pytest.mark.filterwarnings("ignore:Gaze contains samples")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda _: from_pymovements(3),
            ParameterError,
            "must be a pymovements Gaze, a Dataset or a list of Gaze. Got 3 instead.",
        ),
        (
            lambda _: from_pymovements([3]),
            ParameterError,
            "must be a pymovements Gaze, a Dataset or a list of Gaze. Got 3 instead.",
        ),
        (
            lambda p: from_pymovements(pm.Dataset("ToyDataset", p)),
            DataError,
            "has no gaze. Load it first with dataset.load().",
        ),
        (
            lambda _: from_pymovements(
                gaze_of({"time": [0], "x": [1.0], "y": [1.0]}, position_columns=["x", "y"])
            ),
            DataError,
            (
                "has no whole screen geometry. Give its Experiment one, or say space=Screen(...) or"
                " space=Sphere()."
            ),
        ),
        (
            lambda _: from_pymovements(gaze_of({"time": [0]}, experiment=experiment())),
            DataError,
            "needs a 'position' column in degrees",
        ),
        (
            lambda _: to_pymovements(3),
            ParameterError,
            "The 'data' parameter of to_pymovements must be a Recording or a Cohort. Got 3 "
            "instead.",
        ),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_converted_is_refused(
    tmp_path: Path, make: Callable[[Path], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make(tmp_path)


def test_without_pymovements_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymovements", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'gazeveil[pymovements]'")):
        to_pymovements(recording())
