"""`/v1/tracker`: the channel on which a tracker brings gaze: over the Unix socket as the service's
own user, or with a token of its own.

There is one tracker at a time. It says hello with its token and, if it likes, its rate and space,
which must be those the service was started with; then it sends binary batches, JSON samples or
OpenXR poses, and `confirm` where it sees the wearer's gesture for a choice. What comes while a
block is worked off goes together as the next; when much waits no more is read, so a tracker that is
too fast is slowed down by the socket. Errors never quote what came.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Literal

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.http.limits import depth
from gazeveil.gatekeeper.service.http.middleware import address
from gazeveil.gatekeeper.service.service import OWN_CHANNEL, Service
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.first_message import (
    LEFT,
    PATIENCE,
    UNKNOWN,
    admit,
    first_message,
    from_own_page,
    receive,
    refuse,
    refusing_bad_messages,
    say_and_close,
)
from gazeveil.gatekeeper.service.sockets.local_socket import is_own, local_of


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
    settings, data = service.settings, await first_message(service, websocket)
    with refusing_bad_messages():
        if len(data) > settings.limits.message_bytes or _depth(data) > settings.limits.json_depth:
            raise DataError("The hello is too large.")
        hello = blocks.parse_json(data)
        own = is_own(local_of(websocket.scope))
        token = hello.get("token", "" if own else None)
        if hello.get("type") != "hello" or not isinstance(token, str):
            raise DataError("The first message must be a hello with the tracker's token.")
    if not from_own_page(service, websocket):
        raise Refused(403, "origin", "Pages of other origins are no trackers.")
    admit(service, websocket, token)
    if own and not token:
        service.peers.known(websocket.scope, "tracker")
    else:
        caller = await run_in_threadpool(service.callers.of_token, token, address(websocket.scope))
        if caller.role != "tracker":
            raise Refused(403, "role", "This needs the token of a tracker.")
    if settings.tracker not in OWN_CHANNEL:
        raise Refused(
            403,
            "tracker",
            "The service was started with another tracker. Start it with --tracker websocket.",
        )
    try:
        _fits(service, hello)
    except DataError as error:
        raise Refused(403, "message", str(error)) from None
    if service.tracker_input.taken or service.stopping:
        raise Refused(503, "busy", "There is a tracker already, or the service is stopping.")
    service.peers.accept(websocket.scope)


def _depth(data: str | bytes) -> int:
    return depth(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def _fits(service: Service, hello: dict[str, object]) -> None:
    rate_hz, space = hello.get("rate_hz"), hello.get("space")
    keeper = service.keeper
    if rate_hz is not None and (
        isinstance(rate_hz, bool)
        or not isinstance(rate_hz, int | float)
        or abs(rate_hz) > 1e9  # a whole number of JSON may be too large for a float
        or not math.isclose(rate_hz, keeper.rate_hz, rel_tol=0.02)
    ):
        raise Refused(
            403,
            "rate",
            f"The service was started for {keeper.rate_hz:g} Hz. Set GAZEVEIL_RATE_HZ to the"
            " tracker's rate.",
        )
    if (
        space is not None
        and blocks.parse_space({"kind": space} if isinstance(space, str) else space) != keeper.space
    ):
        raise Refused(
            403,
            "space",
            "The service was started for another space. Set GAZEVEIL_SCREEN to the tracker's"
            " screen, or leave it out for directions around the head.",
        )


async def _say(websocket: WebSocket, **message: object) -> None:
    await websocket.send_text(wire.encode(message).decode())


async def _samples(service: Service, websocket: WebSocket) -> None:
    """Push what comes until the tracker leaves."""
    source, loop = service.tracker_input, asyncio.get_running_loop()
    reason = "The tracker's token was replaced. Connect with the new one."
    source.taken = True
    source.hang_up = lambda: asyncio.run_coroutine_threadsafe(
        say_and_close(websocket, UNKNOWN, "token", reason), loop
    )
    source.there()
    service.metrics.connections.labels("tracker").inc()
    LOG.info("a tracker has come", extra={"tracker": service.settings.tracker})
    bad = 0
    try:
        await _say(websocket, type="welcome", **service.public())
        while not service.stopping:
            try:
                data = await receive(websocket, service.settings.limits.idle_s)
            except TimeoutError:
                await say_and_close(websocket, 1000, "idle", "No sample came for some time.")
                return
            try:
                if await _wearer(service, websocket, data):
                    continue
                block = _block(service, data)
            except DataError as error:
                bad += 1
                service.metrics.tracker_bad.inc()
                await source.settled()
                if bad >= PATIENCE:
                    await say_and_close(websocket, 1008, "message", str(error))
                    return
                await _say(websocket, type="error", code="message", reason=str(error))
                continue
            if isinstance(block, str):
                await source.confirm()
            elif block is None:
                await source.lost()
            elif len(block):
                source.there()
                await source.push(block)
    finally:
        source.taken = False
        source.hang_up = None
        service.metrics.connections.labels("tracker").dec()
        LOG.info("the tracker has left", extra={"tracker": service.settings.tracker})
        if not service.stopping:
            await source.lost()


async def _wearer(service: Service, websocket: WebSocket, data: str | bytes) -> bool:
    """Switch the wearer, where a message says so; samples before it are the last wearer's, samples
    after it the next one's.
    """
    if (
        isinstance(data, bytes)
        or '"wearer"' not in data
        or _depth(data) > service.settings.limits.json_depth
    ):
        return False
    message = blocks.parse_json(data)
    if message.get("type") != "wearer":
        return False
    name = message.get("name")
    if (
        "name" not in message
        or set(message) != {"type", "name"}
        or not (name is None or isinstance(name, str))
    ):
        raise DataError("A wearer message has a type and a name, which is a text or null.")
    try:
        await service.switch_wearer(name, stale=False)
    except ParameterError as error:
        raise DataError(str(error)) from None
    except LedgerError:
        reason = "The switch is not recorded, so nothing is given. Send it again."
        await _say(websocket, type="error", code="ledger", reason=reason)
        return True
    known = service.policy.wearer is not None
    await _say(websocket, type="wearer", name=service.keeper.wearer, known=known)
    return True


def _block(service: Service, data: str | bytes) -> blocks.Block | Literal["confirm"] | None:
    """A message as a block; None where it says that the gaze was lost, the word `confirm` where the
    wearer made that gesture.
    """
    if isinstance(data, bytes):
        return blocks.unpack(data).block
    if _depth(data) > service.settings.limits.json_depth:
        raise DataError("The message nests too deep.")
    message = blocks.parse_json(data)
    if message.get("type") == "lost":
        return None
    if message.get("type") == "confirm":
        return "confirm"
    return blocks.from_message(message)
