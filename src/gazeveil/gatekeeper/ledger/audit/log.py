"""What was asked and answered, for the owner: rows with hashed ids, each bound to the one before.

An app stands in the log as a keyed BLAKE2b hash. A copy of the log therefore does not reveal the
apps in use; with the key, the owner can compute the hash of a name. Each row holds a keyed hash
over its content and the row before. A row that was changed, removed, moved or inserted makes
:meth:`AuditLog.verify` fail. Write access to the database and the key suffice to forge a whole log.
Store :meth:`AuditLog.head` elsewhere to detect that. Details are short words and integers; anything
that could be gaze is refused.

No row, no answer: :meth:`AuditLog.record` returns when its row is on the disk, or raises.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.ledger.audit.export import (
    PRUNED,
    START,
    Row,
    export_lines,
    link,
    pruned_up_to,
)
from gazeveil.gatekeeper.ledger.audit.retention import prune
from gazeveil.gatekeeper.ledger.database import Database, Ready
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.ledger.tables import AUDIT, AUDIT_HEAD, SECRETS

#: Longest text in the details of a row.
LONGEST = 300


@dataclass(frozen=True)
class AuditRow:
    """One row of the log.

    Parameters
    ----------
    id : int
        Its number, from 1.
    at_ns : int
        Time since the Unix epoch.
    kind : str
        What happened.
    app : str
        The hashed id of the app.
    detail : mapping
        Words and whole numbers.
    chain : str
        The hash over this row and all before it.
    """

    id: int
    at_ns: int
    kind: str
    app: str
    detail: Mapping[str, object]
    chain: str


class AuditLog:
    """The log in the ledger's database. The key, at least 16 bytes, hashes the ids; it is made and
    kept in the database if not given.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     log = AuditLog(ledger)
    ...     number = log.record("denied", "shop", {"what": "tile", "code": "scope"}, now_ns=1)
    ...     print(log.entries()[0].kind, log.verify(), "shop" in log.entries()[0].app)
    denied True False
    """

    def __init__(self, ledger: Ledger, key: bytes | None = None) -> None:
        self._database: Database = ledger.database
        if key is not None and not (isinstance(key, bytes) and 16 <= len(key) <= 64):
            checks.refuse("AuditLog", "key", "16 to 64 bytes", type(key).__name__)
        self._key = key if key is not None else secret(self._database, "audit")
        first = {"name": "audit", "rows": 0, "chain": START}
        self._database.write(lambda connection: _start(connection, AUDIT_HEAD, first))

    def pseudonym(self, app: str) -> str:
        """The hash an app has in this log."""
        return blake2b(b"app\x00" + app.encode(), key=self._key, digest_size=16).hexdigest()

    def record(self, kind: str, app: str, detail: Mapping[str, object], now_ns: int) -> int:
        """Add a row; it is on the disk when this returns.

        Parameters
        ----------
        kind : str
            A word, as `answer`, `denied`, `grant`.
        app : str
            Whom it is about; stored hashed.
        detail : mapping of str to str, int, bool or None
            Never gaze: numbers with a fraction are refused.
        now_ns : int
            Time since the Unix epoch.

        Returns
        -------
        int
            The number of the row.

        Raises
        ------
        LedgerError
            Where it cannot be written; then nothing may be answered.
        """
        for name, text in (("kind", kind), ("app", app)):
            if not isinstance(text, str) or not 0 < len(text) <= LONGEST or "\x00" in text:
                checks.refuse("AuditLog.record", name, f"a text of 1 to {LONGEST} characters", text)
        written, who = _detail(detail), self.pseudonym(app)
        return self._database.write(
            lambda connection: self._add(connection, kind, who, written, int(now_ns))
        )

    def _add(self, connection: Connection, kind: str, who: str, written: str, at_ns: int) -> int:
        head = _HEAD(connection, {"n": "audit"}).one()
        number = int(head.rows) + 1
        chain = link(self._key, head.chain, number, at_ns, kind, who, written)
        row = {"id": number, "at_ns": at_ns, "kind": kind, "app": who, "detail": written}
        _INSERT(connection, {**row, "chain": chain})
        _ADVANCE(connection, {"n": "audit", "rows": number, "chain": chain})
        return number

    def prune(self, before_ns: int, now_ns: int) -> int:
        """Delete rows from before a time; a row says which ones went, so that the rest can still be
        verified.

        Returns
        -------
        int
            How many went.
        """

        def mark(connection: Connection, last: int, chain: str) -> None:
            detail = _detail({"rows": last, "chain": chain})
            self._add(connection, PRUNED, self.pseudonym("device"), detail, int(now_ns))

        def work(connection: Connection) -> int:
            _HEAD(connection, {"n": "audit"}).one()  # lock: no row is added meanwhile
            return prune(connection, before_ns, mark)

        return self._database.write(work)

    @property
    def key(self) -> bytes:
        """Key of the hashes.

        It allows checking an export, recovering the names of apps, and forging a log.
        """
        return self._key

    def export(self, device: str, now_ns: int) -> Iterator[bytes]:
        """The log up to now as JSON lines, which
        :func:`gazeveil.gatekeeper.ledger.audit.export.verify_lines` checks without a database.
        """
        head = self.head()
        return export_lines(self._exported(head[0]), device, head, now_ns)

    def _exported(self, last: int) -> Iterator[Row]:
        number = 0
        while page := self._rows(number):
            for row in page:
                if row.id > last:
                    return
                number = row.id
                yield Row(row.id, row.at_ns, row.kind, row.app, row.detail, row.chain)

    def entries(self, after: int = 0, limit: int = 1000) -> tuple[AuditRow, ...]:
        """Rows after a number, oldest first."""
        most = checks.count("AuditLog.entries", "limit", limit)
        query = sa.select(AUDIT).where(AUDIT.c.id > after).order_by(AUDIT.c.id).limit(most)
        return tuple(map(_row, self._database.rows(query)))

    def last(self, limit: int = 100) -> tuple[AuditRow, ...]:
        """The newest rows, oldest of them first."""
        most = checks.count("AuditLog.last", "limit", limit)
        query = sa.select(AUDIT).order_by(AUDIT.c.id.desc()).limit(most)
        return tuple(map(_row, reversed(self._database.rows(query))))

    def head(self) -> tuple[int, str]:
        """How many rows there are, and the hash over all of them; kept elsewhere, it shows a log
        that was cut or made anew.
        """
        (row,) = self._database.rows(sa.select(AUDIT_HEAD))
        return int(row.rows), str(row.chain)

    def verify(self, head: tuple[int, str] | None = None) -> bool:
        """Whether every row is as it was written and none is missing. The log must contain `head`,
        what :meth:`head` said earlier, so it must be younger than what was pruned.
        """
        rows, last = self.head()
        number, before = self._begin()
        met = head is None or head == (number, before)
        while page := self._rows(number):
            for row in page:
                number += 1
                if row.id != number or not hmac.compare_digest(
                    link(self._key, before, number, row.at_ns, row.kind, row.app, row.detail),
                    row.chain,
                ):
                    return False
                before = row.chain
                met = met or (number, before) == head
                if number == rows and before != last:
                    return False
        # Rows that were added while this ran are more than the head said, never fewer.
        return met and number >= rows

    def _begin(self) -> tuple[int, str]:
        """Number and hash of the row before the first: of the start, or of the last row that a
        later one says was pruned.

        What such a row says is believed here and proved afterwards, because it is one of the rows
        that are verified.
        """
        ((first,),) = self._database.rows(sa.select(sa.func.min(AUDIT.c.id)))
        if first is not None and first > 1:
            query = (
                sa.select(AUDIT.c.kind, AUDIT.c.detail)
                .where(AUDIT.c.kind == PRUNED)
                .order_by(AUDIT.c.id.desc())
            )
            for row in self._database.rows(query):
                # A row written by another program may have any content.
                with suppress(ValueError, KeyError, TypeError):
                    up_to = pruned_up_to(row.kind, row.detail)
                    if up_to is not None and up_to[0] == first - 1:
                        return up_to
        return 0, START

    def _rows(self, after: int) -> Sequence[sa.Row[Any]]:
        query = sa.select(AUDIT).where(AUDIT.c.id > after).order_by(AUDIT.c.id).limit(1000)
        return self._database.rows(query)


_HEAD = Ready(sa.select(AUDIT_HEAD).where(AUDIT_HEAD.c.name == sa.bindparam("n")).with_for_update())
_INSERT = Ready(sa.insert(AUDIT))
_ADVANCE = Ready(
    sa.update(AUDIT_HEAD)
    .where(AUDIT_HEAD.c.name == sa.bindparam("n"))
    .values(rows=sa.bindparam("rows"), chain=sa.bindparam("chain"))
)


def _detail(detail: Mapping[str, object]) -> str:
    for name, value in detail.items():
        # Coordinates, velocities and pupils are numbers with a fraction: none of them can get in
        # here, not even by mistake.
        if not (value is None or isinstance(value, str | int)) or (
            isinstance(value, str) and len(value) > LONGEST
        ):
            checks.refuse(
                "AuditLog.record",
                f"detail.{name}",
                f"a short text, a whole number, true, false or nothing (at most {LONGEST}"
                " characters)",
                type(value).__name__,
            )
    return json.dumps(dict(detail), sort_keys=True, separators=(",", ":"))


def _row(row: sa.Row[Any]) -> AuditRow:
    return AuditRow(row.id, row.at_ns, row.kind, row.app, json.loads(row.detail), row.chain)


def secret(database: Database, name: str) -> bytes:
    """A key of this device, made on first use."""

    def work(connection: Connection) -> bytes:
        _start(connection, SECRETS, {"name": name, "value": os.urandom(32)})
        value = sa.select(SECRETS.c.value).where(SECRETS.c.name == name)
        return bytes(connection.execute(value).scalar_one())

    return database.write(work)


def _start(connection: Connection, table: sa.Table, values: Mapping[str, object]) -> None:
    """Put in the first row of a table unless it is there."""
    there = sa.select(table.c.name).where(table.c.name == values["name"])
    if connection.execute(there).first() is None:
        connection.execute(sa.insert(table).values(**values))
