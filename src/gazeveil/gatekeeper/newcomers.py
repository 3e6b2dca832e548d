"""Connections to a WebSocket port that have not shown yet who they are.

Any host that reaches a port can open silent connections. A port holds a few of them: each further
one closes the oldest. A client that says hello at once gets in, however many others are open.
"""

from __future__ import annotations

import asyncio

from websockets.asyncio.server import ServerConnection


class Newcomers:
    """The connections of one port that are not known yet.

    Parameters
    ----------
    most : int
        How many may be open at once.

    Attributes
    ----------
    turned_away : int
        Connections that were closed to let another one in.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._open: dict[ServerConnection, asyncio.BaseTransport] = {}
        self.turned_away = 0

    def known(self, connection: ServerConnection) -> None:
        """The connection has shown who it is, and is not closed for a newcomer any more."""
        self._open.pop(connection, None)

    def came(self, connection: ServerConnection, transport: asyncio.BaseTransport) -> None:
        """A connection was opened."""
        self._open[connection] = transport
        if len(self._open) > self._most:
            oldest = next(iter(self._open))
            gone = self._open.pop(oldest)
            self.turned_away += 1
            assert isinstance(gone, asyncio.Transport)
            gone.abort()

    @property
    def connection(self) -> type[ServerConnection]:
        """What makes the connections of the port: `create_connection` of `websockets.serve`."""
        newcomers = self

        class NewcomerConnection(ServerConnection):
            """A connection that is counted from its first byte on."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                newcomers.came(self, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                newcomers.known(self)
                super().connection_lost(exc)

        return NewcomerConnection
