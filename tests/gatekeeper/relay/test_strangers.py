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

from gazeveil.gatekeeper.relay import Protector, Sink, open_sink
from gazeveil.gatekeeper.relay.rtsp import GazeRTSPServer
from gazeveil.gatekeeper.relay.websocket import WebSocketSink
from gazeveil.gatekeeper.relay.zmq import PupilSink
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.openxr import LinesTracker
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Sphere

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


@pytest.mark.parametrize(
    "foreign",
    [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n",
        "OPTIONS * RTSP/1.0\r\nContent-Length: 20000\r\n\r\n",
        f"OPTIONS * RTSP/1.0\r\nContent-Length: {'9' * 5000}\r\n\r\n",
    ],
)
def test_what_lies_in_the_body_of_a_request_is_no_request(foreign: str) -> None:
    """A page in a browser can post anything to any port of the machine."""

    async def work() -> None:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(foreign.encode() + PLAY)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert server.listening == 0
        writer.close()
        await server.close()

    run(work())


def test_clients_of_rtsp_that_say_nothing_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(port: int) -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PLAY)
        for _ in range(2):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"RTSP/1.0 200 OK")
        return writer

    async def work() -> None:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        with await asyncio.to_thread(silent, server.port, 100):
            playing = [await answered(server.port)]
            own = next(iter(server._connections)).get_extra_info("socket")
            assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), (
                "packets must not go to whoever gets the address of a machine that is gone"
            )
            playing += [await answered(server.port) for _ in range(31)]
            assert server.listening == 32, "who plays is not closed for a newcomer"
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await answered(server.port)
        for one in playing:
            one.close()
        monkeypatch.setattr("gazeveil.gatekeeper.relay.rtsp._QUESTION_S", 0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await reader.read() == b"", "who asks nothing is not waited for"
        writer.close()
        await server.close()

    run(work())


def test_a_client_of_rtsp_that_never_reads_keeps_nobody_waiting() -> None:
    async def work() -> None:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as deaf:
            deaf.sendall(PLAY)
            deaf.setblocking(False)
            for _ in range(2000):
                # until the server has stopped to read, because nobody takes its answers
                with contextlib.suppress(BlockingIOError):
                    deaf.send(b"DESCRIBE rtsp://a RTSP/1.0\r\nCSeq: 3\r\n\r\n" * 1000)
                await asyncio.sleep(0)
            (writer,) = server._connections
            assert 0 < writer.transport.get_write_buffer_size() < 200_000, "answers are not heaped"
            reader, other = await asyncio.open_connection("127.0.0.1", server.port)
            other.write(PLAY)
            for _ in range(2):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"RTSP/1.0 200 OK")
            assert server.listening == 2
            await server.close()
            for _ in range(500):
                if not server.listening:
                    break
                await asyncio.sleep(0.01)
            assert server.listening == 0, "it went without its answers taken"
            other.close()

    run(work())


def test_a_thousand_setups_are_one_client() -> None:
    setup, play = PLAY.split(b"PLAY")

    async def work() -> None:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rtp:
            rtp.bind(("127.0.0.1", 0))
            rtp.settimeout(0.2)
            own = setup.replace(b"40000-40001", b"%d-40001" % rtp.getsockname()[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(own * 1000 + (b"PLAY" + play) * 3)
            for _ in range(1003):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"RTSP/1.0 200 OK")
            assert server.listening == 1
            server.send(10**18, b"gaze")
            assert (await asyncio.to_thread(rtp.recv, 2048)).endswith(b"gaze")
            with pytest.raises(TimeoutError):
                await asyncio.to_thread(rtp.recv, 2048)
        writer.close()
        await server.close()

    run(work())


@pytest.mark.parametrize("cseq", ["-1", "1e3", "\u00b2", "", "7 \rSession: 1", None])
def test_a_number_of_a_request_that_is_none_is_answered_as_zero(cseq: str | None) -> None:
    async def work() -> None:
        server = GazeRTSPServer("gaze")
        await server.start("127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        field = "" if cseq is None else f"CSeq: {cseq}\r\n"
        writer.write(f"OPTIONS * RTSP/1.0\r\n{field}\r\n".encode("latin-1"))
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert answer.split("\r\n")[:2] == ["RTSP/1.0 200 OK", "CSeq: 0"]
        assert "Session" not in answer
        writer.close()
        await server.close()

    run(work())


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
        ("neon://[::1]:0", False),
        ("neon://192.0.2.7:0", True),
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
