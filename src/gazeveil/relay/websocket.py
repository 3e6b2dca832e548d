"""Protected gaze over a WebSocket, in the form in which it came: binary batches, `samples` or
`poses` (:mod:`gazeveil.gatekeeper.blocks`).

Clients connect and receive; a page in a browser only if its origin was named. With a token a
client's first message must be `{"type": "hello", "token": ..}`. The first message of the relay is
`{"type": "welcome", "rate_hz": .., "space": .., "guarantee": ..}`. When the tracker vanished
clients get `{"type": "lost"}`. Who reads too slowly loses the oldest messages. There are at most 64
clients, and 64 connections that have not said hello: then the oldest of these goes.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections import deque
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.blocks import Block, message_of, pack, parse_json, space_figures
from gazeveil.gatekeeper.newcomers import Newcomers
from gazeveil.gatekeeper.trackers.address import host_and_port, in_brackets, is_local
from gazeveil.gatekeeper.trackers.tracker import QUIET, Tracker
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.relay.sink import Sink

PORT = 8770

#: Messages that wait for one slow client.
_WAITING = 256

_MOST_CLIENTS = 64

_HELLO_S = 5.0
_MOST_QUESTION_BYTES = 1 << 16


class _Client:
    """What waits for one client."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Block, int] | None] = deque()
        self.some = asyncio.Event()
        self.dropped = 0

    def put(self, batch: tuple[Block, int] | None) -> int:
        """Let something wait; returns how many samples were dropped for it."""
        lost = 0
        if len(self.waiting) >= _WAITING:
            oldest = self.waiting.popleft()
            lost = 0 if oldest is None else len(oldest[0])
            self.dropped += lost
        self.waiting.append(batch)
        self.some.set()
        return lost


class WebSocketSink(Sink):
    """A port where clients receive protected gaze.

    Parameters
    ----------
    place : str
        `host:port`; port 0 takes a free one, then :attr:`port` says which.
    token : str, optional
        What clients must say; needed on a host that others reach.
    origin : str, optional
        The origin of pages that may connect, e.g. `https://example.org`.
    """

    def __init__(self, place: str, token: str | None = None, origin: str | None = None) -> None:
        super().__init__()
        self.host, self.port = host_and_port("websocket", place or f"127.0.0.1:{PORT}", PORT)
        if not is_local(self.host) and token is None:
            raise ParameterError(
                f"Others reach {self.host}, so the relay needs a token. Add ?token=... to the"
                " address.",
                name="token",
                got=None,
            )
        if origin is not None and (
            urlsplit(str(origin)).scheme not in ("http", "https")
            or not urlsplit(str(origin)).netloc
        ):
            raise ParameterError(
                f"An origin is written https://host. Got '{origin}' instead.",
                name="origin",
                got=origin,
            )
        self._token = None if token is None else str(token)
        self._origins: list[Origin | None] = (
            [None] if origin is None else [None, Origin(str(origin))]
        )
        self._clients: set[_Client] = set()
        self._newcomers = Newcomers()
        self._server: Server | None = None
        self._sequence = 0
        self._welcome: dict[str, object] = {}

    async def start(
        self, tracker: Tracker, guarantee: Guarantee, rate_hz: float | None = None
    ) -> str:
        """Open the port."""
        self._welcome = {
            "type": "welcome",
            "rate_hz": rate_hz or tracker.rate_hz,
            "space": space_figures(tracker.space),
            "guarantee": str(guarantee),
        }
        try:
            self._server = await serve(
                self._serve,
                self.host,
                self.port,
                max_size=_MOST_QUESTION_BYTES,
                compression=None,
                create_connection=self._newcomers.connection,
                origins=self._origins,
                logger=QUIET,
            )
        except OSError as error:
            raise DataError(
                f"The relay cannot listen on {self.host}:{self.port} ({error.strerror}). Choose"
                " another port with --out."
            ) from None
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return f"ws://{in_brackets(self.host)}:{self.port}"

    async def _serve(self, connection: ServerConnection) -> None:
        client = _Client()
        if self._token is not None and not await self._knows(connection):
            self.counts["refused"] += 1
            await connection.close(1008, "hello refused")
            return
        # counted before anything is waited for: a thousand that say hello at once are a thousand
        if len(self._clients) >= _MOST_CLIENTS:
            self.counts["refused"] += 1
            await connection.close(1013, "too many clients")
            return
        self._clients.add(client)
        self._newcomers.known(connection)
        self.counts["clients"] += 1
        reader = asyncio.ensure_future(_discard(connection))
        # a client that went wakes its own loop, which then ends
        reader.add_done_callback(lambda _: client.some.set())
        try:
            await connection.send(json.dumps(self._welcome))
            while not reader.done():
                await client.some.wait()
                client.some.clear()
                while client.waiting:
                    next_one = client.waiting.popleft()
                    await connection.send(
                        '{"type":"lost"}'
                        if next_one is None
                        else _written(*next_one, client.dropped)
                    )
        except ConnectionClosed:
            pass  # the client went; nothing is owed to it
        finally:
            self._clients.discard(client)
            reader.cancel()

    async def _knows(self, connection: ServerConnection) -> bool:
        assert self._token is not None
        try:
            first = await asyncio.wait_for(connection.recv(), _HELLO_S)
            token = parse_json(first).get("token")
        except (TimeoutError, ConnectionClosed, DataError):
            return False
        return isinstance(token, str) and hmac.compare_digest(
            token.encode("utf-8", "replace"), self._token.encode()
        )

    def send(self, samples: Block) -> None:
        """Let the samples wait for every client."""
        for client in self._clients:
            self.counts["dropped"] += client.put((samples, self._sequence))
        self._sequence += len(samples)
        self.counts["sent"] += len(samples)

    def lost(self) -> None:
        """Tell the clients."""
        for client in self._clients:
            client.put(None)

    async def close(self) -> None:
        """Close the port and the connections."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


def _written(samples: Block, sequence: int, dropped: int) -> str | bytes:
    if samples.form == "binary":
        return pack(samples, 0, sequence, dropped)
    return json.dumps(message_of(samples), allow_nan=False)


async def _discard(connection: ServerConnection) -> None:
    """Read what a client sends and forget it, so that its pings and its goodbye are seen."""
    try:
        async for _ in connection:
            continue
    except ConnectionClosed:
        return
