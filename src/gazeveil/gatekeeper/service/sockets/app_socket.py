"""`/v1/stream`: the WebSocket of an app, from its hello to its last word.

The first message is the app's token, because browsers cannot set headers. Then the app subscribes;
each subscription is answered with `subscribed` and its guarantee, or `refused` with the reason.
Messages that cannot be read are answered with `error`; after a few the connection is closed. The
core decides what may be had; this file only carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.core.device_state import SaccadeStart
from gazeveil.gatekeeper.core.event_log import PublicEvent
from gazeveil.gatekeeper.core.selection import Target
from gazeveil.gatekeeper.errors import Denied, LedgerError, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.credentials.callers import Caller
from gazeveil.gatekeeper.service.http.limits import Buckets
from gazeveil.gatekeeper.service.http.middleware import address, same_origin
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.connections import Channel, Connection, resume
from gazeveil.gatekeeper.service.sockets.local_socket import local_of

#: Messages that cannot be read before a connection is closed.
PATIENCE = 5

#: WebSocket close codes: no token or a wrong one, not allowed, too much.
UNKNOWN, FORBIDDEN, BUSY = 4001, 4003, 4029


class Gone(Exception):  # noqa: N818 - not an error: the other side has left
    """The other side has left."""


#: What a socket raises whose other side has left, or that is closed already.
LEFT = (Gone, WebSocketDisconnect, RuntimeError, OSError)


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
        raise Gone
    data: str | bytes | None = message.get("text")
    return data if data is not None else message.get("bytes") or b""


async def say_and_close(websocket: WebSocket, code: int, word: str, reason: str) -> None:
    """Tell why, then close."""
    await websocket.send_text(
        wire.encode({"type": "error", "code": word, "reason": reason}).decode()
    )
    await websocket.close(code, word)


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
            await asyncio.wait({connection.done}, timeout=service.settings.hello_s)
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


class AppSession:
    """One app on one WebSocket.

    Parameters
    ----------
    service : Service
        Everything.
    caller : Caller
        Who it is.
    websocket : WebSocket
        The connection, accepted.
    """

    def __init__(self, service: Service, caller: Caller, websocket: WebSocket) -> None:
        self.service, self.caller, self.websocket = service, caller, websocket
        self.connection = Connection(
            service.broadcaster,
            caller.app,
            websocket.send,
            service.settings.queue_messages,
            websocket.scope.get("state", {}).get("send_now"),
        )
        self.connection.expires_ns = caller.expires_ns
        self.commands = Buckets(service.settings.commands_per_minute)
        self.bad = 0

    async def listen(self) -> None:
        """Read commands until the app leaves or asks for too much."""
        settings = self.service.settings
        heard = time.monotonic()
        while self.connection.closing is None:
            await self.connection.accepts_commands.wait()
            try:
                text = await receive(self.websocket, settings.idle_s)
            except TimeoutError:
                if self.connection.channels or time.monotonic() - heard < settings.idle_s:
                    continue
                self.connection.answer(
                    {
                        "type": "error",
                        "code": "idle",
                        "reason": "Nothing was asked for some time. Connect again when needed.",
                    }
                )
                self.connection.hang_up(1000, "idle")
                return
            heard = time.monotonic()
            if not self.commands.take("commands"):
                self.connection.answer(
                    {
                        "type": "error",
                        "code": "rate",
                        "reason": (
                            f"A connection may send {settings.commands_per_minute} messages a"
                            " minute. Wait."
                        ),
                    }
                )
                self.connection.hang_up(BUSY, "rate")
                return
            try:
                command = wire.read_command(text, settings.message_bytes, settings.json_depth)
            except wire.BadMessageError as error:
                self.bad += 1
                self.connection.answer({"type": "error", "code": "message", "reason": str(error)})
                if self.bad >= PATIENCE:
                    self.connection.hang_up(1008, "message")
                    return
                continue
            await self._obey(command)

    async def _obey(self, command: wire.Command) -> None:
        if isinstance(command, wire.Ping):
            self.connection.answer({"type": "pong"})
        elif isinstance(command, wire.Unsubscribe):
            await self._unsubscribe(command.id)
        elif isinstance(command, wire.Subscribe):
            await self._subscribe(command)
        else:
            self.connection.answer(
                {
                    "type": "error",
                    "code": "message",
                    "reason": "The connection has said hello already.",
                }
            )

    async def _unsubscribe(self, number: int) -> None:
        channel = self.connection.channels.get(number)
        if channel is None:
            self.connection.answer(
                {
                    "type": "refused",
                    "id": number,
                    "code": "unknown",
                    "reason": f"There is no subscription {number}.",
                }
            )
            return
        if channel.close is not None:
            await run_in_threadpool(channel.close)
        self.connection.end(channel, "unsubscribed", "The app has ended it.")

    async def _subscribe(self, wish: wire.Subscribe) -> None:
        connection = self.connection
        if wish.id in connection.channels:
            return self._refuse(
                wish.id, "unknown", f"Subscription {wish.id} is open already. Choose another id."
            )
        if len(connection.channels) >= self.service.settings.subscriptions:
            return self._refuse(
                wish.id,
                "rate",
                f"A connection may hold {self.service.settings.subscriptions} subscriptions. End"
                " one first.",
            )
        if wish.what == "samples" and not wish.mechanism:
            return self._refuse(
                wish.id,
                "mechanism",
                "Samples are given only through a mechanism. Name one that is granted, as GET"
                " /v1/me lists them.",
            )
        channel = Channel(
            connection,
            wish.id,
            wish.what,
            wish.mechanism if wish.what == "samples" else None,
            wish.encoding == "binary",
            wish.batch,
        )
        connection.channels[wish.id] = channel
        try:
            guarantee = await run_in_threadpool(self._open, channel, wish)
        except Denied as error:
            connection.channels.pop(wish.id, None)
            return self._refuse(wish.id, error.code, error.reason)
        except LedgerError:
            connection.channels.pop(wish.id, None)
            return self._refuse(
                wish.id,
                "ledger",
                "The ledger cannot be written now, so nothing is given. Try again later.",
            )
        except GazeveilError as error:
            connection.channels.pop(wish.id, None)
            return self._refuse(wish.id, "parameter", str(error))
        message: dict[str, object] = {"type": "subscribed", "id": wish.id, "what": wish.what}
        if guarantee is not None:
            message["guarantee"] = guarantee
        connection.announce(channel, message)
        return None

    def _refuse(self, number: int, code: str, reason: str) -> None:
        self.service.metrics.refusals.labels(code).inc()
        self.connection.answer({"type": "refused", "id": number, "code": code, "reason": reason})

    def _open(self, channel: Channel, wish: wire.Subscribe) -> dict[str, object] | None:
        app = self.service.keeper.app(self.caller.app)
        guarantee = None
        if wish.what == "samples":
            assert wish.mechanism is not None
            stream = app.open_private_stream(wish.mechanism, channel.samples)
            guarantee = channel.guarantee = self.service.guarantee(stream.guarantee)
            opened: Any = stream
        elif wish.what == "tile":
            opened = app.on_tile(partial(_tile, channel))
        elif wish.what == "select":
            targets = [
                Target(one.name, one.x_deg, one.y_deg, one.width_deg, one.height_deg)
                for one in wish.targets
            ]
            opened = app.select(targets, channel.chosen, by=wish.by, dwell_ms=wish.dwell_ms)
        else:
            opened = app.add_event_listener(wish.what, partial(_event, channel), mode=wish.mode)
        channel.close = opened.close
        opened.on_end(lambda reason, code: self.connection.end(channel, code, reason))
        return guarantee


def _tile(channel: Channel, tile: int | None, t_ms: int) -> None:
    channel.message({"type": "tile", "tile": tile, "t_ms": t_ms})


def _event(channel: Channel, event: PublicEvent | SaccadeStart) -> None:
    if isinstance(event, SaccadeStart):
        channel.message({"type": "saccade-start", "t_ms": event.t_ms})
        return
    place = {
        "x_deg": event.x_deg,
        "y_deg": event.y_deg,
        "t_ms": event.t_ms,
        "duration_ms": event.duration_ms,
    }
    channel.message({"kind": event.kind, "number": event.number, **place})


async def stream(websocket: WebSocket) -> None:
    """The app's WebSocket."""
    with contextlib.suppress(*LEFT):
        await _stream(websocket)


