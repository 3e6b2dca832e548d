"""Starting the service: its port, file handles, the owner's link, and what is compiled first."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import socket
import sys
import threading
import time
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import PortTakenError
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.logs import LOG, set_up
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import weakest
from gazeveil.gatekeeper.service.http.application import build
from gazeveil.gatekeeper.service.http.server import Server, configure, leave
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.local_socket import (
    listen_at_home,
    listen_local,
    remove_local,
)

#: The first file handle that systemd passes on.
_FIRST_HANDLE = 3

#: How long a port that is taken is tried again, in seconds.
_PORT_PATIENCE_S = 5.0


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


def listen(settings: Settings, say: Any = print) -> socket.socket:
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


def address_of(found: socket.socket) -> str:
    """The address of a socket, as browsers write it."""
    host, port = found.getsockname()[:2]
    # A browser cannot open the wildcard address.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
    with contextlib.ExitStack() as done, contextlib.suppress(Exception):
        done.callback(setattr, service, "warming", False)
        ledger = done.enter_context(Ledger.open("sqlite://"))
        rules = tuple(
            dict.fromkeys(
                rule
                for preset in PRESETS.values()
                for rule in preset.mechanisms
                if not rule.unproved
            )
        )
        budgets = {"epsilon": Fraction(10**6), "rho": Fraction(10**6)}
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


def serve(settings: Settings, say: Any = print) -> None:
    """Run until a signal comes. `say` is told the address and the owner's link.

    Raises
    ------
    GazeveilError
        Where it cannot start, with one sentence.
    """
    set_up(settings.log_level)
    more_handles(settings)
    sock, local = from_systemd()
    sock = sock or listen(settings, say)
    activated = local is not None
    try:
        if settings.unix_socket is not None and not activated:
            local = listen_local(settings.unix_socket)
        service = Service(settings)
        local = local or listen_at_home(settings.home)
        here = address_of(sock)
        link = service.owner_link(here)
        if service.tracker_token_path is not None:
            # While the service was stopped another program may have had its port, and the token.
            service.new_tracker_token()
    except GazeveilError:
        sock.close()
        if local is not None:
            local.close()
        if not activated:
            remove_local(settings.unix_socket or settings.home / "gaze.sock")
        raise
    say(
        f"Gatekeeper on {here}, tracker {settings.tracker}, level {settings.level}, database"
        f" {service.database_name}."
    )
    say(f"Owner link, works once: {link}")
    if service.tracker_token_path is not None:
        say(
            f"Tracker: {settings.unix_socket or settings.home / 'gaze.sock'} as this user, or"
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
    server = Server(configure(build(service), service), service)
    server.local = local
    try:
        server.run(sockets=[sock])
    finally:
        if not activated:
            remove_local(settings.unix_socket or settings.home / "gaze.sock")
    if server.deadline is not None:
        server.deadline.cancel()
    LOG.info("stopped")
    if warming.is_alive():
        leave()  # the interpreter would wait for the compiler
