"""Open connections by who is behind them, so that strangers can use up neither the memory nor the
file handles that others need.

A connection is a stranger's until it has shown a valid token or session. Strangers are limited to
`strangers_per_address` of one address and `strangers` in all; a further one closes the oldest. A
client that sends a whole request at once is served long before its turn comes. Idle connections are
lost. Known connections count for their app or for the owner, and no stranger can close them.

All of it runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from starlette.types import Scope

from gazeveil.gatekeeper.policy.identity import LocalPeer
from gazeveil.gatekeeper.service.settings import Settings

#: Seconds that a connection may take to close; one whose other side does not read is cut then.
CLOSING_S = 10.0


class Peer:
    """One open connection: how it is closed, and the address of the other side."""

    __slots__ = ("accepted", "address", "closing_since_s", "local", "quota", "transport")

    def __init__(self, transport: asyncio.Transport, address: str) -> None:
        self.transport, self.address = transport, address
        self.quota: str | None = None
        #: Who it is, where it came over the Unix socket.
        self.local: LocalPeer | None = None
        self.closing_since_s: float | None = None
        #: Whether the hello of its WebSocket was accepted, so that it may send whole frames.
        self.accepted = False


class Peers:
    """All open connections of a service."""

    def __init__(self, settings: Settings) -> None:
        self.most, self.most_here = settings.limits.strangers, settings.limits.strangers_per_address
        # An app may hold as many connections for calls as for subscriptions.
        self.most_known = 2 * settings.limits.connections_per_app
        self._by_transport: dict[asyncio.BaseTransport, Peer] = {}
        self._strangers: OrderedDict[Peer, None] = OrderedDict()
        self._quotas: dict[str, OrderedDict[Peer, None]] = {}

    def enter(self, transport: asyncio.Transport, address: str) -> Peer:
        """Take a new connection in as a stranger; the stranger that came first goes where there are
        too many.
        """
        peer = Peer(transport, address)
        self._by_transport[transport] = peer
        self._strangers[peer] = None
        self._add(f"from {address}", peer, self.most_here)
        if len(self._strangers) > self.most:
            self._cut(next(iter(self._strangers)))
        return peer

    def at(self, transport: asyncio.BaseTransport) -> Peer | None:
        """The connection of a transport."""
        return self._by_transport.get(transport)

    def known(self, scope: Scope, quota: str) -> None:
        """The connection of a request or WebSocket has shown whose it is, by the quota of its token
        or session.
        """
        peer = scope.get("state", {}).get("peer")
        if (
            not isinstance(peer, Peer)
            or peer.quota == quota
            or peer.transport not in self._by_transport
        ):
            return
        self._drop(peer)
        peer.quota = quota
        self._add(quota, peer, self.most_known)

    @staticmethod
    def accept(scope: Scope) -> None:
        """The hello of a WebSocket was accepted."""
        peer = scope.get("state", {}).get("peer")
        if isinstance(peer, Peer):
            peer.accepted = True

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """A connection is closed."""
        peer = self._by_transport.pop(transport, None)
        if peer is not None:
            self._drop(peer)

    def sweep(self, now_s: float) -> None:
        """Cut connections that do not come to their close because the other side does not read."""
        for peer in tuple(self._by_transport.values()):
            if not peer.transport.is_closing():
                continue
            if peer.closing_since_s is None:
                peer.closing_since_s = now_s
            elif now_s - peer.closing_since_s >= CLOSING_S:
                self._cut(peer)

    def cut_strangers(self) -> None:
        """Close all that are not known."""
        for peer in tuple(self._strangers):
            self._cut(peer)

    @property
    def strangers(self) -> int:
        """How many connections are not known."""
        return len(self._strangers)

    def __len__(self) -> int:
        return len(self._by_transport)

    def _add(self, quota: str, peer: Peer, most: int) -> None:
        mine = self._quotas.setdefault(quota, OrderedDict())
        mine[peer] = None
        if len(mine) > most:
            self._cut(next(iter(mine)))

    def _drop(self, peer: Peer) -> None:
        self._strangers.pop(peer, None)
        quota = peer.quota if peer.quota is not None else f"from {peer.address}"
        mine = self._quotas.get(quota)
        if mine is not None:
            mine.pop(peer, None)
            if not mine:
                del self._quotas[quota]

    def _cut(self, peer: Peer) -> None:
        self.leave(peer.transport)
        peer.transport.abort()
