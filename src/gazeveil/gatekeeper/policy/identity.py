"""Who a program on this machine is, as its kernel says: the user it runs as.

A connection over a Unix socket carries the process, user and group of its peer (SO_PEERCRED), which
the peer cannot choose. Programs of one user are not told apart: each could trace the others.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from dataclasses import dataclass

from gazeveil import checks

#: What users that have no number in a container's own list appear as.
NOBODY_UID = 65534

_LAST_UID = 2**32 - 2
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class LocalPeer:
    """The other side of a Unix socket, when it connected.

    Parameters
    ----------
    pid, uid, gid : int
        As the kernel says.
    """

    pid: int
    uid: int
    gid: int


@dataclass(frozen=True)
class LocalIdentity:
    """By what an app is known on this machine without a token.

    Parameters
    ----------
    uid : int
        The number of the user it runs as.
    """

    uid: int

    def __post_init__(self) -> None:
        if type(self.uid) is not int or not 0 <= self.uid <= _LAST_UID:
            checks.refuse("LocalIdentity", "uid", "the number of a user", self.uid)
        if self.uid == NOBODY_UID:
            allowed = "the number of one user; in a container all unknown users have this one"
            checks.refuse("LocalIdentity", "uid", allowed, self.uid)


def user_app(uid: int) -> str:
    """The name of the app that a user's programs are.

    Examples
    --------
    >>> user_app(0), user_app(4_000_000_000)
    ('user.root', 'uid.4000000000')
    """
    try:
        import pwd

        name = pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError, OverflowError):
        name = ""
    return f"user.{name}" if re.fullmatch(r"[A-Za-z0-9._-]{1,58}", name) else f"uid.{uid}"


def peer_of(handle: int) -> LocalPeer | None:
    """Who is on the other side of a Unix socket, by its file descriptor, which stays open; None
    where the kernel does not say.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        with socket.socket(fileno=os.dup(handle)) as peer:
            pid, uid, gid = _CREDENTIALS.unpack(
                peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
    except OSError:
        return None
    return LocalPeer(pid, uid, gid) if pid > 0 and uid >= 0 else None
