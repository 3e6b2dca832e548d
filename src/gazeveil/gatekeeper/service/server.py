"""The process around the web application: its port and Unix socket, signals, the owner's link, what
is compiled first, and an end that all are told.

On SIGTERM and SIGINT the service takes no more connections, tells every subscriber `ended` with the
code `shutdown`, closes the sockets, ends the tracker, then the core, then the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import math
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import uvicorn
from starlette.types import ASGIApp

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import PortTakenError
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.logs import LOG, set_up
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.application import build
from gazeveil.gatekeeper.service.peers import DirectProtocol, GuardedProtocol
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings

#: Seconds beyond `shutdown_s` after which a stop is cut short.
GRACE_S = 1.5

#: Largest head of an HTTP request: its line, its headers and what may trail its body.
HEAD_BYTES = 16_384

#: Largest WebSocket message; a larger one closes the connection with code 1009.
MESSAGE_BYTES = 65_536

#: The first file handle that systemd passes on.
_FIRST_HANDLE = 3

#: How long a port that is taken is tried again, in seconds.
_PORT_PATIENCE_S = 5.0


class Server(uvicorn.Server):
    """A server that also listens on a Unix socket, and lets every subscriber know before it
    stops.
    """

    def __init__(
        self, config: uvicorn.Config, service: Service, local: socket.socket | None = None
    ) -> None:
        super().__init__(config)
        self.service, self.local = service, local
        self.deadline: threading.Timer | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and end with code 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
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

        protocol = partial(
            GuardedProtocol,
            self.service.peers,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        loop = asyncio.get_running_loop()
        self.servers.append(await loop.create_unix_server(protocol, sock=self.local, backlog=1024))

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye, then stop."""
        service = self.service
        service.stopping = True
        reason = "The service is stopping. Connect again later."
        service.broadcaster.hang_up(service.broadcaster.connections, "shutdown", reason, 1012)
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


def configure(app: ASGIApp, service: Service) -> uvicorn.Config:
    """How the server runs."""
    settings, ping_s = service.settings, service.settings.limits.ping_s
    return uvicorn.Config(
        app,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=partial(GuardedProtocol, service.peers),  # type: ignore[arg-type]
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws=DirectProtocol,
        ws_max_size=MESSAGE_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=ping_s,
        ws_ping_timeout=ping_s,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=max(1, math.ceil(settings.shutdown_s)),
    )


def from_systemd() -> tuple[socket.socket | None, socket.socket | None]:
    """The port and the Unix socket that systemd holds for the service, also while it is stopped, so
    that no other program can take them; None where it holds none.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None, None
    given = range(_FIRST_HANDLE, _FIRST_HANDLE + int(os.environ.get("LISTEN_FDS", "0")))
    sockets = [socket.socket(fileno=handle) for handle in given]
    local = [one for one in sockets if one.family == socket.AF_UNIX]
    ports = [one for one in sockets if one.family != socket.AF_UNIX]
    return next(iter(ports), None), next(iter(local), None)


def listen(settings: Settings, say: Callable[[str], object] = print) -> socket.socket:
    """The bound socket, or one sentence. A port that is taken is tried again for some seconds, as
    an instance that is just stopping may hold it; `say` is told.

    Raises
    ------
    ParameterError
        Where that address can never be had.
    PortTakenError
        Where another program has it.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    until_s = time.monotonic() + _PORT_PATIENCE_S
    told = False
    while True:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((settings.host, settings.port))
            sock.listen(1024)
            return sock
        except (OSError, OverflowError) as error:
            sock.close()
            where = f"{settings.host} port {settings.port}"
            if getattr(error, "errno", None) != errno.EADDRINUSE:
                why = (getattr(error, "strerror", None) or str(error)).lower()
                raise ParameterError(
                    f"Cannot listen on {where} ({why}). Choose another port with --port."
                ) from None
        if time.monotonic() > until_s:
            raise PortTakenError(
                f"Cannot listen on {where}: another program has the port. End it, or choose another"
                " port with --port. What pages and trackers sent to that port, it has."
            )
        if not told:
            say(f"Another program has {where}; trying again for {_PORT_PATIENCE_S:g} s.")
            told = True
        time.sleep(0.2)


