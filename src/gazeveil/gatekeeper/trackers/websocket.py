"""Trackers over a WebSocket: a port where a tracker connects (`websocket://host:port`), or a
tracker that serves (`ws://host:port/path`).

Both take the messages of :mod:`gazeveil.gatekeeper.trackers.messages`. A page in a browser may not
connect to the port: a connection with an Origin is refused, because a page of any site could
otherwise feed gaze. One tracker is connected at a time. Beyond this machine a port needs a token.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.blocks import MOST_BYTES, Block, parse_json
from gazeveil.gatekeeper.newcomers import Newcomers
from gazeveil.gatekeeper.trackers.address import host_and_port, is_local
from gazeveil.gatekeeper.trackers.messages import MessageTracker
from gazeveil.gatekeeper.trackers.tracker import LOG, QUIET, ReconnectingTracker
from gazeveil.gatekeeper.trackers.waiting import Waiting
from gazeveil.gaze.geometry import Space

PORT = 8767

_HELLO_S = 5.0

#: Of both sides of a connection.
_OPTIONS: dict[str, Any] = {
    "max_size": MOST_BYTES,
    "compression": None,
    "open_timeout": _HELLO_S,
    "logger": QUIET,
}


class ListeningTracker(MessageTracker):
    """A port where one tracker connects.

    Parameters
    ----------
    place : str
        `host:port` to listen on; port 0 takes a free one, then :attr:`port` says which.
    rate_hz : float
        Nominal rate; a tracker that says another one in its hello is refused.
    space : Sphere or Screen, optional
        A sphere by default.
    token : str, optional
        What the tracker's hello must hold; needed on a host that others reach.
    identity : str
        `lost` or `ahead`: what a pose without rotation means.
    """

    def __init__(
        self,
        place: str = f"127.0.0.1:{PORT}",
        rate_hz: float = 120.0,
        space: Space | None = None,
        token: str | None = None,
        identity: str = "lost",
    ) -> None:
        super().__init__(rate_hz, space, token, identity)
        self.name = "websocket"
        self.host, self.port = host_and_port("websocket", place or f"127.0.0.1:{PORT}", PORT)
        if not is_local(self.host) and token is None:
            raise ParameterError(
                f"Others reach {self.host}, so the channel needs a token. Add ?token=... to the"
                " address.",
                name="token",
                got=None,
            )
        self._waiting = Waiting()
        self._taken = False
        self._newcomers = Newcomers()
        #: Set once the port is open.
        self.listening = asyncio.Event()

    async def close(self) -> None:
        """Close the port; the iterator ends."""
        self._waiting.end()

    async def samples(self) -> AsyncIterator[Block | None]:
        """Blocks of whichever tracker is connected; None when it goes."""
        async with serve(
            self._serve,
            self.host,
            self.port,
            origins=[None],
            create_connection=self._newcomers.connection,
            **_OPTIONS,
        ) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self.listening.set()
            try:
                async for block in self._waiting.take():
                    yield block
            finally:
                # before the port waits for its connections to end, which may wait for room
                self._waiting.end()

    async def _serve(self, connection: ServerConnection) -> None:
        live = False
        try:
            reason = await self._greet(connection)
            if reason:
                await connection.send(
                    json.dumps({"type": "refused", "code": "hello", "reason": reason})
                )
                await connection.close(1008, "hello refused")
                return
            if self._taken:
                await connection.close(1013, "a tracker is connected already")
                return
            # only now: a stranger who says nothing must not keep the tracker out
            live = self._taken = True
            self._newcomers.known(connection)
            self.counts["connected"] += 1
            await connection.send(json.dumps(self.welcome()))
            async for message in connection:
                received = self.read(message)
                if received == "ping":
                    await connection.send('{"type":"pong"}')
                elif received == "lost":
                    await self._waiting.put(None)
                elif isinstance(received, Block):
                    await self._waiting.put(received)
        except (ConnectionClosed, OSError):
            LOG.info("websocket: the connection broke")
        finally:
            if live:
                self._taken = False
                self.vanished()
                await self._waiting.put(None)

    async def _greet(self, connection: ServerConnection) -> str:
        try:
            first = await asyncio.wait_for(connection.recv(), _HELLO_S)
            hello = parse_json(first) if isinstance(first, str) else {}
        except TimeoutError:
            return "A tracker says hello within five seconds."
        except DataError as error:
            self.malformed(str(error))
            return str(error)
        reason = self.admits(hello)
        if reason:
            self.counts["refused"] += 1
        return reason


class ConnectingTracker(MessageTracker, ReconnectingTracker):
    """A tracker that serves its gaze; we connect, and connect again with back-off.

    Parameters
    ----------
    place : str
        Host, port and path, without `ws://`.
    rate_hz, space, token, identity
        As for :class:`ListeningTracker`; a token is sent in the hello.
    silence_s : float
        A tracker that sends no gaze for so long has vanished, and is connected anew.
    """

    scheme = "ws"

    def __init__(
        self,
        place: str,
        rate_hz: float = 120.0,
        space: Space | None = None,
        token: str | None = None,
        identity: str = "lost",
        silence_s: float = 5.0,
    ) -> None:
        super().__init__(rate_hz, space, token, identity)
        self.name = self.scheme
        host_and_port(self.scheme, place.partition("/")[0], PORT)
        self.url = f"{self.scheme}://{place}"
        self._silence_s = silence_s

    async def connection(self) -> AsyncGenerator[Block | None, None]:
        """Blocks as they come, and None where the tracker says that it lost the eyes."""
        try:
            async with connect(self.url, **_OPTIONS) as connection:
                if self._token is not None:
                    await connection.send(json.dumps({"type": "hello", "token": self._token}))
                while not self._closing:
                    received = self.read(await asyncio.wait_for(connection.recv(), self._silence_s))
                    if received == "lost":
                        yield None
                    elif isinstance(received, Block):
                        yield received
        except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, InvalidURI) as error:
            LOG.info("%s: not connected (%s)", self.scheme, type(error).__name__)


class SecureConnectingTracker(ConnectingTracker):
    """The same over TLS (`wss://`)."""

    scheme = "wss"
