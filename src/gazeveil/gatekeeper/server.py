"""The web application and the process around it: routes, one shape of errors, pages, start and stop.

On SIGTERM and SIGINT the service takes no more connections, tells every subscriber `ended` with the code `shutdown`, closes the sockets, ends
the tracker, then the core, then the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper import api, bodies, owner
from gazeveil.gatekeeper.certificate import weakest
from gazeveil.gatekeeper.core import Gatekeeper
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.guard import Guard, address, problem
from gazeveil.gatekeeper.ingest import tracker
from gazeveil.gatekeeper.ledger import Ledger
from gazeveil.gatekeeper.live import live
from gazeveil.gatekeeper.logs import LOG, set_up
from gazeveil.gatekeeper.metrics_page import CONTENT_TYPE
from gazeveil.gatekeeper.policy import Grant, Policy
from gazeveil.gatekeeper.presets import PRESETS
from gazeveil.gatekeeper.service import Refused, Service
from gazeveil.gatekeeper.settings import Settings
from gazeveil.gatekeeper.ws import stream

WEB = Path(__file__).parent / "web"

#: HTTP status of a refusal; what is not listed is 403.
STATUS = {"unknown": 404, "rate": 429, "ledger": 503, "closed": 503}

_WORDS = {400: "request", 401: "token", 403: "forbidden", 404: "unknown", 405: "method", 415: "type", 422: "value"}


def build(service: Service) -> ASGIApp:
    """The application of a service, with the guard around it."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.hub.loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(service.watch())]
        if service.tracker is not None:
            tasks.append(asyncio.create_task(service.run_tracker()))
        for task in tasks:
            task.add_done_callback(_report)
        try:
            yield
        finally:
            service.stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await service.close()

    app = FastAPI(
        title="Gazeveil Gatekeeper",
        version=__version__,
        description="Gaze for apps that are not trusted: areas, events, tiles and protected samples, never raw gaze. Samples and events come over the "
        "WebSocket /v1/stream.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    app.include_router(api.router)
    app.include_router(owner.router)
    app.include_router(owner.door)
    _add_open_pages(app, service)
    _add_errors(app, service)
    app.router.routes.extend([WebSocketRoute("/v1/stream", stream), WebSocketRoute("/v1/tracker", tracker), WebSocketRoute("/v1/live", live)])
    app.router.routes.append(Mount("/", StaticFiles(directory=WEB, html=True, check_dir=False)))

    def seen(scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "") or "other"
        service.metrics.requests.labels(scope["method"] if scope["method"] in _METHODS else "other", path, str(status)).inc()
        LOG.debug("request", extra={"method": scope["method"][:16], "route": path, "status": status, "ms": round(seconds * 1000, 2)})

    return Guard(app, service.settings, service.origins, seen)


_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        LOG.error("a part of the service has failed", exc_info=task.exception())


def _add_open_pages(app: FastAPI, service: Service) -> None:
    def health() -> dict[str, Any]:
        ready = service.database_up and not service.stopping
        return {"live": True, "ready": ready, "database": service.database_up, "tracker": service.tracker_connected, "version": __version__}

    @app.get("/health", response_model=bodies.HealthAnswer, tags=["open"])
    async def live_page() -> dict[str, Any]:
        """Whether the service runs; `ready` says whether it can give anything now."""
        return health()

    @app.get("/health/ready", response_model=bodies.HealthAnswer, tags=["open"], responses={503: {"model": bodies.HealthAnswer, "description": "Not ready."}})
    async def ready_page() -> JSONResponse:
        """The same, with status 503 while the service cannot give anything."""
        shown = health()
        return JSONResponse(shown, 200 if shown["ready"] else 503)

    @app.get("/metrics", tags=["open"], response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_CLOSED})
    def metrics_page(request: Request, credentials: api.Credentials) -> Response:
        """Counters for Prometheus; nothing on the open page depends on gaze. With an owner's token it also counts what apps asked and got."""
        if not service.settings.open_metrics and credentials is None:
            raise Refused(403, "closed", "The metrics are not open. Use an owner's token, or set GAZEVEIL_OPEN_METRICS to true.")
        if credentials is not None and service.caller(credentials.credentials, address(request.scope)).role != "owner":
            raise Refused(403, "role", "Only the owner's token shows more. Ask without a token.")
        service.refresh_metrics()
        return Response(service.metrics.page(owner=credentials is not None), media_type=CONTENT_TYPE)


_CLOSED: dict[int | str, dict[str, Any]] = {
    401: {"model": bodies.Failure, "description": "A token that is not valid."},
    403: {"model": bodies.Failure, "description": "The metrics are not open, or the token is not the owner's."},
    429: {"model": bodies.Failure, "description": "Too many requests or wrong tokens."},
    503: {"model": bodies.Failure, "description": "The token cannot be looked up now."},
}


