"""The account of what left the device: exact, durable, and never cheaper than the truth.

Rules
-----
* Nothing may leave before `charge` returned. A crash afterwards costs budget for nothing; it never
  gives an answer for free.
* A request id is charged once, however often it is sent again.
* Several charges of one request happen together or not at all.
* A budget is for a day of UTC. A day never begins again: each account keeps the latest day it has
  seen, so a clock that is put back gives no budget back.
* Limits come with the charge, from the policy in force.
* Amounts are exact fractions. Only where the sum of an account would need a denominator above
  2**128 is an amount rounded up, on a grid of 10**-18, and the rounded amount is what is recorded;
  so sums stay small whatever quotients there are, and equal the sum of the entries.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gazeveil import checks
from gazeveil.gatekeeper.errors import LedgerError, OverBudget
from gazeveil.gatekeeper.ledger.database import PATIENCE_S, Database, Sql
from gazeveil.privacy.rational import exact, format_exact

DAY_NS = 86_400_000_000_000

GRID = 10**18
_LARGEST_DENOMINATOR = 2**128
_MOST_DIGITS_BITS = 512
_LONGEST = 500
_LAST_NS = 2**62

#: So many rows of the audit log are looked through for the last time that was written.
_LATE_ROWS = 256


@dataclass(frozen=True)
class Charge:
    """What an answer costs one account, in `epsilon` or `rho`; at least 0, and at most `limit` in a
    day.
    """

    account: str
    currency: str
    amount: Fraction
    limit: Fraction

    def __post_init__(self) -> None:
        for name in ("amount", "limit"):
            value = exact("Charge", name, getattr(self, name), least=0)
            if max(value.numerator, value.denominator).bit_length() > _MOST_DIGITS_BITS:
                checks.refuse("Charge", name, "an exact number of ordinary size", value)
            object.__setattr__(self, name, value)


class ForwardClock:
    """The larger of a clock and the latest time that is known: a day or a grant that has ended
    stays ended if the device's clock is set.

    Where the system's clock is set back, time goes on from the latest one by the time that passes,
    so that ends still come. With a clock of the caller's own it stands still until that comes up.

    Parameters
    ----------
    latest_ns : int
        The last time that was written, since the Unix epoch.
    clock_ns : callable, optional
        A clock of the caller's own; by default the system's.

    Examples
    --------
    >>> times = iter([50, 80, 10])
    >>> now_ns = ForwardClock(60, lambda: next(times))
    >>> now_ns(), now_ns(), now_ns()
    (60, 80, 80)
    """

    def __init__(self, latest_ns: int = 0, clock_ns: Callable[[], int] | None = None) -> None:
        self._clock_ns, self._passes = clock_ns or time.time_ns, clock_ns is None
        #: The last time that was written: what has ended since holds in memory alone.
        self.written_ns = latest_ns
        self._latest_ns, self._at_ns = latest_ns, time.monotonic_ns()
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """Nanoseconds since the Unix epoch."""
        with self._lock:
            # The clock first: a pause after it must not put time ahead for good.
            clock_ns, at_ns = self._clock_ns(), time.monotonic_ns()
            passed_ns = at_ns - self._at_ns if self._passes else 0
            self._latest_ns, self._at_ns = max(clock_ns, self._latest_ns + passed_ns), at_ns
            return self._latest_ns

    def beside(self, clock_ns: Callable[[], int]) -> ForwardClock:
        """A clock of the caller's own, from the same last time on."""
        return ForwardClock(self._latest_ns, clock_ns)


