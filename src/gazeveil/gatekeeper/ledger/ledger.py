"""The account of what left the device: reserve, commit, cancel, charge; exact, durable, and never
cheaper than the truth.

Rules
-----
* Nothing may leave before `charge` or `commit` returned. A crash between the two costs budget for
  nothing; it never gives an answer for free.
* A request id is charged once, however often it is sent again.
* Several charges of one request happen together or not at all.
* A reserved amount counts as spent. An expired reservation stays spent, unless it is cancelled.
* A period (a UTC day, a session, or ever) never begins again: each account keeps the latest period
  it has seen, so a clock that is put back gives no budget back. A session ends by
  :meth:`Ledger.begin_session`, never by a restart.
* Amounts are exact fractions; see :mod:`gazeveil.gatekeeper.ledger.accounts` for the one case in
  which they are rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from secrets import token_hex

from gazeveil import checks
from gazeveil.errors import MissingExtraError

try:
    from sqlalchemy.engine import Connection
except ImportError as error:
    raise MissingExtraError((error.name or "sqlalchemy").partition(".")[0], "service") from None

from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger import rows
from gazeveil.gatekeeper.ledger.accounts import (
    DAY_NS,
    GRID,
    PERIODS,
    Account,
    Balance,
    Charge,
    LedgerEntry,
    Reservation,
    merged,
    moment,
    taken_from,
    texts,
)
from gazeveil.gatekeeper.ledger.database import PATIENCE_S, Database
from gazeveil.gatekeeper.ledger.reader import LedgerReader
from gazeveil.privacy.rational import exact

__all__ = ["DAY_NS", "PERIODS", "Balance", "Charge", "Ledger", "LedgerEntry", "Reservation"]


class Ledger(LedgerReader):
    """Budgets in an open database (:meth:`open`); many threads and processes may use one.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     ledger.set_limit("shop", "epsilon", Fraction(1), per="ever")
    ...     third = Charge("shop", "epsilon", Fraction(1, 3))
    ...     held = ledger.charge("request 1", [third], "an answer", now_ns=0)
    ...     print(held.state, ledger.remaining("shop", "epsilon", now_ns=0))
    committed 2/3
    """

    @classmethod
    def open(cls, url: str = "sqlite://", patience_s: float = PATIENCE_S) -> Ledger:
        """Open a ledger, making or updating its tables.

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

    # --- limits and periods
    # ----------------------------------------------------------------------------------------------

    def set_limit(
        self, account: str, currency: str, limit: Fraction | None, per: str = "day", now_ns: int = 0
    ) -> None:
        """Set or change the limit of an account; what was spent stays spent.

        Parameters
        ----------
        account, currency : str
            Which budget.
        limit : Fraction or None
            Most per period; None counts without a limit.
        per : str
            `day` (of UTC), `session` or `ever`.
        now_ns : int
            Time since the Unix epoch.
        """
        checks.one_of("set_limit", "per", per, PERIODS)
        texts("set_limit", account=account, currency=currency)
        most = None if limit is None else exact("set_limit", "limit", limit, least=0)
        first = moment(now_ns) // DAY_NS if per == "day" else 0
        request_id = f"limit {token_hex(8)}"

        def work(connection: Connection) -> None:
            before = rows.accounts_of(connection, [(account, currency)]).get((account, currency))
            if before is not None and (before.most, before.per) == (most, per):
                return
            if before is None:
                opened = Account(account, currency, most, per, first, Fraction(0), now_ns)
                rows.INSERT_ACCOUNT(connection, rows.row_of_account(opened))
            else:
                now = before.at(now_ns)
                # Another kind of period keeps what is gone in this one: a change of the rules gives
                # nothing back. Its number is new, so that no reservation from before can be
                # committed or cancelled into it.
                opened = now._replace(
                    most=most,
                    per=per,
                    period=now.period if before.per == per else max(first, now.period + 1),
                )
                rows.save(connection, [opened])
                if before.per != per:
                    rows.DELETE_ACCOUNT_HOLDS(connection, {"a": account, "c": currency})
            why = f"per {per}" if most is not None else f"no limit, per {per}"
            limits = [(opened, most or Fraction(0))]
            rows.append(connection, request_id, 0, "limit", limits, why, now_ns)

        self.database.write(work)

    def begin_session(self, account: str, name: str, now_ns: int = 0) -> None:
        """Begin a new session of an account: its budgets `per="session"` are whole again.

        Parameters
        ----------
        account : str
            Whose.
        name : str
            A name that is new; one that was used before changes nothing, so a restart can say it
            again.
        now_ns : int
            Time since the Unix epoch.
        """
        texts("begin_session", account=account, name=name)
        moment(now_ns)
        request_id = f"session {account} {name}"

        def work(connection: Connection) -> None:
            named = map(rows.account_of_row, rows.ACCOUNTS_NAMED(connection, {"a": account}).all())
            accounts = [a.at(now_ns) for a in named if a.per == "session"]
            if not accounts or rows.opening(connection, request_id):
                return
            fresh = [a._replace(period=a.period + 1, total=Fraction(0)) for a in accounts]
            rows.save(connection, fresh)
            renewed = [(a, Fraction(0)) for a in fresh]
            rows.append(connection, request_id, 0, "session", renewed, name, now_ns)

        self.database.write(work)

    # --- spending
    # ----------------------------------------------------------------------------------------------

    def reserve(
        self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int, hold_ns: int
    ) -> Reservation:
        """Set budget aside, for all charges or for none.

        Parameters
        ----------
        request_id : str
            The id of the request; sent again, it costs nothing more and gives the same reservation.
        charges : sequence of Charge
            What it costs whom.
        why : str
            For the ledger's reader; never gaze.
        now_ns : int
            Time since the Unix epoch.
        hold_ns : int
            How long it may be committed; afterwards it counts as spent unless it is cancelled.

        Raises
        ------
        Denied
            With code `budget`, and what is left.
        LedgerError
            Where the database fails; then nothing may leave.
        """
        return self._take(request_id, charges, why, now_ns, moment(hold_ns, "hold_ns"))

    def charge(
        self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int
    ) -> Reservation:
        """Reserve and commit in one transaction; durable when it returns."""
        return self._take(request_id, charges, why, now_ns, None)

    def _take(
        self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int, hold_ns: int | None
    ) -> Reservation:
        wanted = merged(charges)
        texts("ledger", request_id=request_id, why=why)
        moment(now_ns)
        keys = sorted(wanted)
        first = True

        def work(connection: Connection) -> Reservation:
            nonlocal first
            hopeful, first = first, False
            accounts = rows.accounts_of(connection, keys)
            taken_by_key: dict[tuple[str, str], tuple[Account, Fraction]] = {}
            denied: Denied | None = None
            try:
                # In the order of the charges: the first that does not suffice is the reason.
                for key, amount in wanted.items():
                    taken_by_key[key] = taken_from(accounts.get(key), key, amount, now_ns)
            except Denied as error:
                denied = error
            # Most ids are new, and the index finds those that are not: then this runs once more,
            # and looks.
            opened = [] if hopeful and denied is None else rows.opening(connection, request_id)
            if opened:
                return self._again(connection, request_id, opened, wanted, hold_ns is None, now_ns)
            if denied is not None:
                raise denied
            taken = [taken_by_key[key] for key in keys]
            charged = tuple(
                Charge(account.account, account.currency, amount) for account, amount in taken
            )
            expires = None
            if hold_ns is not None:
                expires = max(account.seen_ns for account, _ in taken) + hold_ns
            kind = "charge" if hold_ns is None else "reserve"
            rows.append(connection, request_id, 0, kind, taken, why, now_ns, expires)
            rows.save(connection, [account for account, _ in taken])
            if expires is not None:
                rows.hold(connection, request_id, taken, expires)
            return Reservation(
                request_id, charged, "committed" if hold_ns is None else "reserved", expires
            )

        return self.database.write(work)

    def _again(
        self,
        connection: Connection,
        request_id: str,
        opened: Sequence[LedgerEntry],
        wanted: Mapping[tuple[str, str], Fraction],
        commit: bool,
        now_ns: int,
    ) -> Reservation:
        """A request id that is known: the same reservation, and committed if that is what is asked
        for now.
        """
        before = {(e.account, e.currency): e.amount for e in opened}
        spends = opened[0].kind in {"charge", "reserve"} and before.keys() == wanted.keys()
        # What was recorded may have been rounded up.
        if not spends or any(not 0 <= before[k] - wanted[k] <= Fraction(1, GRID) for k in wanted):
            raise LedgerError(
                f"The request id '{request_id}' was used before with other charges. Every request"
                " needs an id of its own."
            )
        if commit:
            return self._close(connection, opened, "commit", now_ns)
        return rows.reservation_of(opened, rows.state_of(connection, opened))

    def commit(self, request_id: str, now_ns: int | None = None) -> Reservation:
        """Make a reservation final; durable when it returns, and harmless when repeated.

        Parameters
        ----------
        request_id : str
            Of the reservation.
        now_ns : int, optional
            Time since the Unix epoch; the latest time its accounts have seen, if not given.

        Raises
        ------
        Denied
            Where it was cancelled, has expired, or its period has ended.
        LedgerError
            For an id without a reservation, or where the database fails.
        """
        return self._finish(request_id, "commit", now_ns)

    def cancel(self, request_id: str, now_ns: int | None = None) -> Reservation:
        """Give a reservation back because nothing left; harmless when repeated.

        Raises
        ------
        LedgerError
            Where it was committed, for an id without a reservation, or where the database fails.
        """
        return self._finish(request_id, "cancel", now_ns)

    def _finish(self, request_id: str, kind: str, now_ns: int | None) -> Reservation:
        def work(connection: Connection) -> Reservation:
            opened = rows.opening(connection, request_id)
            if not opened or opened[0].kind not in {"charge", "reserve"}:
                raise LedgerError(f"There is no reservation '{str(request_id)[:80]}'.")
            return self._close(connection, opened, kind, now_ns)

        return self.database.write(work)

    def _close(
        self, connection: Connection, opened: Sequence[LedgerEntry], kind: str, now_ns: int | None
    ) -> Reservation:
        request_id = opened[0].request_id
        # The accounts are locked before the state is read, so that of a commit and a cancel at the
        # same moment one sees the other.
        accounts = rows.accounts_of(connection, sorted((e.account, e.currency) for e in opened))
        state = rows.state_of(connection, opened)
        if state == "committed":
            if kind == "cancel":
                raise LedgerError(
                    f"The reservation '{request_id}' was committed, so it cannot be cancelled."
                )
            return rows.reservation_of(opened, state)
        if state == "cancelled":
            if kind == "commit":
                reason = f"The reservation '{request_id}' was cancelled, so it cannot be committed."
                raise Denied("budget", reason)
            return rows.reservation_of(opened, state)
        at_ns = 0 if now_ns is None else moment(now_ns)
        parts = [(accounts[e.account, e.currency].at(at_ns), e) for e in opened]
        if kind == "commit":
            if any(account.seen_ns >= (e.expires_ns or 0) for account, e in parts):
                raise Denied(
                    "expired",
                    f"The reservation '{request_id}' has expired, so it cannot be committed. It"
                    " counts as spent.",
                )
            if any(account.period != e.period for account, e in parts):
                raise Denied(
                    "expired",
                    f"The period of the reservation '{request_id}' has ended, so it cannot be"
                    " committed. Reserve again.",
                )
        changed = []
        for account, e in parts:
            # A cancelled amount goes back to the period it was taken from; a day that has begun
            # since begins with the next charge.
            before = accounts[e.account, e.currency]
            back = e.amount if kind == "cancel" and before.period == e.period else Fraction(0)
            changed.append(before._replace(total=before.total - back, seen_ns=account.seen_ns))
        closed = [(account._replace(period=e.period), e.amount) for account, e in parts]
        seen_ns = max(account.seen_ns for account, _ in parts)
        rows.append(connection, request_id, 1, kind, closed, "", seen_ns)
        rows.DELETE_HOLDS(connection, {"r": request_id})
        rows.save(connection, changed)
        return rows.reservation_of(opened, "committed" if kind == "commit" else "cancelled")
