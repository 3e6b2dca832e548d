"""Old rows of the audit log go, and the chain of those that stay can still be checked.

Before rows are deleted, a row of the kind `pruned` is written that holds the number and the hash of
the last deleted row. It is a link of the chain, so writing one takes the key. Rows are deleted only
from the beginning. The trigger that makes the table append-only is off for that one transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.ledger.tables import AUDIT
from gazeveil.gatekeeper.logs import LOG

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit.log import AuditLog

#: How often old rows are looked for.
EVERY_S = 3600.0

_DAY_NS = 86_400 * 10**9

_TRIGGER = (
    "CREATE TRIGGER audit_rows_no_delete BEFORE DELETE ON audit_rows BEGIN SELECT RAISE(ABORT,"
    " 'audit_rows only grows'); END"
)

#: Writes the row that says what was pruned: gets the connection, the number and the hash of the
#: last row that goes.
Mark = Callable[[Connection, int, str], None]


def prune(connection: Connection, before_ns: int, mark: Mark) -> int:
    """Delete the oldest rows, up to the first that is not old; how many went.

    Parameters
    ----------
    connection : Connection
        In a transaction that holds the lock of the log's head.
    before_ns : int
        Rows from before this time are old.
    mark : callable
        Writes the row that says so.
    """
    kept = connection.execute(
        sa.select(sa.func.min(AUDIT.c.id)).where(AUDIT.c.at_ns >= before_ns)
    ).scalar()
    going = sa.select(AUDIT.c.id, AUDIT.c.chain).order_by(AUDIT.c.id.desc()).limit(1)
    last = connection.execute(going if kept is None else going.where(AUDIT.c.id < kept)).first()
    if last is None:
        return 0
    mark(connection, int(last.id), str(last.chain))
    sqlite = connection.dialect.name == "sqlite"
    connection.execute(
        sa.text(
            "DROP TRIGGER audit_rows_no_delete"
            if sqlite
            else "ALTER TABLE audit_rows DISABLE TRIGGER audit_rows_no_change"
        )
    )
    gone = int(connection.execute(sa.delete(AUDIT).where(AUDIT.c.id <= last.id)).rowcount)
    connection.execute(
        sa.text(
            _TRIGGER if sqlite else "ALTER TABLE audit_rows ENABLE TRIGGER audit_rows_no_change"
        )
    )
    return gone


async def retain(audit: AuditLog, days: float) -> None:
    """Delete rows older than so many days, at once and then every hour."""
    while True:
        now_ns = time.time_ns()
        try:
            gone = await asyncio.to_thread(audit.prune, now_ns - round(days * _DAY_NS), now_ns)
        except GazeveilError as error:
            LOG.warning(
                "old rows of the audit log could not be deleted; it is tried again in an hour",
                exc_info=error,
            )
        else:
            if gone:
                LOG.info("old rows of the audit log were deleted", extra={"count": gone})
        await asyncio.sleep(EVERY_S)
