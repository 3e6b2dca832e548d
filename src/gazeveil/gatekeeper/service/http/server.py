"""The process around the web application: signals, the Unix socket, and an end that all are told.

On SIGTERM and SIGINT the service takes no more connections, tells every subscriber `ended` with the
code `shutdown`, closes the sockets, ends the tracker, then the core, then the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets.local_socket import LocalProtocol
from gazeveil.gatekeeper.service.sockets.protocol import Config, HeadProtocol, SocketProtocol

#: Seconds beyond `shutdown_s` after which a stop is cut short.
GRACE_S = 1.5


class Server(uvicorn.Server):
    """A server that lets every subscriber know before it stops."""

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
            self.deadline = threading.Timer(self.service.settings.shutdown_s + GRACE_S, leave)
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


def leave() -> None:
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
        http=HeadProtocol,
        ws=SocketProtocol,
        ws_max_size=min(
            settings.limits.message_bytes, settings.limits.frame_bytes
        ),  # until the hello is accepted
        ws_per_message_deflate=False,
        ws_ping_interval=settings.limits.ping_s,
        ws_ping_timeout=settings.limits.ping_s,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=max(1, math.ceil(settings.shutdown_s)),
    )
