"""`/v1/live`: what the device itself sees, beside what each app was sent; for the owner's page
alone.

This is the one place where raw gaze leaves the core, and which target the eye rests on before it is
chosen (`hover`, for a platform that highlights it). It goes only to a connection of the device's
own page that signs its hello, or shows an owner's token. It is sent at most
:data:`FRAMES_HZ` times a second, and only while such a page is connected.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.policy.policy import OWNER
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.accepting import (
    LEFT,
    UNKNOWN,
    admit,
    carry,
    connect,
    from_own_page,
    hello_of,
    receive,
    refuse,
    say_and_close,
)
from gazeveil.gatekeeper.service.connections import Channel, Connection, Outgoing
from gazeveil.gatekeeper.service.credentials import Caller
from gazeveil.gatekeeper.service.owner_api import owner_of
from gazeveil.gatekeeper.service.service import Service

#: Messages of raw gaze in a second.
FRAMES_HZ = 30.0

#: Owners' pages that may look at once.
VIEWERS = 8


class Viewer:
    """Gathers raw samples for one page."""

    def __init__(self, service: Service, connection: Connection) -> None:
        self.service, self.connection = service, connection
        self.channel = Channel(connection, 0, "raw", announced=True)
        connection.channels[0] = self.channel
        self._blocks: list[tuple[Ints, Floats, Floats, Bools]] = []
        self._sent = 0.0

    def samples(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
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

    def hover(self, app: str | None, target: str | None) -> None:
        """Take which target is looked at, for the platform to highlight; as for samples, the
        owner's page is shown the owner's looks alone.
        """
        if self.service.policy.wearer == OWNER:
            self.connection.offer(
                Outgoing(
                    wire.encode({"type": "hover", "app": app, "target": target}).decode(),
                    self.channel,
                )
            )


async def live(websocket: WebSocket) -> None:
    """The owner's WebSocket."""
    service: Service = websocket.app.state.service
    with contextlib.suppress(*LEFT):
        await websocket.accept()
        try:
            hello, caller = await _owner(service, websocket)
        except Refused as refused:
            await refuse(websocket, refused)
            return
        connection = connect(service, websocket, "", caller.expires_ns)
        service.owner_connections[connection] = caller.credential
        try:
            # A sign-out before the connection was registered did not close it.
            held, now_ns = service.tokens.holder(hello.token), service.ledger.now_ns()
            if held is not None or service.sessions.is_live(caller.credential, now_ns):
                await _show(service, websocket, connection)
            else:
                await say_and_close(websocket, UNKNOWN, "signed-out", "The session has ended.")
        finally:
            service.owner_connections.pop(connection, None)


async def _owner(service: Service, websocket: WebSocket) -> tuple[wire.Hello, Caller]:
    """The hello of an owner's page, and who it is.

    Raises
    ------
    Refused
        Where it is not the owner, or too many pages look.
    """
    hello = await hello_of(service, websocket)
    if not from_own_page(service, websocket):
        raise Refused(403, "origin", "Only the device's own page may look.")
    admit(service, websocket, hello.token, hello.session)
    caller = service.caller(hello.token) if hello.token else owner_of(service, websocket.scope)
    if caller.role != "owner":
        raise Refused(403, "role", "This is for the owner of the device.")
    if len(service.broadcaster.viewers) >= VIEWERS or service.stopping:
        raise Refused(503, "busy", "Too many pages look already.")
    return hello, caller


async def _show(service: Service, websocket: WebSocket, connection: Connection) -> None:
    """Send what is seen until the page leaves."""
    viewer = Viewer(service, connection)

    async def listen() -> None:
        while True:
            await receive(websocket, None)

    connection.answer({"type": "welcome", **service.public()})
    viewer.channel.opened = await run_in_threadpool(service.keeper.watch, viewer.samples)
    hovering = await run_in_threadpool(service.keeper.hover, viewer.hover)
    service.broadcaster.viewers.add(connection)
    try:
        await carry(connection, service, listen)
    finally:
        service.broadcaster.viewers.discard(connection)
        await run_in_threadpool(hovering.close)
