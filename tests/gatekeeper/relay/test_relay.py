"""The relay: real sockets on both sides, clients that know nothing of it, and nothing raw in what
they get.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket as sockets
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

import gazeveil
from gazeveil.cli.main import main
from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.relay import Protector, open_sink, relay
from gazeveil.gatekeeper.relay.lsl import LSLSink
from gazeveil.gatekeeper.relay.topics import check_forward
from gazeveil.gatekeeper.relay.websocket import WebSocketSink
from gazeveil.gatekeeper.relay.zmq import PupilSink
from gazeveil.gatekeeper.trackers import Tracker, open_tracker
from gazeveil.gatekeeper.trackers.lsl.tracker import LSLTracker
from gazeveil.gatekeeper.trackers.picture import ScreenPicture, pinhole
from gazeveil.gatekeeper.trackers.pupil import PupilTracker
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.stream.mechanism import StreamMechanism
from tests.support.fake_pupil import FakePupil, PupilClient, gaze
from tests.support.fake_pylsl import FakePylsl
from tests.support.more_time import with_more_time
from tests.support.ports import free_port

LIMIT_S = 100.0
KALEIDO = "kaleido:epsilon=1,w=60,r_deg=2"
PERIOD_NS = 10_000_000
CAMERA = pinhole()


def run(work: Awaitable[object]) -> object:
    async def limited() -> object:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(limited())


def stream_mechanism(text: str) -> StreamMechanism:
    found = gazeveil.mechanism(text)
    assert isinstance(found, StreamMechanism)
    return found


def numbers(value: object) -> Iterator[float]:
    """Every float in a nested value."""
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


def traces(values: Iterator[float] | list[float], data: bytes) -> list[float]:
    """Which numbers are in bytes: as doubles or floats of either byte order, or as text."""
    text = data.decode("latin-1")
    return [
        v
        for v in values
        if any(struct.pack(form, v) in data for form in (">d", "<d", ">f", "<f")) or repr(v) in text
    ]


# --- the protector
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["gaussian:sigma_deg=2", KALEIDO, "spatial:L=64", "temporal:K=3", "smoothing", "kalman"]
)
def test_the_relay_gives_what_the_mechanism_gives_for_the_same_seed(text: str) -> None:
    recording = gazeveil.simulate(1, 1, 5, 100, seed=2)[0]
    # a recording whose times are multiples of the period: the relay then moves nothing
    whole = Protector(text, 100.0, recording.space, seed=9).push(
        block(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
    )
    # A live stream passes losses on, so it is compared with a release that does.
    direct = replace(stream_mechanism(text), losses="keep").release(recording, seed=9).data
    for name in ("t_ns", "x_deg", "y_deg", "valid"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(direct, name))
    one_by_one = Protector(text, 100.0, recording.space, seed=9)
    parts = [
        one_by_one.push(
            block(*(getattr(recording, n)[i : i + 7] for n in ("t_ns", "x_deg", "y_deg", "valid")))
        )
        for i in range(0, len(recording), 7)
    ]
    np.testing.assert_array_equal(np.concatenate([p.x_deg for p in parts]), whole.x_deg)
    assert not np.array_equal(
        whole.x_deg,
        Protector(text, 100.0, recording.space)
        .push(block(recording.t_ns, recording.x_deg, recording.y_deg))
        .x_deg,
    ) or (text in ("spatial:L=64", "temporal:K=3", "smoothing", "kalman")), (
        "without a seed the noise must be fresh"
    )


def test_no_time_of_a_sample_passes_and_times_stay_on_the_trackers_clock() -> None:
    rng = np.random.default_rng(1)
    t = 1_000_003_141_592 + np.arange(500) * PERIOD_NS + rng.integers(-3_000_000, 3_000_000, 500)
    out = Protector("gaussian:sigma_deg=1", 100.0, Sphere()).push(
        block(t, np.full(500, 180.0), np.full(500, 90.0))
    )
    assert not set(out.t_ns.tolist()) & set(t.tolist())
    assert (out.t_ns % PERIOD_NS == 0).all(), (
        "the grid says nothing about when the first sample was"
    )
    assert np.abs(out.t_ns - t).max() < 3 * PERIOD_NS


def test_a_clock_that_is_set_back_does_not_make_the_mechanism_forget() -> None:
    n, w = 40, 60
    x, y = np.full(n, 180.0), np.full(n, 90.0)
    early, late = (
        block(10**9 * np.int64(5) + np.arange(n) * PERIOD_NS, x, y),
        block(10**9 * np.int64(5000) + 123 + np.arange(n) * PERIOD_NS, x, y),
    )
    text = f"kaleido-uniform:epsilon=1,w={w},r_deg=2"  # silent after a reset
    protector = Protector(text, 100.0, Sphere(), seed=4)
    first = protector.push(late)
    protector.lost()
    second = protector.push(early)
    assert protector.counts["clocks set back"] == 1
    assert second.valid.all(), "after a restart samples must not be lost for ever"
    assert np.abs(second.t_ns - early.t_ns).max() < 3 * PERIOD_NS, (
        "released times follow the new clock"
    )
    # the session saw one stream: what it gave is what it gives without the break, with a pause of
    # one sample in between
    session = stream_mechanism(text).open(100.0, Sphere(), seed=4)
    steps = np.concatenate((np.arange(n), n + 1 + np.arange(n)))
    expected = session.push(
        steps * PERIOD_NS,
        np.full(2 * n, 180.0),
        np.full(2 * n, 90.0),
        np.ones(2 * n, dtype=np.bool_),
    )
    np.testing.assert_array_equal(np.concatenate((first.x_deg, second.x_deg)), expected[1])
    # a clock set back within one block
    third = protector.push(
        Block(
            *(
                np.concatenate((getattr(late, k), getattr(early, k)))
                for k in ("t_ns", "x_deg", "y_deg", "valid")
            )
        )
    )
    assert protector.counts["clocks set back"] >= 2
    assert third.valid.mean() > 0.9


def test_times_that_no_clock_has_are_left_out() -> None:
    protector = Protector("gaussian:sigma_deg=1", 100.0, Sphere())
    out = protector.push(block([2**63 - 1, -(2**63), 0, PERIOD_NS], [180.0] * 4, [90.0] * 4))
    assert len(out) == 2
    assert protector.counts["impossible times"] == 2
    assert len(protector.push(block(np.empty(0, dtype=np.int64), [], []))) == 0


def test_published_readings_pass_times_on_and_say_so() -> None:
    t = 1_000_003_141_592 + np.cumsum(np.random.default_rng(2).integers(9_000_000, 11_000_000, 50))
    protector = Protector("gaussian:sigma_deg=1,reading=published", 100.0, Sphere())
    assert np.array_equal(protector.push(block(t, np.full(50, 180.0), np.full(50, 90.0))).t_ns, t)
    assert "the tracker's own times" in protector.guarantee.not_covered
    protector.lost()
    assert np.array_equal(
        protector.push(block(t - 10**12, np.full(50, 180.0), np.full(50, 90.0))).t_ns, t - 10**12
    )
    assert (
        "the tracker's own times"
        not in Protector("gaussian:sigma_deg=1", 100.0, Sphere()).guarantee.not_covered
    )


def test_only_stream_mechanisms_relay() -> None:
    with pytest.raises(ParameterError, match="takes a stream"):
        Protector("lpa:epsilon=1", 100.0, Sphere())


def test_the_guarantee_is_the_sessions_with_what_a_relay_shows_besides() -> None:
    promise = Protector(KALEIDO, 100.0, Sphere()).guarantee
    assert promise.epsilon == 1
    assert any("comes back" in c for c in promise.not_covered)
    assert Protector(KALEIDO, 100.0, Sphere(), seed=1).guarantee.epsilon is None


# --- Pupil
# --------------------------------------------------------------------------------------------------


class Running:
    """A relay in the event loop of a test."""

    def __init__(
        self, tracker: Tracker, sink: PupilSink | WebSocketSink | LSLSink, protector: Protector
    ) -> None:
        self.tracker, self.sink, self.protector = tracker, sink, protector
        self.stop = asyncio.Event()

    async def __aenter__(self) -> Running:
        self.protector.warm()
        await self.sink.start(self.tracker, self.protector.guarantee)
        self.task = asyncio.ensure_future(relay(self.tracker, self.sink, self.protector, self.stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await self.task
        await self.sink.close()


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


def test_only_named_topics_without_gaze_are_forwarded() -> None:
    with FakePupil() as pupil:
        tracker = PupilTracker(
            f"127.0.0.1:{pupil.port}",
            forward=check_forward(("frame.world", "annotation")),
            silence_s=60,
        )

        async def work() -> list[bytes]:
            sink = PupilSink("127.0.0.1:0")
            async with Running(tracker, sink, Protector("gaussian:sigma_deg=1", 120.0, CAMERA)):
                for _ in range(3):
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
                topics = [
                    (await asyncio.to_thread(client.subscriber.recv_multipart))[0] for _ in range(3)
                ]
                client.close()
                return topics

        assert run(work()) == [b"frame.world", b"annotation", b"gaze.3d.01."]


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "g",
        "gaze",
        "gaze.3d",
        "pupil.0",
        "p",
        "frame",
        "frame.eye.1",
        "notify",
        "notify.calibration.data",
        "surfaces.x",
        "blinks",
    ],
)
def test_topics_that_take_in_gaze_are_never_forwarded(topic: str) -> None:
    with pytest.raises(ParameterError, match="holds gaze"):
        check_forward((topic,))


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


# --- WebSocket
# --------------------------------------------------------------------------------------------------


async def welcomed(port: int) -> ClientConnection:
    socket = await connect(f"ws://127.0.0.1:{port}")
    assert json.loads(await socket.recv())["type"] == "welcome"
    return socket


def test_every_form_comes_out_as_it_came_in_protected_and_with_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    rng = np.random.default_rng(3)
    n = 12
    t = 77_000_000_123 + np.arange(3 * n) * PERIOD_NS + rng.integers(-2_000_000, 2_000_000, 3 * n)
    x, y = 180 + rng.uniform(0, 5, 3 * n), 90 + rng.uniform(0, 5, 3 * n)
    x, y = x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)
    binary, plain, posed = (block(t[i : i + n], x[i : i + n], y[i : i + n]) for i in (0, n, 2 * n))
    posed_message = blocks.message_of(
        Block(posed.t_ns, posed.x_deg, posed.y_deg, posed.valid, "poses")
    )
    poison = {
        "pupil": [3.14159],
        "confidence": [0.987654],
        "nested": {"eye": {"left": [[1.23456]]}},
    }

    async def work() -> list[str | bytes]:
        tracker, sink = (
            open_tracker("websocket://127.0.0.1:0?rate_hz=100"),
            open_sink("websocket://127.0.0.1:0"),
        )
        assert isinstance(tracker, ListeningTracker)
        assert isinstance(sink, WebSocketSink)
        async with Running(
            tracker, sink, Protector("gaussian:sigma_deg=2", 100.0, Sphere(), seed=6)
        ):
            await tracker.listening.wait()
            client = await welcomed(sink.port)
            async with connect(f"ws://127.0.0.1:{tracker.port}") as feeder:
                await feeder.send('{"type":"hello"}')
                await feeder.recv()
                await feeder.send(blocks.pack(binary, sequence=5))
                await feeder.send(json.dumps({**blocks.message_of(plain), **poison}))
                await feeder.send(
                    json.dumps(
                        {**posed_message, **poison, "position": [[0.31415, 1.71828, 0.5772]]}
                    )
                )
                found = [await client.recv() for _ in range(3)]
            assert json.loads(await client.recv()) == {"type": "lost"}
            await client.close()
            return found

    first, second, third = run(work())
    session = stream_mechanism("gaussian:sigma_deg=2").open(100.0, Sphere(), seed=6)
    et, ex, ey, _ = session.push(t - t[0] % PERIOD_NS, x, y, np.ones(3 * n, dtype=np.bool_))
    assert isinstance(first, bytes)
    batch = blocks.unpack(first)
    np.testing.assert_array_equal(batch.block.t_ns, et[:n])
    np.testing.assert_array_equal(batch.block.x_deg, ex[:n].astype(np.float32))
    message = json.loads(second)
    assert set(message) == {"type", "t_ns", "x_deg", "y_deg", "valid"}
    np.testing.assert_array_equal(message["x_deg"], ex[n : 2 * n])
    message = json.loads(third)
    assert set(message) == {"type", "t_ns", "orientation", "valid"}
    degrees = blocks.from_poses(message["orientation"])
    np.testing.assert_allclose(degrees[0], ex[2 * n :], atol=1e-6)
    np.testing.assert_allclose(degrees[1], ey[2 * n :], atol=1e-6)
    out = first + str(second).encode() + str(third).encode()
    tainted = [
        *x,
        *y,
        *numbers(poison),
        *numbers(posed_message["orientation"]),
        0.31415,
        1.71828,
        0.5772,
    ]
    assert traces([float(v) for v in tainted], out) == []
    assert not [ns for ns in t.tolist() if str(ns).encode() in out or struct.pack("<q", ns) in out]
    own = "\n".join(
        r.getMessage() for r in caplog.records if not r.name.startswith("websockets.client")
    )  # that one is the test's own client
    assert traces([float(v) for v in tainted], own.encode()) == [], (
        "not even at level DEBUG does a log hold gaze"
    )
    raw = blocks.pack(binary) + json.dumps({**blocks.message_of(plain), **poison}).encode()
    assert len(traces([float(v) for v in (*x[: 2 * n], *y[: 2 * n])], raw)) == 4 * n, (
        "the search finds raw numbers where they are"
    )


def test_clients_without_the_token_and_pages_of_other_origins_get_nothing() -> None:
    async def work() -> None:
        sink = open_sink("websocket://127.0.0.1:0?token=secret&origin=https://mine.example")
        assert isinstance(sink, WebSocketSink)
        async with Running(
            open_tracker("simulated", seed=1),
            sink,
            Protector("gaussian:sigma_deg=1", 120.0, Sphere()),
        ):
            url = f"ws://127.0.0.1:{sink.port}"
            with pytest.raises(InvalidStatus):
                await connect(url, origin="https://other.example")  # type: ignore[arg-type]
            for hello in (
                '{"type":"hello"}',
                '{"type":"hello","token":"Secret"}',
                "[" * 9999,
                b"\x01",
            ):
                async with connect(url) as client:
                    await client.send(hello)
                    with pytest.raises(ConnectionClosed):
                        await client.recv()
            async with connect(url, origin=Origin("https://mine.example")) as client:
                await client.send('{"type":"hello","token":"secret"}')
                assert json.loads(await client.recv())["type"] == "welcome"
                assert json.loads(await client.recv())["type"] == "samples"
            assert sink.counts["refused"] == 4

    run(work())


def test_a_client_that_does_not_read_loses_samples_and_the_memory_stays() -> None:
    async def work() -> None:
        sink = open_sink("websocket://127.0.0.1:0")
        assert isinstance(sink, WebSocketSink)
        await sink.start(
            open_tracker("simulated", seed=1),
            Protector("gaussian:sigma_deg=1", 120.0, Sphere()).guarantee,
        )
        client = await connect(f"ws://127.0.0.1:{sink.port}", max_queue=1)
        assert json.loads(await client.recv())["type"] == "welcome"
        large = block(np.arange(2000), np.full(2000, 180.0), np.full(2000, 90.0), form="binary")
        for _ in range(1500):
            sink.send(large)
            await asyncio.sleep(0)
        assert sink.counts["dropped"] > 0
        assert sink.counts["dropped"] % 2000 == 0
        assert max(len(c.waiting) for c in sink._clients) <= 256
        sequences = []
        while not sequences or sequences[-1] < 1499 * 2000:
            got = await client.recv()
            assert isinstance(got, bytes)
            batch = blocks.unpack(got)
            sequences.append(batch.sequence)
        assert batch.dropped == sink.counts["dropped"], "the reader is told what it missed"
        assert len(sequences) * 2000 + batch.dropped == 1500 * 2000
        await client.close()
        await sink.close()

    run(work())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pupil",
        "file:x",
        "pupil://a b",
        "pupil://127.0.0.1:1?nonsense=1",
        "pupil://127.0.0.1:1?topic=pupil.0",
        "websocket://0.0.0.0:1",
        "websocket://127.0.0.1:1?origin=mine",
    ],
)
def test_what_is_no_output_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_sink(text)
    assert "\n" not in str(error.value)


def test_a_taken_port_is_one_sentence() -> None:
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        async def work(text: str) -> None:
            sink = open_sink(text)
            await sink.start(
                open_tracker("simulated", seed=1),
                Protector("gaussian:sigma_deg=1", 120.0, Sphere()).guarantee,
            )

        for text in (f"pupil://127.0.0.1:{port}", f"websocket://127.0.0.1:{port}"):
            with pytest.raises(DataError, match="another port"):
                run(work(text))


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="handles are counted where /proc has them"
)
def test_relays_that_end_leave_no_handles_and_no_threads() -> None:
    def handles() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    async def once(pupil: FakePupil, out: str) -> None:
        sink = open_sink(out)
        assert isinstance(sink, PupilSink | WebSocketSink)
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=60)
        async with Running(tracker, sink, Protector("gaussian:sigma_deg=1", 120.0, CAMERA)):
            await asyncio.to_thread(pupil.wait_for_subscriber)
            pupil.send(gaze(1.0, 0.5, 0.5))
            while not sink.counts["sent"]:
                await asyncio.sleep(0.01)

    with FakePupil() as pupil:
        counted = []
        for _ in range(6):
            run(once(pupil, "pupil://127.0.0.1:0"))
            run(once(pupil, "websocket://127.0.0.1:0"))
            counted.append(handles())
        # the other side of a connection that closed, and a thread that ends, may take a moment;
        # what leaks grows with every turn and stays
        for _ in range(600):
            if counted[-1][0] <= counted[0][0] + 2 and counted[-1][1] <= counted[0][1]:
                break
            time.sleep(0.05)
            counted.append(handles())
    assert counted[-1][0] <= counted[0][0] + 2, counted
    assert counted[-1][1] <= counted[0][1], counted


# --- LSL
# --------------------------------------------------------------------------------------------------


def test_an_lsl_stream_keeps_its_channels_and_nan_stands_for_what_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    labels = ["confidence", "norm_pos_x", "norm_pos_y", "gaze_point_3d_x", "diameter0_2d"]
    rows = [([0.9 if k % 4 else 0.1, 0.51, 0.52, 77.7, 44.4], 10.0031 + k / 100) for k in range(40)]
    lsl.offer("pupil_capture", labels, rows)

    async def work() -> None:
        tracker, sink = open_tracker("lsl", rate_hz=100), open_sink("lsl:protected")
        assert isinstance(sink, LSLSink)
        async with Running(tracker, sink, Protector("gaussian:sigma_deg=2", 100.0, CAMERA, seed=2)):
            while len(lsl.network.sent) < 40:
                await asyncio.sleep(0.01)

    run(work())
    (info,) = lsl.network.outlets
    assert (info.name(), info.type(), info.channel_count()) == ("protected", "Gaze", 5)
    sent = np.array([row for _, row, _ in lsl.network.sent])
    times = np.array([t for *_, t in lsl.network.sent])
    assert np.isnan(sent[:, 3:]).all()
    lost = np.arange(40) % 4 == 0
    np.testing.assert_array_equal(sent[:, 0], np.where(lost, 0.0, 1.0))
    assert np.isnan(sent[lost, 1:3]).all()
    assert not np.isin(sent[~lost, 1], 0.51).any()
    np.testing.assert_allclose(times, 10.0 + np.arange(40) / 100, atol=1e-9)
    session = stream_mechanism("gaussian:sigma_deg=2").open(100.0, CAMERA, seed=2)
    x, y = ScreenPicture(CAMERA).degrees(np.full(40, 0.51), np.full(40, 0.52))
    expected = ScreenPicture(CAMERA).norm(
        *session.push(np.arange(40) * PERIOD_NS, x, y, ~lost)[1:3]
    )
    np.testing.assert_allclose(sent[~lost, 1], expected[0][~lost])


def test_a_relay_never_reads_its_own_lsl_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    info = lsl.StreamInfo("protected", "Gaze", 3, 0.0, 2, "gazeveil-relay-protected")
    lsl.network.streams["protected"] = (info, [], True)  # type: ignore[assignment]
    assert LSLTracker(rate_hz=100, wait_s=0.1)._connect() is None
    with pytest.raises(ParameterError, match="another name"):
        run(
            LSLSink("raw").start(
                LSLTracker("raw", rate_hz=120),
                Protector("gaussian:sigma_deg=1", 120.0, CAMERA).guarantee,
            )
        )


# --- the command
# --------------------------------------------------------------------------------------------------


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["relay", *(str(a) for a in arguments)])
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--in", "eyes", "--out", "pupil://127.0.0.1:1", "-m", "kalman"),
            "must be one of simulated",
        ),
        (("--in", "simulated", "--out", "eyes", "-m", "kalman"), "must be one of pupil"),
        (("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "nonsense"), "must be one of"),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kaleido:epsilon=-1,w=1,r_deg=1",
            ),
            "epsilon",
        ),
        (
            ("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "k-same-select:k=2"),
            "takes a stream",
        ),
        (
            ("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "kalman", "--rate", "0"),
            "rate_hz",
        ),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--screen",
                "big",
            ),
            "--screen",
        ),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--seconds",
                "-1",
            ),
            "--seconds",
        ),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--forward",
                "frame.world",
            ),
            "must both be pupil",
        ),
        (
            (
                "--in",
                "pupil://127.0.0.1",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--forward",
                "gaze.",
            ),
            "holds gaze",
        ),
        (("--in", "simulated", "--out", "pupil://127.0.0.1:1"), "--mechanism"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "Traceback" not in said
    assert "\n" not in said


def test_the_command_prints_its_promise_counts_and_stops_when_told(tmp_path: Path) -> None:
    port, figures = free_port(), tmp_path / "counts.json"
    with FakePupil() as pupil:
        line = [
            "relay",
            "--in",
            f"pupil://127.0.0.1:{pupil.port}",
            "--out",
            f"pupil://127.0.0.1:{port}",
            "--mechanism",
            KALEIDO,
            "--rate",
            "100",
        ]
        code = "import sys; from gazeveil.cli.main import main; main(sys.argv[1:])"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *line, "--json", str(figures)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            pupil.wait_for_subscriber()
            client = PupilClient(port)
            for k in range(50):
                pupil.send(gaze(1.0 + k / 100, 0.5, 0.5, mark=0.01))
            received = [client.receive() for _ in range(50)]
            client.close()
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "(epsilon, w, r)-differential privacy" in out
    assert "50 samples came, 50 went out protected" in out
    assert "Traceback" not in err
    assert all(m["confidence"] == 1.0 for _, m, _ in received)
    found = json.loads(figures.read_text())
    assert found["counts"]["relay"]["out"] == 50
    assert found["counts"]["out"]["sent"] == 50
    assert found["guarantee"]["numbers"]["epsilon"] == "1"
    assert found["seed"] is None


def test_several_interrupts_and_a_taken_port_leave_no_traceback(tmp_path: Path) -> None:
    code = "import sys; from gazeveil.cli.main import main; main(sys.argv[1:])"
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used, free = (
            f"websocket://127.0.0.1:{port}" for port in (taken.getsockname()[1], free_port())
        )
        for source, out, words in (
            (used, free, "Another program uses the port"),
            (free, free, "are both"),
        ):
            line = ["relay", "--in", source, "--out", out, "--mechanism", "gaussian:sigma_deg=1"]
            done = subprocess.run(
                [sys.executable, "-c", code, *line],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 2
            assert words in " ".join(done.stderr.split())
            assert "Traceback" not in done.stderr
    line = ["relay", "--in", "simulated", "--out", free, "--mechanism", "gaussian:sigma_deg=1"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        while "Relaying" not in process.stdout.readline():
            pass
        time.sleep(0.3)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
