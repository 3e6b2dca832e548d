"""Open connections by who is behind them, so that strangers can use up neither the memory nor the
file handles that others need.

uvicorn bounds what one head, body or message may hold, but not how slowly a head comes, how many
connections are silent, nor how many pings and pieces of a message come that are not read: without
what is done here `test_hostile.py` fails. A proxy in front would do it, but on loopback
there is none. A :class:`GuardedProtocol` stands between the socket and uvicorn's own protocol,
which it leaves as it is:

- a connection on which no request has come whole within `head_s` seconds is closed;
- at most :data:`MOST_UNREAD` bytes come on it that are part of no request and no message yet;
- one whose other side does not read, so that :data:`MOST_UNSENT` bytes wait for it, is cut.

A connection is a stranger's until it has shown a valid token or session. Strangers are limited to
`strangers_per_address` of one address and `strangers` in all; a further one closes the oldest. A
client that sends a whole request at once is served long before its turn comes. Known connections
count for their app or for the owner, and no stranger can close them.

All of it runs on the event loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.streams import StreamReader
from websockets.utils import apply_mask

from gazeveil.gatekeeper.policy.identity import peer_uid
from gazeveil.gatekeeper.service.settings import Settings

#: Seconds that a connection may take to close; one whose other side does not read is cut then.
CLOSING_S = 10.0

#: Bytes that may come beyond what was read as a request or a message. The socket gives up to 256
#: KiB at once, a body or a message has up to 64 KiB.
MOST_UNREAD = 1 << 20

#: Open WebSockets of one app.
MOST_OF_AN_APP = 128

#: So many of them are forgotten in a second: answers to the service's own pings.
FORGOTTEN = 64

#: Bytes that may wait for a reader. What the service itself sends waits in queues of its own, for
#: the socket to take it: so much are only answers to pings.
MOST_UNSENT = 1 << 20

#: What comes at once beyond this goes through the queue of its WebSocket, however small its
#: messages are, so that they do not keep the event loop to themselves.
MOST_AT_ONCE = 1024


class Peer:
    """One open connection: how it is closed, and the address of the other side."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.quota: str | None = None
        #: Since when nothing is asked on it, or it is being closed; None while a request is
        #: answered or a WebSocket is open.
        self.idle_since_s: float | None = time.monotonic()
        self.closing_since_s: float | None = None
        #: Bytes that came since the last request or message.
        self.unread = 0
        #: Takes a binary message on the spot, or says that it did not; there while all before it
        #: have been read and somebody waits for the next.
        self.take: Callable[[bytes], bool] | None = None
        #: Its user, where it came over the Unix socket: asked before the first byte is read.
        self.local: int | None = None
        sock, name = transport.get_extra_info("socket"), transport.get_extra_info("peername")
        self.address = str(name[0]) if isinstance(name, tuple) and name else "local"
        if sock is not None and sock.family == getattr(socket, "AF_UNIX", None):
            self.local = peer_uid(sock.fileno())
            self.address = "local" if self.local is None else f"uid {self.local}"


def peer_of_scope(scope: Scope) -> Peer:
    """The connection that a request came over: where from, and of which user of this machine. Only
    the peer itself is believed, never a header.
    """
    peer: Peer = scope["state"]["peer"]
    return peer


def is_own(uid: int | None) -> bool:
    """Whether a program runs as the service's own user, or as root: what the service believes as
    its tracker.
    """
    return uid is not None and uid in (os.geteuid(), 0)


