"""The account of what left the device: reserve, commit, cancel, charge; exact, durable, and never cheaper than the truth.

Rules
-----
* Nothing may leave before `charge` or `commit` returned. A crash between the two costs budget for nothing; it never gives an answer for free.
* A request id is charged once, however often it is sent again.
* Several charges of one request happen together or not at all.
* What is reserved counts as gone. A reservation that nobody commits in time stays gone, unless it is cancelled.
* A period (a UTC day, a session, or ever) never begins again: each account keeps the latest period it has seen, so a clock that is put back
  gives no budget back. A session ends by :meth:`Ledger.begin_session`, never by a restart.
* Amounts are exact fractions. Only where the sum of an account would need a denominator above 2**128 is the amount rounded up, on a grid of
  10**-18, and the rounded amount is what is recorded; so sums stay small whatever quotients apps choose, and equal the sum of the entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from secrets import token_hex
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from gazeveil import checks
from gazeveil.gatekeeper.database import PATIENCE_S, Database, Ready
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.schema import ENTRIES, HEADS, HOLDS
from gazeveil.privacy.exactly import exact, shown

DAY_NS = 86_400_000_000_000

#: How long a budget lasts.
PERIODS = ("day", "session", "ever")

_WIDEST = 2**128
_GRID = 10**18
_MOST_DIGITS_BITS = 512
_LONGEST = 500
_LAST_NS = 2**62


@dataclass(frozen=True)
class Charge:
    """What an answer costs one account.

    Parameters
    ----------
    account : str
        Whose budget.
    currency : str
        `epsilon`, `rho` or `samples`.
    amount : Fraction
        At least 0.
    """

    account: str
    currency: str
    amount: Fraction

    def __post_init__(self) -> None:
        amount = self.amount if type(self.amount) is Fraction else exact("Charge", "amount", self.amount)
        if amount < 0 or amount.numerator.bit_length() > _MOST_DIGITS_BITS or amount.denominator.bit_length() > _MOST_DIGITS_BITS:
            checks.refuse("Charge", "amount", "an exact number of at least 0 and of ordinary size", self.amount)
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
class Entry:
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


class _Head(NamedTuple):
    account: str
    currency: str
    most: Fraction | None
    per: str
    period: int
    total: Fraction
    seen_ns: int

    def at(self, now_ns: int) -> _Head:
        """The head as it is at that time: a new day begins with nothing spent, an old one never comes back."""
        seen = max(self.seen_ns, now_ns)
        day = seen // DAY_NS
        if self.per == "day" and day > self.period:
            return self._replace(period=day, total=Fraction(0), seen_ns=seen)
        return self._replace(seen_ns=seen)


class Ledger:
    """Budgets in a database; many threads and processes may use one.

    Parameters
    ----------
    database : Database
        Open; see :meth:`open`.

    Examples
    --------
    >>> with Ledger.open("sqlite://") as ledger:
    ...     ledger.set_limit("shop", "epsilon", Fraction(1), per="ever")
    ...     held = ledger.charge("request 1", [Charge("shop", "epsilon", Fraction(1, 3))], "an answer", now_ns=0)
    ...     print(held.state, ledger.remaining("shop", "epsilon", now_ns=0))
    committed 2/3
    """

    def __init__(self, database: Database) -> None:
        self.database = database

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

    # --- limits and periods -------------------------------------------------------------------------------------------------------

    def set_limit(self, account: str, currency: str, limit: Fraction | None, per: str = "day", now_ns: int = 0) -> None:
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
        _words("set_limit", account=account, currency=currency)
        most = None if limit is None else exact("set_limit", "limit", limit, least=0)
        first = _moment(now_ns) // DAY_NS if per == "day" else 0
        request_id = f"limit {token_hex(8)}"

        def work(connection: Connection) -> None:
            before = _heads(connection, [(account, currency)]).get((account, currency))
            if before is not None and (before.most, before.per) == (most, per):
                return
            if before is None:
                head = _Head(account, currency, most, per, first, Fraction(0), now_ns)
                _INSERT_HEAD(connection, _row(head))
            else:
                now = before.at(now_ns)
                # Another kind of period keeps what is gone in this one: a change of the rules gives nothing back.
                # Its number is new, so that no reservation from before can be committed or cancelled into it.
                head = now._replace(most=most, per=per, period=now.period if before.per == per else max(first, now.period + 1))
                _save(connection, [head])
                if before.per != per:
                    _DELETE_ACCOUNT_HOLDS(connection, {"a": account, "c": currency})
            _append(connection, request_id, 0, "limit", [(head, most or Fraction(0))], f"per {per}" if most is not None else f"no limit, per {per}", now_ns)

        self.database.write(work)

    def begin_session(self, account: str, name: str, now_ns: int = 0) -> None:
        """Begin a new session of an account: its budgets `per="session"` are whole again.

        Parameters
        ----------
        account : str
            Whose.
        name : str
            A name that is new; one that was used before changes nothing, so a restart can say it again.
        now_ns : int
            Time since the Unix epoch.
        """
        _words("begin_session", account=account, name=name)
        _moment(now_ns)
        request_id = f"session {account} {name}"

        def work(connection: Connection) -> None:
            heads = [h.at(now_ns) for h in map(_head, _ACCOUNT_HEADS(connection, {"a": account}).all()) if h.per == "session"]
            if not heads or _opening(connection, request_id):
                return
            fresh = [h._replace(period=h.period + 1, total=Fraction(0)) for h in heads]
            _save(connection, fresh)
            _append(connection, request_id, 0, "session", [(h, Fraction(0)) for h in fresh], name, now_ns)

        self.database.write(work)

    # --- spending -----------------------------------------------------------------------------------------------------------------

    def reserve(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int, hold_ns: int) -> Reservation:
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
        return self._take(request_id, charges, why, now_ns, _moment(hold_ns, "hold_ns"))

    def charge(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int) -> Reservation:
        """Reserve and commit in one transaction; durable when it returns."""
        return self._take(request_id, charges, why, now_ns, None)

    def _take(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int, hold_ns: int | None) -> Reservation:
        wanted = _merged(charges)
        _words("ledger", request_id=request_id, why=why)
        _moment(now_ns)
        keys = sorted(wanted)
        first = True

        def work(connection: Connection) -> Reservation:
            nonlocal first
            hopeful, first = first, False
            heads = _heads(connection, keys)
            try:
                taken = [_taken(heads.get(key), key, wanted[key], now_ns) for key in keys]
                denied = None
            except Denied as error:
                taken, denied = [], error
            # Most ids are new, and the index finds those that are not: then this runs once more, and looks.
            opened = [] if hopeful and denied is None else _opening(connection, request_id)
            if opened:
                return self._again(connection, request_id, opened, wanted, hold_ns is None, now_ns)
            if denied is not None:
                raise denied
            charged = tuple(Charge(head.account, head.currency, amount) for head, amount in taken)
            expires = None if hold_ns is None else max(head.seen_ns for head, _ in taken) + hold_ns
            _append(connection, request_id, 0, "charge" if hold_ns is None else "reserve", taken, why, now_ns, expires)
            _save(connection, [head for head, _ in taken])
            if expires is not None:
                rows = [
                    {
                        "request_id": request_id,
                        "part": i,
                        "account": h.account,
                        "currency": h.currency,
                        "amount": str(a),
                        "period": h.period,
                        "expires_ns": expires,
                    }
                    for i, (h, a) in enumerate(taken)
                ]
                _INSERT_HOLD(connection, rows)
            return Reservation(request_id, charged, "committed" if hold_ns is None else "reserved", expires)

        return self.database.write(work)

    def _again(
        self, connection: Connection, request_id: str, opened: Sequence[Entry], wanted: Mapping[tuple[str, str], Fraction], commit: bool, now_ns: int
    ) -> Reservation:
        """A request id that is known: the same reservation, and committed if that is what is asked for now."""
        before = {(e.account, e.currency): e.amount for e in opened}
        if (
            opened[0].kind not in {"charge", "reserve"}
            or before.keys() != wanted.keys()
            or any(not 0 <= before[k] - wanted[k] <= Fraction(1, _GRID) for k in wanted)
        ):
            raise LedgerError(f"The request id '{request_id}' was used before with other charges. Every request needs an id of its own.")
        if commit:
            return self._close(connection, opened, "commit", now_ns)
        return _reservation(opened, _state(connection, opened))

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
            For an id nobody reserved, or where the database fails.
        """
        return self._finish(request_id, "commit", now_ns)

    def cancel(self, request_id: str, now_ns: int | None = None) -> Reservation:
        """Give a reservation back because nothing left; harmless when repeated.

        Raises
        ------
        LedgerError
            Where it was committed, for an id nobody reserved, or where the database fails.
        """
        return self._finish(request_id, "cancel", now_ns)

    def _finish(self, request_id: str, kind: str, now_ns: int | None) -> Reservation:
        def work(connection: Connection) -> Reservation:
            opened = _opening(connection, request_id)
            if not opened or opened[0].kind not in {"charge", "reserve"}:
                raise LedgerError(f"There is no reservation '{str(request_id)[:80]}'.")
            return self._close(connection, opened, kind, now_ns)

        return self.database.write(work)

    def _close(self, connection: Connection, opened: Sequence[Entry], kind: str, now_ns: int | None) -> Reservation:
        request_id = opened[0].request_id
        # The heads are locked before the state is read, so that of a commit and a cancel at the same moment one sees the other.
        heads = _heads(connection, sorted((e.account, e.currency) for e in opened))
        state = _state(connection, opened)
        if state == "committed":
            if kind == "cancel":
                raise LedgerError(f"The reservation '{request_id}' was committed, so it cannot be cancelled.")
            return _reservation(opened, state)
        if state == "cancelled":
            if kind == "commit":
                raise Denied(code="budget", reason=f"The reservation '{request_id}' was cancelled, so it cannot be committed.")
            return _reservation(opened, state)
        told = 0 if now_ns is None else _moment(now_ns)
        parts = [(heads[e.account, e.currency].at(told), e) for e in opened]
        if kind == "commit":
            if any(head.seen_ns >= (e.expires_ns or 0) for head, e in parts):
                raise Denied(code="expired", reason=f"The reservation '{request_id}' has expired, so it cannot be committed. It counts as spent.")
            if any(head.period != e.period for head, e in parts):
                raise Denied(code="expired", reason=f"The period of the reservation '{request_id}' has ended, so it cannot be committed. Reserve again.")
        changed = []
        for head, e in parts:
            # A cancelled amount goes back to the period it was taken from; a day that has begun since begins with the next charge.
            before = heads[e.account, e.currency]
            back = e.amount if kind == "cancel" and before.period == e.period else Fraction(0)
            changed.append(before._replace(total=before.total - back, seen_ns=head.seen_ns))
        _append(connection, request_id, 1, kind, [(h._replace(period=e.period), e.amount) for h, e in parts], "", max(h.seen_ns for h, _ in parts))
        _DELETE_HOLDS(connection, {"r": request_id})
        _save(connection, changed)
        return _reservation(opened, "committed" if kind == "commit" else "cancelled")

    # --- reading ------------------------------------------------------------------------------------------------------------------

    def spent(self, account: str, currency: str, now_ns: int) -> Fraction:
        """What is gone in the current period: committed, or reserved and expired."""
        head, held = self._standing(account, currency, now_ns)
        return Fraction(0) if head is None else head.total - held

    def reserved(self, account: str, currency: str, now_ns: int) -> Fraction:
        """What is set aside in the current period and may still be committed or cancelled in time."""
        return self._standing(account, currency, now_ns)[1]

    def limit(self, account: str, currency: str) -> Fraction | None:
        """The limit, or None where there is none or no such account."""
        head, _ = self._standing(account, currency, 0)
        return None if head is None else head.most

    def remaining(self, account: str, currency: str, now_ns: int) -> Fraction | None:
        """What may still be charged in the current period; 0 for an account nobody set up, None where there is no limit."""
        head, _ = self._standing(account, currency, now_ns)
        if head is None:
            return Fraction(0)
        # A limit that was lowered below what is gone leaves nothing, not less than nothing.
        return None if head.most is None else max(Fraction(0), head.most - head.total)

    def _standing(self, account: str, currency: str, now_ns: int) -> tuple[_Head | None, Fraction]:
        joined = HEADS.outerjoin(HOLDS, sa.and_(HOLDS.c.account == HEADS.c.account, HOLDS.c.currency == HEADS.c.currency))
        held = (HOLDS.c.amount.label("held"), HOLDS.c.period.label("held_period"), HOLDS.c.expires_ns.label("held_until"))
        # One statement, so that the head and its holds are of one moment.
        query = sa.select(HEADS, *held).select_from(joined).where(HEADS.c.account == account, HEADS.c.currency == currency)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        if not rows:
            return None, Fraction(0)
        head = _head(rows[0]).at(now_ns)
        mine = (r for r in rows if r.held is not None and r.held_period == head.period and r.held_until > head.seen_ns)
        return head, sum((Fraction(r.held) for r in mine), start=Fraction(0))

    def entries(self, after: int = 0, limit: int = 1000) -> tuple[Entry, ...]:
        """Lines of the ledger after a number, oldest first."""
        query = sa.select(ENTRIES).where(ENTRIES.c.id > after).order_by(ENTRIES.c.id).limit(checks.count("entries", "limit", limit))
        return tuple(_entry(row) for row in self.database.read(lambda connection: connection.execute(query).all()))

    def verify(self) -> tuple[str, ...]:
        """Recompute every account from its entries; what does not agree, one sentence each."""

        def work(connection: Connection) -> tuple[list[_Head], list[Entry]]:
            heads = [_head(r) for r in connection.execute(sa.select(HEADS))]
            return heads, [_entry(r) for r in connection.execute(sa.select(ENTRIES).order_by(ENTRIES.c.id))]

        # A write transaction, so that no charge falls between the two reads.
        heads, entries = self.database.write(work)
        return tuple(
            f"The account {h.account} has {shown(h.total)} {h.currency} in its head and {shown(total)} in its entries."
            for h in heads
            if (total := recomputed(entries, h.account, h.currency)) != h.total
        )


