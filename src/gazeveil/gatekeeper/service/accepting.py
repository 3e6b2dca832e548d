"""A WebSocket from its first message to its end, after which nothing of it is left.

The first message is a hello with a token or a signature, because browsers cannot set headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.connections import Channel, Connection
from gazeveil.gatekeeper.service.guard import same_origin
from gazeveil.gatekeeper.service.peers import peer_of_scope
from gazeveil.gatekeeper.service.service import Service

#: Messages that cannot be read before a connection is closed.
PATIENCE = 5

#: WebSocket close codes: no token or a wrong one, not allowed, too much.
UNKNOWN, FORBIDDEN, BUSY = 4001, 4003, 4029


class Disconnected(Exception):  # noqa: N818 - not an error: the other side has left
    """The other side has left."""


#: What a socket raises whose other side has left, or that is closed already.
LEFT = (Disconnected, WebSocketDisconnect, RuntimeError, OSError)


async def receive(
    websocket: WebSocket, seconds: float | None, take: Callable[[bytes], bool] | None = None
) -> str | bytes:
    """The next message of a WebSocket that `take` does not take on the spot.

    Raises
    ------
    TimeoutError
        Where none comes in time, if there is one.
    """
    peer = peer_of_scope(websocket.scope)
    async with asyncio.timeout(seconds):
        try:
            peer.take = take  # what has come already is given before anything is waited for
            message = await websocket.receive()
        finally:
            peer.unread, peer.take = 0, None
    if message["type"] == "websocket.disconnect":
        raise Disconnected
    data: str | bytes | None = message.get("text")
    return data if data is not None else message.get("bytes") or b""


async def say_and_close(websocket: WebSocket, code: int, word: str, reason: str) -> None:
    """Tell why, then close."""
    await websocket.send_text(
        wire.encode({"type": "error", "code": word, "reason": reason}).decode()
    )
    await websocket.close(code, word)


async def refuse(websocket: WebSocket, refused: Refused) -> None:
    """Close a connection that is not taken in."""
    code = UNKNOWN if refused.status == 401 else BUSY if refused.status in (429, 503) else FORBIDDEN
    await say_and_close(websocket, code, refused.code, refused.reason)


async def first_message(service: Service, websocket: WebSocket) -> str | bytes:
    """The first message.

    Raises
    ------
    Refused
        Where none comes in time.
    """
    seconds = service.settings.limits.hello_s
    try:
        return await receive(websocket, seconds)
    except TimeoutError:
        raise Refused(401, "hello", f"No hello came within {seconds:g} seconds.") from None


async def hello_of(service: Service, websocket: WebSocket) -> wire.Hello:
    """The hello of an app or an owner's page.

    Raises
    ------
    Refused
        Where none comes in time, or something else does.
    """
    data = await first_message(service, websocket)
    try:
        command = wire.read_command(data, service.settings.limits.json_depth)
    except wire.BadMessageError as error:
        raise Refused(401, "message", str(error)) from None
    if not isinstance(command, wire.Hello):
        raise Refused(401, "hello", "The first message must be a hello.")
    return command


def admit(service: Service, websocket: WebSocket, token: str, signed: str = "") -> None:
    """Count a hello.

    Raises
    ------
    Refused
        Where there were too many.
    """
    if not service.rate_limiter.hello(websocket.scope, token, signed):
        raise Refused(429, "rate", "There are too many requests. Wait a minute.")


def from_own_page(service: Service, websocket: WebSocket) -> bool:
    """Whether a WebSocket was opened by a page of the service itself, or by no page."""
    return same_origin(websocket.headers, websocket.url.scheme, service.settings.public_origin)


def connect(service: Service, websocket: WebSocket, app: str, expires_ns: int | None) -> Connection:
    """The queue of a WebSocket that was taken in."""
    most = service.settings.limits.queue_messages
    transport = peer_of_scope(websocket.scope).transport
    connection = Connection(service.broadcaster, app, websocket.send, most, transport)
    connection.expires_ns = expires_ns
    return connection


async def carry(
    connection: Connection, service: Service, listen: Callable[[], Awaitable[None]]
) -> None:
    """Read and send on a connection until one side ends, and leave nothing behind."""
    service.broadcaster.connections.add(connection)
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
        channels = list(connection.channels.values())
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
        channel.ended = True
        if channel.opened is not None:
            channel.opened.close()