class Peers:
    """All open connections of a service."""

    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.most, self.most_here = limits.strangers, limits.strangers_per_address
        self.head_s = limits.head_s
        # An app may hold as many connections for calls as for subscriptions.
        self.most_known = 2 * MOST_OF_AN_APP
        #: The connections of each app, session or address, oldest first; and all strangers.
        self._quotas: dict[str, OrderedDict[Peer, None]] = {}
        self.strangers: OrderedDict[Peer, None] = OrderedDict()
        self._open: set[Peer] = set()

    def enter(self, transport: asyncio.Transport) -> Peer:
        """Take a new connection in as a stranger; the stranger that came first goes where there are
        too many.
        """
        peer = Peer(transport)
        self._open.add(peer)
        self.strangers[peer] = None
        self._add(f"from {peer.address}", peer, self.most_here)
        if len(self.strangers) > self.most:
            self._cut(next(iter(self.strangers)))
        return peer

    def known(self, scope: Scope, quota: str) -> None:
        """The connection of a request or WebSocket has shown whose it is, by the quota of its token
        or session.
        """
        peer = peer_of_scope(scope)
        if peer.quota == quota or peer not in self._open:
            return
        self._drop(peer)
        peer.quota = quota
        self._add(quota, peer, self.most_known)

    def leave(self, peer: Peer) -> None:
        """A connection is closed."""
        self._open.discard(peer)
        self._drop(peer)

    def sweep(self, now_s: float) -> None:
        """Cut connections that ask for nothing in time, or whose other side does not read; called
        once a second.
        """
        for peer in tuple(self._open):
            peer.unread = max(0, peer.unread - FORGOTTEN)
            if peer.transport.is_closing():
                peer.closing_since_s = peer.closing_since_s or now_s
                too_late = now_s - peer.closing_since_s >= CLOSING_S
            else:
                since_s = now_s if peer.idle_since_s is None else peer.idle_since_s
                too_late = now_s - since_s >= self.head_s
            if too_late or peer.transport.get_write_buffer_size() > MOST_UNSENT:
                self._cut(peer)

    def cut_strangers(self) -> None:
        """Close all that are not known."""
        for peer in tuple(self.strangers):
            self._cut(peer)

    def _add(self, quota: str, peer: Peer, most: int) -> None:
        mine = self._quotas.setdefault(quota, OrderedDict())
        mine[peer] = None
        if len(mine) > most:
            self._cut(next(iter(mine)))

    def _drop(self, peer: Peer) -> None:
        self.strangers.pop(peer, None)
        quota = peer.quota if peer.quota is not None else f"from {peer.address}"
        mine = self._quotas.get(quota)
        if mine is not None:
            mine.pop(peer, None)
            if not mine:
                del self._quotas[quota]

    def _cut(self, peer: Peer) -> None:
        self.leave(peer)
        peer.transport.abort()


class _Transport:
    """A transport that keeps its connection guarded when the protocol on it changes."""

    def __init__(self, transport: asyncio.Transport, guard: GuardedProtocol) -> None:
        self._transport, self._guard = transport, guard
        self.write = transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        """A request has become a WebSocket."""
        self._guard.inner = protocol


#: What a parser of websockets runs between two frames.
_BETWEEN = StreamReader.at_eof.__code__


def _binary(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of a whole, masked binary message begins and ends; 0, 0 where there is
    none.
    """
    size = data[at + 1] & 127 if data[at : at + 1] == b"\x82" and len(data) > at + 5 else 127
    begin = at + 6
    if size == 126:
        size, begin = int.from_bytes(data[at + 2 : at + 4], "big"), at + 8
    whole = size != 127 and data[at + 1] > 127 and begin + size <= len(data)
    return (begin, begin + size) if whole else (0, 0)


class DirectProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, whose binary messages need not pass a parser, a queue and a task where
    what waits for them takes them on the spot: of what a tracker's sample costs that is the half.
    """

    def data_received(self, data: bytes) -> None:
        """Have whole messages taken here; what else came goes through the queue, and what follows
        it stays behind it.
        """
        peer: Peer = self.app_state["peer"]
        at, running = 0, getattr(self.conn.parser, "gi_yieldfrom", None)
        running = getattr(running, "gi_yieldfrom", None)
        if peer.take and not self.frames and getattr(running, "gi_code", None) is _BETWEEN:
            begin, end = _binary(data, at)
            while end and peer.take(apply_mask(data[begin:end], data[begin - 4 : begin])):
                peer.unread, at = 0, end
                begin, end = _binary(data, at)
        if at < len(data):
            peer.take = None
            super().data_received(data[at:])


class GuardedProtocol(asyncio.Protocol):
    """uvicorn's protocol of one connection, behind a guard that knows whose it is and how much came
    of it; requests find it as the `peer` in the state of their scope.
    """

    def __init__(self, peers: Peers, config: Config, app_state: dict[str, Any], **options: Any):
        self._peers, self._state = peers, dict(app_state)
        self.inner: asyncio.Protocol = H11Protocol(config, app_state=self._state, **options)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection."""
        self._peer = self._state["peer"] = self._peers.enter(transport)
        self.inner.connection_made(_Transport(transport, self))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, unless too many come that cannot be read."""
        self._peer.unread += len(data)
        if len(data) > MOST_AT_ONCE:
            self._peer.take = None
        if self._peer.unread > MOST_UNREAD:
            self._peer.transport.abort()
        else:
            self.inner.data_received(data)

    def eof_received(self) -> None:
        """No more will come."""
        self.inner.eof_received()

    def pause_writing(self) -> None:
        """The other side does not read."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """It reads again."""
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing behind."""
        self._peers.leave(self._peer)
        self.inner.connection_lost(exc)