def recomputed(entries: Iterable[Entry], account: str, currency: str) -> Fraction:
    """What is gone of an account in its latest period, from its entries alone: opened and not cancelled."""
    total, period, per = Fraction(0), None, ""
    for e in entries:
        if (e.account, e.currency) != (account, currency):
            continue
        if e.kind == "limit":
            kind = e.why.rpartition("per ")[2]
            # Within one kind of period a later one begins with nothing; another kind takes over what is gone.
            if per == kind and period is not None and e.period > period:
                total = Fraction(0)
            per, period = kind, e.period
        elif e.kind == "session" or (period is not None and e.period > period):
            total, period = Fraction(0), e.period
        if e.kind in {"charge", "reserve"}:
            total += e.amount
        elif e.kind == "cancel" and e.period == period:
            total -= e.amount
    return total


# --- rows -------------------------------------------------------------------------------------------------------------------------


def _merged(charges: Sequence[Charge]) -> dict[tuple[str, str], Fraction]:
    merged: dict[tuple[str, str], Fraction] = {}
    for one in charges:
        if not isinstance(one, Charge):
            checks.refuse("ledger", "charges", "a sequence of Charge", one)
        key = one.account, one.currency
        merged[key] = merged.get(key, Fraction(0)) + one.amount
    if not merged:
        checks.refuse("ledger", "charges", "one or more charges", charges, "An answer that costs nothing is charged with amount 0.")
    return merged


