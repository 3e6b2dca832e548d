"""What was asked and answered, for the owner: rows with hashed ids, each bound to the one before.

An app stands in the log as a keyed BLAKE2b hash. A copy of the log therefore does not reveal the
apps in use; with the key, the owner can compute the hash of a name. Each row holds a keyed hash
over its content and the row before. A row that was changed, removed, moved or inserted makes
:meth:`AuditLog.verify` fail. Write access to the database and the key suffice to forge a whole log.
Store :meth:`AuditLog.head` elsewhere to detect that. Details are short words and integers; anything
that could be gaze is refused.

No row, no answer: :meth:`AuditLog.record` returns when its row is on the disk, or raises.

Old rows may be pruned, from the beginning alone. Before that a row is written that holds the number
and the hash of the last one that goes. It is a link of the chain, so writing one takes the key. The
trigger that makes the table append-only is off for that one transaction.

The audit log as a file of JSON lines, and how it is checked on a machine that has no database.

The first line names the format and the last row; every other line is a row as written. Each row
holds a keyed hash over its content and the row before. With the key, any row that was changed,
removed, moved or inserted is detected. Where old rows were pruned, a later row of the kind `pruned`
holds the number and the hash of the last pruned row. The chain begins there.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gatekeeper.ledger.database import Database, Sql
from gazeveil.gatekeeper.ledger.ledger import Ledger

#: The first line's mark, and its version.
FORMAT, VERSION = "gazeveil-audit", 1

#: The hash before the first row.
START = "0" * 64

#: The kind of a row that says what was pruned.
PRUNED = "pruned"

_ROW = {"id": int, "at_ns": int, "kind": str, "app": str, "detail": str, "chain": str}


@dataclass(frozen=True)
class Row:
    """One row as it was written.

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
    detail : str
        Words and whole numbers, as the JSON text that the hash is over.
    chain : str
        The hash over this row and all before it.
    """

    id: int
    at_ns: int
    kind: str
    app: str
    detail: str
    chain: str

    def link(self, key: bytes, before: str) -> str:
        """The hash of the row over its content and the row before."""
        content = [before, self.id, self.at_ns, self.kind, self.app, self.detail]
        text = json.dumps(content, separators=(",", ":")).encode()
        return blake2b(b"row\x00" + text, key=key, digest_size=32).hexdigest()

    @property
    def pruned_up_to(self) -> tuple[int, str]:
        """The last row that was pruned and its hash, where the row says so; else (0, "")."""
        if self.kind != PRUNED:
            return 0, ""
        pruned = json.loads(self.detail)
        return int(pruned["rows"]), str(pruned["chain"])


@dataclass(frozen=True)
class Verified:
    """What a file holds whose rows are all as they were written: how many, their numbers (0 where
    there are none), and the row that says that those before the first were pruned.
    """

    rows: int
    first: int
    last: int
    pruned_by: int | None


def export_lines(
    rows: Iterable[Row], device: str, head: tuple[int, str], now_ns: int
) -> Iterator[bytes]:
    """The lines of a file.

    Parameters
    ----------
    rows : iterable of Row
        In their order.
    device : str
        Whose log it is.
    head : tuple of int and str
        Number and hash of the last row.
    now_ns : int
        When it is written, since the Unix epoch.
    """
    first = {"format": FORMAT, "version": VERSION, "device": device, "exported_ns": now_ns}
    yield json.dumps({**first, "last": head[0], "chain": head[1]}).encode() + b"\n"
    for row in rows:
        yield json.dumps({name: getattr(row, name) for name in _ROW}).encode() + b"\n"


def verify_lines(
    lines: Iterable[str | bytes], key: bytes, head: tuple[int, str] | None = None
) -> Verified:
    """See that a file holds every row as it was written, under the log's own key. `head` is number
    and hash of a row that was noted earlier: the file must hold it, or say that it is the last one
    that was pruned.

    Raises
    ------
    DataError
        With the first line that is not as it was written.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, line = next(numbered, (1, "{}"))
    top = _parsed(number, line)
    if top.get("format") != FORMAT or top.get("version") != VERSION:
        raise DataError(
            "The file is no audit log that was exported: its first line does not say so. Export it"
            " again with GET /v1/audit/export."
        )
    first = last = 0
    # The row before the first: the start, or one that a later row says was the last to be pruned.
    anchors: dict[tuple[int, str], int] = {(0, START): 0}
    before, begun, met = START, Row(1, 0, "", "", "", ""), head in (None, (0, START))
    for number, line in numbered:
        row = _exported_row(number, _parsed(number, line))
        if not first:
            first, begun = row.id, row
        elif row.id != last + 1:
            raise DataError(
                f"Line {number} holds row {row.id} where row {last + 1} belongs. Rows were removed,"
                " moved or put in."
            )
        if row is not begun or first == 1:
            _see_link(number, row, key, before)
        anchors[row.pruned_up_to] = row.id
        before, last = row.chain, row.id
        met = met or (row.id, row.chain) == head
    if (last, before) != (top.get("last"), top.get("chain")):
        raise DataError("The last rows of the file are missing: its first line names a later one.")
    if first <= 1:
        return _met(Verified(last, first, last, None), met)
    for (pruned, chain), by in anchors.items():
        if pruned == first - 1:
            _see_link(2, begun, key, chain)
            met = met or head == (pruned, chain)
            return _met(Verified(last - pruned, first, last, by), met)
    raise DataError(
        f"The rows before row {first} are missing, and no row says that they were pruned."
    )