def address_of(sock: socket.socket) -> str:
    """The address of a socket, as browsers write it."""
    host, port = sock.getsockname()[:2]
    # A browser cannot open the wildcard address.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen_local(path: Path) -> socket.socket:
    """A bound Unix socket that every user of the machine may connect to; one that a dead service
    left behind is replaced.

    Raises
    ------
    ParameterError
        Where that cannot be, with one sentence.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise ParameterError(
            "This system has no Unix sockets. Leave the setting 'unix_socket' out.",
            name="unix_socket",
        )
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_room(path)
        sock.bind(str(path))
        # Like a port of 127.0.0.1: a peer has no rights until the policy names its user, or a token
        # comes.
        os.chmod(path, 0o666)
        sock.listen(1024)
        sock.setblocking(False)
    except ParameterError:
        sock.close()
        raise
    except (OSError, ValueError) as error:
        sock.close()
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise ParameterError(
            f"Cannot listen on the Unix socket {path} ({why}). Choose another path with"
            " GAZEVEIL_UNIX_SOCKET.",
            name="unix_socket",
        ) from None
    return sock


def _make_room(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ParameterError(
            f"The path {path} of the setting 'unix_socket' is taken by something that is no socket."
            " Choose another.",
            name="unix_socket",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise ParameterError(
                f"Another service listens on the Unix socket {path}. Stop that one, or choose"
                " another path.",
                name="unix_socket",
            )


def more_handles(settings: Settings) -> None:
    """Ask for as many file handles as the limits on connections allow to be open; many systems
    begin with 1024.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * settings.connections + settings.limits.strangers + 256
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
    rate_hz, still = service.keeper.rate_hz, np.full(240, 1.0)
    t_ns = (np.arange(240) * (1e9 / rate_hz)).astype(np.int64)
    try:
        policy = Policy({"warm-up": PRESETS["study"].grant()}, consent=True)
        with (
            Ledger.open("sqlite://") as ledger,
            Gatekeeper(policy, ledger, rate_hz=rate_hz, space=service.keeper.space) as keeper,
        ):
            for i, text in enumerate(policy.apps["warm-up"].mechanisms):
                stream = keeper.app("warm-up").open_private_stream(text, lambda *_: None)
                begin_ns = 2 * i * int(t_ns[-1])
                keeper.push(begin_ns + t_ns, still, still, np.ones(240, dtype=np.bool_))
                keeper.push(begin_ns + int(t_ns[-1]) + 10**7, 1.0, 1.0)
                stream.close()  # one of a family at a time
    except Exception as error:
        LOG.error("what is compiled first failed, so first answers are late", exc_info=error)
    finally:
        service.warming = False


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A Unix socket, whose file is taken away at the end."""
    with listen_local(path) as sock:
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def serve(settings: Settings, say: Callable[[str], object] = print) -> None:
    """Run until a signal comes. `say` is told the address and the owner's link.

    Raises
    ------
    GazeveilError
        Where it cannot start, with one sentence.
    """
    set_up(settings.log_level)
    more_handles(settings)
    sock, local = from_systemd()
    held = sock is not None
    sock = sock or listen(settings, say)
    path = settings.unix_socket or settings.home / "gaze.sock"
    ours = contextlib.ExitStack()
    try:
        if local is None and settings.unix_socket is not None:
            local = ours.enter_context(_listening(path))
        service = Service(settings)
        if local is None:
            with contextlib.suppress(ParameterError):  # a long path: then there is none
                local = ours.enter_context(_listening(path))
        here = address_of(sock)
        link = service.owner_link(here)
        if service.tracker_token_path is not None:
            # While the service was stopped another program may have had its port, and the token.
            service.new_tracker_token()
        if not held:
            service.end_passes()
    except GazeveilError:
        sock.close()
        ours.close()
        raise
    kind = "SQLite" if service.ledger.database.sqlite else "PostgreSQL"
    say(
        f"Gatekeeper on {here}, tracker {settings.tracker}, level {settings.level}, database"
        f" {kind}."
    )
    say(f"Owner link, works once: {link}")
    if service.tracker_token_path is not None:
        say(
            f"Tracker: {path} as this user, or"
            f" {here.replace('http', 'ws', 1)}/v1/tracker with the token in"
            f" {service.tracker_token_path}"
        )
    LOG.info(
        "started",
        extra={"port": sock.getsockname()[1], "version": __version__, "tracker": settings.tracker},
    )
    # A thread that computes gives way to the event loop after a millisecond; what lives as long as
    # the process is not looked through again.
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    service.warming = True
    warming = threading.Thread(target=warm_up, args=(service,), name="warm-up", daemon=True)
    warming.start()
    server = Server(configure(build(service), service), service, local)
    with ours:
        server.run(sockets=[sock])
    if server.deadline is not None:
        server.deadline.cancel()
    LOG.info("stopped")
    if warming.is_alive():
        leave()  # the interpreter would wait for the compiler
