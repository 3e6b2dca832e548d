"""The web application and the process around it: routes, one shape of errors, pages, start and
stop.

On SIGTERM and SIGINT the service takes no more connections, tells every subscriber `ended` with the
code `shutdown`, closes the sockets, ends the tracker, then the core, then the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Mount, WebSocketRoute
from starlette.types import ASGIApp, Scope

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger.audit_retention import retain
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.logs import LOG, set_up
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import weakest
from gazeveil.gatekeeper.service.http import api, device_api, owner, owner_session, schemas
from gazeveil.gatekeeper.service.http.middleware import RequestMiddleware, problem
from gazeveil.gatekeeper.service.http.pages import WEB, Pages
from gazeveil.gatekeeper.service.http.tls import tls_protocol
from gazeveil.gatekeeper.service.metrics_page import CONTENT_TYPE
from gazeveil.gatekeeper.service.service import Refused, Service
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.app_socket import stream
from gazeveil.gatekeeper.service.sockets.live import live
from gazeveil.gatekeeper.service.sockets.local_socket import (
    LocalProtocol,
    listen_local,
    remove_local,
)
from gazeveil.gatekeeper.service.sockets.protocol import Config, SocketProtocol
from gazeveil.gatekeeper.service.sockets.tracker_socket import tracker

#: HTTP status of a refusal; what is not listed is 403.
STATUS = {"unknown": 404, "changed": 409, "rate": 429, "ledger": 503, "closed": 503}

#: Seconds beyond `shutdown_s` after which a stop is cut short.
GRACE_S = 1.5

_WORDS = {
    400: "request",
    401: "token",
    403: "forbidden",
    404: "unknown",
    405: "method",
    415: "type",
    422: "value",
}


def build(service: Service) -> ASGIApp:
    """The application of a service, with the guard around it."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.broadcaster.loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(service.watch())]
        if service.tracker is not None:
            tasks.append(asyncio.create_task(service.run_tracker()))
        if service.settings.audit_days is not None:
            tasks.append(asyncio.create_task(retain(service.audit, service.settings.audit_days)))
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
        description=(
            "Gaze for apps that are not trusted: areas, events, tiles and protected samples, never"
            " raw gaze. Samples and events come over the WebSocket /v1/stream."
        ),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    app.include_router(api.router)
    app.include_router(owner.router)
    app.include_router(device_api.router)
    app.include_router(owner_session.router)
    app.include_router(owner_session.login)
    _add_open_pages(app, service)
    _add_errors(app, service)
    app.router.routes.extend(
        [
            WebSocketRoute("/v1/stream", stream),
            WebSocketRoute("/v1/tracker", tracker),
            WebSocketRoute("/v1/live", live),
        ]
    )
    app.router.routes.append(Mount("/", Pages(directory=WEB, html=True, check_dir=False)))

    def seen(scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "") or "other"
        service.metrics.requests.labels(
            scope["method"] if scope["method"] in _METHODS else "other", path, str(status)
        ).inc()
        LOG.debug(
            "request",
            extra={
                "method": scope["method"][:16],
                "route": path,
                "status": status,
                "ms": round(seconds * 1000, 2),
            },
        )

    return RequestMiddleware(
        app, service.settings, service.origins, seen, service.rate_limiter.admit
    )


_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        LOG.error("a part of the service has failed", exc_info=task.exception())


def _add_open_pages(app: FastAPI, service: Service) -> None:
    def health() -> dict[str, Any]:
        ready = service.database_up and not service.stopping
        return {
            "live": True,
            "ready": ready,
            "database": service.database_up,
            "tracker": service.tracker_connected,
            "version": __version__,
            "reason": service.why_not_ready(),
        }

    @app.get("/health", response_model=schemas.HealthAnswer, tags=["open"])
    async def live_page() -> dict[str, Any]:
        """Whether the service runs; `ready` says whether it can give anything now."""
        return health()

    @app.get(
        "/health/ready",
        response_model=schemas.HealthAnswer,
        tags=["open"],
        responses={503: {"model": schemas.HealthAnswer, "description": "Not ready."}},
    )
    async def ready_page() -> JSONResponse:
        """The same, with status 503 while the service cannot give anything."""
        shown = health()
        return JSONResponse(shown, 200 if shown["ready"] else 503)

    @app.get(
        "/metrics",
        tags=["owner"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_CLOSED},
    )
    def metrics_page(caller: owner_session.Owner) -> Response:
        """Counters for Prometheus, for the owner's token or session; renewed once a minute, so that
        they do not tell when eyes move.
        """
        return Response(service.metrics.page(service.refresh_metrics), media_type=CONTENT_TYPE)


