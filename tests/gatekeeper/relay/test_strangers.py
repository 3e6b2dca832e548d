"""Strangers at the relay's ports: connections that say nothing, requests of another protocol and
messages of any size keep nobody out and get no gaze.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Awaitable

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.openxr import LinesTracker
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Sphere
from gazeveil.relay import Protector, Sink, open_sink
from gazeveil.relay.websocket import WebSocketSink
from gazeveil.relay.zmq import PupilSink

HELLO = '{"type":"hello","token":"secret"}'
PLAY = (
    b"SETUP rtsp://a RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP;unicast;client_port=40000-40001\r\n"
    b"\r\nPLAY rtsp://a RTSP/1.0\r\nCSeq: 2\r\n\r\n"
)


def run(work: Awaitable[object]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work, 100)

    asyncio.run(limited())


async def started(sink: Sink) -> None:
    guarantee = Protector("gaussian:sigma_deg=1", 120.0, Sphere()).guarantee
    await sink.start(open_tracker("simulated", seed=1), guarantee)


def silent(port: int, count: int) -> contextlib.ExitStack:
    """Connections that say nothing."""
    held = contextlib.ExitStack()
    for _ in range(count):
        held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
    return held


def test_clients_that_say_no_hello_keep_nobody_out_and_are_counted() -> None:
    async def work() -> None:
        sink = open_sink("websocket://127.0.0.1:0?token=secret")
        assert isinstance(sink, WebSocketSink)
        await started(sink)
        url = f"ws://127.0.0.1:{sink.port}"
        with await asyncio.to_thread(silent, sink.port, 80):
            early = await connect(url)
            await early.send(HELLO)
            assert json.loads(await early.recv())["type"] == "welcome"
            assert sink._newcomers.turned_away >= 16
            quiet = [await connect(url) for _ in range(66)]  # these say no hello
            late = await connect(url)
            await late.send(HELLO)
            assert json.loads(await late.recv())["type"] == "welcome"
            sink.lost()
            assert json.loads(await early.recv())["type"] == "lost", "it was not closed for others"
            with pytest.raises(ConnectionClosed):
                await quiet[0].recv()
        # as many as there is room for, though all say hello at once
        more = await asyncio.gather(*(connect(url) for _ in range(60)))
        more += await asyncio.gather(*(connect(url) for _ in range(10)))
        await asyncio.gather(*(one.send(HELLO) for one in more), return_exceptions=True)
        await asyncio.gather(*(one.recv() for one in more), return_exceptions=True)
        assert len(sink._clients) <= 64
        await sink.close()

    run(work())


def test_a_stranger_who_says_nothing_does_not_keep_the_tracker_out() -> None:
    async def work() -> None:
        tracker = ListeningTracker("127.0.0.1:0", token="secret")
        reading = asyncio.ensure_future(anext(aiter(tracker.samples())))
        await tracker.listening.wait()
        url = f"ws://127.0.0.1:{tracker.port}"
        async with connect(url), connect(url) as wrong, connect(url) as right, connect(url) as two:
            await wrong.send('{"type":"hello","token":"guess"}')
            assert json.loads(await wrong.recv())["type"] == "refused"
            await right.send(HELLO)
            assert json.loads(await right.recv())["type"] == "welcome"
            await two.send(HELLO)
            with pytest.raises(ConnectionClosed):
                await two.recv()
            await right.send('{"type":"lost"}')
            assert await reading is None
        await tracker.close()

    run(work())


def test_a_page_cannot_post_gaze_to_a_port_of_lines() -> None:
    async def work() -> None:
        tracker = LinesTracker("127.0.0.1:0")
        reading = asyncio.ensure_future(anext(aiter(tracker.samples())))
        await tracker.listening.wait()
        pose = b'{"time": 1, "pose": {"orientation": {"x": 0, "y": 0.1, "z": 0, "w": 0.99}}}\n'
        reader, writer = await asyncio.open_connection("127.0.0.1", tracker.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n" + 3 * pose)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert await reading is None
        assert tracker.counts["samples"] == 0
        writer.close()
        await tracker.close()

    run(work())


@pytest.mark.parametrize(
    ("text", "open_to_others"),
    [
        ("pupil://127.0.0.1:0", False),
        ("pupil://0.0.0.0:0", True),
        ("pupil://[::1]:0", False),
        ("pupil://192.0.2.7:0", True),
        ("websocket://0.0.0.0:0?token=secret", False),
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
