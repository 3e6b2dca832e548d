"""The ledger's statements: accounts are read and locked, entries appended, holds put
in and taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil.gatekeeper.ledger.accounts import Account, Charge, LedgerEntry, Reservation
from gazeveil.gatekeeper.ledger.database import Ready
from gazeveil.gatekeeper.ledger.tables import ENTRIES, HEADS, HOLDS


def account_of_row(row: Any) -> Account:
    """An account as the database has it."""
    most = None if row.most is None else Fraction(row.most)
    return Account(
        row.account, row.currency, most, row.per, row.period, Fraction(row.total), row.seen_ns
    )


def row_of_account(account: Account) -> dict[str, object]:
    """An account as the database takes it."""
    return {
        **account._asdict(),
        "most": None if account.most is None else str(account.most),
        "total": str(account.total),
    }


@cache
def _select_heads(count: int) -> Ready:
    keys = [
        sa.tuple_(sa.bindparam(f"a{i}", type_=sa.Text), sa.bindparam(f"c{i}", type_=sa.Text))
        for i in range(count)
    ]
    # In the order of their names: several locks are always taken in the same order.
    chosen = sa.select(HEADS).where(
        sa.or_(*(sa.tuple_(HEADS.c.account, HEADS.c.currency) == key for key in keys))
    )
    return Ready(chosen.order_by(HEADS.c.account, HEADS.c.currency).with_for_update())


def accounts_of(
    connection: Connection, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Account]:
    """Some accounts, locked until the transaction ends (SQLite's writers hold the
    whole file).
    """
    values = {
        f"{letter}{i}": part
        for i, key in enumerate(keys)
        for letter, part in zip("ac", key, strict=True)
    }
    return {
        (row.account, row.currency): account_of_row(row)
        for row in _select_heads(len(keys))(connection, values)
    }


ACCOUNTS_NAMED = Ready(
    sa.select(HEADS)
    .where(HEADS.c.account == sa.bindparam("a"))
    .order_by(HEADS.c.currency)
    .with_for_update()
)
INSERT_ACCOUNT = Ready(sa.insert(HEADS))
_SAVE = Ready(
    sa.update(HEADS)
    .where(
        HEADS.c.account == sa.bindparam("key_account"),
        HEADS.c.currency == sa.bindparam("key_currency"),
    )
    .values(
        most=sa.bindparam("most"),
        per=sa.bindparam("per"),
        period=sa.bindparam("period"),
        total=sa.bindparam("total"),
        seen_ns=sa.bindparam("seen_ns"),
    )
)
_INSERT_ENTRY = Ready(
    sa.insert(ENTRIES)
    .values({c.name: sa.bindparam(c.name) for c in ENTRIES.c if c.name != "id"})
    .inline()
)
_INSERT_HOLD = Ready(sa.insert(HOLDS))
DELETE_HOLDS = Ready(sa.delete(HOLDS).where(HOLDS.c.request_id == sa.bindparam("r")))
DELETE_ACCOUNT_HOLDS = Ready(
    sa.delete(HOLDS).where(
        HOLDS.c.account == sa.bindparam("a"), HOLDS.c.currency == sa.bindparam("c")
    )
)
_OPENING = Ready(
    sa.select(ENTRIES)
    .where(ENTRIES.c.request_id == sa.bindparam("r"), ENTRIES.c.phase == sa.literal_column("0"))
    .order_by(ENTRIES.c.part)
)
_CLOSING = Ready(
    sa.select(ENTRIES.c.kind).where(
        ENTRIES.c.request_id == sa.bindparam("r"), ENTRIES.c.phase == sa.literal_column("1")
    )
)


def save(connection: Connection, accounts: Sequence[Account]) -> None:
    """Write the state of accounts."""
    rows = [
        {**row_of_account(a), "key_account": a.account, "key_currency": a.currency}
        for a in accounts
    ]
    _SAVE(connection, rows)


def append(
    connection: Connection,
    request_id: str,
    phase: int,
    kind: str,
    parts: Sequence[tuple[Account, Fraction]],
    why: str,
    now_ns: int,
    expires: int | None = None,
) -> None:
    """Add lines to the ledger: one per account of a request."""
    common = {
        "request_id": request_id,
        "phase": phase,
        "kind": kind,
        "why": why,
        "at_ns": now_ns,
        "expires_ns": expires,
    }
    _INSERT_ENTRY(connection, [{**common, **row} for row in _rows_of_parts(parts)])


def _rows_of_parts(parts: Sequence[tuple[Account, Fraction]]) -> list[dict[str, object]]:
    return [
        {
            "part": i,
            "account": account.account,
            "currency": account.currency,
            "amount": str(amount),
            "period": account.period,
        }
        for i, (account, amount) in enumerate(parts)
    ]


def hold(
    connection: Connection,
    request_id: str,
    parts: Sequence[tuple[Account, Fraction]],
    expires_ns: int,
) -> None:
    """Note a reservation that is neither committed nor cancelled."""
    common = {"request_id": request_id, "expires_ns": expires_ns}
    _INSERT_HOLD(connection, [{**common, **row} for row in _rows_of_parts(parts)])


def opening(connection: Connection, request_id: str) -> list[LedgerEntry]:
    """The lines that opened a request; none for an id that is new."""
    return [entry_of(row) for row in _OPENING(connection, {"r": request_id})]


def state_of(connection: Connection, opened: Sequence[LedgerEntry]) -> str:
    """Whether a request is reserved, committed or cancelled."""
    if opened[0].kind == "charge":
        return "committed"
    closed = _CLOSING(connection, {"r": opened[0].request_id}).scalar()
    return {None: "reserved", "commit": "committed", "cancel": "cancelled"}[closed]


def entry_of(row: Any) -> LedgerEntry:
    """A line of the ledger."""
    return LedgerEntry(
        row.id,
        row.request_id,
        row.kind,
        row.account,
        row.currency,
        Fraction(row.amount),
        row.period,
        row.why,
        row.at_ns,
        row.expires_ns,
    )


def reservation_of(opened: Sequence[LedgerEntry], state: str) -> Reservation:
    """What a request holds, from the lines that opened it."""
    charges = tuple(Charge(e.account, e.currency, e.amount) for e in opened)
    return Reservation(opened[0].request_id, charges, state, opened[0].expires_ns)
