"""Tokens and sessions that have ended here and not yet in the database."""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.ledger.database import Database


def ending(table: sa.Table, now_ns: int) -> sa.Update:
    """Ends all live rows of a table; a caller says which of them."""
    return sa.update(table).where(table.c.ended_ns.is_(None)).values(ended_ns=now_ns)


class UnwrittenEnds:
    """Ends that are in force and have to be written to a table with columns `id` and `ended_ns`."""

    def __init__(self, database: Database, table: sa.Table) -> None:
        self._database, self._table = database, table
        self._ended_ns: dict[str, int] = {}

    def __contains__(self, row_id: str) -> bool:
        return row_id in self._ended_ns

    def add(self, row_id: str) -> None:
        """A row has ended now."""
        self._ended_ns[row_id] = time.time_ns()

    def write(self) -> bool:
        """Write all of them; False where the database did not take them."""
        waiting = self._ended_ns.copy()

        def work(connection: Connection) -> None:
            for row_id, ended_ns in waiting.items():
                connection.execute(ending(self._table, ended_ns).where(self._table.c.id == row_id))

        try:
            if waiting:
                self._database.write(work)
        except LedgerError:
            return False
        for row_id in waiting:
            self._ended_ns.pop(row_id, None)
        return True
