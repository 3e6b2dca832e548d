"""Who a program on this machine is, as its kernel says: the user it runs as.

A connection over a Unix socket carries the process, user and group of its peer (SO_PEERCRED), which
the peer cannot choose. Programs of one user are not told apart: each could trace the others.
"""

from __future__ import annotations

import os
import re
import socket
import struct

from gazeveil import checks

#: What users that have no number in a container's own list appear as.
NOBODY_UID = 65534

_LAST_UID = 2**32 - 2
_CREDENTIALS = struct.Struct("3i")


def checked_uid(owner: str, uid: object) -> None:
    """Refuse what is not the number of one user."""
    if type(uid) is not int or not 0 <= uid <= _LAST_UID:
        checks.refuse(owner, "uid", "the number of a user", uid)
    if uid == NOBODY_UID:
        allowed = "the number of one user; in a container all unknown users have this one"
        checks.refuse(owner, "uid", allowed, uid)


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


def peer_uid(handle: int) -> int | None:
    """The user on the other side of a Unix socket, by its file descriptor, which stays open; None
    where the kernel does not say.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        with socket.socket(fileno=os.dup(handle)) as peer:
            pid, uid, _ = _CREDENTIALS.unpack(
                peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
    except OSError:
        return None
    return uid if pid > 0 and uid >= 0 else None
