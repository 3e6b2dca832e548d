"""A connection from its welcome to its end, after which nothing of it is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets.channel import Channel
from gazeveil.gatekeeper.service.sockets.connections import Connection
from gazeveil.gatekeeper.service.sockets.first_message import LEFT


def connect(service: Service, websocket: WebSocket, app: str, expires_ns: int | None) -> Connection:
    """The queue of a WebSocket that was taken in."""
    connection = Connection(
        service.broadcaster,
        app,
        websocket.send,
        service.settings.limits.queue_messages,
        websocket.scope.get("state", {}).get("send_now"),
    )
    connection.expires_ns = expires_ns
    return connection


async def carry(
    connection: Connection, kind: str, service: Service, listen: Callable[[], Awaitable[None]]
) -> None:
    """Read and send on a connection until one side ends, and leave nothing behind."""
    service.broadcaster.connections.add(connection)
    service.metrics.connections.labels(kind).inc()
    reader = asyncio.ensure_future(listen())
    both: list[asyncio.Future[Any]] = [connection.done, reader]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if reader.done() and connection.closing is not None:
            # The last words are on their way.
            await asyncio.wait({connection.done}, timeout=service.settings.limits.hello_s)
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        connection.stop()
        service.broadcaster.connections.discard(connection)
        service.metrics.connections.labels(kind).dec()
        channels = list(connection.channels.values())
        for channel in channels:
            channel.ended = True
        connection.channels.clear()
        if channels:
            await run_in_threadpool(_close_all, channels)
        for error in (
            connection.done.result(),
            reader.exception() if not reader.cancelled() else None,
        ):
            if error is not None and not isinstance(error, LEFT):
                LOG.error("a connection ended by a mistake of ours", exc_info=error)


def _close_all(channels: list[Channel]) -> None:
    for channel in channels:
        if channel.close is not None:
            channel.close()
