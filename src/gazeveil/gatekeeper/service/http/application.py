"""The web application of a service: routes, WebSockets, pages and what runs beside them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Scope

from gazeveil import __version__
from gazeveil.gatekeeper.ledger.audit.retention import retain
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.http import api, device_api, open_pages, owner, owner_session
from gazeveil.gatekeeper.service.http.error_handlers import add_error_handlers
from gazeveil.gatekeeper.service.http.middleware import RequestMiddleware
from gazeveil.gatekeeper.service.http.pages import WEB, Pages
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets.app_socket import stream
from gazeveil.gatekeeper.service.sockets.live import live
from gazeveil.gatekeeper.service.sockets.tracker_socket import tracker

_DESCRIBED: list[bytes] = []

_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


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
    for router in (
        api.router,
        owner.router,
        device_api.router,
        owner_session.router,
        owner_session.login,
        open_pages.router,
    ):
        app.include_router(router)
    add_error_handlers(app)
    app.router.routes += [
        Route("/openapi.json", partial(_description, _described(app))),
        WebSocketRoute("/v1/stream", stream),
        WebSocketRoute("/v1/tracker", tracker),
        WebSocketRoute("/v1/live", live),
        Mount("/", Pages(directory=WEB, html=True, check_dir=False)),
    ]

    def count(scope: Scope, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "") or "other"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        service.metrics.requests.labels(method, path, str(status)).inc()
        ms = round(seconds * 1000, 2)
        shown = {"method": scope["method"][:16], "route": path, "status": status, "ms": ms}
        LOG.debug("request", extra=shown)

    return RequestMiddleware(
        app, service.settings, service.origins, count, service.rate_limiter.admit
    )


def _described(app: FastAPI) -> bytes:
    """The description of the interface, the same for every service: made once, because a stranger
    may ask for it again and again.
    """
    if not _DESCRIBED:
        _DESCRIBED.append(json.dumps(app.openapi(), separators=(",", ":")).encode())
    return _DESCRIBED[0]


async def _description(body: bytes, _: Request) -> Response:
    return Response(body, media_type="application/json")


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the tracker and what happens by the clock beside the application, then end all of it."""
    service: Service = app.state.service
    service.broadcaster.loop = asyncio.get_running_loop()
    work = [service.watch()]
    if service.tracker is not None:
        work.append(service.tracker_input.run(service.tracker, lambda: service.stopping))
    if service.settings.audit_days is not None:
        work.append(retain(service.audit, service.settings.audit_days))
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
