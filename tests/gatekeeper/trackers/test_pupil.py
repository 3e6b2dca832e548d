"""Pupil Capture over real sockets: hostile messages, and a tracker that vanishes and comes back."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math

import msgpack
import numpy as np
import pytest

from gazeveil.errors import DataError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.picture import ScenePicture, ScreenPicture, pinhole
from gazeveil.gaze.geometry import Screen
from gazeveil.relay.trackers.pupil import PupilTracker
from gazeveil.relay.trackers.pupil_format import decode
from tests.support.fake_pupil import FakePupil, gaze
from tests.support.more_time import with_more_time
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


def test_gaze_of_a_pupil_arrives_with_its_times_and_unsure_samples_are_lost() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=60)

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


def test_a_pupil_that_vanishes_is_lost_and_found_again_on_its_new_port() -> None:
    async def work(silence_s: float) -> None:
        first = FakePupil()
        tracker = PupilTracker(
            f"127.0.0.1:{first.port}", silence_s=silence_s, answer_s=silence_s / 2
        )
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
        assert story == ["gaze", "lost", "gaze"]

    # Who is silent for longer is lost once more.
    with_more_time(lambda silence_s: run(work(silence_s)), 0.3, 3, 20)


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
