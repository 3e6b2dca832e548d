"""The relay over WebSockets and LSL: every form comes out protected, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket as sockets
import struct
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.picture import ScreenPicture
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Sphere
from gazeveil.relay import Protector, open_sink
from gazeveil.relay.lsl import LSLSink
from gazeveil.relay.trackers.lsl.tracker import LSLTracker
from gazeveil.relay.trackers.pupil import PupilTracker
from gazeveil.relay.websocket import WebSocketSink
from gazeveil.relay.zmq import PupilSink
from tests.support.fake_pupil import FakePupil, gaze
from tests.support.fake_pylsl import FakePylsl
from tests.support.relaying import CAMERA, PERIOD_NS, Running, numbers, stream_mechanism, traces
from tests.support.taken_blocks import run


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