def _taken(head: _Head | None, key: tuple[str, str], amount: Fraction, now_ns: int) -> tuple[_Head, Fraction]:
    """The head with an amount taken, and the amount as recorded."""
    account, currency = key
    if head is None:
        raise Denied(code="budget", reason=f"The account {account} has no budget in {currency}.")
    now = head.at(now_ns)
    total = now.total + amount
    if total.denominator > _WIDEST:
        total = Fraction(math.ceil(total * _GRID), _GRID)
    if now.most is not None and total > now.most:
        left = max(Fraction(0), now.most - now.total)
        per = {"day": "today", "session": "in this session", "ever": "in all"}[now.per]
        rest = f"{shown(left, down=True)} {currency} of {shown(now.most)} is left {per}, and this costs {shown(amount)}"
        raise Denied(code="budget", reason=f"The budget does not suffice: {rest}.")
    return now._replace(total=total), total - now.total


def _head(row: Any) -> _Head:
    most = None if row.most is None else Fraction(row.most)
    return _Head(row.account, row.currency, most, row.per, row.period, Fraction(row.total), row.seen_ns)


def _row(head: _Head) -> dict[str, object]:
    return {**head._asdict(), "most": None if head.most is None else str(head.most), "total": str(head.total)}


@cache
def _select_heads(count: int) -> Ready:
    keys = [sa.tuple_(sa.bindparam(f"a{i}", type_=sa.Text), sa.bindparam(f"c{i}", type_=sa.Text)) for i in range(count)]
    # In the order of their names: whoever locks several does it in the same order.
    chosen = sa.select(HEADS).where(sa.or_(*(sa.tuple_(HEADS.c.account, HEADS.c.currency) == key for key in keys)))
    return Ready(chosen.order_by(HEADS.c.account, HEADS.c.currency).with_for_update())


