"""`/v1/live`: what the device itself sees, beside what each app was sent; for the owner's page alone.

This is the one place where raw gaze leaves the core. It goes to a connection that holds the owner's cookie or token and comes from the
device's own page, at most :data:`FRAMES_HZ` times a second, and only while somebody looks.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.gatekeeper import wire
from gazeveil.gatekeeper.guard import address, same_origin
from gazeveil.gatekeeper.hub import Feed, Line, Packet
from gazeveil.gatekeeper.owner import COOKIE
from gazeveil.gatekeeper.service import Refused, Service
from gazeveil.gatekeeper.ws import BUSY, FORBIDDEN, LEFT, UNKNOWN, carry, receive, say_and_close

#: Messages of raw gaze in a second.
FRAMES_HZ = 30.0

#: Owners' pages that may look at once.
VIEWERS = 8


class Viewer:
    """Gathers raw samples for one page."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.feed = Feed(line, 0, "raw", announced=True)
        line.feeds[0] = self.feed
        self._blocks: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]] = []
        self._sent = 0.0

    def samples(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> None:
        """Take raw samples of the core, on the tracker's thread."""
        self._blocks.append((np.atleast_1d(t_ns), np.atleast_1d(x_deg), np.atleast_1d(y_deg), np.atleast_1d(valid)))
        now = time.monotonic()
        if now - self._sent < 1.0 / FRAMES_HZ:
            return
        self._sent = now
        t, x, y, ok = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        self._blocks = []
        text = b'{"type":"raw",' + wire.json_samples(t, np.where(ok, x, np.nan), np.where(ok, y, np.nan), ok) + b"}"
        self.line.offer(Packet(text.decode(), self.feed))


async def live(websocket: WebSocket) -> None:
    """The owner's WebSocket."""
    with contextlib.suppress(*LEFT):
        await _live(websocket)


async def _live(websocket: WebSocket) -> None:
    service: Service = websocket.app.state.service
    settings = service.settings
    await websocket.accept()
    try:
        command = wire.read_command(await receive(websocket, settings.hello_s), settings.message_bytes, settings.json_depth)
        if not isinstance(command, wire.Hello):
            return await say_and_close(websocket, UNKNOWN, "hello", "The first message must be a hello.")
        if not same_origin(websocket.headers, websocket.url.scheme):
            return await say_and_close(websocket, FORBIDDEN, "origin", "Only the device's own page may look.")
        token = command.token or websocket.cookies.get(COOKIE, "")
        caller = await run_in_threadpool(service.caller, token, address(websocket.scope))
        if caller.role != "owner":
            return await say_and_close(websocket, FORBIDDEN, "role", "This is for the owner of the device.")
    except TimeoutError:
        return await say_and_close(websocket, UNKNOWN, "hello", f"No hello came within {settings.hello_s:g} seconds.")
    except wire.BadMessageError as error:
        return await say_and_close(websocket, UNKNOWN, "message", str(error))
    except Refused as refused:
        return await say_and_close(websocket, UNKNOWN if refused.status == 401 else BUSY, refused.code, refused.reason)
    if len(service.hub.viewers) >= VIEWERS or service.stopping:
        return await say_and_close(websocket, BUSY, "busy", "Too many pages look already.")
    line = Line(service.hub, "", websocket.send, settings.queue_messages)
    line.expires_ns = caller.expires_ns
    viewer = Viewer(line)

    async def listen() -> None:
        while True:
            try:
                await receive(websocket, settings.idle_s)
            except TimeoutError:
                continue

    line.answer({"type": "welcome", **service.public()})
    watching = await run_in_threadpool(service.keeper.live().watch, viewer.samples)
    viewer.feed.close = watching.close
    service.hub.viewers.add(line)
    try:
        await carry(line, "owner", service, listen)
    finally:
        service.hub.viewers.discard(line)
    return None
