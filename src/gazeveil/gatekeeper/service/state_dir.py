"""The home folder of a service: who may see it, and its lock."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.logs import LOG

#: The file that says a folder is a service's home; it is also the lock.
MARKER = "lock"


def make_home(home: Path) -> None:
    """Create the folder, readable by its owner alone.

    An existing folder is used as it is, if no other user can read it.

    Raises
    ------
    ParameterError
        Where it cannot be written, or where others may read it. Its mode is never changed: it may
        be a shared folder such as `/tmp`.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            home.mkdir(mode=0o700)
        except FileExistsError:
            _check(home)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise ParameterError(
            f"The home folder {home} cannot be written"
            f" ({(error.strerror or 'no reason given').lower()}). Choose another with --home."
        ) from None


def _check(home: Path) -> None:
    """See that a folder that is there may hold tokens, keys and the ledger."""
    status = home.stat()
    if sys.platform != "win32" and stat.S_ISDIR(status.st_mode):
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid != os.geteuid():
            raise ParameterError(
                f"The home folder {home} belongs to another user. Choose another with --home, or"
                " give it to the user of the service."
            )
        if mode & 0o077:
            raise ParameterError(
                f"The home folder {home} is open to other users (its mode is {mode:o}), and it"
                " would hold tokens, keys and the ledger. Choose another with --home, or close it"
                f" with `chmod 700 {home}`."
            )
    if not (home / MARKER).exists() and any(home.iterdir()):
        LOG.warning("the home folder holds files that are not the service's; they are left alone")


def only_one(home: Path) -> IO[bytes]:
    """A lock on the home folder, held until the file is closed or the process ends."""
    file = (home / MARKER).open("wb")
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ParameterError(
                f"Another service runs with the home folder {home}. Stop that one, or choose"
                " another folder with --home."
            ) from None
    return file
