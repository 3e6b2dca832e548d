"""`/v1/stream`: the WebSocket of an app, from its hello to its last word.

After its hello the app subscribes; each subscription is answered with `subscribed` and its
guarantee, or `refused` with the reason. Messages that cannot be read are answered with `error`;
after a few the connection is closed. The core decides what may be had; this file only carries.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.core.events import PublicEvent, SaccadeStart
from gazeveil.gatekeeper.errors import Denied, LedgerError, Refused
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.accepting import (
    BUSY,
    LEFT,
    PATIENCE,
    UNKNOWN,
    admit,
    carry,
    connect,
    from_own_page,
    hello_of,
    receive,
    refuse,
)
from gazeveil.gatekeeper.service.connections import Channel
from gazeveil.gatekeeper.service.credentials import Caller
from gazeveil.gatekeeper.service.peers import MOST_OF_AN_APP, peer_of_scope
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.trackers.simulated import MouseTracker


class AppSession:
    """One app on one accepted WebSocket, with the token of its hello; `origin` is that of the page
    that opened it, where it is not the service's own.
    """

    def __init__(
        self, service: Service, caller: Caller, websocket: WebSocket, token: str, origin: str | None
    ) -> None:
        self.service, self.caller, self.websocket = service, caller, websocket
        self.token, self.origin = token, origin
        self.connection = connect(service, websocket, caller.app, caller.expires_ns)
        if not caller.credential:
            self.connection.local = peer_of_scope(websocket.scope).local
        self.bad = 0
        tracker = service.tracker
        self.mouse = tracker if isinstance(tracker, MouseTracker) else None

    async def listen(self) -> None:
        """Read commands until the app leaves or asks for too much."""
        limits = self.service.settings.limits
        # A revocation during the handshake did not close this connection.
        local, service = self.connection.local, self.service
        known = service.tokens.holder(self.token) if local is None else service.local_app(local)
        if known is None or (local is not None and known != self.caller.app):
            return self._leave(
                "token", "The token was taken away or replaced. Ask the owner.", UNKNOWN
            )
        while self.connection.closing is None:
            await self.connection.accepts_commands.wait()
            # However long it says nothing: it may wait for what is told unasked.
            text = await receive(self.websocket, None)
            try:
                command = wire.read_command(text, limits.json_depth)
            except wire.BadMessageError as error:
                self.bad += 1
                if self.bad >= PATIENCE:
                    return self._leave("message", str(error), 1008)
                self._error("message", str(error))
                continue
            if isinstance(command, wire.Mouse) and self.mouse is not None:
                await self._point(command, self.mouse)  # pointers come often: no commands
            # Counted for all its connections, or an app with a hundred of them has a hundred
            # times as much.
            elif self.service.commands.take(self.caller.app):
                await self._obey(command)
            else:
                most = limits.commands_per_minute
                return self._leave("rate", f"An app may send {most} messages a minute. Wait.", BUSY)
        return None

    def _leave(self, code: str, reason: str, close_code: int) -> None:
        self._error(code, reason)
        self.connection.hang_up(close_code, code)

    def _error(self, code: str, reason: str) -> None:
        self.connection.answer({"type": "error", "code": code, "reason": reason})

    async def _obey(self, command: wire.Command) -> None:
        if isinstance(command, wire.Ping):
            self.connection.answer({"type": "pong"})
        elif isinstance(command, wire.Unsubscribe):
            await self._unsubscribe(command.id)
        elif isinstance(command, wire.Subscribe):
            await self._subscribe(command)
        elif isinstance(command, wire.Move):
            await run_in_threadpool(self._move, command)
        elif isinstance(command, wire.Mouse):
            self._error("message", "The tracker of this service is no mouse.")
        else:
            self._error("message", "The connection has said hello already.")

    async def _point(self, command: wire.Mouse, mouse: MouseTracker) -> None:
        """Take where the pointer is, as the tracker's gaze, or a click, as the wearer's gesture."""
        if command.confirm:
            await self.service.tracker_input.confirm()
        else:
            mouse.point(command.x_deg, command.y_deg)

    def _move(self, command: wire.Move) -> None:
        channel = self.connection.channels.get(command.id)
        app = self.service.keeper.app(self.caller.app, self.origin)
        try:
            if channel is None or channel.opened is None:
                raise Denied("unknown", f"There is no subscription {command.id}.")
            app.move(channel.opened, command.targets)
        except Denied as denied:
            self._refuse(command.id, denied.code, denied.reason)

    async def _unsubscribe(self, number: int) -> None:
        channel = self.connection.channels.get(number)
        if channel is None:
            return self._refuse(number, "unknown", f"There is no subscription {number}.")
        if channel.opened is not None:
            await run_in_threadpool(channel.opened.close)
        self.connection.end(channel, "unsubscribed", "The app has ended it.")
        return None

    async def _subscribe(self, wish: wire.Subscribe) -> None:
        connection, most = self.connection, self.service.settings.limits.subscriptions_per_app
        if wish.id in connection.channels:
            return self._refuse(
                wish.id, "unknown", f"Subscription {wish.id} is open already. Choose another id."
            )
        # An event goes to each of them before the next sample is looked at.
        if sum(len(one.channels) for one in self.service.broadcaster.of(self.caller.app)) >= most:
            return self._refuse(
                wish.id, "rate", f"An app may hold {most} subscriptions. End one first."
            )
        mechanism = wish.mechanism if wish.what == "samples" else None
        if wish.what == "samples" and not mechanism:
            grant = self.service.policy.apps.get(self.caller.app, Grant())
            mechanism = next(iter(grant.mechanisms), "")
        channel = Channel(
            connection, wish.id, wish.what, mechanism, wish.encoding == "binary", wish.batch
        )
        connection.channels[wish.id] = channel
        try:
            guarantee = await run_in_threadpool(self._open, channel, wish)
        except GazeveilError as error:
            connection.channels.pop(wish.id, None)
            return self._refuse(wish.id, *_why_refused(error))
        message: dict[str, object] = {"type": "subscribed", "id": wish.id, "what": wish.what}
        if guarantee is not None:
            message |= {"guarantee": guarantee, "mechanism": mechanism}
        connection.announce(channel, message)
        return None

    def _refuse(self, number: int, code: str, reason: str) -> None:
        self.connection.answer({"type": "refused", "id": number, "code": code, "reason": reason})

    def _open(self, channel: Channel, wish: wire.Subscribe) -> dict[str, object] | None:
        # With its origin: a page that the owner takes off the app's list is shut out at once.
        app = self.service.keeper.app(self.caller.app, self.origin)
        guarantee = None
        if wish.what == "samples":
            stream = app.open_private_stream(channel.mechanism or "", channel.samples)
            guarantee = channel.guarantee = self.service.guarantee(stream.guarantee)
            opened: Any = stream
        elif wish.what == "tile":
            opened = app.on_tile(partial(_place, channel, "type", "tile"))
        elif wish.what == "select":
            opened = app.select(wish.targets, channel.chosen, wish.by, wish.dwell_ms)
        elif wish.what == "areas":
            opened = app.observe(
                wish.targets,
                lambda name, metrics: channel.message(
                    {"kind": "area", "name": name, **asdict(metrics)}
                ),
            )
        elif wish.what == "region":
            opened = app.on_region(partial(_place, channel, "kind", "region"))
        else:
            opened = app.add_event_listener(wish.what, partial(_event, channel), mode=wish.mode)
        channel.opened = opened
        if channel.ended:
            # The connection broke meanwhile: an open subscription would go on and be charged.
            opened.close()
        opened.on_end(lambda reason, code: self.connection.end(channel, code, reason))
        return guarantee


def _why_refused(error: GazeveilError) -> tuple[str, str]:
    """Code and sentence for a subscription that the core did not open."""
    if isinstance(error, Denied):
        return error.code, error.reason
    if isinstance(error, LedgerError):
        reason = "The ledger cannot be written now, so nothing is given. Try again later."
        return "ledger", reason
    return "parameter", str(error)


def _place(channel: Channel, field: str, what: str, place: str | int | None, t_ms: int) -> None:
    channel.message({field: what, what: place, "t_ms": t_ms})


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
    service: Service = websocket.app.state.service
    with contextlib.suppress(*LEFT):
        await websocket.accept()
        try:
            caller, token, origin = await _caller(service, websocket)
        except Refused as refused:
            await refuse(websocket, refused)
            return
        session = AppSession(service, caller, websocket, token, origin)
        welcome = {"app": caller.app, "t_ms": service.t_ms(caller.app), **service.public()}
        welcome["tracker"] = service.tracker_here()
        session.connection.answer({"type": "welcome", **welcome})
        service.tell_end(session.connection)
        if service.tracker_input.paused and service.state(caller.app) == "granted":
            session.connection.answer(service.paused())
        service.keeper.connected(caller.app)
        try:
            await carry(session.connection, service, session.listen)
        finally:
            service.keeper.disconnected(caller.app)


async def _caller(service: Service, websocket: WebSocket) -> tuple[Caller, str, str | None]:
    """The app that connects, its token, and the origin of its page, where it is not the service's
    own.

    Raises
    ------
    Refused
        Where it may not.
    """
    if service.stopping or len(service.broadcaster.connections) >= service.settings.connections:
        raise Refused(
            503,
            "busy",
            "There are too many connections, or the service is stopping. Try again later.",
        )
    hello = await hello_of(service, websocket)
    origin = None if from_own_page(service, websocket) else websocket.headers.get("origin")
    admit(service, websocket, hello.token)
    caller = service.app_caller(hello.token, origin, peer_of_scope(websocket.scope).local)
    if caller.newcomer:
        raise Refused(403, "no-grant", "The wearer has not answered yet. Wait, or ask again.")
    if len(service.broadcaster.of(caller.app)) >= MOST_OF_AN_APP:
        reason = f"An app may have {MOST_OF_AN_APP} connections. Close one first."
        raise Refused(503, "busy", reason)
    return caller, hello.token, origin
