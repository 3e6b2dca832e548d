"""The database under the ledger, the audit log and the tokens: SQLite in a file, or PostgreSQL by
URL.

A write is one transaction that is on the disk when it returns (SQLite: write-ahead log with
`synchronous=FULL`; PostgreSQL: `synchronous_commit=on`). On SQLite a writer takes the write lock at
its start, and threads of one process queue for it. No transaction fails at its end because another
was first. Transient errors (a lock, a restart, a lost race) are retried for a few seconds. Lasting
errors raise a :class:`~gazeveil.gatekeeper.errors.LedgerError` with one sentence. A write retried
after its outcome was lost must be idempotent: every write here has its own id.

A file of SQLite that was removed or replaced while it is open is noticed before each transaction
(:mod:`gazeveil.gatekeeper.ledger.database_file`): charges would go into an unlinked file. The
replacement is never trusted; the file that was opened may come back.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.database_file import DatabaseFile, LostFileError, words_of
from gazeveil.gatekeeper.ledger.tables import SCHEMA, VERSION, make

Result = TypeVar("Result")

#: How long a write is tried again before it is given up.
PATIENCE_S = 5.0

#: States of PostgreSQL that pass: serialization failure, deadlock, lock not available, shutdown,
#: starting up, too many connections, connection lost.
_PASSING_STATES = ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300", "08")

_ADVISORY_LOCK = 7_214_009_001


class Database:
    """One engine with its rules.

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
        self.url = _checked(url)
        self.patience_s = patience_s
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.memory = self.sqlite and self.url.database in (None, "", ":memory:")
        self.file = (
            None if self.memory or not self.sqlite else DatabaseFile(Path(str(self.url.database)))
        )
        #: When the database last did what it was asked, on the clock of `time.monotonic`: a write,
        #: or on PostgreSQL anything.
        self.heard_s = time.monotonic()
        #: Why it last did not, in one sentence without paths; None where it did.
        self.trouble: str | None = None
        self._failed_write = False
        self._turn: threading.RLock | nullcontext[None] = (
            threading.RLock() if self.sqlite else nullcontext()
        )
        self.engine = self._engine()
        try:
            make_tables(self)
        except BaseException:
            self.close()
            raise

    def _engine(self) -> Engine:
        if self.sqlite:
            _folder(self.url, self.memory)
            if not self.memory:
                _private(Path(str(self.url.database)))
            arguments: dict[str, Any] = {
                "connect_args": {"timeout": self.patience_s, "check_same_thread": False}
            }
            if self.memory:
                # One connection is the database; the turn keeps its threads apart.
                arguments["poolclass"] = StaticPool
        else:
            seconds = max(1, round(self.patience_s))
            arguments = {
                "connect_args": {
                    "connect_timeout": seconds,
                    "options": (
                        f"-c synchronous_commit=on -c lock_timeout={seconds}s -c"
                        f" statement_timeout={10 * seconds}s"
                    ),
                },
                "pool_timeout": self.patience_s,
            }
        try:
            engine = sa.create_engine(self.url, hide_parameters=True, **arguments)
        except ImportError:
            from gazeveil.errors import MissingExtraError

            raise MissingExtraError("psycopg", "service") from None
        if self.sqlite:
            sa.event.listen(engine, "connect", self._on_connect)
            sa.event.listen(engine, "begin", _on_begin)
        return engine

    def _on_connect(self, connection: sqlite3.Connection, record: object) -> None:
        # Transactions are begun by hand: the driver would begin them late, and without the write
        # lock.
        connection.isolation_level = None
        cursor = connection.cursor()
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                cursor.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                # Two processes that open a new file at once: SQLite does not wait for the other one
                # here.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA busy_timeout={int(self.patience_s * 1000)}")
        cursor.close()

    def write(
        self, work: Callable[[Connection], Result], patience_s: float | None = None
    ) -> Result:
        """Do work in one transaction that is durable when this returns; what
        passes is tried again.
        """
        return self._attempt(work, True, patience_s)

    def read(self, work: Callable[[Connection], Result], patience_s: float | None = None) -> Result:
        """Do work that only reads."""
        return self._attempt(work, False, patience_s)

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """All rows of a query."""
        return self.read(lambda connection: connection.execute(query).all())

    def look(self, work: Callable[[Connection], Result], patience_s: float) -> Result:
        """Do work that only reads, and see whether the database would take a write: its lock is
        free, its disk has room, its file is the one.

        After a write has failed, one is made: a disk may be full although it can be read.

        Raises
        ------
        LedgerError
            Where it would not.
        """
        if self.file is not None:
            try:
                self.file.need_room()
            except LedgerError as error:
                self.trouble = words_of(error)
                raise

        def looking(connection: Connection) -> Result:
            if self._failed_write:
                connection.execute(sa.text("UPDATE audit_head SET name = name"))
            return work(connection)

        return self._attempt(looking, True, patience_s)

    def _attempt(
        self, work: Callable[[Connection], Result], write: bool, patience_s: float | None
    ) -> Result:
        patience = self.patience_s if patience_s is None else patience_s
        deadline, pause_s = time.monotonic() + patience, 0.002
        while True:
            try:
                with (
                    self._turn if write or self.memory else nullcontext(),
                    self.engine.connect() as connection,
                ):
                    if write and self.sqlite:
                        connection.execution_options(gazeveil_write=True)
                    try:
                        with self._patience(connection, patience_s), connection.begin():
                            if self.file is not None:
                                self.file.check(write)
                            result = work(connection)
                    finally:
                        if self.file is not None and write:
                            self.file.settled()
                if write or not self.sqlite:  # a locked file of SQLite is read nevertheless
                    self.heard_s, self.trouble = time.monotonic(), None
                    self._failed_write = self._failed_write and not write
                return result
            except LedgerError as error:
                self.trouble = words_of(error) if isinstance(error, LostFileError) else self.trouble
                raise
            except (SQLAlchemyError, sqlite3.Error, OSError) as error:
                if not passing(error) or time.monotonic() + pause_s > deadline:
                    self.trouble = trouble_of(error)
                    self._failed_write = self._failed_write or write
                    raise LedgerError(
                        f"The ledger at {self.shown} cannot be {'written' if write else 'read'}:"
                        f" {words(error)}."
                    ) from error
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.25)

    @contextmanager
    def _patience(self, connection: Connection, patience_s: float | None) -> Iterator[None]:
        """Have SQLite wait so long for its lock, and as long as ever afterwards."""
        if not self.sqlite or patience_s is None or connection.in_transaction():
            yield
            return
        cursor: Any = connection.connection.driver_connection
        cursor.execute(f"PRAGMA busy_timeout={int(patience_s * 1000)}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout={int(self.patience_s * 1000)}")

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Give connections and files back."""
        self.engine.dispose()


class Ready:
    """A statement, with a bind parameter for every value, that is compiled once for each kind of
    database: a charge must not cost more than its place on the disk.
    """

    def __init__(self, statement: sa.ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, list[str] | None]] = {}

    def __call__(
        self, connection: Connection, values: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> sa.CursorResult[Any]:
        """Run it with one row of values, or with many."""
        text, names = self._compiled.get(connection.dialect.name) or self._compile(connection)
        many = not isinstance(values, Mapping)
        rows = list(values) if many else [values]
        # A Sequence of Mappings after the test, which the type checker cannot see.
        parameters: list[Any] = [
            tuple(row[n] for n in names) if names is not None else dict(row)
            for row in cast("list[Mapping[str, Any]]", rows)
        ]
        return connection.exec_driver_sql(text, parameters if many else parameters[0])

    def _compile(self, connection: Connection) -> tuple[str, list[str] | None]:
        compiled = self._statement.compile(dialect=connection.dialect)
        names = getattr(compiled, "positiontup", None)
        self._compiled[connection.dialect.name] = made = str(compiled), names
        return made


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(
        "BEGIN IMMEDIATE" if connection.get_execution_options().get("gazeveil_write") else "BEGIN"
    )


def _checked(url: str) -> URL:
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError, TypeError, AttributeError):
        raise LedgerError(
            "The address of the ledger is not a URL. Write sqlite:///path/to/file or"
            " postgresql://user@host/name."
        ) from None
    psycopg = "postgresql+psycopg"
    drivers = dict.fromkeys(("postgresql", "postgres", psycopg), psycopg)
    drivers |= dict.fromkeys(("sqlite", "sqlite+pysqlite"), "sqlite")
    if parsed.drivername not in drivers:
        raise LedgerError(
            f"The ledger cannot be kept in '{parsed.drivername}'. Write sqlite:///path/to/file or"
            " postgresql://user@host/name."
        )
    return parsed.set(drivername=drivers[parsed.drivername])


def _folder(url: URL, memory: bool) -> None:
    if memory:
        return
    path = Path(str(url.database))
    try:
        there = path.parent.is_dir()
    except OSError as error:
        raise LedgerError(
            f"The ledger cannot be kept at {path}:"
            f" {error.strerror or 'the folder cannot be looked at'}."
        ) from None
    if not there:
        raise LedgerError(
            f"The ledger cannot be kept at {path}: there is no folder {path.parent}. Make it first."
        )


def _private(path: Path) -> None:
    """Make a new file for its owner's eyes alone; SQLite gives its log and its index the same
    rights. One that is there keeps its own.
    """
    # What SQLite cannot open it says itself.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def passing(error: BaseException) -> bool:
    """Whether a failure may be gone a moment later."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, sqlite3.OperationalError):
        return any(word in str(original) for word in ("locked", "busy"))
    if isinstance(original, sqlite3.Error):
        # A unique index was hit: another writer was first, and the next attempt finds what it
        # wrote.
        return isinstance(original, sqlite3.IntegrityError) and "UNIQUE" in str(original)
    if isinstance(error, DBAPIError):
        state = getattr(original, "sqlstate", None)
        if state is None:
            return error.connection_invalidated or type(original).__name__ == "OperationalError"
        return state == "23505" or str(state).startswith(_PASSING_STATES)
    return False


