"""What the ledger tells: balances, entries, and whether both agree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.ledger import rows
from gazeveil.gatekeeper.ledger.accounts import Account, Balance, LedgerEntry, moment, recomputed
from gazeveil.gatekeeper.ledger.database import PATIENCE_S, Database
from gazeveil.gatekeeper.ledger.forward_clock import ForwardClock
from gazeveil.gatekeeper.ledger.tables import AUDIT, ENTRIES, HEADS, HOLDS
from gazeveil.privacy.rational import format_exact

# Heads and their holds in one statement, so that they are of one moment.
_HELD = sa.select(
    HEADS,
    HOLDS.c.amount.label("held"),
    HOLDS.c.period.label("held_period"),
    HOLDS.c.expires_ns.label("held_until"),
).select_from(
    HEADS.outerjoin(
        HOLDS, sa.and_(HOLDS.c.account == HEADS.c.account, HOLDS.c.currency == HEADS.c.currency)
    )
)

#: So many rows of the audit log are looked through for the last time that was written.
_LATE_ROWS = 256


def _balance_at(account_rows: Sequence[sa.Row[Any]], now_ns: int) -> Balance:
    """How an account stands at a time."""
    account = rows.account_of_row(account_rows[0]).at(now_ns)
    mine = (
        r
        for r in account_rows
        if r.held is not None and r.held_period == account.period and r.held_until > account.seen_ns
    )
    held = sum((Fraction(r.held) for r in mine), start=Fraction(0))
    return Balance(account.most, account.per, account.total - held, held)


class LedgerReader:
    """The part of :class:`gazeveil.gatekeeper.ledger.ledger.Ledger` that only reads."""

    def __init__(self, database: Database) -> None:
        self.database = database
        latest = (
            sa.select(sa.func.max(HEADS.c.seen_ns)),
            # Rows of what was taken away are written late, with the time when it was.
            sa.select(AUDIT.c.at_ns).order_by(AUDIT.c.id.desc()).limit(_LATE_ROWS),
        )
        written_ns = (row[0] for query in latest for row in database.rows(query))
        #: The time that everything of a device goes by.
        self.now_ns = ForwardClock(max((ns for ns in written_ns if ns is not None), default=0))

    def balance(self, account: str, currency: str, now_ns: int) -> Balance:
        """Limit, spent and reserved of one moment."""
        now = moment(now_ns)
        query = _HELD.where(HEADS.c.account == account, HEADS.c.currency == currency)
        account_rows = self.database.rows(query)
        none = Balance(Fraction(0), "ever", Fraction(0), Fraction(0))
        return _balance_at(account_rows, now) if account_rows else none

    def spent(self, account: str, currency: str, now_ns: int) -> Fraction:
        """What is gone in the current period: committed, or reserved and expired."""
        return self.balance(account, currency, now_ns).spent

    def reserved(self, account: str, currency: str, now_ns: int) -> Fraction:
        """What is set aside in the current period and may still be committed
        or cancelled in time.
        """
        return self.balance(account, currency, now_ns).reserved

    def limit(self, account: str, currency: str) -> Fraction | None:
        """Return the limit: 0 for an account that was never set up, None for an unlimited one."""
        return self.balance(account, currency, 0).limit

    def remaining(self, account: str, currency: str, now_ns: int) -> Fraction | None:
        """Return the amount left in the current period.

        It is 0 for an account that was never set up and None for an unlimited one.
        """
        return self.balance(account, currency, now_ns).remaining

    def balances(
        self, now_ns: int, patience_s: float = PATIENCE_S
    ) -> dict[tuple[str, str], Balance]:
        """How all accounts stand, by account and currency; also sees that the database would take a
        write.

        Raises
        ------
        LedgerError
            Where it cannot be read, is locked, full, or not the file that was opened.
        """
        now = moment(now_ns)
        rows_by_account: dict[tuple[str, str], list[sa.Row[Any]]] = {}
        for row in self.database.look(
            lambda connection: connection.execute(_HELD).all(), patience_s
        ):
            rows_by_account.setdefault((row.account, row.currency), []).append(row)
        return {key: _balance_at(group, now) for key, group in rows_by_account.items()}

    def entries(self, after: int = 0, limit: int = 1000) -> tuple[LedgerEntry, ...]:
        """Lines of the ledger after a number, oldest first."""
        query = (
            sa.select(ENTRIES)
            .where(ENTRIES.c.id > after)
            .order_by(ENTRIES.c.id)
            .limit(checks.count("entries", "limit", limit))
        )
        return tuple(map(rows.entry_of, self.database.rows(query)))

    def verify(self) -> tuple[str, ...]:
        """Recompute every account from its entries; what does not agree, one sentence each."""

        def work(connection: Connection) -> tuple[list[Account], list[LedgerEntry]]:
            if not self.database.sqlite:
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            accounts = map(rows.account_of_row, connection.execute(sa.select(HEADS)))
            ordered = sa.select(ENTRIES).order_by(ENTRIES.c.id)
            return list(accounts), list(map(rows.entry_of, connection.execute(ordered)))

        # A write transaction, so that on SQLite no charge falls between the two reads; on
        # PostgreSQL the snapshot does that.
        accounts, entries = self.database.write(work)
        totals = recomputed(entries)
        pairs = ((h, totals.get((h.account, h.currency), Fraction(0))) for h in accounts)
        return tuple(
            f"The account {h.account} has {format_exact(h.total)} {h.currency} in its row and"
            f" {format_exact(total)} in its entries."
            for h, total in pairs
            if total != h.total
        )