def _heads(connection: Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], _Head]:
    """The heads of some accounts, locked until the transaction ends (SQLite's writers hold the whole file)."""
    values = {f"{letter}{i}": part for i, key in enumerate(keys) for letter, part in zip("ac", key, strict=True)}
    return {(row.account, row.currency): _head(row) for row in _select_heads(len(keys))(connection, values)}


_ACCOUNT_HEADS = Ready(sa.select(HEADS).where(HEADS.c.account == sa.bindparam("a")).order_by(HEADS.c.currency).with_for_update())
_INSERT_HEAD = Ready(sa.insert(HEADS))
_SAVE = Ready(
    sa.update(HEADS)
    .where(HEADS.c.account == sa.bindparam("key_account"), HEADS.c.currency == sa.bindparam("key_currency"))
    .values(most=sa.bindparam("most"), per=sa.bindparam("per"), period=sa.bindparam("period"), total=sa.bindparam("total"), seen_ns=sa.bindparam("seen_ns"))
)
_INSERT_ENTRY = Ready(sa.insert(ENTRIES).values({c.name: sa.bindparam(c.name) for c in ENTRIES.c if c.name != "id"}).inline())
_INSERT_HOLD = Ready(sa.insert(HOLDS))
_DELETE_HOLDS = Ready(sa.delete(HOLDS).where(HOLDS.c.request_id == sa.bindparam("r")))
_DELETE_ACCOUNT_HOLDS = Ready(sa.delete(HOLDS).where(HOLDS.c.account == sa.bindparam("a"), HOLDS.c.currency == sa.bindparam("c")))
_OPENING = Ready(sa.select(ENTRIES).where(ENTRIES.c.request_id == sa.bindparam("r"), ENTRIES.c.phase == sa.literal_column("0")).order_by(ENTRIES.c.part))
_CLOSING = Ready(sa.select(ENTRIES.c.kind).where(ENTRIES.c.request_id == sa.bindparam("r"), ENTRIES.c.phase == sa.literal_column("1")))


