"""The database under the ledger, the policy, the audit log and the tokens: SQLite in a file, or
PostgreSQL by URL; and the one thread that uses it.

Commands are numbered by their place in one queue, and each is one transaction that is on the disk
when it returns (SQLite: write-ahead log with `synchronous=FULL`; PostgreSQL:
`synchronous_commit=on`). Writers of several processes exclude one another: SQLite's take the lock
of the file, PostgreSQL's an advisory lock. Transient errors (a lock, a restart) are tried again for
a few seconds; lasting ones raise a :class:`~gazeveil.gatekeeper.errors.LedgerError` with one
sentence. A write may be tried again after its outcome was lost, so every write here is idempotent.

What is *owed* (:meth:`Database.owe`) was done already and has to be written: it goes before
everything else, however often it must be tried.

A file of SQLite that was removed or replaced while it is open is noticed before each transaction
(:mod:`gazeveil.gatekeeper.ledger.database`).

The file of an SQLite database while it is open: that it is still the one that was opened, and
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
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.errors import LedgerError

#: Least free disk space for a charge, which needs a few pages: refuse it rather than fail halfway.
ROOM_BYTES = 256 * 1024


class LostFileError(LedgerError):
    """The file is not the one that was opened. `what` follows "was"; `remedy` says what to do."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"The ledger's file {path} was {what} while the service runs. {remedy}")
        self.sentence = f"The ledger's file was {what} while the service runs. {remedy}"


class OtherServiceError(LedgerError):
    """Another service has begun to use the database."""

    def __init__(self) -> None:
        self.sentence = "Another service uses the ledger's database. Stop one of the two."
        super().__init__(self.sentence)


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


def words_of(error: LedgerError | None) -> str:
    """The sentence of an error for people who may not see paths."""
    return str(
        getattr(
            error,
            "sentence",
            "The ledger's database does not answer. Start it again, or look into its log.",
        )
    )


Result = TypeVar("Result")

#: `sql(text, *values)` runs one statement, with `?` for each value, and gives its rows.
Sql: TypeAlias = Callable[..., list[tuple[Any, ...]]]

#: How long a write is tried again before it is given up.
PATIENCE_S = 5.0

#: How often the database is asked whether it would take a write, in seconds.
BEAT_S = 0.5

#: The number of these tables; a database with another one is refused.
SCHEMA = 3

#: States of PostgreSQL that pass: serialization failure, deadlock, lock not available, shutdown,
#: starting up, too many connections, connection lost.
_PASSING_STATES = ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300", "08")

_ADVISORY_LOCK = 7_214_009_001

#: Tables whose rows are never changed or deleted.
ONLY_GROW = ("ledger_entries", "audit_rows")

