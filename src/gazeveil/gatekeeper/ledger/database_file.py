"""The file of an SQLite database while it is open: that it is still the one that was opened, and
that its disk has room.

SQLite goes on with a file that was removed or moved away: what it writes is gone when the process
ends. A file that was put in its place may be an older copy, in which budget that is spent is not.
Neither is noticed by SQLite, so device and inode of the path are compared with those of the file
that was opened. One that was overwritten in place is noticed by the next write, and by the question
twice a second: its time and size are not those that our last write left. The write-ahead log beside
it is part of the database: where it is missing in the middle of a transaction, what was written
last is.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from gazeveil.gatekeeper.errors import LedgerError

#: Least free disk space for a charge, which needs a few pages: refuse it rather than fail halfway.
ROOM_BYTES = 256 * 1024


class LostFileError(LedgerError):
    """The file is not the one that was opened. `what` follows "was"; `remedy` says what to do."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"The ledger's file {path} was {what} while the service runs. {remedy}")
        self.sentence = f"The ledger's file was {what} while the service runs. {remedy}"


class FullDiskError(LedgerError):
    """There is no room left for the ledger."""

    def __init__(self, path: Path) -> None:
        self.sentence = "The disk that the ledger is on is full. Free some space."
        super().__init__(
            f"The ledger at {path} cannot be written: its disk is full. Free some space."
        )


_PUT_BACK = "Put that file back, or stop the service and start it with the file you trust."


class DatabaseFile:
    """The file behind an open database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._wal = f"{path}-wal"
        self._identity: tuple[int, int] | None = None
        #: Whether no other program may write it: then one that was overwritten in place is noticed.
        self.alone = False
        self._content: tuple[int, int] | None = None
        self._overwritten = False

    def settled(self) -> None:
        """Remember the file as a write of ours has left it; called before the next one begins."""
        with suppress(OSError):
            status = os.stat(self.path)
            if self._identity == (status.st_dev, status.st_ino):
                self._content = (status.st_mtime_ns, status.st_size)

    def check(self, write: bool) -> None:
        """See that the path leads to the file that was opened; called in a transaction, so that
        there is one. With `write` the transaction holds the write lock: then there is a write-ahead
        log too.

        Raises
        ------
        LostFileError
            Where it does not.
        """
        if (
            sys.platform == "win32"
        ):  # an open file cannot be removed or replaced there, and inodes are no identity
            return
        try:
            status = os.stat(self.path)
        except OSError:
            raise LostFileError(self.path, "removed", _PUT_BACK) from None
        identity = (status.st_dev, status.st_ino)
        if self._identity is None:
            self._identity = identity
        elif identity != self._identity:
            raise LostFileError(self.path, "replaced by another", _PUT_BACK)
        content = (status.st_mtime_ns, status.st_size)
        # Only our own writes copy the log into the file; any other change is another program's.
        if write and self.alone and self._content not in (None, content):
            self._overwritten = True
        if self._overwritten:
            remedy = "Stop the service, and start it with the file you trust."
            raise LostFileError(self.path, "overwritten", remedy)
        if write and not os.path.exists(self._wal):
            raise LostFileError(
                Path(self._wal),
                "removed",
                "Stop the service; what was charged last may be missing from the file.",
            )

    def need_room(self) -> None:
        """See that the disk has room.

        Raises
        ------
        FullDiskError
            Where it has none.
        """
        if sys.platform == "win32":
            return
        try:
            disk = os.statvfs(self.path.parent)
        except OSError:
            return  # the next transaction says what is wrong
        # A file system that does not say how large it is (0 blocks) may be of any size.
        if disk.f_blocks and disk.f_bavail * disk.f_frsize < ROOM_BYTES:
            raise FullDiskError(self.path)


def words_of(error: LedgerError) -> str:
    """The sentence of an error for people who may not see paths."""
    return str(
        getattr(
            error,
            "sentence",
            "The ledger's database does not answer. Start it again, or look into its log.",
        )
    )