def _save(connection: Connection, heads: Sequence[_Head]) -> None:
    _SAVE(connection, [{**_row(head), "key_account": head.account, "key_currency": head.currency} for head in heads])


def _append(
    connection: Connection, request_id: str, phase: int, kind: str, parts: Sequence[tuple[_Head, Fraction]], why: str, now_ns: int, expires: int | None = None
) -> None:
    common = {"request_id": request_id, "phase": phase, "kind": kind, "why": why, "at_ns": now_ns, "expires_ns": expires}
    rows = [{**common, "part": i, "account": h.account, "currency": h.currency, "amount": str(a), "period": h.period} for i, (h, a) in enumerate(parts)]
    _INSERT_ENTRY(connection, rows)


def _opening(connection: Connection, request_id: str) -> list[Entry]:
    return [_entry(row) for row in _OPENING(connection, {"r": request_id})]


def _state(connection: Connection, opened: Sequence[Entry]) -> str:
    if opened[0].kind == "charge":
        return "committed"
    closed = _CLOSING(connection, {"r": opened[0].request_id}).scalar()
    return {None: "reserved", "commit": "committed", "cancel": "cancelled"}[closed]


def _entry(row: Any) -> Entry:
    return Entry(row.id, row.request_id, row.kind, row.account, row.currency, Fraction(row.amount), row.period, row.why, row.at_ns, row.expires_ns)


def _reservation(opened: Sequence[Entry], state: str) -> Reservation:
    charges = tuple(Charge(e.account, e.currency, e.amount) for e in opened)
    return Reservation(opened[0].request_id, charges, state, opened[0].expires_ns)


def _moment(now_ns: int, name: str = "now_ns") -> int:
    if type(now_ns) is not int or not 0 <= now_ns < _LAST_NS:
        checks.refuse("ledger", name, "a whole number of nanoseconds from 0 to the year 2116", now_ns)
    return now_ns


def _words(owner: str, **texts: object) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > _LONGEST or "\x00" in text or (not text and name != "why"):
            checks.refuse(owner, name, f"a text of 1 to {_LONGEST} characters", text)
