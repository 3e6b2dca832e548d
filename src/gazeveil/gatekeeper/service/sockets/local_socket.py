"""The service's Unix socket, over which apps that the policy names by user or program need no
token.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from pathlib import Path

from starlette.types import Scope

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.identity import LocalPeer, peer_of
from gazeveil.gatekeeper.service.sockets.protocol import HeadProtocol


class LocalProtocol(HeadProtocol):
    """HTTP/1.1 over a Unix socket: connections are counted by user, and who it is goes with every
    request.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel who it is, before the first byte is read."""
        sock = transport.get_extra_info("socket")
        local = None if sock is None else peer_of(sock.fileno())
        peer = self._peers.enter(transport, "local" if local is None else f"uid {local.uid}")
        peer.local = local
        super().connection_made(transport)


def local_of(scope: Scope) -> LocalPeer | None:
    """Who sent a request over the Unix socket; None for all that came over the network."""
    return getattr(scope.get("state", {}).get("peer"), "local", None)


def is_own(peer: LocalPeer | None) -> bool:
    """Whether a program runs as the service's own user, or as root: what the service believes as
    its tracker.
    """
    return peer is not None and peer.uid in (os.geteuid(), 0)


def listen_at_home(home: Path) -> socket.socket | None:
    """Open the Unix socket in the home folder, reachable by the service's user alone.

    Return None where that is not possible.
    """
    try:
        return listen_local(home / "gaze.sock")
    except ParameterError as error:
        LOG.warning("no Unix socket: %s", error)
        return None


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


def remove_local(path: Path) -> None:
    """Take the socket's file away when the service ends."""
    with contextlib.suppress(OSError):
        path.unlink()