_CLOSED: dict[int | str, dict[str, Any]] = {
    401: {
        "model": schemas.Failure,
        "description": "No token or session, or one that is not valid.",
    },
    403: {
        "model": schemas.Failure,
        "description": "The token is not the owner's, or the page not the device's own.",
    },
    422: {"model": schemas.Failure, "description": "A value is not allowed."},
    429: {"model": schemas.Failure, "description": "Too many requests or wrong tokens."},
    503: {"model": schemas.Failure, "description": "The token cannot be looked up now."},
}


def _add_errors(app: FastAPI, service: Service) -> None:
    def count(code: str) -> None:
        service.metrics.refusals.labels(code).inc()

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        count(error.code)
        extra = (
            {"www-authenticate": "Bearer"}
            if error.status == 401
            else {"retry-after": "60"}
            if error.status == 429
            else None
        )
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
        said = (
            f"Allowed: {str(allowed)[:200]}." if isinstance(allowed, str) else "See /openapi.json."
        )
        return problem(
            422, "value", f"The value at '{where}' is not allowed ({first['type']}). {said}"
        )

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        reasons = {
            404: "There is no such page.",
            405: "This path does not take this method.",
            400: "The body cannot be read.",
        }
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
        self.deadline: threading.Timer | None = None
        self.local: socket.socket | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and end with code 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        if hasattr(signal, "SIGHUP"):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the port, and on the Unix socket where there is one."""
        await super().startup(sockets)
        if self.local is None or self.should_exit:
            return

        def protocol() -> LocalProtocol:
            return LocalProtocol(
                self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        self.servers.append(
            await asyncio.get_running_loop().create_unix_server(
                protocol, sock=self.local, backlog=1024
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and see to it that a thread that compiles does not keep the process: a compiler
        cannot be interrupted.
        """
        if not self.should_exit:
            # All that was given is paid for and on the disk already, so nothing is lost where the
            # last steps are cut short.
            self.deadline = threading.Timer(self.service.settings.shutdown_s + GRACE_S, _leave)
            self.deadline.daemon = True
            self.deadline.start()
        super().handle_exit(sig, frame)

    def _reload(self, *_: object) -> None:
        """Read the policy again, beside the event loop; what is wrong with it is logged and the old
        one stays in force.
        """
        threading.Thread(
            target=reload_by_signal, args=(self.service,), name="reload", daemon=True
        ).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye, then stop."""
        service = self.service
        service.stopping = True
        service.broadcaster.hang_up(
            service.broadcaster.connections,
            "shutdown",
            "The service is stopping. Connect again later.",
            1012,
        )
        until = time.monotonic() + service.settings.shutdown_s
        while service.broadcaster.connections and time.monotonic() < until:
            await asyncio.sleep(0.02)
        service.peers.cut_strangers()
        await super().shutdown(sockets)


def _leave() -> None:
    """End the process now, as a stop that was asked for."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def reload_by_signal(service: Service) -> None:
    """Read the policy again, as the signal SIGHUP asks."""
    try:
        service.reload_policy()
    except Refused as refused:
        # These sentences speak of the policy alone, never of gaze.
        LOG.error("the policy was not read again: %s", refused.reason)
    except GazeveilError as error:
        LOG.error("the policy was read again, but not all of it is in force", exc_info=error)


