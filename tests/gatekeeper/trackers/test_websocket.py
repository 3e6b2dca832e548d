"""Trackers over websockets and on standard input: all forms of gaze, strangers, and breaks."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gatekeeper.trackers.openxr import LinesTracker
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Screen
from tests.support.taken_blocks import run, take

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


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
                await other.send(json.dumps({"type": "hello", "token": "secret"}))
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
        assert time.monotonic() - began < 60.0

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
