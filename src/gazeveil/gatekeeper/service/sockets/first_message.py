"""The first message of a WebSocket, who it says is there, and why a connection is refused.

The first message is a hello with a token or a session, because browsers cannot set headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from gazeveil.errors import DataError
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.service.http.middleware import same_origin
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.begun_coroutine import resume

#: Messages that cannot be read before a connection is closed.
PATIENCE = 5

#: WebSocket close codes: no token or a wrong one, not allowed, too much.
UNKNOWN, FORBIDDEN, BUSY = 4001, 4003, 4029


class Disconnected(Exception):  # noqa: N818 - not an error: the other side has left
    """The other side has left."""


#: What a socket raises whose other side has left, or that is closed already.
LEFT = (Disconnected, WebSocketDisconnect, RuntimeError, OSError)


async def receive(websocket: WebSocket, seconds: float) -> str | bytes:
    """The next message of a WebSocket.

    Raises
    ------
    TimeoutError
        Where none comes in time.
    """
    receiving: Any = websocket.receive()
    try:
        # What has come already needs no limit, which would cost more than the message.
        waits_for = receiving.send(None)
    except StopIteration as done:
        message = done.value
    else:
        async with asyncio.timeout(seconds):
            message = await resume(receiving, waits_for)
    if message["type"] == "websocket.disconnect":
        raise Disconnected
    data: str | bytes | None = message.get("text")
    return data if data is not None else message.get("bytes") or b""


async def say_and_close(websocket: WebSocket, code: int, word: str, reason: str) -> None:
    """Tell why, then close."""
    error = {"type": "error", "code": word, "reason": reason}
    await websocket.send_text(wire.encode(error).decode())
    await websocket.close(code, word)


async def refuse(websocket: WebSocket, refused: Refused) -> None:
    """Close a connection that is not taken in."""
    code = UNKNOWN if refused.status == 401 else BUSY if refused.status in (429, 503) else FORBIDDEN
    await say_and_close(websocket, code, refused.code, refused.reason)


@contextmanager
def refusing_bad_messages() -> Iterator[None]:
    """Turn a first message that cannot be read into a refusal."""
    try:
        yield
    except DataError as error:
        raise Refused(401, "message", str(error)) from None


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


async def hello_of(service: Service, websocket: WebSocket, otherwise: str) -> wire.Hello:
    """The hello of an app or an owner's page.

    Raises
    ------
    Refused
        Where none comes in time, or something else does; `otherwise` is the sentence for that.
    """
    settings, data = service.settings, await first_message(service, websocket)
    with refusing_bad_messages():
        command = wire.read_command(data, settings.limits.message_bytes, settings.limits.json_depth)
    if not isinstance(command, wire.Hello):
        raise Refused(401, "hello", otherwise)
    return command


def admit(service: Service, websocket: WebSocket, credential: str) -> None:
    """Count a hello.

    Raises
    ------
    Refused
        Where there were too many.
    """
    if not service.rate_limiter.hello(websocket.scope, credential):
        raise Refused(429, "rate", "There are too many requests. Wait a minute.")


def from_own_page(service: Service, websocket: WebSocket) -> bool:
    """Whether a WebSocket was opened by a page of the service itself, or by no page."""
    return same_origin(websocket.headers, websocket.url.scheme, service.settings.public_origin)