def _add_errors(app: FastAPI, service: Service) -> None:
    def count(code: str) -> None:
        service.metrics.refusals.labels(code).inc()

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        count(error.code)
        extra = {"www-authenticate": "Bearer"} if error.status == 401 else {"retry-after": "60"} if error.status == 429 else None
        return problem(error.status, error.code, error.reason, extra)

    @app.exception_handler(Denied)
    async def denied(_: Request, error: Denied) -> JSONResponse:
        count(error.code)
        return problem(STATUS.get(error.code, 403), error.code, error.reason)

    @app.exception_handler(LedgerError)
    async def ledger(_: Request, error: LedgerError) -> JSONResponse:
        lost = service.database_lost()
        count(lost.code)
        return problem(lost.status, lost.code, lost.reason)

    @app.exception_handler(ParameterError)
    async def parameter(_: Request, error: ParameterError) -> JSONResponse:
        count("parameter")
        return problem(422, "parameter", str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # The parser's own words quote the body; only where and what kind is told.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        if first["type"] == "json_invalid":
            return problem(400, "json", "The body is not JSON. Send one JSON object.")
        # what is allowed comes from our own schema
        allowed = first.get("ctx", {}).get("expected")
        said = f"Allowed: {str(allowed)[:200]}." if isinstance(allowed, str) else "See /openapi.json."
        return problem(422, "value", f"The value at '{where}' is not allowed ({first['type']}). {said}")

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        reasons = {404: "There is no such page.", 405: "This path does not take this method.", 400: "The body cannot be read."}
        return problem(
            error.status_code,
            _WORDS.get(error.status_code, "request"),
            reasons.get(error.status_code, "The request cannot be answered."),
            dict(error.headers) if error.headers else None,
        )

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        LOG.error("a request failed by a mistake of ours", exc_info=error)
        return problem(500, "internal", "The service made a mistake. Nothing was given.")


class Server(uvicorn.Server):
    """A server that lets every subscriber know before it stops.

    Parameters
    ----------
    config : uvicorn.Config
        Its configuration.
    service : Service
        What it serves.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and end with code 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye, then stop."""
        service = self.service
        service.stopping = True
        service.hub.hang_up(service.hub.lines, "shutdown", "The service is stopping. Connect again later.", 1012)
        until = time.monotonic() + service.settings.shutdown_s
        while service.hub.lines and time.monotonic() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """How the server runs."""
    return uvicorn.Config(
        app,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=settings.frame_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=settings.ping_s,
        ws_ping_timeout=settings.ping_s,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=max(1, math.ceil(settings.shutdown_s)),
    )


def listen(settings: Settings) -> socket.socket:
    """The bound socket, or one sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((settings.host, settings.port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise ParameterError(f"Cannot listen on {settings.host} port {settings.port} ({why}). Choose another port with --port.") from None
    return found


def address_of(found: socket.socket) -> str:
    """The address of a socket, as browsers write it."""
    host, port = found.getsockname()[:2]
    # Nobody can open the address that means all addresses.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def warm_up(service: Service) -> None:
    """Load what is compiled on first use, beside the service: the first sample and the first stream must not wait for it."""
    with contextlib.suppress(Exception), Ledger.open("sqlite://") as ledger:
        rules = tuple(dict.fromkeys(rule for preset in PRESETS.values() for rule in preset.mechanisms if not rule.unproved))
        budgets = {"epsilon": Fraction(10**6), "rho": Fraction(10**6)}
        grant = Grant(frozenset({"samples"}), rules, streams=len(rules), budgets=budgets)
        keeper = Gatekeeper(Policy({"warm-up": grant}, consent=True), ledger, rate_hz=service.keeper.rate_hz, space=service.keeper.space)
        with keeper:
            for text in dict.fromkeys(weakest(rule) for rule in rules):
                with contextlib.suppress(GazeveilError):
                    keeper.app("warm-up").open_private_stream(text, lambda *_: None)
            t_ns = (np.arange(240) * (1e9 / service.keeper.rate_hz)).astype(np.int64)
            place = np.full(240, 1.0)
            keeper.push(t_ns, place, place, np.ones(240, dtype=np.bool_))
            keeper.push(int(t_ns[-1]) + 10**7, 1.0, 1.0)


def serve(settings: Settings, say: Any = print) -> None:
    """Run until a signal comes.

    Parameters
    ----------
    settings : Settings
        What to run.
    say : callable
        Told the address and the owner's link.

    Raises
    ------
    GazeveilError
        Where it cannot start, with one sentence.
    """
    set_up(settings.log_level)
    found = listen(settings)
    try:
        service = Service(settings)
        link = service.owner_link(address_of(found))
    except GazeveilError:
        found.close()
        raise
    say(f"Gatekeeper on {address_of(found)}, tracker {settings.tracker}, level {settings.level}, database {service.database_name}.")
    say(f"Owner link, works once: {link}")
    token = service.tracker_token()
    if token is not None:
        say(f"Tracker token, for {address_of(found).replace('http', 'ws', 1)}/v1/tracker: {token}")
    LOG.info("started", extra={"port": found.getsockname()[1], "version": __version__, "tracker": settings.tracker})
    # A thread that computes gives way to the event loop after a millisecond; what lives as long as the process is not looked through again.
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    threading.Thread(target=warm_up, args=(service,), name="warm-up", daemon=True).start()
    Server(configure(build(service), settings), service).run(sockets=[found])
    LOG.info("stopped")
