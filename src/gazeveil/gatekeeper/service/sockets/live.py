"""`/v1/live`: what the device itself sees, beside what each app was sent; for the owner's page
alone.

This is the one place where raw gaze leaves the core. It goes to a connection that shows both halves
of an owner's session, or an owner's token, and comes from the device's own page, at most
:data:`FRAMES_HZ` times a second, and only while somebody looks.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.service.http.cookies import owner_cookies
from gazeveil.gatekeeper.service.http.middleware import address, same_origin
from gazeveil.gatekeeper.service.http.owner_session import need_both_halves, owner_of
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.app_socket import (
    BUSY,
    FORBIDDEN,
    LEFT,
    UNKNOWN,
    carry,
    receive,
    say_and_close,
)
from gazeveil.gatekeeper.service.sockets.connections import Channel, Connection, Outgoing

#: Messages of raw gaze in a second.
FRAMES_HZ = 30.0

#: Owners' pages that may look at once.
VIEWERS = 8


class Viewer:
    """Gathers raw samples for one page."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.channel = Channel(connection, 0, "raw", announced=True)
        connection.channels[0] = self.channel
        self._blocks: list[
            tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]
        ] = []
        self._sent = 0.0

    def samples(
        self,
        t_ns: NDArray[np.int64],
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
    ) -> None:
        """Take raw samples of the core, on the tracker's thread."""
        self._blocks.append(
            (np.atleast_1d(t_ns), np.atleast_1d(x_deg), np.atleast_1d(y_deg), np.atleast_1d(valid))
        )
        now = time.monotonic()
        if now - self._sent < 1.0 / FRAMES_HZ:
            return
        self._sent = now
        t, x, y, ok = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        self._blocks = []
        text = (
            b'{"type":"raw",'
            + wire.json_samples(t, np.where(ok, x, np.nan), np.where(ok, y, np.nan), ok)
            + b"}"
        )
        self.connection.offer(Outgoing(text.decode(), self.channel))


async def live(websocket: WebSocket) -> None:
    """The owner's WebSocket."""
    with contextlib.suppress(*LEFT):
        await _live(websocket)


async def _live(websocket: WebSocket) -> None:
    service: Service = websocket.app.state.service
    settings = service.settings
    await websocket.accept()
    try:
        command = wire.read_command(
            await receive(websocket, settings.hello_s), settings.message_bytes, settings.json_depth
        )
        if not isinstance(command, wire.Hello):
            return await say_and_close(
                websocket, UNKNOWN, "hello", "The first message must be a hello."
            )
        if not same_origin(websocket.headers, websocket.url.scheme, settings.public_origin):
            return await say_and_close(
                websocket, FORBIDDEN, "origin", "Only the device's own page may look."
            )
        if not service.rate_limiter.hello(websocket.scope, command.token or command.session):
            return await say_and_close(
                websocket, BUSY, "rate", "There are too many requests. Wait a minute."
            )
        if command.token:
            caller = await run_in_threadpool(
                service.callers.of_token, command.token, address(websocket.scope)
            )
        else:
            caller = owner_of(service, command.session, owner_cookies(websocket.headers))
            need_both_halves(caller)
        if caller.role != "owner":
            return await say_and_close(
                websocket, FORBIDDEN, "role", "This is for the owner of the device."
            )
    except TimeoutError:
        return await say_and_close(
            websocket, UNKNOWN, "hello", f"No hello came within {settings.hello_s:g} seconds."
        )
    except wire.BadMessageError as error:
        return await say_and_close(websocket, UNKNOWN, "message", str(error))
    except Refused as refused:
        return await say_and_close(
            websocket, UNKNOWN if refused.status == 401 else BUSY, refused.code, refused.reason
        )
    if len(service.broadcaster.viewers) >= VIEWERS or service.stopping:
        return await say_and_close(websocket, BUSY, "busy", "Too many pages look already.")
    connection = Connection(
        service.broadcaster,
        "",
        websocket.send,
        settings.queue_messages,
        websocket.scope.get("state", {}).get("send_now"),
    )
    connection.expires_ns = caller.expires_ns
    service.owner_connections[connection] = caller.credential
    try:
        # Whoever signed out before the connection was noted down would not be hung up.
        if _signed_in(service, command):
            await _show(service, websocket, connection)
        else:
            await say_and_close(websocket, UNKNOWN, "signed-out", "The session has ended.")
    finally:
        service.owner_connections.pop(connection, None)
    return None


def _signed_in(service: Service, hello: wire.Hello) -> bool:
    now_ns = time.time_ns()
    return (
        service.tokens.live.holder(hello.token, now_ns)
        if hello.token
        else service.sessions.check(hello.session, None, now_ns)
    ) is not None


async def _show(service: Service, websocket: WebSocket, connection: Connection) -> None:
    """Send what is seen until the page leaves."""
    viewer = Viewer(connection)

    async def listen() -> None:
        while True:
            try:
                await receive(websocket, service.settings.idle_s)
            except TimeoutError:
                continue

    connection.answer({"type": "welcome", **service.public()})
    watching = await run_in_threadpool(service.keeper.live().watch, viewer.samples)
    viewer.channel.close = watching.close
    service.broadcaster.viewers.add(connection)
    try:
        await carry(connection, "owner", service, listen)
    finally:
        service.broadcaster.viewers.discard(connection)