def configure(app: ASGIApp, service: Service) -> Config:
    """How the server runs."""
    settings = service.settings
    return Config(
        app,
        settings,
        service.peers,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=tls_protocol(settings),
        ws=SocketProtocol,
        ws_max_size=min(
            settings.message_bytes, settings.frame_bytes
        ),  # until the hello is accepted
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
        raise ParameterError(
            f"Cannot listen on {settings.host} port {settings.port} ({why}). Choose another port"
            " with --port."
        ) from None
    return found


def address_of(found: socket.socket, tls: bool = False) -> str:
    """The address of a socket, as browsers write it."""
    host, port = found.getsockname()[:2]
    # Nobody can open the address that means all addresses.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def more_handles(settings: Settings) -> None:
    """Ask for as many file handles as the limits on connections allow to be open; many systems
    begin with 1024.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * settings.connections + settings.strangers + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        if most < wanted:
            LOG.warning(
                "the system allows fewer open files than the settings allow connections",
                extra={"allowed": most, "wanted": wanted},
            )


def warm_up(service: Service) -> None:
    """Load what is compiled on first use, beside the service: the first sample and the first stream
    must not wait for it.
    """
    with contextlib.suppress(Exception), Ledger.open("sqlite://") as ledger:
        rules = tuple(
            dict.fromkeys(
                rule
                for preset in PRESETS.values()
                for rule in preset.mechanisms
                if not rule.unproved
            )
        )
        budgets = {"epsilon": Fraction(10**6), "rho": Fraction(10**6), "place": Fraction(100)}
        grant = Grant(frozenset({"samples"}), rules, streams=len(rules), budgets=budgets)
        keeper = Gatekeeper(
            Policy({"warm-up": grant}, consent=True),
            ledger,
            rate_hz=service.keeper.rate_hz,
            space=service.keeper.space,
        )
        with keeper:
            t_ns, place = (
                (np.arange(240) * (1e9 / service.keeper.rate_hz)).astype(np.int64),
                np.full(240, 1.0),
            )
            for i, text in enumerate(dict.fromkeys(weakest(rule) for rule in rules)):
                with contextlib.suppress(GazeveilError):
                    stream = keeper.app("warm-up").open_private_stream(text, lambda *_: None)
                    begin_ns = 2 * i * int(t_ns[-1])
                    keeper.push(begin_ns + t_ns, place, place, np.ones(240, dtype=np.bool_))
                    keeper.push(begin_ns + int(t_ns[-1]) + 10**7, 1.0, 1.0)
                    stream.close()  # one of a family at a time


def serve(settings: Settings, say: Any = print, new_tracker_token: bool = False) -> None:
    """Run until a signal comes.

    Parameters
    ----------
    settings : Settings
        What to run.
    say : callable
        Told the address and the owner's link.
    new_tracker_token : bool
        Whether to make a new token for the tracker, so that the last one stops working.

    Raises
    ------
    GazeveilError
        Where it cannot start, with one sentence.
    """
    set_up(settings.log_level)
    more_handles(settings)
    found, local = listen(settings), None
    try:
        if settings.unix_socket is not None:
            local = listen_local(settings.unix_socket)
        tls_protocol(settings)
        service = Service(settings)
        here = address_of(found, settings.tls_certificate is not None)
        link = service.owner_link(here)
        service.keep_tracker_token(new_tracker_token)
    except GazeveilError:
        found.close()
        if local is not None and settings.unix_socket is not None:
            local.close()
            remove_local(settings.unix_socket)
        raise
    say(
        f"Gatekeeper on {here}, tracker {settings.tracker}, level {settings.level}, database"
        f" {service.database_name}."
    )
    say(f"Owner link, works once: {link}")
    if service.tracker_token_path is not None:
        say(
            f"Tracker token, for {here.replace('http', 'ws', 1)}/v1/tracker: in"
            f" {service.tracker_token_path}"
        )
    LOG.info(
        "started",
        extra={"port": found.getsockname()[1], "version": __version__, "tracker": settings.tracker},
    )
    # A thread that computes gives way to the event loop after a millisecond; what lives as long as
    # the process is not looked through again.
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    warming = threading.Thread(target=warm_up, args=(service,), name="warm-up", daemon=True)
    warming.start()
    server = Server(configure(build(service), service), service)
    server.local = local
    try:
        server.run(sockets=[found])
    finally:
        if local is not None and settings.unix_socket is not None:
            remove_local(settings.unix_socket)
    if server.deadline is not None:
        server.deadline.cancel()
    LOG.info("stopped")
    if warming.is_alive():
        _leave()  # the interpreter would wait for the compiler
