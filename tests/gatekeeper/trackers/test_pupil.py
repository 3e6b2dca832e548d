"""Pupil Capture over real sockets: hostile messages, and a tracker that vanishes and comes back."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import DataError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block, block, read_message, why_refused
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Sphere
from gazeveil.relay.picture import ScenePicture, ScreenPicture, pinhole
from gazeveil.relay.trackers.pupil import PupilTracker, decode
from tests.support.fake_pupil import FakePupil, gaze
from tests.support.taken_blocks import run, take

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


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
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=60)

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
            for k in itertools.count():  # until it is there, or the time is over
                pupil.send(gaze(1.0 + k / 100, 0.5, 0.5))
                await asyncio.sleep(0.02)
                if task.done():
                    break
            return (await task)[0]

        assert len(run(work())) >= 1
    assert tracker.counts["malformed"] == 0, "an over-long message never reached the decoder"


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


# --- Messages of trackers: batches, poses, spaces and JSON, whole, broken and hostile.
# --------------------------------------------------------------------------------------------------


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
    assert (float(x[0]), float(y[0])) == (pytest.approx(x_deg), pytest.approx(y_deg))


def test_the_rotation_that_turns_nothing_is_no_gaze() -> None:
    nothing = [
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0],
        [np.nan, 0.0, 0.0, 1.0],
        [1e308, 1e308, 1e308, 1e308],
    ]
    assert not blocks.from_poses(nothing)[2].any()


def test_a_hello_says_a_rate_and_a_space_that_must_be_those_expected() -> None:
    figures = {"kind": "screen", **{name: getattr(SCREEN, name) for name in SCREEN_SIZES}}
    assert blocks.parse_space(figures) == SCREEN
    assert blocks.parse_space({"kind": "sphere"}) == Sphere()
    for wrong in (None, "sphere", {"kind": "cube"}, {**figures, "width_mm": -1}):
        with pytest.raises(DataError):
            blocks.parse_space(wrong)
    assert why_refused({"rate_hz": 120, "space": figures}, 121.0, SCREEN) == ""
    for hello in (
        {"rate_hz": 60},
        {"rate_hz": True},
        {"space": {"kind": "cube"}},
        {"space": figures},
    ):
        assert why_refused(hello, 120.0, Sphere()).endswith(".")


def test_what_a_tracker_says_is_gaze_a_word_or_nothing() -> None:
    for text, told in (("lost", "lost"), ("confirm", "confirm"), ("ping", "ping"), ("hello", None)):
        assert read_message(json.dumps({"type": text}), Sphere()) == told
    sent = {"type": "samples", "t_ns": 7, "x_deg": None, "y_deg": 2, "pupil": [3.25]}
    found = read_message(json.dumps(sent), SCREEN)
    assert isinstance(found, blocks.Block)
    assert (found.t_ns.tolist(), found.valid.tolist()) == ([7], [False])
    poses = json.dumps({"type": "poses", "t_ns": [1], "orientation": [[0.1, 0, 0, 1]]})
    assert isinstance(read_message(poses, Sphere()), blocks.Block)
    with pytest.raises(DataError, match="Poses are directions on a sphere"):
        read_message(poses, SCREEN)


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