def _met(verified: Verified, met: bool) -> Verified:
    if not met:
        raise DataError(
            "The file does not hold the row that was noted earlier. The log was cut, made anew, or"
            " pruned beyond it."
        )
    return verified


def _see_link(number: int, row: Row, key: bytes, before: str) -> None:
    if not hmac.compare_digest(row.link(key, before), row.chain):
        raise DataError(
            f"Line {number} (row {row.id}) is not as it was written, or the key is another log's."
        )


def _parsed(number: int, line: str | bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise DataError(f"Line {number} of the file is not a JSON object.")
    return parsed


def _exported_row(number: int, values: dict[str, Any]) -> Row:
    readable = set(values) == set(_ROW)
    readable = readable and all(type(values[name]) is kind for name, kind in _ROW.items())
    try:
        row = Row(**values) if readable else None
        if row is not None and row.pruned_up_to is not None:
            return row
    except (ValueError, KeyError, TypeError):
        pass
    raise DataError(f"Line {number} of the file is not a row of an audit log.")


#: Longest text in the details of a row.
LONGEST = 300

#: Rows that are read at once.
_PAGE = 1000

_COLUMNS = "SELECT id, at_ns, kind, app, detail, chain FROM audit_rows"


class AuditLog:
    """The log in the ledger's database; the key that hashes the ids is made there.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     log = AuditLog(ledger)
    ...     log.record("denied", "shop", {"what": "tile", "code": "scope"}, now_ns=1)
    ...     print(log.entries()[0].kind, log.verify(), "shop" in log.entries()[0].app)
    denied True False
    """

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database
        #: Key of the hashes. It allows checking an export, recovering the names of apps, and
        #: forging a log.
        self.key = secret(self._database, "audit")

    def pseudonym(self, app: str) -> str:
        """The hash an app has in this log."""
        return blake2b(b"app\x00" + app.encode(), key=self.key, digest_size=16).hexdigest()

    def record(
        self,
        kind: str,
        app: str,
        detail: Mapping[str, object],
        now_ns: int,
        also: Callable[[Sql], None] | None = None,
    ) -> None:
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
        also : callable, optional
            Writes more in the same transaction.

        Raises
        ------
        LedgerError
            Where it cannot be written; then nothing may be answered.
        """
        self._database.write(self.writes(kind, app, detail, now_ns, also))

    def writes(
        self,
        kind: str,
        app: str,
        detail: Mapping[str, object],
        now_ns: int,
        also: Callable[[Sql], None] | None = None,
    ) -> Callable[[Sql], None]:
        """What :meth:`record` does, for a transaction that is made elsewhere."""
        for name, text in (("kind", kind), ("app", app)):
            if not isinstance(text, str) or not 0 < len(text) <= LONGEST or "\x00" in text:
                checks.refuse("AuditLog.record", name, f"a text of 1 to {LONGEST} characters", text)
        written, who = _detail(detail), self.pseudonym(app)

        def work(sql: Sql) -> None:
            if also is not None:
                also(sql)
            self._add(sql, kind, who, written, int(now_ns))

        return work

    def _add(self, sql: Sql, kind: str, who: str, written: str, at_ns: int) -> None:
        number, before = _head(sql)
        row = Row(number + 1, at_ns, kind, who, written, "")
        values = row.id, at_ns, kind, who, written, row.link(self.key, before)
        sql("INSERT INTO audit_rows VALUES (?, ?, ?, ?, ?, ?)", *values)

    def prune(self, before_ns: int, now_ns: int) -> int:
        """Delete the oldest rows, up to the first that is not from before a time; a row says which
        ones went, so that the rest can still be verified.

        Returns
        -------
        int
            How many went.
        """

        def work(sql: Sql) -> int:
            question = "SELECT id, chain FROM audit_rows WHERE id < ? ORDER BY id DESC LIMIT 1"
            ((kept,),) = sql("SELECT MIN(id) FROM audit_rows WHERE at_ns >= ?", before_ns)
            last = sql(question, 2**62 if kept is None else kept)
            if not last:
                return 0
            detail = _detail({"rows": last[0][0], "chain": last[0][1]})
            self._add(sql, PRUNED, self.pseudonym("device"), detail, int(now_ns))
            ((gone,),) = sql("SELECT COUNT(*) FROM audit_rows WHERE id <= ?", last[0][0])
            guard = "audit_rows_no_delete BEFORE DELETE ON audit_rows"
            if self._database.sqlite:
                sql("DROP TRIGGER audit_rows_no_delete")
                sql("DELETE FROM audit_rows WHERE id <= ?", last[0][0])
                body = "SELECT RAISE(ABORT, 'audit_rows only grows')"
                sql(f"CREATE TRIGGER {guard} BEGIN {body}; END")
            else:
                sql("ALTER TABLE audit_rows DISABLE TRIGGER audit_rows_no_change")
                sql("DELETE FROM audit_rows WHERE id <= ?", last[0][0])
                sql("ALTER TABLE audit_rows ENABLE TRIGGER audit_rows_no_change")
            return int(gone)

        return self._database.write(work)

    def export(self, device: str, now_ns: int) -> Iterator[bytes]:
        """The log up to now as JSON lines, which
        :func:`gazeveil.gatekeeper.ledger.audit.verify_lines` checks without a database.
        """
        head = self.head()
        return export_lines(self._rows(head[0]), device, head, now_ns)

    def _rows(self, last: int) -> Iterator[Row]:
        number = 0
        question = f"{_COLUMNS} WHERE id > ? AND id <= ? ORDER BY id LIMIT {_PAGE}"
        while page := self._database.rows(question, number, last):
            yield from (Row(*values) for values in page)
            number = page[-1][0]

    def entries(self, after: int = 0, limit: int = 1000) -> tuple[Row, ...]:
        """Rows after a number, oldest first."""
        most = checks.count("AuditLog.entries", "limit", limit)
        question = f"{_COLUMNS} WHERE id > ? ORDER BY id LIMIT ?"
        return tuple(Row(*values) for values in self._database.rows(question, after, most))

    def last(self, limit: int = 100) -> tuple[Row, ...]:
        """The newest rows, oldest of them first."""
        most = checks.count("AuditLog.last", "limit", limit)
        rows = self._database.rows(f"{_COLUMNS} ORDER BY id DESC LIMIT ?", most)
        return tuple(Row(*values) for values in reversed(rows))

    def head(self) -> tuple[int, str]:
        """Number of the last row, and the hash over all of them; kept elsewhere, it shows a log
        that was cut or made anew.
        """
        return self._database.read(_head)

    def verify(self, head: tuple[int, str] | None = None) -> bool:
        """Whether every row is as it was written and none is missing. The log must contain `head`,
        what :meth:`head` said earlier, so it must be younger than what was pruned.
        """
        try:
            verify_lines(self.export("", 0), self.key, head)
        except DataError:
            return False
        return True


def _head(sql: Sql) -> tuple[int, str]:
    rows = sql("SELECT id, chain FROM audit_rows ORDER BY id DESC LIMIT 1")
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, START)


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


def secret(database: Database, name: str) -> bytes:
    """A key of this device, made on first use."""

    def work(sql: Sql) -> bytes:
        question = "SELECT value FROM secrets WHERE name = ?"
        if not sql(question, name):
            sql("INSERT INTO secrets VALUES (?, ?)", name, os.urandom(32).hex())
        return bytes.fromhex(sql(question, name)[0][0])

    return database.write(work)
