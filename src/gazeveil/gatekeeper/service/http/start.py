"""Starting the service: its port, file handles, the owner's link, and what is compiled first."""

from __future__ import annotations

import contextlib
import gc
import socket
import sys
import threading
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil import __version__
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.logs import LOG, set_up
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import weakest
from gazeveil.gatekeeper.service.http.application import build
from gazeveil.gatekeeper.service.http.server import Server, configure, leave
from gazeveil.gatekeeper.service.http.tls import tls_protocol
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.local_socket import listen_local, remove_local


def listen(settings: Settings) -> socket.socket:
    """The bound socket, or one sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((settings.host, settings.port))
        sock.listen(1024)
    except (OSError, OverflowError) as error:
        sock.close()
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise ParameterError(
            f"Cannot listen on {settings.host} port {settings.port} ({why}). Choose another port"
            " with --port."
        ) from None
    return sock


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
    """Run until a signal comes. `say` is told the address and the owner's link; with
    `new_tracker_token` the tracker's last token stops working.

    Raises
    ------
    GazeveilError
        Where it cannot start, with one sentence.
    """
    set_up(settings.log_level)
    more_handles(settings)
    sock, local = listen(settings), None
    try:
        if settings.unix_socket is not None:
            local = listen_local(settings.unix_socket)
        tls_protocol(settings)
        service = Service(settings)
        here = address_of(sock, settings.tls_certificate is not None)
        link = service.owner_link(here)
        service.keep_tracker_token(new_tracker_token)
    except GazeveilError:
        sock.close()
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
        extra={"port": sock.getsockname()[1], "version": __version__, "tracker": settings.tracker},
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
        server.run(sockets=[sock])
    finally:
        if local is not None and settings.unix_socket is not None:
            remove_local(settings.unix_socket)
    if server.deadline is not None:
        server.deadline.cancel()
    LOG.info("stopped")
    if warming.is_alive():
        leave()  # the interpreter would wait for the compiler