async def _stream(websocket: WebSocket) -> None:
    service: Service = websocket.app.state.service
    settings = service.settings
    await websocket.accept()
    if service.stopping or len(service.broadcaster.connections) >= settings.connections:
        return await say_and_close(
            websocket,
            BUSY,
            "busy",
            "There are too many connections, or the service is stopping. Try again later.",
        )
    try:
        text = await receive(websocket, settings.hello_s)
        command = wire.read_command(text, settings.message_bytes, settings.json_depth)
    except TimeoutError:
        return await say_and_close(
            websocket, UNKNOWN, "hello", f"No hello came within {settings.hello_s:g} seconds."
        )
    except wire.BadMessageError as error:
        return await say_and_close(websocket, UNKNOWN, "message", str(error))
    if not isinstance(command, wire.Hello):
        return await say_and_close(
            websocket, UNKNOWN, "hello", "The first message must be a hello with the app's token."
        )
    origin = (
        None
        if same_origin(websocket.headers, websocket.url.scheme, settings.public_origin)
        else websocket.headers.get("origin")
    )
    try:
        if not service.rate_limiter.hello(websocket.scope, command.token):
            raise Refused(429, "rate", "There are too many requests. Wait a minute.")
        caller = await run_in_threadpool(
            service.callers.of_app,
            command.token,
            address(websocket.scope),
            origin,
            local_of(websocket.scope),
        )
    except Refused as refused:
        code = (
            UNKNOWN
            if refused.status == 401
            else BUSY
            if refused.status in (429, 503)
            else FORBIDDEN
        )
        return await say_and_close(websocket, code, refused.code, refused.reason)
    if len(service.broadcaster.of(caller.app)) >= settings.connections_per_app:
        return await say_and_close(
            websocket,
            BUSY,
            "busy",
            f"An app may have {settings.connections_per_app} connections. Close one first.",
        )
    service.peers.accept(websocket.scope)
    session = AppSession(service, caller, websocket)
    session.connection.answer({"type": "welcome", "app": caller.app, **service.public()})
    service.keeper.connected(caller.app)
    try:
        await carry(session.connection, "app", service, session.listen)
    finally:
        service.keeper.disconnected(caller.app)
    return None
