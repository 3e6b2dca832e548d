"""Clients of Pupil behind the relay: unchanged, with protected gaze and no raw one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.relay import Protector, Sink, open_sink
from gazeveil.relay.picture import ScreenPicture
from gazeveil.relay.trackers.pupil import PupilTracker, decode_surface, encode_surface
from gazeveil.relay.zmq import PupilSink
from tests.support.fake_pupil import FakePupil, PupilClient, gaze
from tests.support.more_time import with_more_time
from tests.support.relaying import (
    CAMERA,
    KALEIDO,
    PERIOD_NS,
    Running,
    numbers,
    stream_mechanism,
    traces,
)
from tests.support.taken_blocks import run


def sent_gaze(n: int, seed: int = 5) -> list[dict[str, object]]:
    """Recognisable raw gaze: no number in it is round, and every field that must not pass differs
    from message to message.
    """
    rng = np.random.default_rng(seed)
    t = 1234.5678 + np.arange(n) * 0.01 + rng.uniform(-0.002, 0.002, n)
    place = 0.5 + 0.1 * np.sin(np.arange(n) / 9)[:, None] + rng.uniform(0, 0.01, (n, 2))
    return [
        gaze(float(t[i]), *map(float, place[i]), 0.8765, mark=float(rng.uniform(0, 0.1)))
        for i in range(n)
    ]


def receive(client: PupilClient, until_s: float) -> list[tuple[str, dict[str, object], bytes]]:
    """Messages until one that is not before a time."""
    found = []
    while True:
        found.append(client.receive())
        if float(str(found[-1][1]["timestamp"])) >= until_s:
            return found


def test_a_client_of_pupil_connects_unchanged_and_gets_protected_and_no_raw_gaze() -> None:
    data = sent_gaze(120)
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", rate_hz=100, silence_s=60)

        asked_s: list[float] = []

        async def work() -> tuple[list[tuple[str, dict[str, object], bytes]], PupilClient]:
            sink = PupilSink("127.0.0.1:0")
            async with Running(tracker, sink, Protector(KALEIDO, 100.0, CAMERA, seed=11)):
                await asyncio.to_thread(pupil.wait_for_subscriber)
                asked_s.append(pupil.now_s())
                client = await asyncio.to_thread(PupilClient, sink.port)
                asked_s.append(pupil.now_s())
                for datum in data:
                    pupil.send(datum)
                found = await asyncio.to_thread(
                    receive, client, float(str(data[-1]["timestamp"])) - 0.04
                )
                client.close()
                return found, client

        found, client = run(work())
    assert client.version == "3.5.1"
    assert asked_s[0] - 5.0 < client.time_s < asked_s[1] + 5.0, "t is the clock of the timestamps"
    assert client.pub_port.isdigit()
    # the same seed by hand
    t, x, y, sure = (
        np.array(c)
        for c in zip(
            *((d["timestamp"], *d["norm_pos"], d["confidence"]) for d in data), strict=True
        )
    )  # type: ignore[misc]
    degrees = ScreenPicture(CAMERA).degrees(x, y)
    first = int(t[0] * 1e9)
    session = stream_mechanism(KALEIDO).open(100.0, CAMERA, seed=11)
    t_ns = np.round(t * 1e9).astype(np.int64) - first % PERIOD_NS
    expected = session.push(t_ns, *degrees, sure >= 0.6)
    norm = ScreenPicture(CAMERA).norm(expected[1], expected[2])
    by_time = {
        round(ns / PERIOD_NS): (float(a), float(b))
        for ns, a, b in zip(expected[0], *norm, strict=True)
    }
    assert len(found) > 100
    for topic, message, _ in found:
        assert topic == message["topic"] == "gaze.3d.01."
        assert set(message) == {"topic", "norm_pos", "confidence", "timestamp", "base_data"}
        assert message["confidence"] in (0.0, 1.0)
        eyes = message["base_data"]
        assert [eye["id"] for eye in eyes] == [0, 1], "clients look here for the eyes that are seen"
        told = {eye["timestamp"] for eye in eyes} | {eye["confidence"] for eye in eyes}
        assert {v for v in numbers(eyes) if v == v} == told
        assert message["norm_pos"] == pytest.approx(
            by_time[round(float(str(message["timestamp"])) * 100)], abs=1e-12
        )
    # nothing raw: coordinates, pupils, eyes, 3-d points and times
    out = b"".join(raw for *_, raw in found)
    every = [v for d in data for v in numbers(d)]
    assert traces(every, out) == []
    assert len(traces(every, b"".join(msgpack.packb(d) for d in data))) == len(every), (
        "the search finds raw numbers where they are"
    )


def test_lost_gaze_repeats_the_place_released_last_with_confidence_0() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", rate_hz=100, silence_s=60)

        async def work() -> list[tuple[str, dict[str, object], bytes]]:
            sink = PupilSink("127.0.0.1:0", topic="gaze.2d.0.")
            async with Running(tracker, sink, Protector("gaussian:sigma_deg=1", 100.0, CAMERA)):
                await asyncio.to_thread(pupil.wait_for_subscriber)
                client = await asyncio.to_thread(PupilClient, sink.port, "gaze.2d")
                for k in range(6):
                    pupil.send(
                        gaze(
                            5.0 + k / 100,
                            0.5,
                            0.5,
                            confidence=0.1 if k in (0, 3, 4) else 0.9,
                            topic="gaze.3d.1.",
                        )
                    )
                found = await asyncio.to_thread(receive, client, 5.05)
                client.close()
                return found

        found = [m for _, m, _ in run(work())]
    assert [m["confidence"] for m in found] == [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    assert found[0]["norm_pos"] == [0.5, 0.5]
    assert found[3]["norm_pos"] == found[4]["norm_pos"] == found[2]["norm_pos"]
    assert len({tuple(m["norm_pos"]) for m in found}) == 4  # type: ignore[arg-type]


def test_no_other_topic_is_passed_on() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=60)

        async def work() -> bytes:
            sink = PupilSink("127.0.0.1:0")
            async with Running(tracker, sink, Protector("gaussian:sigma_deg=1", 120.0, CAMERA)):
                await asyncio.to_thread(pupil.wait_for_subscriber)
                client = await asyncio.to_thread(PupilClient, sink.port, "")
                for topic in (
                    b"pupil.0.3d",
                    b"notify.recording",
                    b"blinks",
                    b"surfaces.a",
                    b"frame.eye.0",
                    b"frame.world",
                    b"annotation",
                ):
                    pupil.send_frames(topic, b"payload", b"image")
                pupil.send(gaze(5.0, 0.5, 0.5))
                topic: bytes = (await asyncio.to_thread(client.subscriber.recv_multipart))[0]
                client.close()
                return topic

        assert run(work()) == b"gaze.3d.01."


def test_the_request_port_survives_what_is_no_question() -> None:
    async def work() -> list[str]:
        sink = PupilSink("127.0.0.1:0")
        async with Running(
            open_tracker("simulated", seed=1),
            sink,
            Protector("gaussian:sigma_deg=1", 120.0, Sphere()),
        ):

            def ask() -> list[str]:
                context = zmq.Context()
                answers = []
                for question in (
                    [b"R"],
                    [b"\xff\xfe"],
                    [b""],
                    [b"T 5.0"],
                    [b"notify.x", b"\xc0"],
                    [b"SUB_PORT" * 1000],
                    [b"SUB_PORT"],
                ):
                    request = context.socket(zmq.REQ)
                    request.setsockopt(zmq.RCVTIMEO, 60_000)
                    request.connect(f"tcp://127.0.0.1:{sink.port}")
                    request.send_multipart(question)
                    answers.append(request.recv_string())
                    request.close(linger=0)
                context.destroy(linger=0)
                return answers

            answers = await asyncio.to_thread(ask)
            assert answers[-1] == str(sink.sub_port)
            return answers[:-1]

    assert set(run(work())) == {"Unknown command."}


def test_hostile_messages_stop_nobody_and_a_restarted_pupil_is_relayed_on() -> None:
    async def received(client: PupilClient, pupil: FakePupil, from_s: float) -> dict[str, object]:
        """Send gaze from a time on until some of it arrives; what was on its way before is passed
        by.
        """
        sent = from_s
        while True:
            pupil.send(gaze(sent, 0.5, 0.5))
            sent += 0.01
            if await asyncio.to_thread(client.subscriber.poll, 10):
                message = client.receive()[1]
                if from_s - 1 < float(str(message["timestamp"])) < sent + 1:
                    return message

    async def work(silence_s: float) -> None:
        pupil = FakePupil()
        port = pupil.port
        tracker = PupilTracker(
            f"127.0.0.1:{port}", rate_hz=100, silence_s=silence_s, answer_s=silence_s / 2
        )
        sink = PupilSink("127.0.0.1:0")
        async with Running(tracker, sink, Protector(KALEIDO, 100.0, CAMERA)) as running:
            client = await asyncio.to_thread(PupilClient, sink.port)
            await received(client, pupil, 900.0)
            for payload in (
                b"\x91" * 10_000 + b"\xc0",
                b"",
                os.urandom(100_000),
                msgpack.packb({"norm_pos": [0.5, 0.5], "timestamp": float("nan")}),
            ):
                pupil.send_frames(b"gaze.3d.01.", payload)
            assert (await received(client, pupil, 950.0))["confidence"] == 1.0
            assert tracker.counts["malformed"] == 4
            pupil.close()
            while not running.protector.counts["breaks"]:
                await asyncio.sleep(0.05)
            again = FakePupil(port)
            after = await received(client, again, 3.0)
            assert after["confidence"] == 1.0
            assert running.protector.counts["clocks set back"] == 1
            client.close()
            again.close()

    # Who is silent for longer is asked anew, and what was sent meanwhile is lost.
    with_more_time(lambda silence_s: run(work(silence_s)), 0.4, 3, 20)


async def started(sink: Sink) -> None:
    guarantee = Protector("gaussian:sigma_deg=1", 120.0, Sphere()).guarantee
    await sink.start(open_tracker("simulated", seed=1), guarantee)


@pytest.mark.parametrize(
    ("text", "open_to_others"),
    [
        ("pupil://127.0.0.1:0", False),
        ("pupil://0.0.0.0:0", True),
        ("pupil://[::1]:0", False),
        ("pupil://192.0.2.7:0", True),
    ],
)
def test_a_port_that_others_reach_without_a_token_is_pointed_out(
    text: str, open_to_others: bool
) -> None:
    assert ("has no token" in open_sink(text).seen_by) == open_to_others


def test_a_message_of_any_size_takes_no_memory_of_the_pupil_port() -> None:
    """A head of ZeroMQ that announces 8 GB is enough to be cut off."""

    async def work() -> None:
        sink = PupilSink("127.0.0.1:0")
        await started(sink)
        for port in (sink.port, sink.sub_port, sink.pub_port):
            kind = {sink.port: b"REQ", sink.sub_port: b"SUB", sink.pub_port: b"PUB"}[port]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
            )
            ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
            writer.write(b"\x04" + bytes([len(ready)]) + ready)
            writer.write(b"\x02" + struct.pack(">Q", 8 << 30) + b"\x01")
            with contextlib.suppress(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 10)  # ends where the connection does
            writer.close()
        await sink.close()

    run(work())


# --- Gaze on a surface of Pupil: taken from one, and given as one, as clients that draw on a
# screen read it.
# --------------------------------------------------------------------------------------------------


SCREEN = Screen(1920, 1080, 531, 299, 600)
SURFACE = "psychopy_iohub_surface"


def on_surface(places: list[tuple[float, float, float, float]]) -> bytes:
    """A surface message as Pupil Capture 3 sends it, with transforms that tell of the head."""
    turned = [[0.71234, 0.11111, 3.21], [0.05, 0.69, 1.23], [0.0, 0.0, 1.0]]
    return msgpack.packb(
        {
            "topic": f"surfaces.{SURFACE}",
            "name": SURFACE,
            "surf_to_img_trans": turned,
            "img_to_surf_trans": turned,
            "gaze_on_surfaces": [
                {
                    "topic": "gaze.3d.01._on_surface",
                    "norm_pos": [x, y],
                    "confidence": sure,
                    "on_surf": 0 <= x <= 1 and 0 <= y <= 1,
                    "base_data": ["gaze.3d.01.", t],
                    "timestamp": t,
                }
                for t, x, y, sure in places
            ],
            "fixations_on_surfaces": [],
            "timestamp": places[-1][0],
        },
        use_bin_type=True,
    )


def places_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    found = message["gaze_on_surfaces"]
    assert isinstance(found, list)
    return found


def test_a_client_that_draws_on_a_screen_finds_protected_gaze_on_the_surface() -> None:
    places = [(5.0 + k / 100, 0.25, 0.75, 0.1 if k == 7 else 0.9) for k in range(40)]
    with FakePupil() as pupil:
        tracker = PupilTracker(
            f"127.0.0.1:{pupil.port}", rate_hz=100, screen=SCREEN, surface=SURFACE, silence_s=60
        )

        async def work() -> tuple[dict[float, dict[str, object]], list[dict[str, object]]]:
            sink, gaze, surfaces = PupilSink("127.0.0.1:0"), {}, []
            protector = Protector("gaussian:sigma_deg=0.5", 100.0, tracker.space, seed=3)
            async with Running(tracker, sink, protector):
                await asyncio.to_thread(pupil.wait_for_subscriber)
                client = await asyncio.to_thread(PupilClient, sink.port, "")
                pupil.send_frames(f"surfaces.{SURFACE}2".encode(), on_surface([(5.0, 9, 9, 1)]))
                for k in range(0, 40, 4):
                    pupil.send_frames(f"surfaces.{SURFACE}".encode(), on_surface(places[k : k + 4]))
                while sum(len(places_in(m)) for m in surfaces) < 40:
                    topic, message, _ = await asyncio.to_thread(client.receive)
                    if topic.startswith("gaze."):
                        gaze[float(str(message["timestamp"]))] = message
                    else:
                        assert topic == f"surfaces.{SURFACE}"
                        surfaces.append(message)
            client.close()
            return gaze, surfaces

        gaze, surfaces = run(work())
    shown = [place for message in surfaces for place in places_in(message)]
    # every place names a gaze message that came before it, by topic and exact time, with both eyes
    for place in shown:
        topic, t = place["base_data"]
        assert gaze[t]["topic"] == topic
        assert len(gaze[t]["base_data"]) == 2  # type: ignore[arg-type]
        assert gaze[t]["norm_pos"] == place["norm_pos"]
    assert [p["on_surf"] for p in shown] == [k != 7 for k in range(40)]
    assert [p["confidence"] for p in shown] == [float(k != 7) for k in range(40)]
    off = np.array([p["norm_pos"] for p in shown]) - (0.25, 0.75)
    assert 0 < np.abs(off).max() < 0.1, "half a degree of noise on a screen 48 degrees wide"
    assert all(m["img_to_surf_trans"] == np.eye(3).tolist() for m in surfaces), (
        "how the head moved is not told"
    )


def test_gaze_off_the_screen_is_off_the_surface() -> None:
    message = msgpack.loads(
        encode_surface("s", "gaze.3d.01.", [(1, 1.2, 0.5, True), (2, 0.5, 0.5, True)])
    )
    assert [p["on_surf"] for p in message["gaze_on_surfaces"]] == [False, True]


def test_surface_messages_are_read_in_order_and_others_refused() -> None:
    found = decode_surface(on_surface([(2.0, 0.2, 0.3, 0.9), (1.0, 0.4, 0.5, 0.8)]))
    assert found == [(1_000_000_000, 0.4, 0.5, 0.8), (2_000_000_000, 0.2, 0.3, 0.9)]
    for bad in (b"\xc1", msgpack.packb([]), msgpack.packb({"gaze_on_surfaces": [3]})):
        with pytest.raises(DataError):
            decode_surface(bad)


def test_a_surface_needs_a_screen() -> None:
    with pytest.raises(ParameterError, match="--screen"):
        open_tracker(f"pupil://127.0.0.1?surface={SURFACE}")
    with pytest.raises(ParameterError, match="surface"):
        PupilSink("127.0.0.1:0", surface="a/b")
    for tracker in (open_tracker("simulated"), PupilTracker("127.0.0.1")):
        guarantee = Protector("gaussian:sigma_deg=1", 120.0, tracker.space).guarantee
        with pytest.raises(ParameterError, match="not on one"):
            run(PupilSink("127.0.0.1:0", surface=SURFACE).start(tracker, guarantee))
