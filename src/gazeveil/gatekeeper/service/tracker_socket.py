"""`/v1/tracker`: the channel on which a tracker brings gaze: over the Unix socket as the service's
own user, or with the token in the home folder.

There is one tracker at a time. It says hello with its token and, if it likes, its rate and space,
which must be those the service was started with; then it sends the messages of
:mod:`gazeveil.gatekeeper.blocks`, and `{"type": "wearer", "name": ..}` where it knows
who wears the device. When much waits no more is read, so a tracker that is too fast is slowed down
by the socket. Errors never quote what came.
"""

from __future__ import annotations

import contextlib
import time

from starlette.websockets import WebSocket

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.blocks import Block, parse_json, read_message, why_refused
from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service import wire
from gazeveil.gatekeeper.service.accepting import (
    LEFT,
    PATIENCE,
    admit,
    first_message,
    from_own_page,
    receive,
    refuse,
    say_and_close,
)
from gazeveil.gatekeeper.service.peers import is_own, peer_of_scope
from gazeveil.gatekeeper.service.service import Service

#: Seconds without a sample after which the channel is free for another tracker.
IDLE_S = 120.0


async def tracker(websocket: WebSocket) -> None:
    """The tracker's WebSocket."""
    service: Service = websocket.app.state.service
    with contextlib.suppress(*LEFT):
        await websocket.accept()
        try:
            await _take_in(service, websocket)
        except Refused as refused:
            await refuse(websocket, refused)
            return
        await _samples(service, websocket)


async def _take_in(service: Service, websocket: WebSocket) -> None:
    """Hear the tracker's hello.

    Raises
    ------
    Refused
        Where it is no tracker of this service, or there is one already.
    """
    data, own = (
        await first_message(service, websocket),
        is_own(peer_of_scope(websocket.scope).local),
    )
    try:
        hello = parse_json(data)
    except DataError as error:
        raise Refused(401, "message", str(error)) from None
    token = hello.get("token", "" if own else None)
    if hello.get("type") != "hello" or not isinstance(token, str):
        reason = "The first message must be a hello with the tracker's token."
        raise Refused(401, "message", reason)
    if not from_own_page(service, websocket):
        raise Refused(403, "origin", "Pages of other origins are no trackers.")
    admit(service, websocket, token)
    if own and not token:
        service.peers.known(websocket.scope, "tracker")
    elif service.caller(token).role != "tracker":
        raise Refused(403, "role", "This needs the token of a tracker.")
    if service.tracker is not None:
        raise Refused(
            403,
            "tracker",
            "The service was started with another tracker. Start it with --tracker websocket.",
        )
    if reason := why_refused(hello, service.keeper.rate_hz, service.keeper.space):
        raise Refused(403, "message", reason)
    if service.tracker_input.taken or service.stopping:
        raise Refused(503, "busy", "There is a tracker already, or the service is stopping.")


async def _say(websocket: WebSocket, **message: object) -> None:
    await websocket.send_text(wire.encode(message).decode())


async def _samples(service: Service, websocket: WebSocket) -> None:
    """Push what comes until the tracker leaves."""
    source, bad = service.tracker_input, 0
    source.taken = True
    source.connected = True
    LOG.info("a tracker has come")

    try:
        await _say(websocket, type="welcome", **service.public())
        while not service.stopping:
            try:
                data = await receive(websocket, IDLE_S, source.take)
            except TimeoutError:
                if time.monotonic() - source.came_s < IDLE_S:
                    continue
                await say_and_close(websocket, 1000, "idle", "No sample came for some time.")
                return
            try:
                if isinstance(data, str) and '"wearer"' in data:
                    await _wearer(service, websocket, data)
                    continue
                received = read_message(data, service.keeper.space)
            except DataError as error:
                bad += 1
                await source.settled()
                if bad >= PATIENCE:
                    await say_and_close(websocket, 1008, "message", str(error))
                    return
                await _say(websocket, type="error", code="message", reason=str(error))
                continue
            if isinstance(received, Block) and len(received):
                await source.push(received)
            elif received == "lost":
                await source.lost()
            elif received == "confirm":
                await source.confirm()
            elif received == "ping":
                await _say(websocket, type="pong")
    finally:
        source.taken = False
        LOG.info("the tracker has left")
        if not service.stopping:
            await source.lost()


async def _wearer(service: Service, websocket: WebSocket, data: str) -> None:
    """Switch the wearer; samples before the message are the last wearer's, samples after it the
    next one's.
    """
    message = parse_json(data)
    name = message.get("name")
    if set(message) != {"type", "name"} or not (name is None or isinstance(name, str)):
        raise DataError("A wearer message has a type and a name, which is a text or null.")
    try:
        await service.switch_wearer(name, stale=False)
    except ParameterError as error:
        raise DataError(str(error)) from None
    except LedgerError:
        reason = "The switch is not recorded, so nothing is given. Send it again."
        await _say(websocket, type="error", code="ledger", reason=reason)
        return
    await _say(
        websocket,
        type="wearer",
        name=service.keeper.wearer,
        known=service.policy.wearer is not None,
    )
