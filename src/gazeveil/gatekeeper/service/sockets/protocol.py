"""The bytes before a request is one: heads of HTTP with a size and a deadline, WebSockets whose
answers cannot pile up.

uvicorn's protocol classes set no limit on how large the head of a request is or how slowly it
comes, and answer every ping of a WebSocket whether or not the answers are read. These do:

- a head, with what may trail its body, has `head_bytes` bytes and comes within `head_s` seconds; a
  new connection that stays silent for as long is closed;
- eight requests may wait behind one another on a connection;
- while a peer does not read the answers to its pings, no more is read from it; one that reads
  nothing for two pings' time is cut;
- a WebSocket message comes in at most :data:`FRAGMENTS` frames, and has `message_bytes` bytes until
  the hello is accepted, then `frame_bytes`;
- what a connection has sent is gone when the connection is.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import uvicorn
from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.peers import Peer, Peers

#: Requests that may wait on a connection for the one before them. Browsers send none ahead.
WAITING_REQUESTS = 8

#: Frames in which one WebSocket message may come.
FRAGMENTS = 256

#: What a header costs beside its own bytes: colon, space and line end, so that many empty ones
#: count too.
_HEADER_BYTES = 4


class Config(uvicorn.Config):
    """uvicorn's configuration, with what the protocols below need: the limits, and where
    connections are counted.
    """

    def __init__(self, app: Any, settings: Settings, peers: Peers, **options: Any) -> None:
        super().__init__(app, **options)
        self.settings, self.peers = settings, peers


class TooMuchError(Exception):
    """A head that is too large, or too many requests in one go; the parser passes it on as its own
    error.
    """


def address_of_peer(transport: asyncio.BaseTransport) -> str:
    """Where a connection comes from, as :func:`gazeveil.gatekeeper.service.http.middleware.address`
    has it.
    """
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else "local"


class HeadProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose heads have a size and a deadline."""

    def __init__(self, config: uvicorn.Config, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        own = cast("Config", config)
        self._settings, self._peers = own.settings, own.peers
        self._clock: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._began = self._too_much = self._upgraded = False
        self._head_bytes = self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and start its clock."""
        super().connection_made(transport)
        if self._peers.at(transport) is None:
            self._peers.enter(transport, address_of_peer(transport))
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing behind."""
        self._stop_clock()
        self.resume_writing()
        self._peers.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless too many come that are no whole header and no body."""
        self._began = True
        if self._clock is None and (self.cycle is None or self.cycle.response_complete):
            self._start_clock()
        self._unread_bytes += len(data)
        super().data_received(data)
        if (
            self._unread_bytes > self._settings.limits.head_bytes
            and not self._upgraded
            and not self.transport.is_closing()
        ):
            most = self._settings.limits.head_bytes
            reason = f"The head of a request may have {most} bytes. Send less."
            self._refuse(431, "head", reason)

    def on_message_begin(self) -> None:
        """A new head."""
        super().on_message_begin()
        self._head_bytes = 0
        self.scope["state"]["peer"] = self._peers.at(self.transport)

    def on_url(self, url: bytes) -> None:
        """Count a piece of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, before or after the body."""
        self._count(len(name) + len(value) + _HEADER_BYTES)
        self._unread_bytes = 0
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if len(self.pipeline) >= WAITING_REQUESTS:
            self._too_much = True
            raise TooMuchError
        self._stop_clock()
        self._unread_bytes = 0
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """A piece of a body begins."""
        self._unread_bytes = 0

    def on_body(self, body: bytes) -> None:
        """A piece of a body; the guard limits how much."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unread_bytes = 0
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the WebSocket."""
        self._stop_clock()
        self._upgraded = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, in the one shape of every error."""
        if self._too_much:
            self._refuse(
                431,
                "head",
                f"The head of a request may have {self._settings.limits.head_bytes} bytes, and"
                f" {WAITING_REQUESTS} may wait. Send less.",
            )
        else:
            self._refuse(400, "request", "This is not a request of HTTP/1.1.")

    def pause_writing(self) -> None:
        """The other side does not read."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(
                2 * self._settings.limits.ping_s, self.transport.abort
            )

    def resume_writing(self) -> None:
        """The other side reads."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._settings.limits.head_bytes:
            self._too_much = True
            raise TooMuchError

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(self._settings.limits.head_s, self._late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        if self.transport.is_closing():
            return
        if self._began:
            self._refuse(
                408, "slow", "The head of the request did not come in time. Send it again."
            )
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, reason: str) -> None:
        self._stop_clock()
        body = json.dumps({"error": {"code": code, "reason": reason}}).encode()
        head = (
            b"content-type: application/json\r\ncontent-length: %d\r\nx-content-type-options:"
            b" nosniff\r\nconnection: close\r\n\r\n" % len(body)
        )
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket whose answers to pings cannot pile up, and that takes little before its hello and
    keeps nothing after its end.
    """

    def __init__(self, config: uvicorn.Config, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        own = cast("Config", config)
        self._settings, self._peers = own.settings, own.peers
        self._stuck: asyncio.TimerHandle | None = None
        self._held = False
        self._peer: Peer | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing behind."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        self._held = False
        self._peers.leave(self.transport)
        super().connection_lost(exc)
        # The parser is a generator that holds the connection that holds it, with what came of an
        # unfinished frame: only a full collection would find that, and after gc.freeze() those are
        # rare. Nothing is sent or parsed from here on.
        self.frames = []
        self.conn.parser.close()
        self.conn.reader.discard()
        self.conn.events.clear()
        self.conn.writes.clear()
        self.conn.parser_exc = self.conn.handshake_exc = None  # their tracebacks hold it too
        if self._peer is not None:
            del self.scope["state"]["send_now"]  # it holds the protocol that holds it
        self._peer = None

    def data_received(self, data: bytes) -> None:
        """Take bytes; whole frames once the hello is accepted."""
        if self._peer is not None and self._peer.accepted:
            self.conn.max_message_size = self._settings.limits.frame_bytes
        super().data_received(data)

    def handle_connect(self, event: Request) -> None:
        """Let what is behind know which connection it is."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self._peer = self.scope["state"]["peer"] = self._peers.at(self.transport)
            self.scope["state"]["send_now"] = self.send_now

    def send_now(self, payload: bytes, text: bool) -> bool:
        """Send a whole message at once, where the connection is open and its socket takes it; says
        whether it was sent.

        A server's frames are not masked and there are no extensions, so a message is its length and
        itself. Of what a short message costs, the layers that it would else go through are half as
        much as the socket.
        """
        if (
            not self.handshake_complete
            or self.close_sent
            or self.disconnected
            or not self.writable.is_set()
            or self.transport.is_closing()
        ):
            return False
        size = len(payload)
        first = b"\x81" if text else b"\x82"
        head = (
            bytes((size,))
            if size < 126
            else (
                b"\x7e" + size.to_bytes(2, "big")
                if size < 65_536
                else b"\x7f" + size.to_bytes(8, "big")
            )
        )
        self.transport.write(first + head + payload)
        return True

    def handle_ping(self) -> None:
        """Answer; while earlier answers are not read, read no more."""
        super().handle_ping()
        if not self.writable.is_set() and not self._held and not self.transport.is_closing():
            self._held = True
            self.transport.pause_reading()

    def handle_cont(self, event: Frame) -> None:
        """Take a further piece of a message, unless there are too many."""
        if len(self.frames) < FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.frames = []
            self.conn.fail(1009, "too many fragments")
            self.handle_parser_exception()

    def pause_writing(self) -> None:
        """The other side does not read."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(
                2 * self._settings.limits.ping_s, self.transport.abort
            )

    def resume_writing(self) -> None:
        """The other side reads."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        if self._held:
            self._held = False
            if not self.read_paused and not self.transport.is_closing():
                self.transport.resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        """The next message; what was held back stays so."""
        message = await super().receive()
        if self._held and not self.transport.is_closing():
            self.transport.pause_reading()
        return message