class Ledger:
    """Budgets in an open database (:meth:`open`); many threads and processes may use one.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     third = Charge("shop", "epsilon", Fraction(1, 3), limit=Fraction(1))
    ...     ledger.charge("request 1", [third], "an answer", now_ns=0)
    ...     print(ledger.spent("shop", "epsilon", now_ns=0))
    1/3
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        latest = database.rows("SELECT MAX(seen_ns) FROM ledger_accounts")
        # Rows of what was taken away are written late, with the time when it was.
        question = "SELECT at_ns FROM audit_rows ORDER BY id DESC LIMIT ?"
        latest += database.rows(question, _LATE_ROWS)
        #: The time that everything of a device goes by.
        self.now_ns = ForwardClock(max((ns for (ns,) in latest if ns is not None), default=0))

    @classmethod
    def open(cls, url: str = "sqlite://", patience_s: float = PATIENCE_S) -> Ledger:
        """Open a ledger, making its tables.

        Parameters
        ----------
        url : str
            `sqlite:///path`, `sqlite://` (in memory) or `postgresql://user@host/name`.
        patience_s : float
            How long to wait for locks and for a database that restarts.

        Raises
        ------
        LedgerError
            Where it cannot be used.
        """
        return cls(Database(url, patience_s))

    def close(self) -> None:
        """Give connections and files back."""
        self.database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def charge(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int) -> None:
        """Charge all accounts or none; durable when it returns.

        Parameters
        ----------
        request_id : str
            The id of the request; sent again, it costs nothing more.
        charges : sequence of Charge
            What it costs whom. The first that does not suffice is the reason.
        why : str
            For the ledger's reader; never gaze.
        now_ns : int
            Time since the Unix epoch.

        Raises
        ------
        OverBudget
            With what is left.
        LedgerError
            Where the database fails; then nothing may leave.
        """
        wanted: dict[tuple[str, str], Charge] = {}
        for charge in charges:
            key = charge.account, charge.currency
            before = wanted.get(key)
            wanted[key] = Charge(
                *key, charge.amount + (before.amount if before else 0), charge.limit
            )
            _texts(account=charge.account, currency=charge.currency)
        if not wanted:
            hint = "An answer that costs nothing is charged with amount 0."
            checks.refuse("ledger", "charges", "one or more charges", charges, hint)
        _texts(request_id=request_id, why=why)
        _moment(now_ns)

        def work(sql: Sql) -> None:
            known = sql(
                "SELECT account, currency, amount FROM ledger_entries WHERE request_id = ?",
                request_id,
            )
            if known:
                _see_same(request_id, wanted, known)
                return
            (next_id,) = sql("SELECT COALESCE(MAX(id), 0) + 1 FROM ledger_entries")[0]
            for part, charge in enumerate(wanted.values()):
                day, total, taken, seen_ns = _taken(sql, charge, now_ns)
                key = charge.account, charge.currency
                sql(
                    "INSERT INTO ledger_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    *(next_id + part, request_id, part, *key, str(taken), day, why, now_ns),
                )
                sql(
                    "INSERT INTO ledger_accounts VALUES (?, ?, ?, ?, ?) ON CONFLICT (account,"
                    " currency) DO UPDATE SET day = ?, total = ?, seen_ns = ?",
                    *(*key, day, str(total), seen_ns, day, str(total), seen_ns),
                )

        self.database.write(work)

    def spent(self, account: str, currency: str, now_ns: int) -> Fraction:
        """What is gone of an account today."""
        rows = self.database.rows(
            "SELECT day, total, seen_ns FROM ledger_accounts WHERE account = ? AND currency = ?",
            account,
            currency,
        )
        return _gone(rows[0], _moment(now_ns)) if rows else Fraction(0)

    def all_spent(self, now_ns: int) -> dict[tuple[str, str], Fraction]:
        """What is gone of all accounts today, by account and currency; also sees that the database
        would take a write.

        Raises
        ------
        LedgerError
            Where it cannot be read, is locked, full, or not the file that was opened.
        """
        now = _moment(now_ns)

        def work(sql: Sql) -> dict[tuple[str, str], Fraction]:
            self.database.probe(sql)
            rows = sql("SELECT account, currency, day, total, seen_ns FROM ledger_accounts")
            return {(account, currency): _gone(row, now) for account, currency, *row in rows}

        return self.database.write(work)


def _taken(sql: Sql, charge: Charge, now_ns: int) -> tuple[int, Fraction, Fraction, int]:
    """Day and sum of an account after a charge, the amount as recorded, and the time it has
    seen.
    """
    rows = sql(
        "SELECT day, total, seen_ns FROM ledger_accounts WHERE account = ? AND currency = ?",
        charge.account,
        charge.currency,
    )
    day, _, seen_ns = row = rows[0] if rows else (0, "0", 0)
    gone = _gone(row, now_ns)
    seen_ns = max(seen_ns, now_ns)
    after = gone + charge.amount
    if after.denominator > _LARGEST_DENOMINATOR:
        after = Fraction(math.ceil(after * GRID), GRID)
    if after > charge.limit:
        left = format_exact(max(Fraction(0), charge.limit - gone), down=True)
        rest = (
            f"{left} {charge.currency} of {format_exact(charge.limit)} is left today, and this"
            f" costs {format_exact(charge.amount)}"
        )
        raise OverBudget(charge.account, f"The budget does not suffice: {rest}.")
    return max(day, seen_ns // DAY_NS), after, after - gone, seen_ns


def _gone(row: Sequence[Any], now_ns: int) -> Fraction:
    """What is gone today: a new day begins with nothing spent, an old one never comes back."""
    day, total, seen_ns = row
    return Fraction(0) if max(seen_ns, now_ns) // DAY_NS > day else Fraction(total)


def _see_same(
    request_id: str, wanted: dict[tuple[str, str], Charge], known: Sequence[tuple[str, str, str]]
) -> None:
    """See that a request id that is known is sent again with the same charges."""
    before = {(account, currency): Fraction(amount) for account, currency, amount in known}
    # What was recorded may have been rounded up.
    same = before.keys() == wanted.keys() and all(
        0 <= before[key] - charge.amount <= Fraction(1, GRID) for key, charge in wanted.items()
    )
    if not same:
        raise LedgerError(
            f"The request id '{request_id}' was used before with other charges. Every request needs"
            " an id of its own."
        )


def _moment(now_ns: int) -> int:
    """A time in nanoseconds that the database can hold."""
    if type(now_ns) is not int or not 0 <= now_ns < _LAST_NS:
        checks.refuse("ledger", "now_ns", "a whole number of nanoseconds from 1970 to 2116", now_ns)
    return now_ns


def _texts(**named: str) -> None:
    """Refuse texts that are empty, too long, or that PostgreSQL cannot hold."""
    for name, text in named.items():
        readable = isinstance(text, str) and len(text) <= _LONGEST and "\x00" not in text
        if not readable or (not text and name != "why"):
            checks.refuse("ledger", name, f"a text of 1 to {_LONGEST} characters", text)
