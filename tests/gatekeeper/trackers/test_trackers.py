"""Sources of gaze: simulated, replayed, and over real sockets; hostile messages; trackers that
vanish and come back.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

import gazeveil
from gazeveil.errors import DataError, GazeveilError, MissingExtraError, ParameterError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import Tracker, forms, open_tracker
from gazeveil.gatekeeper.trackers.lsl import LSLTracker
from gazeveil.gatekeeper.trackers.openxr import LinesTracker
from gazeveil.gatekeeper.trackers.pupil import PupilTracker
from gazeveil.gatekeeper.trackers.pupil_format import ScenePicture, ScreenPicture, decode, pinhole
from gazeveil.gatekeeper.trackers.tracker import back_off
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Screen, Sphere
from tests.support.fake_pupil import FakePupil, gaze
from tests.support.fake_pylsl import FakePylsl
from tests.support.recordings import real

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
LIMIT_S = 100.0


async def take(tracker: Tracker, samples: int) -> tuple[Block, int]:
    """At least so many samples in one block, and how often the tracker vanished before they were
    there.
    """
    parts: list[Block] = []
    lost = 0
    async for part in tracker.samples():
        if part is None:
            lost += 1
        else:
            parts.append(part)
        if sum(map(len, parts)) >= samples:
            break
    return joined(parts), lost


def joined(parts: list[Block]) -> Block:
    columns = [
        np.concatenate([getattr(p, n) for p in parts]) if parts else np.empty(0)
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    ]
    return Block(*columns, parts[-1].form if parts else "samples")


def run(work: Awaitable[object]) -> object:
    async def limited() -> object:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(limited())


# --- blocks
# --------------------------------------------------------------------------------------------------


def test_a_batch_comes_back_as_it_was_packed() -> None:
    sent = block([5, -7, 2**62], [1.5, np.nan, 359.25], [2.5, 3.0, 90.0], [True, True, False])
    found = blocks.unpack(blocks.pack(sent, id=7, sequence=40, dropped=2))
    assert (found.id, found.sequence, found.dropped) == (7, 40, 2)
    assert found.block.t_ns.tolist() == [5, -7, 2**62]
    assert found.block.valid.tolist() == [True, False, False]
    assert (found.block.x_deg[0], found.block.y_deg[0]) == (1.5, 2.5)
    assert np.isnan(found.block.x_deg[1:]).all(), "what is not valid leaves no number behind"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x01",
        blocks.pack(block([1], [1.0], [1.0]))[:-1],
        blocks.pack(block([1], [1.0], [1.0])) + b"\x00",
        b"\x02" + blocks.pack(block([1], [1.0], [1.0]))[1:],
        blocks.HEADER.pack(1, 1, 0, 2**32 - 1, 0, 0),
        b"\x01\x01" + b"\x00" * (blocks.MOST_BYTES + 1),
    ],
    ids=["empty", "short", "cut", "longer", "version", "count", "huge"],
)
def test_bytes_that_are_no_batch_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        blocks.unpack(data)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "samples"},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": []},
        {"type": "samples", "t_ns": [1.5], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [True], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [2**63], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": ["1"], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": [10**400], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": [1.0], "valid": [2]},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": [1.0], "valid": "yes"},
        {"type": "poses", "t_ns": [1], "orientation": [[0, 0, 1]]},
        {"type": "poses", "t_ns": [1], "orientation": [[0, 0, 1, "w"]]},
        {"type": "poses", "t_ns": [1, 2], "orientation": [[0, 0, 0, 1]]},
        {"type": "poses", "t_ns": [1], "orientation": None},
        {"type": "fixations", "t_ns": [1]},
    ],
)
def test_messages_without_their_parts_are_refused_without_quoting_them(
    message: dict[str, object],
) -> None:
    with pytest.raises(DataError) as error:
        blocks.from_message(message)
    assert "1.0" not in str(error.value)


def test_a_message_keeps_its_form_and_null_is_lost() -> None:
    for message in (
        {
            "type": "samples",
            "t_ns": [1, 2],
            "x_deg": [10.0, None],
            "y_deg": [20.0, None],
            "valid": [True, False],
        },
        {"type": "poses", "t_ns": [1], "orientation": [[0.1, -0.2, 0.0, 0.9]], "valid": [True]},
    ):
        found = blocks.from_message(message)
        again = blocks.message_of(found)
        assert again["type"] == message["type"]
        assert json.loads(json.dumps(again, allow_nan=False)) == again
        twice = blocks.from_message(again)
        np.testing.assert_allclose(twice.x_deg, found.x_deg, atol=1e-9)
        np.testing.assert_allclose(twice.y_deg, found.y_deg, atol=1e-9)


@pytest.mark.parametrize(
    ("quaternion", "x_deg", "y_deg"),
    [
        # to the right: about the axis that points up, by a negative angle
        ([0.0, -math.sin(math.radians(15)), 0.0, math.cos(math.radians(15))], 210.0, 90.0),
        ([math.sin(math.radians(10)), 0.0, 0.0, math.cos(math.radians(10))], 180.0, 70.0),
        ([0.0, 3.0, 0.0, 3.0], 90.0, 90.0),
    ],
    ids=["right", "up", "left, not of length 1"],
)
def test_poses_become_degrees_on_the_sphere(
    quaternion: list[float], x_deg: float, y_deg: float
) -> None:
    x, y, ok = blocks.from_poses([quaternion])
    assert ok.all()
    assert float(x[0]) == pytest.approx(x_deg)
    assert float(y[0]) == pytest.approx(y_deg)


def test_the_rotation_that_turns_nothing_is_no_gaze_unless_one_says_so() -> None:
    nothing = [
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0],
        [np.nan, 0.0, 0.0, 1.0],
        [1e308, 1e308, 1e308, 1e308],
    ]
    assert not blocks.from_poses(nothing)[2].any()
    x, y, ok = blocks.from_poses(nothing, identity_is_lost=False)
    assert ok.tolist() == [True, True, False, False, False]
    assert (float(x[0]), float(y[0])) == (180.0, 90.0)


def test_poses_and_degrees_are_one_another() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 360, 500), rng.uniform(1, 179, 500)
    found = blocks.from_poses(blocks.to_poses(block(np.arange(500), x, y)))
    np.testing.assert_allclose(found[0], x, atol=1e-6)
    np.testing.assert_allclose(found[1], y, atol=1e-6)


def test_spaces_survive_json_and_others_are_refused() -> None:
    for space in (Sphere(), SCREEN):
        assert blocks.parse_space(json.loads(json.dumps(blocks.space_figures(space)))) == space
    for wrong in (
        None,
        "sphere",
        {"kind": "cube"},
        {"kind": "screen", "width_px": 1},
        {**blocks.space_figures(SCREEN), "width_mm": -1},
    ):
        with pytest.raises(DataError):
            blocks.parse_space(wrong)


def test_json_without_end_is_refused() -> None:
    for text in (
        "[" * 100_000,
        '{"a":' * 100_000,
        "[]",
        "1",
        "{",
        '{"t": ' + "9" * 10_000 + "}",
        "x" * (blocks.MOST_BYTES + 1),
    ):
        with pytest.raises(DataError):
            blocks.parse_json(text)


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(
    t=_TREES, x=_TREES, y=_TREES, valid=_TREES, kind=st.sampled_from(["samples", "poses", "other"])
)
def test_whatever_a_message_holds_it_is_a_block_or_refused(
    t: object, x: object, y: object, valid: object, kind: str
) -> None:
    for message in (
        {"type": kind, "t_ns": t, "x_deg": x, "y_deg": y, "valid": valid},
        {"type": kind, "t_ns": [1], "x_deg": [x], "orientation": x, "y_deg": y},
    ):
        try:
            found = blocks.from_message(message)
        except DataError:
            continue
        assert len(found.t_ns) == len(found.x_deg) == len(found.y_deg) == len(found.valid)
        assert np.isfinite(found.x_deg[found.valid]).all()


@settings(max_examples=300, deadline=None)
@given(
    tree=_TREES,
    where=st.sampled_from(["timestamp", "norm_pos", "confidence"]),
    cut=st.integers(0, 200),
    noise=st.binary(max_size=8),
)
def test_whatever_pupil_sends_it_is_gaze_or_refused(
    tree: object, where: str, cut: int, noise: bytes
) -> None:
    datum = {"timestamp": 1.0, "norm_pos": [0.5, 0.5], "confidence": 1.0, where: tree}
    try:
        packed = msgpack.packb(datum)
    except OverflowError:
        return
    for data in (packed, packed[:cut], packed[:cut] + noise + packed[cut:]):
        try:
            t_ns, *rest = decode(data)
        except DataError:
            continue
        assert isinstance(t_ns, int)
        assert all(isinstance(v, float) for v in rest)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=80), count=st.integers(0, 2**32 - 1))
def test_whatever_bytes_come_they_are_a_batch_or_refused(data: bytes, count: int) -> None:
    for whole in (
        data,
        blocks.HEADER.pack(1, 1, 0, count, 0, 0) + data,
        blocks.HEADER.pack(1, 1, 0, len(data) // 17, 0, 0) + data[: len(data) // 17 * 17],
    ):
        try:
            found = blocks.unpack(whole).block
        except DataError:
            continue
        assert len(found.t_ns) == (len(whole) - blocks.HEADER.size) // 17
        assert np.isfinite(found.x_deg[found.valid]).all()


# --- opening
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eyes",
        "simulated?rate=1",
        "simulated?rate_hz=0",
        "simulated?speed=0",
        "simulated:there",
        "replay:",
        "pupil://a:b",
        "pupil://x:1/path",
        "pupil://127.0.0.1?topic=pupil.",
        "ws://",
        "websocket://0.0.0.0:9",
        "openxr+tcp://0.0.0.0:9",
        "openxr://127.0.0.1:9?identity=maybe",
    ],
)
def test_what_is_no_tracker_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_tracker(text)
    assert "\n" not in str(error.value)


def test_a_replay_of_nothing_readable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeveilError):
        open_tracker(f"replay:{tmp_path / 'none.csv'}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GazeveilError):
        open_tracker(f"replay:{tmp_path / 'empty'}")


def test_every_source_says_how_it_is_written() -> None:
    assert len(forms()) == 9
    assert open_tracker("pupil://127.0.0.1").rate_hz == 120.0
    assert open_tracker("websocket://127.0.0.1:0?rate_hz=250").rate_hz == 250.0
    assert open_tracker("pupil://127.0.0.1").space == pinhole()
    assert open_tracker("pupil://127.0.0.1?sphere=true").space == Sphere()
    assert open_tracker("pupil://127.0.0.1?screen=[1280,720,400,225,450]").space == SCREEN


def test_pauses_between_attempts_grow_to_a_limit() -> None:
    pauses = back_off(0.2, 1.0)
    assert [next(pauses) for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]


# --- simulated and replayed
# --------------------------------------------------------------------------------------------------


def test_simulated_gaze_goes_on_without_a_jump_of_time_from_stimulus_to_stimulus() -> None:
    tracker = open_tracker(
        "simulated", rate_hz=250.0, seed=3, speed=math.inf, minute_s=1.0, start_ns=10**18
    )
    found, lost = run(take(tracker, 1000))
    assert lost == 0
    assert np.array_equal(found.t_ns, 10**18 + np.arange(len(found)) * 4_000_000)
    assert found.valid.mean() > 0.5
    assert np.array_equal(
        found.x_deg,
        run(
            take(
                open_tracker("simulated", rate_hz=250.0, seed=3, speed=math.inf, minute_s=1.0), 1000
            )
        )[0].x_deg,
        equal_nan=True,
    )
    assert not np.array_equal(found.x_deg[:250], found.x_deg[250:500], equal_nan=True), (
        "the same second again and again"
    )


def test_simulated_gaze_comes_in_real_time() -> None:
    tracker = open_tracker("simulated?rate_hz=100&seed=1", speed=2.0)

    async def timed() -> tuple[float, list[int]]:
        sizes: list[int] = []
        began = 0.0
        async for part in tracker.samples():
            assert part is not None
            began = began or time.monotonic()
            sizes.append(len(part))
            if sum(sizes) > 100:
                break
        return time.monotonic() - began, sizes

    took_s, sizes = run(timed())
    # 100 samples at 100 Hz and double speed are half a second; a loaded machine may be late, never
    # early
    assert 0.49 <= took_s < 5.0
    assert len(sizes) > 3, "one heap of samples is no stream"


def test_simulated_gaze_of_a_screen_task_says_its_space() -> None:
    assert isinstance(open_tracker("simulated?task=reading").space, Screen)
    assert open_tracker("simulated").space == Sphere()


def test_a_replayed_file_has_the_samples_and_the_pauses_of_the_recording(tmp_path: Path) -> None:
    cohort = gazeveil.simulate(1, 1, 2, 100, seed=5)
    cohort.write(tmp_path / "one")
    tracker = open_tracker(f"replay:{tmp_path / 'one'}", speed=math.inf, start_ns=7)

    async def everything() -> list[Block | None]:
        return [part async for part in tracker.samples()]

    parts = run(everything())
    assert parts[-1] is None, "a replay that ended is a tracker that vanished"
    found = joined([p for p in parts if p is not None])
    recording = cohort[0]
    assert np.array_equal(found.t_ns, 7 + recording.t_ns - recording.t_ns[0])
    np.testing.assert_allclose(found.x_deg, recording.x_deg, atol=1e-4)
    assert np.array_equal(found.valid, recording.valid)
    assert tracker.rate_hz == pytest.approx(100)


def test_a_folder_is_replayed_with_the_tracker_vanishing_between_recordings_and_loops(
    tmp_path: Path,
) -> None:
    gazeveil.simulate(2, 1, 1, 100, seed=5).write(tmp_path / "two")
    tracker = open_tracker(f"replay:{tmp_path / 'two'}?loop=true", speed=math.inf)
    found, lost = run(take(tracker, 500))
    assert lost == 4
    assert (np.diff(found.t_ns) > 0).all()


def test_recordings_of_another_rate_or_space_are_left_out_and_counted(tmp_path: Path) -> None:
    one = gazeveil.simulate(1, 1, 1, 100, seed=5)[0]
    gazeveil.Cohort(
        [one, one.with_(person="p2", t_ns=one.t_ns * 2, rate_hz=50.0), one.with_(person="p3")]
    ).write(tmp_path / "mixed")
    tracker = open_tracker(f"replay:{tmp_path / 'mixed'}", speed=math.inf)

    async def everything() -> int:
        return sum([len(part) async for part in tracker.samples() if part is not None])

    assert run(everything()) == 200
    assert tracker.counts["left out"] == 1


@pytest.mark.parametrize("name", ["gazecom", "eyenavgs_nthu/truck"])
def test_real_recordings_are_replayed_as_they_are(name: str) -> None:
    path = real(*name.split("/"))
    recording = gazeveil.read(path)[0]
    tracker = open_tracker(f"replay:{path}", speed=math.inf)
    found, _ = run(take(tracker, len(recording)))
    n = len(recording)
    np.testing.assert_array_equal(np.diff(found.t_ns[:n]), np.diff(recording.t_ns))
    np.testing.assert_array_equal(
        found.x_deg[:n][recording.valid], recording.x_deg[recording.valid]
    )
    assert np.array_equal(found.valid[:n], recording.valid)
    assert tracker.space == recording.space


# --- Pupil
# --------------------------------------------------------------------------------------------------


def test_the_middle_of_the_picture_is_straight_ahead_and_pictures_go_both_ways() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-0.5, 1.5, 200), rng.uniform(-0.5, 1.5, 200)
    for picture in (ScenePicture(), ScreenPicture(SCREEN), ScreenPicture(pinhole())):
        again = picture.norm(*picture.degrees(x, y))
        np.testing.assert_allclose(again[0], x, atol=1e-9)
        np.testing.assert_allclose(again[1], y, atol=1e-9)
    # right and up in the picture is right and up in degrees, where y grows downwards
    assert [
        float(v[0]) > w
        for v, w in zip(ScenePicture().degrees([0.6], [0.6]), (180, 90), strict=True)
    ] == [True, False]
    assert [float(v[0]) > 0 for v in ScreenPicture(SCREEN).degrees([0.6], [0.6])] == [True, False]
    assert np.isnan(ScenePicture().norm([0.0], [90.0])[0]).all(), (
        "behind the camera is not in its picture"
    )


def test_gaze_of_a_pupil_arrives_with_its_times_and_unsure_samples_are_lost() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}")

        async def work() -> Block:
            task = asyncio.ensure_future(take(tracker, 3))
            await asyncio.to_thread(pupil.wait_for_subscriber)
            pupil.send(gaze(1000.5, 0.5, 0.5))
            pupil.send(gaze(1000.51, 0.25, 0.75, confidence=0.3, topic="gaze.3d.0."))
            pupil.send(gaze(1000.52, 0.75, 0.25))
            return (await task)[0]

        found = run(work())
    assert found.t_ns.tolist() == [1_000_500_000_000, 1_000_510_000_000, 1_000_520_000_000]
    assert found.valid.tolist() == [True, False, True]
    assert (found.x_deg[0], found.y_deg[0]) == (0.0, 0.0)
    assert float(found.x_deg[2]) == pytest.approx(math.degrees(math.atan(0.25 * 1280 / 829)))
    assert pupil.asked == ["SUB_PORT", "t", "v"]
    assert tracker.version == "3.5.1"


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


HOSTILE = {
    "no bytes": b"",
    "noise": bytes(range(256)),
    "deep list": nested(10_000),
    "deeper list": nested(900_000),
    "deep map": b"\x81\xa1a" * 10_000 + b"\xc0",
    "claims 4 billion": b"\xdd\xff\xff\xff\xff",
    "claims a long text": b"\xdb\xff\xff\xff\xff",
    "a list": msgpack.packb([1, 2]),
    "no time": msgpack.packb({"norm_pos": [0.5, 0.5], "confidence": 1.0}),
    "time of text": msgpack.packb({"norm_pos": [0.5, 0.5], "timestamp": "now"}),
    "endless time": msgpack.packb({"norm_pos": [0.5, 0.5], "timestamp": math.inf}),
    "one number": msgpack.packb({"norm_pos": [0.5], "timestamp": 1.0}),
    "place of text": msgpack.packb({"norm_pos": "0.5,0.5", "timestamp": 1.0}),
    "list as a key": b"\x81\x91\x01\x01",
    "not unicode": b"\x81\xa1\xff\x01",
    "trailing bytes": msgpack.packb({"norm_pos": [0.5, 0.5], "timestamp": 1.0}) + b"\x00",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_no_gaze(name: str) -> None:
    with pytest.raises(DataError):
        decode(HOSTILE[name])


def test_hostile_messages_are_counted_dropped_and_logged_without_gaze(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "gazeveil")
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}")

        async def work() -> Block:
            task = asyncio.ensure_future(take(tracker, 2))
            await asyncio.to_thread(pupil.wait_for_subscriber)
            for payload in HOSTILE.values():
                pupil.send_frames(b"gaze.3d.01.", payload)
            pupil.send_frames(
                b"gaze.3d.01.", msgpack.packb(gaze(1.0, 0.71717171, 0.5)), b"a third frame"
            )
            pupil.send_frames(b"gaze.")
            strange = {"norm_pos": [True, "0.71717171"], "timestamp": 5, "confidence": 2**63}
            pupil.send_frames(b"gaze.3d.01.", msgpack.packb(strange))
            pupil.send(gaze(6.0, 0.71717171, 0.5))
            return (await task)[0]

        found = run(work())
    assert tracker.counts["malformed"] == len(HOSTILE) + 2
    assert found.valid.tolist() == [False, True]
    assert "malformed" in caplog.text
    assert "0.71717171" not in caplog.text


def test_a_message_over_the_limit_ends_the_connection_and_gaze_comes_back() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=0.5)

        async def work() -> Block:
            task = asyncio.ensure_future(take(tracker, 1))
            await asyncio.to_thread(pupil.wait_for_subscriber)
            pupil.send_frames(b"gaze.3d.01.", b"\x00" * (4 * blocks.MOST_BYTES))
            await asyncio.to_thread(pupil.wait_for_subscriber)
            for k in range(200):
                pupil.send(gaze(1.0 + k / 100, 0.5, 0.5))
                await asyncio.sleep(0.02)
                if task.done():
                    break
            return (await task)[0]

        assert len(run(work())) >= 1
    assert tracker.counts["malformed"] == 0, "an over-long message never reached the decoder"


def test_a_pupil_that_vanishes_is_lost_and_found_again_on_its_new_port() -> None:
    async def work() -> list[str]:
        first = FakePupil()
        tracker = PupilTracker(f"127.0.0.1:{first.port}", silence_s=0.3, answer_s=0.2)
        story: list[str] = []
        stream = tracker.samples()

        async def follow() -> None:
            async for part in stream:
                story.append("lost" if part is None else "gaze")
                if story[-2:] == ["lost", "gaze"]:
                    return

        task = asyncio.ensure_future(follow())
        await asyncio.to_thread(first.wait_for_subscriber)
        first.send(gaze(1.0, 0.5, 0.5))
        port = first.port
        while "lost" not in story:
            await asyncio.sleep(0.02)
            if first.context.closed is False and story:
                first.close()
        second = FakePupil(port, clock_s=5.0)
        await asyncio.to_thread(second.wait_for_subscriber)
        second.send(gaze(5.0, 0.5, 0.5))
        await task
        second.close()
        assert tracker.counts["lost"] == 1
        assert tracker.counts["connected"] == 2
        return story

    assert run(work()) == ["gaze", "lost", "gaze"]


def test_a_pupil_whose_answers_are_nonsense_is_asked_again_and_counted() -> None:
    with FakePupil() as pupil:
        pupil.sub_port = "http://evil"  # type: ignore[assignment]
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", answer_s=0.2)

        async def work() -> None:
            task = asyncio.ensure_future(take(tracker, 1))
            while tracker.counts["malformed"] < 2:
                await asyncio.sleep(0.02)
            await tracker.close()
            await task

        run(work())


# --- WebSocket and OpenXR
# --------------------------------------------------------------------------------------------------


def listening(
    tracker: ListeningTracker | LinesTracker, feed: Callable[[int], Awaitable[None]], samples: int
) -> tuple[Block, int]:
    async def work() -> tuple[Block, int]:
        task = asyncio.ensure_future(take(tracker, samples))
        await tracker.listening.wait()
        await feed(tracker.port)
        return await task

    return run(work())  # type: ignore[return-value]


def test_a_tracker_connects_and_sends_all_three_forms() -> None:
    tracker = open_tracker("websocket://127.0.0.1:0")
    assert isinstance(tracker, ListeningTracker)

    async def feed(port: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}") as socket:
            await socket.send(
                json.dumps({"type": "hello", "rate_hz": 120, "space": {"kind": "sphere"}})
            )
            assert json.loads(await socket.recv())["type"] == "welcome"
            await socket.send(blocks.pack(block([1, 2], [10.0, 11.0], [20.0, 21.0])))
            await socket.send(
                json.dumps({"type": "samples", "t_ns": [3], "x_deg": [12.0], "y_deg": [22.0]})
            )
            await socket.send(json.dumps({"type": "ping"}))
            assert json.loads(await socket.recv()) == {"type": "pong"}
            await socket.send(
                json.dumps(
                    {
                        "type": "poses",
                        "t_ns": [4, 5],
                        "orientation": [[0, 0, 0, 1], [0.1, 0, 0, 0.99]],
                    }
                )
            )

    found, lost = listening(tracker, feed, 5)
    assert found.t_ns.tolist() == [1, 2, 3, 4, 5]
    assert found.valid.tolist() == [True, True, True, False, True]
    assert found.x_deg[:3].tolist() == [10.0, 11.0, 12.0]
    assert lost == 0


def test_strangers_pages_and_second_trackers_are_refused() -> None:
    tracker = open_tracker("websocket://127.0.0.1:0", token="secret")
    assert isinstance(tracker, ListeningTracker)

    async def feed(port: int) -> None:
        url = f"ws://127.0.0.1:{port}"
        for hello in (
            {"type": "hello"},
            {"type": "hello", "token": "Secret"},
            {"type": "hello", "token": ["secret"]},
            {"type": "hello", "token": "secret", "rate_hz": 60},
            {"type": "hello", "token": "secret", "rate_hz": True},
            {"type": "hello", "token": "secret", "space": {"kind": "cube"}},
            {"type": "hello", "token": "secret", "space": blocks.space_figures(SCREEN)},
            {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": [1.0]},
        ):
            async with connect(url) as socket:
                await socket.send(json.dumps(hello))
                assert json.loads(await socket.recv())["type"] == "refused", hello
                with pytest.raises(ConnectionClosed):
                    await socket.recv()
        with pytest.raises(InvalidStatus):
            async with connect(url, origin="https://example.org"):  # type: ignore[arg-type]
                pass
        async with connect(url) as socket:
            await socket.send(json.dumps({"type": "hello", "token": "secret"}))
            await socket.recv()
            async with connect(url) as other:
                with pytest.raises(ConnectionClosed):
                    await other.recv()
            await socket.send(
                json.dumps({"type": "samples", "t_ns": [9], "x_deg": [1.0], "y_deg": [1.0]})
            )

    found, lost = listening(tracker, feed, 1)
    assert found.t_ns.tolist() == [9]
    assert lost == 0, "a tracker that was never let in cannot vanish"
    assert tracker.counts["connected"] == 1


def test_malformed_messages_on_a_websocket_are_dropped_and_over_long_ones_end_it() -> None:
    tracker = open_tracker("websocket://127.0.0.1:0")
    assert isinstance(tracker, ListeningTracker)

    async def feed(port: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}", max_size=None) as socket:
            await socket.send('{"type":"hello"}')
            await socket.recv()
            for wrong in (
                "",
                "[" * 100_000,
                b"",
                b"\x01" * 100,
                '{"type":"samples"}',
                '{"type":"poses","t_ns":1,"orientation":{}}',
                '{"a":' * 5000,
            ):
                await socket.send(wrong)
            await socket.send(
                '{"type":"samples","t_ns":[1],"x_deg":[1],"y_deg":[1],"pupil":[3.25]}'
            )
            await socket.send(b"\x00" * (blocks.MOST_BYTES + 1))
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
        async with connect(f"ws://127.0.0.1:{port}") as socket:
            await socket.send('{"type":"hello"}')
            await socket.recv()
            await socket.send('{"type":"samples","t_ns":[2],"x_deg":[1],"y_deg":[1]}')

    found, lost = listening(tracker, feed, 2)
    assert found.t_ns.tolist() == [1, 2]
    assert lost == 1
    assert tracker.counts["malformed"] == 7


def test_poses_on_a_screen_are_refused() -> None:
    tracker = ListeningTracker("127.0.0.1:0", space=SCREEN)
    assert tracker.read('{"type":"poses","t_ns":[1],"orientation":[[0.1,0,0,1]]}') is None
    assert tracker.counts["malformed"] == 1


def test_a_tracker_that_serves_is_connected_again_after_it_broke() -> None:
    async def work() -> tuple[Block, int]:
        said: list[str] = []

        async def tell(connection: ServerConnection) -> None:
            said.append(str(await connection.recv()))
            await connection.send('{"type":"welcome"}')
            await connection.send(
                json.dumps({"type": "samples", "t_ns": [len(said)], "x_deg": [1.0], "y_deg": [2.0]})
            )
            await connection.close()

        async with serve(tell, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            tracker = open_tracker(f"ws://127.0.0.1:{port}/gaze?token=abc")
            found = await take(tracker, 2)
            assert [json.loads(s)["token"] for s in said] == ["abc", "abc"]
            return found

    found, lost = run(work())
    assert found.t_ns.tolist() == [1, 2]
    assert lost == 1


def test_a_port_closes_although_a_tracker_waits_for_room() -> None:
    async def work(tracker: ListeningTracker | LinesTracker) -> None:
        stream = tracker.samples()
        first = asyncio.ensure_future(anext(stream))
        await tracker.listening.wait()
        message = '{"type":"samples","t_ns":[1],"x_deg":[1],"y_deg":[1]}'
        if isinstance(tracker, LinesTracker):
            _, writer = await asyncio.open_connection("127.0.0.1", tracker.port)
            writer.write((message + "\n").encode() * 1000)
            await first
        else:
            socket = await connect(f"ws://127.0.0.1:{tracker.port}")
            await socket.send('{"type":"hello"}')
            for _ in range(1000):
                await socket.send(message)
            await first
        while tracker.counts["samples"] < 250:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert tracker.counts["samples"] < 300, "a tracker that is too fast must wait"
        began = time.monotonic()
        await stream.aclose()  # type: ignore[attr-defined]
        await tracker.close()
        assert time.monotonic() - began < 5.0

    run(work(ListeningTracker("127.0.0.1:0")))
    run(work(LinesTracker("127.0.0.1:0")))


def test_lines_on_standard_input_end_with_it() -> None:
    code = """
