"""The audit log as a file of JSON lines, and how it is checked on a machine that has no database.

The first line names the format and the range of rows; every other line is a row as written. Each
row holds a keyed hash over its content and the row before. With the key, any row that was changed,
removed, moved or inserted is detected. Where old rows were pruned, a later row of the kind `pruned`
holds the number and the hash of the last pruned row. The chain begins there.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from gazeveil.errors import DataError

#: The first line's mark, and its version.
FORMAT, VERSION = "gazeveil-audit", 1

#: The hash before the first row.
START = "0" * 64

#: The kind of a row that says what was pruned.
PRUNED = "pruned"

_ROW = {"id": int, "at_ns": int, "kind": str, "app": str, "detail": str, "chain": str}


@dataclass(frozen=True)
class Row:
    """One row as it was written; `detail` is the JSON text that the hash is over."""

    id: int
    at_ns: int
    kind: str
    app: str
    detail: str
    chain: str


@dataclass(frozen=True)
class Verified:
    """What a file holds whose rows are all as they were written: how many, their numbers (0 where
    there are none), and the row that says that those before the first were pruned.
    """

    rows: int
    first: int
    last: int
    pruned_by: int | None


def link(key: bytes, before: str, number: int, at_ns: int, kind: str, app: str, detail: str) -> str:
    """The hash of a row over its content and the row before."""
    content = json.dumps([before, number, at_ns, kind, app, detail], separators=(",", ":")).encode()
    return blake2b(b"row\x00" + content, key=key, digest_size=32).hexdigest()


def pruned_up_to(kind: str, detail: str) -> tuple[int, str] | None:
    """The last row that was pruned and its hash, where a row says so."""
    if kind != PRUNED:
        return None
    pruned = json.loads(detail)
    return int(pruned["rows"]), str(pruned["chain"])


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
    first = {
        "format": FORMAT,
        "version": VERSION,
        "device": device,
        "exported_ns": now_ns,
        "last": head[0],
        "chain": head[1],
    }
    yield json.dumps(first).encode() + b"\n"
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
    objects = [_parsed(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not objects or objects[0].get("format") != FORMAT or objects[0].get("version") != VERSION:
        raise DataError(
            "The file is no audit log that was exported: its first line does not say so. Export it"
            " again with GET /v1/audit/export."
        )
    top, rows = objects[0], [_row(number, row) for number, row in enumerate(objects[1:], 2)]
    first = rows[0].id if rows else 1
    anchors = {
        up_to: (row.id, chain)
        for row in rows
        for up_to, chain in [pruned_up_to(row.kind, row.detail) or (-1, "")]
    }
    by, before = (None, START) if first == 1 else anchors.get(first - 1, (None, ""))
    if first != 1 and by is None:
        raise DataError(
            f"The rows before row {first} are missing, and no row says that they were pruned."
        )
    met = head is None or head == (first - 1, before)
    for at, row in enumerate(rows):
        if row.id != first + at:
            raise DataError(
                f"Line {at + 2} holds row {row.id} where row {first + at} belongs. Rows were"
                " removed, moved or put in."
            )
        if not hmac.compare_digest(
            link(key, before, row.id, row.at_ns, row.kind, row.app, row.detail), row.chain
        ):
            raise DataError(
                f"Line {at + 2} (row {row.id}) is not as it was written, or the key is another"
                " log's."
            )
        before = row.chain
        met = met or (row.id, row.chain) == head
    if (first + len(rows) - 1, before) != (top.get("last"), top.get("chain")):
        raise DataError("The last rows of the file are missing: its first line names a later one.")
    if not met:
        raise DataError(
            "The file does not hold the row that was noted earlier. The log was cut, made anew, or"
            " pruned beyond it."
        )
    return Verified(len(rows), rows[0].id if rows else 0, rows[-1].id if rows else 0, by)


def _parsed(number: int, line: str | bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise DataError(f"Line {number} of the file is not a JSON object.")
    return parsed


def _row(number: int, row: dict[str, Any]) -> Row:
    if set(row) != set(_ROW) or any(type(row[name]) is not kind for name, kind in _ROW.items()):
        raise DataError(f"Line {number} of the file is not a row of an audit log.")
    try:
        pruned_up_to(row["kind"], row["detail"])
    except (ValueError, KeyError, TypeError):
        raise DataError(f"Line {number} of the file is not a row of an audit log.") from None
    return Row(**row)
