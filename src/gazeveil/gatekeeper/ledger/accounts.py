"""What the ledger reckons with: charges, accounts and their periods, entries; arithmetic alone, no
database.

Amounts are exact fractions. Only where the sum of an account would need a denominator above 2**128
is an amount rounded up, on a grid of 10**-18, and the rounded amount is what is recorded; so sums
stay small whatever quotients apps choose, and equal the sum of the entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from gazeveil import checks
from gazeveil.gatekeeper.errors import OverBudget
from gazeveil.privacy.rational import exact, format_exact

DAY_NS = 86_400_000_000_000

#: How long a budget lasts.
PERIODS = ("day", "session", "ever")

_LARGEST_DENOMINATOR = 2**128
GRID = 10**18
_MOST_DIGITS_BITS = 512
_LONGEST = 500
_LAST_NS = 2**62


@dataclass(frozen=True)
class Charge:
    """What an answer costs one account, in `epsilon`, `rho` or `samples`; at least 0."""

    account: str
    currency: str
    amount: Fraction

    def __post_init__(self) -> None:
        amount = (
            self.amount if type(self.amount) is Fraction else exact("Charge", "amount", self.amount)
        )
        if (
            amount < 0
            or amount.numerator.bit_length() > _MOST_DIGITS_BITS
            or amount.denominator.bit_length() > _MOST_DIGITS_BITS
        ):
            checks.refuse(
                "Charge",
                "amount",
                "an exact number of at least 0 and of ordinary size",
                self.amount,
            )
        object.__setattr__(self, "amount", amount)


@dataclass(frozen=True)
class Reservation:
    """What a request holds.

    Parameters
    ----------
    request_id : str
        The id it goes by.
    charges : tuple of Charge
        As recorded: what was asked for, or rounded up.
    state : str
        `reserved`, `committed` or `cancelled`.
    expires_ns : int, optional
        From when it can no longer be committed.
    """

    request_id: str
    charges: tuple[Charge, ...]
    state: str
    expires_ns: int | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger."""

    id: int
    request_id: str
    kind: str
    account: str
    currency: str
    amount: Fraction
    period: int
    why: str
    at_ns: int
    expires_ns: int | None


@dataclass(frozen=True)
class Balance:
    """Balance of an account in its current period.

    The limit is None for an unlimited account and 0 for one that was never set up. `reserved` is
    the amount set aside.
    """

    limit: Fraction | None
    per: str
    spent: Fraction
    reserved: Fraction

    @property
    def remaining(self) -> Fraction | None:
        """What may still be charged; a limit that was lowered below what is gone leaves nothing,
        not less than nothing.
        """
        return (
            None
            if self.limit is None
            else max(Fraction(0), self.limit - self.spent - self.reserved)
        )


class Account(NamedTuple):
    """An account in one currency: its limit, its latest period, and what of it is gone in that
    period, committed and reserved together.
    """

    account: str
    currency: str
    most: Fraction | None
    per: str
    period: int
    total: Fraction
    seen_ns: int

    def at(self, now_ns: int) -> Account:
        """The account as it is at that time: a new day begins with nothing spent, an old one never
        comes back.
        """
        seen = max(self.seen_ns, now_ns)
        day = seen // DAY_NS
        if self.per == "day" and day > self.period:
            return self._replace(period=day, total=Fraction(0), seen_ns=seen)
        return self._replace(seen_ns=seen)


def recomputed(entries: Iterable[LedgerEntry]) -> dict[tuple[str, str], Fraction]:
    """What is gone of each account in its latest period, from the entries alone: opened and not
    cancelled.
    """
    totals: dict[tuple[str, str], Fraction] = {}
    periods: dict[tuple[str, str], tuple[str, int]] = {}
    for e in entries:
        key = e.account, e.currency
        per, period = periods.get(key, ("", e.period))
        total = totals.get(key, Fraction(0))
        if e.kind == "limit":
            kind = e.why.rpartition("per ")[2]
            # Within one kind of period a later one begins with nothing; another kind takes over
            # what is gone.
            if per == kind and e.period > period:
                total = Fraction(0)
            per, period = kind, e.period
        elif e.kind == "session" or e.period > period:
            total, period = Fraction(0), e.period
        if e.kind in {"charge", "reserve"}:
            total += e.amount
        elif e.kind == "cancel" and e.period == period:
            total -= e.amount
        totals[key], periods[key] = total, (per, period)
    return totals


def merged(charges: Sequence[Charge]) -> dict[tuple[str, str], Fraction]:
    """What each account pays; one that is named twice pays the sum."""
    sums: dict[tuple[str, str], Fraction] = {}
    for charge in charges:
        if not isinstance(charge, Charge):
            checks.refuse("ledger", "charges", "a sequence of Charge", charge)
        key = charge.account, charge.currency
        sums[key] = sums.get(key, Fraction(0)) + charge.amount
    if not sums:
        checks.refuse(
            "ledger",
            "charges",
            "one or more charges",
            charges,
            "An answer that costs nothing is charged with amount 0.",
        )
    return sums


def taken_from(
    known: Account | None, key: tuple[str, str], amount: Fraction, now_ns: int
) -> tuple[Account, Fraction]:
    """The account with an amount taken, and the amount as recorded."""
    account, currency = key
    if known is None:
        raise OverBudget(account, f"The account {account} has no budget in {currency}.")
    now = known.at(now_ns)
    total = now.total + amount
    if total.denominator > _LARGEST_DENOMINATOR:
        total = Fraction(math.ceil(total * GRID), GRID)
    if now.most is not None and total > now.most:
        left = max(Fraction(0), now.most - now.total)
        per = {"day": "today", "session": "in this session", "ever": "in all"}[now.per]
        rest = (
            f"{format_exact(left, down=True)} {currency} of {format_exact(now.most)} is left"
            f" {per}, and this costs {format_exact(amount)}"
        )
        raise OverBudget(account, f"The budget does not suffice: {rest}.")
    return now._replace(total=total), total - now.total


def moment(now_ns: int, name: str = "now_ns") -> int:
    """A time in nanoseconds that the database can hold."""
    if type(now_ns) is not int or not 0 <= now_ns < _LAST_NS:
        checks.refuse("ledger", name, "a whole number of nanoseconds from 1970 to 2116", now_ns)
    return now_ns


def texts(owner: str, **named: object) -> None:
    """Refuse texts that are empty, too long, or that PostgreSQL cannot hold."""
    for name, text in named.items():
        if (
            not isinstance(text, str)
            or len(text) > _LONGEST
            or "\x00" in text
            or (not text and name != "why")
        ):
            checks.refuse(owner, name, f"a text of 1 to {_LONGEST} characters", text)