import asyncio
from gazeveil.gatekeeper.trackers import open_tracker
async def work():
    parts = [part async for part in open_tracker("openxr:-").samples()]
    print([None if p is None else p.t_ns.tolist() for p in parts])
asyncio.run(work())
"""
    lines = "".join(
        json.dumps({"time": k, "pose": {"orientation": {"x": 0.1, "y": 0.0, "z": 0.0, "w": 1.0}}})
        + "\n"
        for k in range(400)
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout.replace("None", "null")) == [*([k] for k in range(400)), None]


def test_lines_of_openxr_poses_become_gaze() -> None:
    tracker = open_tracker("openxr+tcp://127.0.0.1:0")
    assert isinstance(tracker, LinesTracker)

    async def feed(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        half = math.sin(math.radians(15)), math.cos(math.radians(15))
        turn = {"x": 0.0, "y": -half[0], "z": 0.0, "w": half[1]}
        for line in (
            {"time": 1, "pose": {"orientation": turn, "position": {"x": 0.1, "y": 1.7, "z": 0.2}}},
            {"t_ns": 2, "orientation": [0.0, 0.0, 0.0, 1.0]},
            {"time": 3, "pose": {"orientation": turn}, "valid": False},
            {"time": "soon", "pose": {"orientation": turn}},
            {"time": 4, "pose": "none"},
            {"type": "poses", "t_ns": [5], "orientation": [list(turn.values())]},
        ):
            writer.write(json.dumps(line).encode() + b"\n")
        await writer.drain()
        writer.close()

    found, _ = listening(tracker, feed, 4)
    assert found.t_ns.tolist() == [1, 2, 3, 5]
    assert found.valid.tolist() == [True, False, False, True]
    assert float(found.x_deg[0]) == pytest.approx(210.0)
    assert tracker.counts["malformed"] == 2


def test_openxr_poses_come_over_a_websocket_too() -> None:
    tracker = open_tracker("openxr://127.0.0.1:0")
    assert isinstance(tracker, ListeningTracker)

    async def feed(port: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}") as socket:
            await socket.send('{"type":"hello","rate_hz":90}')
            await socket.recv()
            await socket.send('{"time":7,"pose":{"orientation":{"x":0.1,"y":0,"z":0,"w":1}}}')

    found, _ = listening(tracker, feed, 1)
    assert found.t_ns.tolist() == [7]
    assert found.form == "poses"


# --- LSL
# --------------------------------------------------------------------------------------------------

PUPIL_LABELS = ["confidence", "norm_pos_x", "norm_pos_y", "gaze_point_3d_x", "diameter0_2d"]


def test_without_lsl_one_sentence_names_the_extra_and_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the package is missing"):
        open_tracker("lsl")

    def broken(name: str) -> object:
        raise RuntimeError("LSL binary library file was not found.")

    monkeypatch.setattr("gazeveil.gatekeeper.trackers.lsl.import_module", broken)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the library is missing"):
        open_tracker("lsl:pupil_capture")


def test_channels_of_an_lsl_stream_go_by_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    lsl.offer(
        "pupil_capture",
        PUPIL_LABELS,
        [([1.0, 0.5, 0.5, 7.0, 45.0], 10.0), ([0.2, 0.5, 0.5, 7.0, 45.0], 10.5)],
    )
    found, _ = run(take(open_tracker("lsl?sphere=true"), 2))
    assert found.t_ns.tolist() == [10_000_000_000, 10_500_000_000]
    assert (found.x_deg[0], found.y_deg[0]) == (180.0, 90.0)
    assert found.valid.tolist() == [True, False]
    lsl.offer("degrees", ["y_deg", "x_deg"], [([80.0, 200.0], 1.0)])
    found, _ = run(take(open_tracker("lsl:degrees"), 1))
    assert (found.x_deg[0], found.y_deg[0]) == (200.0, 80.0)


def test_an_lsl_stream_that_goes_is_lost_and_chunks_of_another_shape_are_malformed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
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

    assert run(work()) == ["gaze", "lost", "gaze"]
    assert tracker.counts["malformed"] == 1


def test_lsl_streams_without_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    lsl.offer("eeg", ["Fp1", "Fp2"], [([1.0, 2.0], 1.0)])
    tracker = LSLTracker("eeg")

    async def work() -> None:
        task = asyncio.ensure_future(take(tracker, 1))
        while not tracker.counts["malformed"]:
            await asyncio.sleep(0.01)
        await tracker.close()
        await task

    run(work())
