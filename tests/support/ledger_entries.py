"""The entries of a ledger, read from its tables, and whether its accounts are their sums."""

from __future__ import annotations

from fractions import Fraction

from gazeveil.gatekeeper.ledger.ledger import Ledger


def amounts(ledger: Ledger) -> list[Fraction]:
    """What each entry charged."""
    rows = ledger.database.rows("SELECT amount FROM ledger_entries ORDER BY id")
    return [Fraction(amount) for (amount,) in rows]


def adds_up(ledger: Ledger) -> bool:
    """Whether every account's last day is the sum of its entries."""
    entries = ledger.database.rows("SELECT account, currency, day, amount FROM ledger_entries")
    totals = ledger.database.rows("SELECT account, currency, day, total FROM ledger_accounts")
    return all(
        Fraction(total) == sum(Fraction(amount) for *of, amount in entries if of == account)
        for *account, total in totals
    )
