"""`/v1/tracker`: the channel on which a tracker brings gaze, with a token of its own.

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
from gazeveil.gatekeeper.service.http.middleware import address, same_origin
from gazeveil.gatekeeper.service.service import OWN_CHANNEL, Service
from gazeveil.gatekeeper.service.sockets import wire
from gazeveil.gatekeeper.service.sockets.app_socket import (
    BUSY,
    FORBIDDEN,
    LEFT,
    PATIENCE,
    UNKNOWN,
    receive,
    say_and_close,
)


async def tracker(websocket: WebSocket) -> None:
    """The tracker's WebSocket."""
    service: Service = websocket.app.state.service
    with contextlib.suppress(*LEFT):
        await websocket.accept()
        if await _hello(service, websocket):
            await _samples(service, websocket)


async def _hello(service: Service, websocket: WebSocket) -> bool:
    """Take the tracker in; False where it was refused."""
    settings = service.settings
    try:
        data = await receive(websocket, settings.hello_s)
        if (
            len(data) > settings.message_bytes
            or depth(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
            > settings.json_depth
        ):
            raise DataError("The hello is too large.")
        hello = blocks.parse_json(data)
        if hello.get("type") != "hello" or not isinstance(hello.get("token"), str):
            raise DataError("The first message must be a hello with the tracker's token.")
    except TimeoutError:
        await say_and_close(
            websocket, UNKNOWN, "hello", f"No hello came within {settings.hello_s:g} seconds."
        )
        return False
    except DataError as error:
        await say_and_close(websocket, UNKNOWN, "message", str(error))
        return False
    try:
        if not same_origin(websocket.headers, websocket.url.scheme, settings.public_origin):
            raise Refused(403, "origin", "Pages of other origins are no trackers.")
        if not service.rate_limiter.hello(websocket.scope, str(hello["token"])):
            raise Refused(429, "rate", "There are too many requests. Wait a minute.")
        caller = await run_in_threadpool(
            service.callers.of_token, str(hello["token"]), address(websocket.scope)
        )
        if caller.role != "tracker":
            raise Refused(403, "role", "This needs the token of a tracker.")
        if settings.tracker not in OWN_CHANNEL:
            raise Refused(
                403,
                "tracker",
                "The service was started with another tracker. Start it with --tracker websocket.",
            )
        _fits(service, hello)
    except DataError as error:
        await say_and_close(websocket, FORBIDDEN, "message", str(error))
        return False
    except Refused as refused:
        code = (
            UNKNOWN
            if refused.status == 401
            else BUSY
            if refused.status in (429, 503)
            else FORBIDDEN
        )
        await say_and_close(websocket, code, refused.code, refused.reason)
        return False
    if service.tracker_input.taken or service.stopping:
        await say_and_close(
            websocket, BUSY, "busy", "There is a tracker already, or the service is stopping."
        )
        return False
    service.peers.accept(websocket.scope)
    return True


def _fits(service: Service, hello: dict[str, object]) -> None:
    rate_hz, space = hello.get("rate_hz"), hello.get("space")
    keeper = service.keeper
    if rate_hz is not None and (
        isinstance(rate_hz, bool)
        or not isinstance(rate_hz, int | float)
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


async def _samples(service: Service, websocket: WebSocket) -> None:
    """Push what comes until the tracker leaves."""
    service.tracker_input.taken = True
    loop = asyncio.get_running_loop()
    reason = "The tracker's token was replaced. Connect with the new one."
    service.tracker_input.hang_up = lambda: asyncio.run_coroutine_threadsafe(
        say_and_close(websocket, UNKNOWN, "token", reason), loop
    )
    service.tracker_input.there()
    service.metrics.connections.labels("tracker").inc()
    LOG.info("a tracker has come", extra={"tracker": service.settings.tracker})
    bad = 0
    try:
        await websocket.send_text(wire.encode({"type": "welcome", **service.public()}).decode())
        while not service.stopping:
            try:
                data = await receive(websocket, service.settings.idle_s)
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
                await service.tracker_input.settled()
                if bad >= PATIENCE:
                    await say_and_close(websocket, 1008, "message", str(error))
                    return
                await websocket.send_text(
                    wire.encode({"type": "error", "code": "message", "reason": str(error)}).decode()
                )
                continue
            if isinstance(block, str):
                await service.tracker_input.confirm()
            elif block is None:
                await service.tracker_input.lost()
            elif len(block):
                service.tracker_input.there()
                await service.tracker_input.push(block)
    finally:
        service.tracker_input.taken = False
        service.tracker_input.hang_up = None
        service.metrics.connections.labels("tracker").dec()
        LOG.info("the tracker has left", extra={"tracker": service.settings.tracker})
        if not service.stopping:
            await service.tracker_input.lost()


async def _wearer(service: Service, websocket: WebSocket, data: str | bytes) -> bool:
    """Switch the wearer, where a message says so; samples before it are the last wearer's, samples
    after it the next one's.
    """
    if (
        isinstance(data, bytes)
        or '"wearer"' not in data
        or depth(data.encode("utf-8", "surrogatepass")) > service.settings.json_depth
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
        await websocket.send_text(
            wire.encode(
                {
                    "type": "error",
                    "code": "ledger",
                    "reason": "The switch is not recorded, so nothing is given. Send it again.",
                }
            ).decode()
        )
        return True
    await websocket.send_text(
        wire.encode(
            {
                "type": "wearer",
                "name": service.keeper.wearer,
                "known": service.policy.wearer is not None,
            }
        ).decode()
    )
    return True


def _block(service: Service, data: str | bytes) -> blocks.Block | Literal["confirm"] | None:
    """A message as a block; None where it says that the gaze was lost, the word `confirm` where the
    wearer made that gesture.
    """
    if isinstance(data, bytes):
        return blocks.unpack(data).block
    if depth(data.encode("utf-8", "surrogatepass")) > service.settings.json_depth:
        raise DataError("The message nests too deep.")
    message = blocks.parse_json(data)
    if message.get("type") == "lost":
        return None
    if message.get("type") == "confirm":
        return "confirm"
    return blocks.from_message(message)