def words(error: BaseException) -> str:
    """What a database says, on one line and without the statement."""
    original = error.orig if isinstance(error, DBAPIError) else error
    text = " ".join(str(original).split()) or type(original).__name__
    return (text if len(text) <= 200 else text[:197] + "...").rstrip(".")


def trouble_of(error: BaseException) -> str:
    """What is wrong, for people who may not see paths, addresses or statements."""
    message = words(error).lower()
    if "full" in message or "no space" in message:
        return "The disk that the ledger is on is full. Free some space."
    if "locked" in message or "busy" in message or "lock timeout" in message:
        return "Another program has locked the ledger's database. Let it finish, or end it."
    return "The ledger's database does not answer. Start it again, or look into its log."


def make_tables(database: Database) -> None:
    """Make the tables where there are none; safe where several processes start at once.

    Raises
    ------
    LedgerError
        Where there are others.
    """
    if database.read(_schema) == SCHEMA:
        return

    def work(connection: Connection) -> None:
        if not database.sqlite:
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK}
            )
        current = _schema(connection)
        if current is None:
            make(connection)
        elif current != SCHEMA:
            raise LedgerError(
                f"The ledger at {database.shown} was made by another version of Gazeveil (its"
                f" tables have number {current}, this one's {SCHEMA}). Use that version."
            )

    database.write(work)


def _schema(connection: Connection) -> int | None:
    """The number of the tables, or None where there are none of ours."""
    if not sa.inspect(connection).has_table(VERSION.name):
        return None
    return connection.execute(sa.select(VERSION.c.number)).scalar()
