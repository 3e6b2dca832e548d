"""The web application of a service: routes, WebSockets, pages, errors, and what runs beside."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from gazeveil import __version__
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.errors import Denied, LedgerError, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.policy import NAME_PATTERN, NAMES
from gazeveil.gatekeeper.service import app_api, owner_api
from gazeveil.gatekeeper.service.app_socket import stream
from gazeveil.gatekeeper.service.guard import RequestMiddleware, answer_page, problem
from gazeveil.gatekeeper.service.live import live
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.tracker_socket import tracker

#: HTTP status of a refusal; what is not listed is 403.
STATUS = {"unknown": 404, "changed": 409, "rate": 429, "ledger": 503, "closed": 503}

#: Headers that a status wants beside its sentence.
_HEADERS = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "60"}}

#: Code and sentence of what the framework refuses.
_HTTP = {
    400: ("request", "The body cannot be read."),
    404: ("unknown", "There is no such page."),
    405: ("method", "This path does not take this method."),
}

_LEDGER = "The ledger cannot be reached now, so nothing is given. Try again later."

health = APIRouter(tags=["open"])


def _health(request: Request) -> dict[str, Any]:
    service = app_api.service_of(request)
    reason = service.why_not_ready()
    return {
        "live": True,
        "ready": reason is None,
        "database": service.database_up,
        "tracker": service.tracker_input.connected,
        "version": __version__,
        "reason": reason,
    }


@health.get("/health")
async def live_page(request: Request) -> dict[str, Any]:
    """Whether the service runs; `ready` says whether it can give anything now, and `reason` why
    not and what to do.
    """
    return _health(request)


@health.get("/health/ready")
async def ready_page(request: Request) -> JSONResponse:
    """The same, with status 503 while the service cannot give anything."""
    shown = _health(request)
    return JSONResponse(shown, 200 if shown["ready"] else 503)


def build(service: Service) -> ASGIApp:
    """The application of a service, with the middleware around it."""
    app = FastAPI(
        title="Gazeveil Gatekeeper",
        version=__version__,
        description=(
            "Gaze for apps that are not trusted: areas, events, tiles and protected samples, never"
            " raw gaze. Samples and events come over the WebSocket /v1/stream."
        ),
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    for router in (app_api.router, owner_api.router, owner_api.login, health):
        app.include_router(router)
    for kind in (
        Refused,
        Denied,
        LedgerError,
        ParameterError,
        RequestValidationError,
        HTTPException,
        Exception,
    ):
        app.exception_handler(kind)(_answer_error)
    # Made once, because a stranger may ask for it again and again.
    description = json.dumps(app.openapi(), separators=(",", ":")).encode()
    app.router.routes += [
        Route("/openapi.json", partial(_described, description)),
        WebSocketRoute("/v1/stream", stream),
        WebSocketRoute("/v1/tracker", tracker),
        WebSocketRoute("/v1/live", live),
        Route("/{path:path}", answer_page),
    ]
    return RequestMiddleware(
        app, service.settings, service.origins, service.rate_limiter.admit, service.page_host
    )


async def _described(description: bytes, _: Request) -> Response:
    return Response(description, media_type="application/json")


async def _answer_error(_: Request, error: Any) -> JSONResponse:
    """Every error in one shape: a word and a sentence, which never quote what came."""
    if isinstance(error, Refused):
        return problem(error.status, error.code, error.reason, _HEADERS.get(error.status))
    if isinstance(error, Denied):
        return problem(STATUS.get(error.code, 403), error.code, error.reason)
    if isinstance(error, LedgerError):
        return problem(503, "ledger", _LEDGER)
    if isinstance(error, ParameterError):
        return problem(422, "parameter", str(error))
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        code, reason = _HTTP.get(error.status_code, ("request", "The request cannot be answered."))
        return problem(error.status_code, code, reason, dict(error.headers or {}))
    LOG.error("a request failed by a mistake of ours", exc_info=error)
    return problem(500, "internal", "The service made a mistake. Nothing was given.")


def _invalid(error: RequestValidationError) -> JSONResponse:
    """The parser's own words quote the body; only where and what kind is told."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(400, "json", "The body is not JSON. Send one JSON object.")
    where = ".".join(str(part) for part in first["loc"])[:100]
    context = first.get("ctx", {})
    allowed = context.get("expected")  # of our own schema
    hint = f"Allowed: {str(allowed)[:200]}." if isinstance(allowed, str) else "See /openapi.json."
    hint = f"A name has {NAMES}." if context.get("pattern") == NAME_PATTERN else hint
    return problem(422, "value", f"The value at '{where}' is not allowed. {hint}")


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the tracker and what happens by the clock beside the application, then end all of it."""
    service: Service = app.state.service
    service.broadcaster.loop = asyncio.get_running_loop()
    work = [service.watch(), service.watch_ledger()]
    if service.tracker is not None:
        work.append(service.tracker_input.run(service.tracker, lambda: service.stopping))
    if service.settings.audit_days is not None:
        work.append(service.keep_audit(service.settings.audit_days))
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    for task in tasks:
        task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        service.stopping = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.close()


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        LOG.error("a part of the service has failed", exc_info=task.exception())
