"""OpenXR-shaped poses: orientation as a quaternion (x, y, z, w) with -z forward, XrTime in
nanoseconds, gaze on the sphere around the wearer.

They come over a WebSocket (`openxr://host:port`), as JSON lines on a TCP port
(`openxr+tcp://host:port`), or on standard input (`openxr:-`). A message is the `poses` message of
:mod:`gazeveil.gatekeeper.blocks`, or one pose as OpenXR has it::

    {"time": 120000000, "pose": {"orientation": {"x": 0, "y": -0.1, "z": 0, "w": 1}}, "valid": true}

Positions are not looked at: they hold standing height and the distance between the eyes. Many
runtimes send the identity rotation while they see no eye; it counts as lost unless
`identity=ahead`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import MOST_BYTES, Block
from gazeveil.gatekeeper.trackers.address import host_and_port, is_local
from gazeveil.gatekeeper.trackers.messages import MessageTracker
from gazeveil.gatekeeper.trackers.tracker import LOG, Tracker
from gazeveil.gatekeeper.trackers.waiting import Waiting
from gazeveil.gatekeeper.trackers.websocket import ListeningTracker
from gazeveil.gaze.geometry import Sphere

PORT = 8766

_AXES = ("x", "y", "z", "w")


def poses_message(figures: Mapping[str, object]) -> Mapping[str, object]:
    """One pose as OpenXR has it, as a `poses` message; anything else stays as it is."""
    if "type" in figures or not ("pose" in figures or "orientation" in figures):
        return figures
    pose = figures.get("pose", figures)
    turn = pose.get("orientation") if isinstance(pose, Mapping) else None
    if isinstance(turn, Mapping):
        turn = [turn.get(axis) for axis in _AXES]
    return {
        "type": "poses",
        "t_ns": figures.get("time", figures.get("t_ns")),
        "orientation": turn,
        "valid": figures.get("valid"),
    }


class _PoseTracker(MessageTracker):
    """Reads one pose as well as a message of many."""

    def block_of(self, figures: Mapping[str, object]) -> Block:
        """The block of a parsed message."""
        return super().block_of(poses_message(figures))


class OpenXRTracker(_PoseTracker, ListeningTracker):
    """Poses over a WebSocket port.

    Parameters
    ----------
    place : str
        `host:port` to listen on, or `-` for JSON lines on standard input.
    rate_hz, token, identity
        As for :class:`~gazeveil.gatekeeper.trackers.websocket.ListeningTracker`.
    """

    def __init__(
        self,
        place: str = f"127.0.0.1:{PORT}",
        rate_hz: float = 90.0,
        token: str | None = None,
        identity: str = "lost",
    ) -> None:
        super().__init__(place or f"127.0.0.1:{PORT}", rate_hz, Sphere(), token, identity)
        self.name = "openxr"


class LinesTracker(_PoseTracker):
    """Poses as lines of JSON, on standard input or on a TCP port.

    Parameters
    ----------
    place : str
        `-` for standard input, or `host:port` of this machine to listen on (a line has no token, so
        no other host is allowed).
    rate_hz, identity
        As for :class:`OpenXRTracker`.
    """

    def __init__(self, place: str = "-", rate_hz: float = 90.0, identity: str = "lost") -> None:
        super().__init__(rate_hz, Sphere(), None, identity)
        self.name = "openxr"
        self._stdin = place == "-"
        self.host, self.port = "", 0
        if not self._stdin:
            self.host, self.port = host_and_port("openxr+tcp", place or f"127.0.0.1:{PORT}", PORT)
        if not self._stdin and not is_local(self.host):
            raise ParameterError(
                f"Others reach {self.host}, and lines carry no token. Use"
                f" openxr://{place}?token=... instead.",
                name="place",
                got=place,
            )
        self._waiting = Waiting()
        self._taken = False
        #: Set once lines can be sent.
        self.listening = asyncio.Event()

    async def close(self) -> None:
        """The iterator ends."""
        self._waiting.end()

    async def samples(self) -> AsyncIterator[Block | None]:
        """Blocks line by line; None when the other side goes. The end of standard
        input is the end.
        """
        if self._stdin:
            task = asyncio.ensure_future(self._standard_input())
            server = None
        else:
            task = None
            server = await asyncio.start_server(self._serve, self.host, self.port, limit=MOST_BYTES)
            self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        try:
            async for block in self._waiting.take():
                yield block
        finally:
            self._waiting.end()
            if task is not None:
                task.cancel()
            if server is not None:
                server.close()

    async def _standard_input(self) -> None:
        reader = asyncio.StreamReader(limit=MOST_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
        )
        await self._lines(reader)
        await self._waiting.finish()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._taken:
            self._taken = True
            try:
                await self._lines(reader)
            finally:
                self._taken = False
        writer.close()

    async def _lines(self, reader: asyncio.StreamReader) -> None:
        self.counts["connected"] += 1
        first = not self._stdin
        try:
            while line := await reader.readline():
                if first and not line.lstrip().startswith(b"{"):
                    # a page of a browser can post lines to any port, but not without a head
                    self.malformed("the first line is no JSON")
                    break
                first = False
                received = self.read(line.strip(), line=True)
                if received == "lost":
                    await self._waiting.put(None)
                elif isinstance(received, Block):
                    await self._waiting.put(received)
        except ValueError:
            # a line longer than the limit: where the next one begins is not known
            self.malformed("a line is longer than a message may be")
        except OSError:
            LOG.info("openxr: the connection broke")
        self.vanished()
        await self._waiting.put(None)


def open_poses(
    place: str = "", rate_hz: float = 90.0, token: str | None = None, identity: str = "lost"
) -> Tracker:
    """`openxr:-` reads lines on standard input, `openxr://host:port` listens for a WebSocket."""
    if place == "-":
        return LinesTracker("-", rate_hz, identity)
    return OpenXRTracker(place, rate_hz, token, identity)
