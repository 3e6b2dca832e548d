"""What the owner has decided, as rows of the database: the policy, and what was taken away.

What takes something away is in force at once, from memory; the row follows when the database takes
it, before anything else is written. Where that does not happen in time, it is noted in the file
`taken-back` of the home folder, and wins over the database at the next start. The file is made
beforehand and written in place, so that a full disk does not stop it. One that cannot be read was
torn by a crash in the middle: consent is then off for all wearers.

The home folder of a service: who may see it, and its lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.ledger.database import Database, Sql
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.grant import DeviceLimits
from gazeveil.gatekeeper.policy.policy import OWNER, Policy, Wearer, grant_of, grant_table, plain

#: Room in the file, in bytes.
ROOM_BYTES = 16 * 1024

#: How long an answer waits for a revocation to be written, in seconds.
WAIT_S = 0.4


def _rows(policy: Policy) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows by wearer and app: the device has no wearer, a wearer's own row no app."""
    rows: dict[tuple[str, str], dict[str, Any]] = {
        ("", ""): {name: plain(value) for name, value in asdict(policy.device).items()}
    }
    for name, wearer in policy.wearers.items():
        rows[name, ""] = {"consent": wearer.consent}
        rows |= {(name, app): grant_table(grant) for app, grant in wearer.apps.items()}
    return rows


def write_policy(sql: Sql, policy: Policy) -> None:
    """Have the rows be those of a policy."""
    rows = {key: json.dumps(value, sort_keys=True) for key, value in _rows(policy).items()}
    there = {(wearer, app): value for wearer, app, value in sql("SELECT * FROM policy")}
    for wearer, app in there.keys() - rows.keys():
        sql("DELETE FROM policy WHERE wearer = ? AND app = ?", wearer, app)
    for (wearer, app), value in rows.items():
        if there.get((wearer, app)) != value:
            sql(
                "INSERT INTO policy VALUES (?, ?, ?) ON CONFLICT (wearer, app) DO UPDATE SET"
                " value = ?",
                *(wearer, app, value, value),
            )


def read_policy(database: Database) -> Policy | None:
    """The policy of the rows; None where there are none."""
    rows = {(w, app): json.loads(value) for w, app, value in database.rows("SELECT * FROM policy")}
    if not rows:
        return None
    wearers = {name for name, _ in rows if name} | {OWNER}
    everyone = {
        name: Wearer(
            rows.get((name, ""), {}).get("consent", False),
            {app: grant_of(table) for (whose, app), table in rows.items() if whose == name and app},
        )
        for name in wearers
    }
    mine = everyone.pop(OWNER)
    return Policy(mine.apps, DeviceLimits(**rows.get(("", ""), {})), mine.consent, OWNER, everyone)


@dataclass(frozen=True)
class Revocation:
    """Something that was taken away.

    Parameters
    ----------
    kind : str
        `consent`, `revoke` or `drop`.
    app : str
        Whose; empty for consent.
    wearer : str, optional
        Wearer of the revoked grant or consent; None for one the policy does not name.
    at_ns : int
        When, since the Unix epoch.
    """

    kind: str
    app: str
    wearer: str | None
    at_ns: int

    def from_policy(self, policy: Policy) -> Policy:
        """The policy without what was taken; it stays that of its wearer."""
        if self.kind == "drop":
            return policy.without(self.app)
        if policy.wearer != self.wearer:
            if self.wearer not in policy.wearers:
                return policy
            return self.from_policy(policy.worn_by(self.wearer)).worn_by(policy.wearer)
        if self.kind == "consent":
            return replace(policy, consent=False)
        if self.app not in policy.apps:
            return policy
        return policy.with_grant(self.app, replace(policy.apps[self.app], revoked=True))


class Revocations:
    """Revocations that are in force and not yet written, some of them in the file `taken-back`.

    `owe` has one written, before anything else, and gives its future.
    """

    def __init__(self, path: Path, owe: Callable[[Revocation], Future[None]]) -> None:
        self._path, self._owe = path, owe
        self._lock = threading.Lock()
        self._torn = False
        self._pending = self._read()
        self._noted = bool(self._pending)

    def _read(self) -> list[Revocation]:
        try:
            return [
                Revocation(**saved)
                for saved in json.loads(self._path.read_text(encoding="ascii") or "[]")
            ]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError):
            self._torn = True
            return []

    def from_policy(self, policy: Policy, now_ns: int) -> Policy:
        """The policy of the database, without what was taken before the last stop and could not be
        written.
        """
        if self._torn:
            LOG.error(
                "the file taken-back cannot be read, so consent is off",
                extra={"path": str(self._path)},
            )
            self._pending = [Revocation("consent", "", name, now_ns) for name in policy.wearers]
        for revocation in self._pending:
            policy = revocation.from_policy(policy)
        return policy

    @property
    def pending(self) -> tuple[Revocation, ...]:
        """What is not written yet."""
        return tuple(self._pending)

    def start(self) -> None:
        """Make the file, and have written what is left of an earlier run."""
        self._mark()
        for revocation in self.pending:
            self._owe(revocation).add_done_callback(partial(self._written, revocation))

    def add(self, revocation: Revocation) -> bool:
        """Have a revocation written that is in force already; whether it was within
        :data:`WAIT_S`. It is noted otherwise.
        """
        with self._lock:
            self._pending.append(revocation)
        owed = self._owe(revocation)
        owed.add_done_callback(partial(self._written, revocation))
        with contextlib.suppress(TimeoutError):
            owed.result(WAIT_S)
            return True
        self._mark()
        return False

    def _written(self, revocation: Revocation, done: Future[None]) -> None:
        with self._lock:
            self._pending.remove(revocation)
        # What stays in the file is written once more at the next start, which changes nothing.
        if self._noted:
            self._mark()

    def _mark(self) -> None:
        """Write what waits into the file, in place; the room behind it is filled with spaces."""
        with self._lock:
            waiting = [asdict(revocation) for revocation in self._pending]
            self._noted = bool(waiting)
            text = json.dumps(waiting, separators=(",", ":")).encode("ascii")
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            try:
                handle = os.open(self._path, flags, 0o600)
                with open(handle, "r+b") as file:
                    file.write(text.ljust(max(ROOM_BYTES, os.fstat(handle).st_size)))
                    file.flush()
                    os.fsync(handle)
            except OSError as error:
                LOG.error("the file taken-back cannot be written", exc_info=error)


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