#: What is gone of an account on its last day; everything that ever happened to it; what was decided
#: and answered; the policy, one row for each wearer (with an empty app) and each grant; refused
#: questions; hashes of tokens; keys of the device.
_TABLES = (
    "ledger_accounts (account TEXT, currency TEXT, day BIGINT NOT NULL, total TEXT NOT NULL,"
    " seen_ns BIGINT NOT NULL, PRIMARY KEY (account, currency))",
    "ledger_entries (id BIGINT PRIMARY KEY, request_id TEXT NOT NULL, part INTEGER NOT NULL,"
    " account TEXT NOT NULL, currency TEXT NOT NULL, amount TEXT NOT NULL, day BIGINT NOT NULL,"
    " why TEXT NOT NULL, at_ns BIGINT NOT NULL, UNIQUE (request_id, part))",
    "audit_rows (id BIGINT PRIMARY KEY, at_ns BIGINT NOT NULL, kind TEXT NOT NULL,"
    " app TEXT NOT NULL, detail TEXT NOT NULL, chain TEXT NOT NULL)",
    "policy (wearer TEXT, app TEXT, value TEXT NOT NULL, PRIMARY KEY (wearer, app))",
    "dismissals (app TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    "tokens (id TEXT PRIMARY KEY, app TEXT NOT NULL, role TEXT NOT NULL, hash TEXT NOT NULL,"
    " issued_ns BIGINT NOT NULL, expires_ns BIGINT, ended_ns BIGINT)",
    "secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

_SQLITE_GUARDS = (
    *(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN SELECT"
        f" RAISE(ABORT, '{table} only grows'); END"
        for table in ONLY_GROW
        for verb in ("UPDATE", "DELETE")
    ),
    "CREATE TRIGGER ledger_accounts_no_delete BEFORE DELETE ON ledger_accounts BEGIN SELECT"
    " RAISE(ABORT, 'accounts are never deleted'); END",
)

_POSTGRESQL_GUARDS = (
    "CREATE FUNCTION gazeveil_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
    " EXCEPTION '% only grows', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';"
    " END $$",
    *(
        f"CREATE TRIGGER {table}_no_{name} BEFORE {verbs} ON {table} FOR EACH {each} EXECUTE"
        " FUNCTION gazeveil_only_grows()"
        for table in ONLY_GROW
        for name, verbs, each in (
            ("change", "UPDATE OR DELETE", "ROW"),
            ("truncate", "TRUNCATE", "STATEMENT"),
        )
    ),
    "CREATE TRIGGER ledger_accounts_no_delete BEFORE DELETE ON ledger_accounts FOR EACH ROW"
    " EXECUTE FUNCTION gazeveil_only_grows()",
)


class Database:
    """One database, its thread and its rules.

    Parameters
    ----------
    url : str
        `sqlite:///path`, `sqlite://` (in memory) or `postgresql://user:password@host/name`.
    patience_s : float
        How long to try again where a failure may pass.

    Raises
    ------
    LedgerError
        Where the database cannot be used: unknown kind of URL, no such folder, not a database, made
        by a newer version.
    """

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        scheme, _, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
        if scheme not in ("sqlite", "postgres", "postgresql"):
            kind = f"in '{scheme}'" if scheme else "there"
            raise LedgerError(
                f"The ledger cannot be kept {kind}. Write sqlite:///path/to/file or"
                " postgresql://user@host/name."
            )
        self.sqlite, self._url = scheme == "sqlite", url
        path = (
            Path(rest.removeprefix("/")) if self.sqlite and rest not in ("", ":memory:") else None
        )
        self.file = None if path is None else DatabaseFile(path)
        #: When the database last took a write, on the clock of `time.monotonic`.
        self.heard_s = time.monotonic()
        #: Why it last did not, in one sentence without paths; None where it did.
        self.trouble: str | None = None
        self._failed_write = False
        #: Called on the database's thread every :data:`BEAT_S`.
        self.beat: Callable[[], None] | None = None
        #: Written by :meth:`hold`: writes are refused where another service has held it since.
        self._holder: str | None = None
        self._connection: Any = None
        self._owed: list[tuple[Future[None], Callable[[], None]]] = []
        self._commands: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        # A daemon: a database that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="gazeveil-ledger", daemon=True)
        self._thread.start()
        try:
            self.write(self._make_tables, self.patience_s + 60)
        except BaseException:
            self.close()
            raise

    @property
    def shown(self) -> str:
        """The URL without its password."""
        parts = urlsplit(self._url)
        if parts.password is None:
            return self._url
        return urlunsplit(
            parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@"))
        )

    # --- the queue
    # ----------------------------------------------------------------------------------------------

    def later(self, work: Callable[[], Result]) -> Future[Result]:
        """Run on the database's thread, after what was asked for before."""
        future: Future[Result] = Future()
        self._commands.put((future, work))
        return future

    def owe(self, work: Callable[[Sql], None]) -> Future[None]:
        """Have something written that holds already, before anything else, until it succeeds."""
        future: Future[None] = Future()
        self._owed.append((future, partial(self.write, work)))
        self.later(lambda: None)
        return future

    def write(self, work: Callable[[Sql], Result], patience_s: float | None = None) -> Result:
        """Do work in one transaction that is durable when this returns; what passes is tried again.

        Raises
        ------
        LedgerError
            Where it cannot be written; it is not, or that is unknown.
        """
        return self._ask(partial(self._attempt, work, True), patience_s)

    def read(self, work: Callable[[Sql], Result], patience_s: float | None = None) -> Result:
        """Do work that only reads."""
        return self._ask(partial(self._attempt, work, False), patience_s)

    def rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a question."""
        return self.read(lambda sql: sql(text, *values))

    def _ask(self, work: Callable[[], Result], patience_s: float | None) -> Result:
        if threading.current_thread() is self._thread:
            return work()
        future = self.later(work)
        try:
            return future.result((self.patience_s if patience_s is None else patience_s) + 1.0)
        except TimeoutError:
            future.cancel()
            self.trouble = self.trouble or words_of(None)
            raise LedgerError(f"The ledger at {self.shown} did not answer in time.") from None

    def _work(self) -> None:
        beaten_s = time.monotonic()
        while True:
            with suppress(queue.Empty):
                command = self._commands.get(timeout=BEAT_S)
                if command is None:
                    break
                self._run(*command)
            if self.beat is not None and time.monotonic() - beaten_s >= BEAT_S:
                self._run(Future(), self.beat)
                beaten_s = time.monotonic()
        if self._connection is not None:
            self._connection.close()

    def _run(self, future: Future[Any], work: Callable[[], Any]) -> None:
        # While something that was taken away cannot be written, nothing else is.
        blocked = self._pay_owed()
        if future.set_running_or_notify_cancel():
            try:
                if blocked is not None:
                    raise blocked
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    def _pay_owed(self) -> LedgerError | None:
        """Write what is owed; the error where that cannot be."""
        while self._owed:
            future, work = self._owed[0]
            try:
                work()
            except LedgerError as error:
                return error
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(None)
            self._owed.pop(0)
        return None

    def close(self) -> None:
        """Write what was asked for before, and give connections and files back; a database that
        hangs is not waited for.
        """
        self._commands.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(self.patience_s + 1.0)

    # --- transactions
    # ----------------------------------------------------------------------------------------------

    def probe(self, sql: Sql) -> None:
        """See that the database would take a write: its disk has room and, after a write has
        failed, one is made: a disk may be full although it can be read. For a write transaction.
        """
        if self.file is not None:
            self.file.need_room()
        if self._failed_write:
            sql("UPDATE gazeveil_tables SET number = number")

    def hold(self) -> None:
        """Have this be the one service that writes: one that began earlier is refused from now on,
        for each would have a policy of its own.
        """
        holder = token_hex(16)

        def work(sql: Sql) -> None:
            sql("DELETE FROM secrets WHERE name = 'holder'")
            sql("INSERT INTO secrets VALUES ('holder', ?)", holder)

        self.write(work)
        self._holder = holder

    def _attempt(self, work: Callable[[Sql], Result], write: bool) -> Result:
        deadline, pause_s = time.monotonic() + self.patience_s, 0.002
        while True:
            try:
                result = self._transaction(work, write)
            except LedgerError as error:
                self.trouble = words_of(error)
                raise
            except _errors() as error:
                if passing(error) and time.monotonic() + pause_s < deadline:
                    time.sleep(pause_s)
                    pause_s = min(2 * pause_s, 0.25)
                    continue
                self.trouble = trouble_of(error)
                self._failed_write = self._failed_write or write
                verb = "written" if write else "read"
                raise LedgerError(
                    f"The ledger at {self.shown} cannot be {verb}: {words(error)}."
                ) from error
            if write:  # a locked file of SQLite is read nevertheless
                self.heard_s, self.trouble, self._failed_write = time.monotonic(), None, False
            return result

    def _transaction(self, work: Callable[[Sql], Result], write: bool) -> Result:
        if self._connection is None:
            self._connection = self.connect()
        try:
            self._sql("BEGIN IMMEDIATE" if write and self.sqlite else "BEGIN")
            if write and not self.sqlite:
                self._sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            if self.file is not None:
                self.file.check(write)
            if write and self._holder is not None:
                holders = self._sql("SELECT value FROM secrets WHERE name = 'holder'")
                if holders != [(self._holder,)]:
                    raise OtherServiceError
            result = work(self._sql)
            self._sql("COMMIT")
        except BaseException:
            self._undo()
            raise
        finally:
            if self.file is not None and write:
                self.file.settled()
        return result

    def _undo(self) -> None:
        """Undo a transaction; a connection to a server that may be broken is made anew."""
        try:
            self._sql("ROLLBACK")
        except Exception:
            # One to a file stays: whoever closes the last one copies the log into the file.
            if not self.sqlite:
                connection, self._connection = self._connection, None
                with suppress(Exception):
                    connection.close()

    def _sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        if self.sqlite:
            return list(self._connection.execute(text, values).fetchall())
        cursor = self._connection.execute(text.replace("?", "%s"), values or None)
        return list(cursor.fetchall()) if cursor.description else []

    def connect(self) -> Any:
        """A new connection of the driver."""
        if not self.sqlite:
            return _connected(self._url, self.patience_s)
        place = ":memory:"
        if self.file is not None:
            place = str(self.file.path)
            _private(self.file.path)
        connection = sqlite3.connect(
            place, timeout=self.patience_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _make_tables(self, sql: Sql) -> None:
        """Make the tables where there are none; safe where several processes start at once."""
        sql("CREATE TABLE IF NOT EXISTS gazeveil_tables (number INTEGER PRIMARY KEY)")
        there = sql("SELECT number FROM gazeveil_tables")
        if there and there[0][0] != SCHEMA:
            raise LedgerError(
                f"The ledger at {self.shown} was made by another version of Gazeveil (its tables"
                f" have number {there[0][0]}, this one's {SCHEMA}). Use that version."
            )
        if not there:
            sql("INSERT INTO gazeveil_tables VALUES (?)", SCHEMA)
            for table in _TABLES:
                sql(f"CREATE TABLE {table}")
            for guard in _SQLITE_GUARDS if self.sqlite else _POSTGRESQL_GUARDS:
                sql(guard)


def _errors() -> tuple[type[Exception], ...]:
    """What the drivers raise that are in use."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error, OSError, *(() if psycopg is None else (psycopg.Error,)))


def _connected(url: str, patience_s: float) -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("psycopg", "service") from None
    seconds = max(1, round(patience_s))
    return psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=seconds,
        options=(
            f"-c synchronous_commit=on -c lock_timeout={seconds}s -c"
            f" statement_timeout={10 * seconds}s"
        ),
    )


def _private(path: Path) -> None:
    """Make a new file for its owner's eyes alone; SQLite gives its log and its index the same
    rights. One that is there keeps its own.
    """
    if not path.parent.is_dir():
        raise LedgerError(
            f"The ledger cannot be kept at {path}: there is no folder {path.parent}. Make it first."
        )
    with suppress(OSError):  # what SQLite cannot open it says itself
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def passing(error: BaseException) -> bool:
    """Whether a failure may be gone a moment later."""
    if isinstance(error, sqlite3.Error):
        return isinstance(error, sqlite3.OperationalError) and any(
            word in str(error) for word in ("locked", "busy")
        )
    state = getattr(error, "sqlstate", None)
    if state is None:
        return type(error).__name__ == "OperationalError"
    return str(state).startswith(_PASSING_STATES)


def words(error: BaseException) -> str:
    """What a database says, on one line and without the statement."""
    text = " ".join(str(error).split()) or type(error).__name__
    return (text if len(text) <= 200 else text[:197] + "...").rstrip(".")


def trouble_of(error: BaseException) -> str:
    """What is wrong, for people who may not see paths, addresses or statements."""
    message = words(error).lower()
    if "full" in message or "no space" in message:
        return "The disk that the ledger is on is full. Free some space."
    if "locked" in message or "busy" in message or "lock timeout" in message:
        return "Another program has locked the ledger's database. Let it finish, or end it."
    return words_of(None)
