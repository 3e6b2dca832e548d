"""Which channels of a stream are gaze, in the labels that programs write, and what the rate of a
stream may be.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gaze.geometry import Screen
from gazeveil.relay.picture import ScreenPicture
from gazeveil.relay.trackers.lsl.columns import ColumnNames, StreamChannel, find_columns
from gazeveil.relay.trackers.lsl.tracker import LSLTracker
from gazeveil.relay.trackers.rate import RateWatch
from tests.support.fake_pylsl import FakePylsl
from tests.support.taken_blocks import run

SCREEN = Screen(1920, 1080, 531, 299, 600)
TOBII = [
    "system_time_stamp",
    "left_gaze_point_on_display_area_x",
    "left_gaze_point_on_display_area_y",
    "left_gaze_point_valid",
    "right_gaze_point_on_display_area_x",
    "right_gaze_point_on_display_area_y",
    "right_gaze_point_valid",
    "left_pupil_diameter",
]
EYELINK = ["leftEyeX", "leftEyeY", "rightEyeX", "rightEyeY", "leftPupilArea", "pixelsPerDegreeX"]


@pytest.fixture
def lsl(monkeypatch: pytest.MonkeyPatch) -> FakePylsl:
    fake = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", fake)  # type: ignore[arg-type]
    return fake


def channels(labels: Sequence[str], unit: str = "") -> tuple[StreamChannel, ...]:
    return tuple(StreamChannel(label, unit) for label in labels)


@pytest.mark.parametrize(
    ("labels", "unit", "row", "px"),
    [
        (["confidence", "norm_pos_x", "norm_pos_y"], "", [0.9, 0.25, 0.75], (480, 270)),
        (["y", "x"], "pixels", [270, 480], (480, 270)),
        (["Gaze_X", "Gaze_Y"], "normalized", [0.25, 0.25], (480, 270)),
        (TOBII, "", [1e9, 0.2, 0.2, 1, 0.3, 0.3, 1, 3.1], (480, 270)),
        (TOBII, "", [1e9, 0.25, 0.25, 1, 0.9, 0.9, 0, 3.1], (480, 270)),
        (EYELINK, "", [470, 260, 490, 280, 900, 36], (480, 270)),
        (EYELINK, "", [480, 270, -32768, -32768, 900, 36], (480, 270)),
        (["left_x", "right_x", "left_y", "right_y"], "px", [470, 490, 260, 280], (480, 270)),
    ],
)
def test_labels_of_known_programs_give_the_place(
    labels: list[str], unit: str, row: list[float], px: tuple[float, float]
) -> None:
    columns = find_columns(channels(labels, unit), None, 0.6)
    picture = ScreenPicture(SCREEN)
    x, y, valid = columns.degrees(np.array([row]), picture)
    np.testing.assert_allclose(SCREEN.to_px(x, y), [[px[0]], [px[1]]], rtol=1e-9)
    assert valid.tolist() == [True]
    # and back: the place in the columns of every eye, nothing in the others
    out = columns.rows(len(labels), x, y, valid, picture)[0]
    again = columns.degrees(out[None], picture)
    np.testing.assert_allclose(again[:2], (x, y))
    named = {*columns.x, *columns.y, *columns.sure}
    assert np.isnan(np.delete(out, sorted(named))).all()
    assert len({round(float(out[i]), 6) for i in columns.x}) == 1, "both eyes show one place"


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        (TOBII, [1e9, 0.2, 0.2, 0, 0.3, 0.3, 0, 3.1]),
        (EYELINK, [-32768, -32768, -32768, -32768, 0, 36]),
        (["x_deg", "y_deg", "valid"], [1.0, 1.0, 0.0]),
        (["x_deg", "y_deg"], [np.nan, 1.0]),
        (["norm_pos_x", "norm_pos_y", "confidence"], [0.5, 0.5, 0.59]),
    ],
)
def test_what_no_eye_sees_is_lost_and_goes_out_as_nan(labels: list[str], row: list[float]) -> None:
    columns = find_columns(channels(labels), None, 0.6)
    x, y, valid = columns.degrees(np.array([row]), ScreenPicture(SCREEN))
    assert not valid.any()
    out = columns.rows(len(labels), x, y, valid, ScreenPicture(SCREEN))[0]
    assert np.isnan(out[list(columns.x + columns.y)]).all()
    assert (out[list(columns.sure)] == 0).all()


def test_one_validity_of_two_eyes_counts_for_both() -> None:
    labels = ["left_x", "left_y", "right_x", "right_y", "valid"]
    columns = find_columns(channels(labels, "deg"), None, 0.6)
    values = np.array([[1.0, 1, 3, 3, 1], [1.0, 1, 3, 3, 0]])
    x, _, valid = columns.degrees(values, ScreenPicture(SCREEN))
    assert (x[0], valid.tolist()) == (2, [True, False])


def test_columns_can_be_named_and_a_unit_must_be_known() -> None:
    names = ColumnNames(("h",), ("v",), (("ok",),), "fraction")
    columns = find_columns(channels(["h", "v", "ok"]), names, 0.6)
    assert (columns.x, columns.y, columns.sure, columns.unit) == ((0,), (1,), (2,), "fraction")
    with pytest.raises(DataError, match=r"x and y say no unit.*\?unit=px"):
        find_columns(channels(["x", "y"]), None, 0.6)
    assert find_columns(channels(["x", "y"]), ColumnNames((), (), (), "px"), 0.6).unit == "px"
    with pytest.raises(DataError, match="No channels of gaze are known"):
        find_columns(channels(["h", "v"]), ColumnNames(("h",), ("w",), (), "px"), 0.6)


def test_a_declared_rate_is_believed_and_another_named_one_refused(lsl: FakePylsl) -> None:
    lsl.offer("fast", ["x_deg", "y_deg"], [], rate_hz=1000.0)
    assert open_tracker("lsl:fast").rate_hz == 1000.0
    assert open_tracker("lsl:fast", rate_hz=1000.5).rate_hz == 1000.5
    with pytest.raises(DataError, match=r"declares 1000.*named is 120.*--rate"):
        open_tracker("lsl:fast", rate_hz=120)
    # a stream that is wrong about itself
    assert open_tracker("lsl:fast?declared=ignored", rate_hz=120).rate_hz == 120
    with pytest.raises(ParameterError, match="--rate"):
        open_tracker("lsl:fast?declared=ignored")
    lsl.offer("none", ["x_deg", "y_deg"], [], rate_hz=0.0)
    with pytest.raises(ParameterError, match=r"declares no rate.*--rate"):
        open_tracker("lsl:none")
    assert open_tracker("lsl:none", rate_hz=90).rate_hz == 90
    with pytest.raises(DataError, match=r"'nobody' was found within 0\.1 s.*--rate"):
        open_tracker("lsl:nobody", wait_s=0.1)


def test_pixels_need_their_screen_or_are_those_of_the_scene_camera(lsl: FakePylsl) -> None:
    lsl.offer("eyelink", EYELINK, [])
    lsl.offer("tobii", TOBII, [])
    for name in ("eyelink", "tobii"):
        with pytest.raises(DataError, match=r"is on a screen.*--screen"):
            open_tracker(f"lsl:{name}")
    assert open_tracker("lsl:eyelink", screen=SCREEN).space == SCREEN
    fields = {"unit": "pixels", "coordinate_system": "world"}
    lsl.offer("pupil_invisible_Gaze", ["x", "y"], [], **fields)
    lsl.offer("pupil_labs_Gaze", ["x", "y"], [], **fields)
    sizes = [
        LSLTracker(name).picture.size_px for name in ("pupil_invisible_Gaze", "pupil_labs_Gaze")
    ]
    assert sizes == [(1088, 1080), (1600, 1200)]
    # one that comes later has another picture than the one that was taken for granted
    late = LSLTracker("late", rate_hz=100)
    lsl.offer("late", ["x", "y"], [], **fields)
    assert late._connect() is None
    assert late.counts["malformed"] == 1
    # pixels of a named screen need no look at the stream
    later = LSLTracker("later", rate_hz=100, screen=SCREEN)
    lsl.offer("later", EYELINK, [])
    assert later._connect() is not None


def test_bad_column_options_are_one_sentence(lsl: FakePylsl) -> None:
    lsl.offer("g", ["x_deg", "y_deg"], [])
    for options in (
        {"unit": "inch"},
        {"x": "a,b", "y": "c"},
        {"valid": "v"},
        {"declared": "maybe"},
    ):
        with pytest.raises(ParameterError):
            open_tracker("lsl:g", **options)


def test_a_tracker_that_is_faster_than_it_says_is_refused_and_a_slow_one_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def times(rate_hz: float, seconds: float) -> np.ndarray:
        return np.round(np.arange(seconds * rate_hz) * 1e9 / rate_hz).astype(np.int64)

    with pytest.raises(DataError, match=r"sends 1000 samples.*nominal rate is 120.*--rate 1000"):
        RateWatch("lsl", 120).see(times(1000, 3))
    RateWatch("lsl", 120).see(times(130, 60))
    jittered = times(120, 60)
    jittered += np.random.default_rng(1).integers(-3_000_000, 3_000_000, len(jittered))
    RateWatch("lsl", 120).see(np.sort(jittered))
    # pauses are no slowness
    watch = RateWatch("lsl", 120)
    for k in range(20):
        watch.see(times(120, 1) + k * 10**10)
    assert not caplog.records
    slow = RateWatch("lsl", 120)
    slow.see(times(30, 10))
    slow.see(times(30, 10))
    assert len(caplog.records) == 1
    assert "--rate 30" in slow.slow


def test_a_service_without_gaze_says_that_the_stream_lies_about_its_rate(
    lsl: FakePylsl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lsl.offer("g", ["x_deg", "y_deg"], [([1.0, 2.0], i / 1000) for i in range(3000)], rate_hz=120.0)
    service = Service(load_settings(home=tmp_path / "home", tracker="lsl:g"))
    assert service.tracker is not None
    assert service.why_not_ready() is None

    async def work() -> None:
        await asyncio.wait_for(service.tracker_input.run(service.tracker, lambda: False), 30)
        told = service.why_not_ready()
        assert told is not None
        assert re.search(r"sends 1000 samples.*--rate 1000.*--tracker of `serve`", told)
        assert service.tracker_input.trouble == told
        assert not service.tracker_input.connected
        await service.close()

    asyncio.run(work())
    assert "no gaze comes: The tracker lsl sends 1000" in caplog.text


def test_a_stream_that_comes_later_with_another_rate_is_named_once_and_until_it_is_right(
    lsl: FakePylsl, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = LSLTracker("g", rate_hz=120)
    lsl.offer("g", ["x_deg", "y_deg"], [], rate_hz=1000.0)
    assert [tracker._connect() for _ in range(3)] == [None] * 3
    assert "declares 1000" in tracker.trouble
    assert len(caplog.records) == 1
    lsl.offer("g", ["x_deg", "y_deg"], [], rate_hz=120.0)
    assert tracker._connect() is not None
    assert tracker.trouble == ""


# --- Streams of LSL: channels by their labels, streams that go, and what is refused.
# --------------------------------------------------------------------------------------------------


# --- LSL
# --------------------------------------------------------------------------------------------------


def test_without_lsl_one_sentence_names_the_extra_and_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the package is missing"):
        open_tracker("lsl")

    def broken(name: str) -> object:
        raise RuntimeError("LSL binary library file was not found.")

    monkeypatch.setattr("gazeveil.relay.trackers.lsl.tracker.import_module", broken)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the library is missing"):
        open_tracker("lsl:pupil_capture")


def test_an_lsl_stream_that_goes_is_lost_and_chunks_of_another_shape_are_malformed(
    lsl: FakePylsl,
) -> None:
    lsl.offer("g", ["x_deg", "y_deg"], [([1.0, 2.0], 1.0)])
    tracker = LSLTracker("g")

    async def work() -> list[str]:
        story: list[str] = []
        async for part in tracker.samples():
            story.append("lost" if part is None else "gaze")
            if story == ["gaze"]:
                del lsl.network.streams["g"]
            if story == ["gaze", "lost"]:
                lsl.offer("g", ["x_deg", "y_deg"], [([1.0], 1.0)])
                asyncio.get_running_loop().call_later(
                    0.5, lambda: lsl.network.streams["g"][1].append(([1.0, 2.0], 3.0))
                )
            if len(story) == 3:
                break
        return story

    assert (run(work()), tracker.counts["malformed"]) == (["gaze", "lost", "gaze"], 1)
