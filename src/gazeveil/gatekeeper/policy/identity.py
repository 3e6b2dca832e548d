"""Who a program on this machine is, as its kernel says: the user it runs as, and the file it was
started from.

A connection over a Unix socket carries the process, user and group of its peer (SO_PEERCRED), which
the peer cannot choose. The user is stronger evidence than the file, because only root can change it
afterwards. The file is read from `/proc/PID/exe`
when the connection is made: its path, and its device and inode, because in a mount namespace of its
own any user can show any file under any path. Between the two a process may start another program
in its place, and hand the open connection to a child; so a file tells honest programs of one user
apart, and does not stop a hostile one. The service can read the file of other users' processes only
as root.
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
    executable : str, optional
        The path of the file it runs, as its own mounts show it; None where that cannot be read.
    file : tuple of int, optional
        Device and inode of that file, which no mount can change.
    """

    pid: int
    uid: int
    gid: int
    executable: str | None = None
    file: tuple[int, int] | None = None


@dataclass(frozen=True)
class LocalIdentity:
    """By what an app is known on this machine without a token.

    Parameters
    ----------
    uid : int, optional
        The number of the user it runs as.
    executable : str, optional
        The whole path of its program, as the service sees it. Where both are given, both must fit.

    Examples
    --------
    >>> LocalIdentity(uid=1001).fits(LocalPeer(7, 1001, 1001, "/usr/bin/game"))
    True
    """

    uid: int | None = None
    executable: str | None = None

    def __post_init__(self) -> None:
        if self.uid is None and self.executable is None:
            checks.refuse("LocalIdentity", "identity", "a table with uid, executable or both", None)
        if self.uid is not None:
            if type(self.uid) is not int or not 0 <= self.uid <= _LAST_UID:
                checks.refuse("LocalIdentity", "uid", "the number of a user", self.uid)
            if self.uid == NOBODY_UID:
                allowed = "the number of one user; in a container all unknown users have this one"
                checks.refuse("LocalIdentity", "uid", allowed, self.uid)
        if self.executable is not None:
            path = self.executable
            if (
                not isinstance(path, str)
                or not path.startswith("/")
                or "\x00" in path
                or len(path) > 4000
                or os.path.normpath(path) != path
            ):
                allowed = "the whole path of a program, as /usr/bin/game, without links in it"
                checks.refuse("LocalIdentity", "executable", allowed, path)

    def fits(self, peer: LocalPeer) -> bool:
        """Whether a program is this one."""
        return (self.uid is None or self.uid == peer.uid) and (
            self.executable is None or self._runs(self.executable, peer)
        )

    @staticmethod
    def _runs(path: str, peer: LocalPeer) -> bool:
        if path != peer.executable or peer.file is None:
            return False
        try:
            # The policy's path, not the peer's: a stranger does not choose what the service
            # touches.
            return file_of(path) == peer.file
        except OSError:
            return False


def file_of(path: str) -> tuple[int, int]:
    """Device and inode of the file at a path, which two paths share only where
    they are one file.
    """
    status = os.stat(path)
    return status.st_dev, status.st_ino


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
    if pid <= 0 or uid < 0:
        return None
    try:
        return LocalPeer(
            pid, uid, gid, os.readlink(f"/proc/{pid}/exe"), file_of(f"/proc/{pid}/exe")
        )
    except OSError:
        return LocalPeer(pid, uid, gid)
