"""The ledger against a model of its rules: reserve, commit, cancel, charge, crash, clock jumps, two
workers, on both engines.

The model knows nothing of accounts, holds or sums: it keeps a list of what was taken and adds it up
with fractions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.ledger.ledger import DAY_NS, Charge, Ledger, LedgerEntry
from tests.support.postgres import database_url, postgres, quick_folder  # noqa: F401

START = 20_000 * DAY_NS
HOUR_NS = 3_600_000_000_000
ACCOUNTS = ("day", "session", "ever")
LIMITS = {"day": Fraction(2), "session": Fraction(3, 2), "ever": Fraction(4)}
AMOUNTS = st.sampled_from(
    [
        Fraction(0),
        Fraction(1, 7),
        Fraction(1, 3),
        Fraction(1, 2),
        Fraction(2, 3),
        Fraction(1),
        Fraction(5, 2),
    ]
)

_examples = itertools.count()


@dataclass
class Taken:
    amount: Fraction
    period: int
    until: int | None
    state: str


@dataclass
class Account:
    per: str
    seen: int = 0
    period: int = 0
    taken: dict[str, Taken] = field(default_factory=dict)

    def period_at(self, now: int) -> int:
        return max(self.period, max(self.seen, now) // DAY_NS) if self.per == "day" else self.period

    def gone(self, now: int) -> Fraction:
        return sum(
            (
                t.amount
                for t in self.taken.values()
                if t.period == self.period_at(now) and t.state != "cancelled"
            ),
            start=Fraction(0),
        )

    def held(self, now: int) -> Fraction:
        seen = max(self.seen, now)
        mine = (
            t
            for t in self.taken.values()
            if t.period == self.period_at(now)
            and t.state == "reserved"
            and t.until is not None
            and t.until > seen
        )
        return sum((t.amount for t in mine), start=Fraction(0))


class LedgerMachine(RuleBasedStateMachine):
    url = ""

    @initialize()
    def begin(self) -> None:
        self.prefix = f"x{next(_examples)} "
        self.workers = [Ledger.open(self.url), Ledger.open(self.url)]
        self.now = START
        self.ids = itertools.count()
        self.sessions = itertools.count()
        self.model = {name: Account(name) for name in ACCOUNTS}
        self.requests: dict[str, tuple[tuple[str, Fraction], ...]] = {}
        self.first = self.last_id()
        self.known: list[LedgerEntry] = []
        for name in ACCOUNTS:
            self.workers[0].set_limit(self.prefix + name, "epsilon", LIMITS[name], name, self.now)
            self.model[name].seen = self.now
            self.model[name].period = self.now // DAY_NS if name == "day" else 0

    def last_id(self) -> int:
        last = 0
        while page := self.workers[0].entries(after=last):
            last = page[-1].id
        return last

    def charges(self, parts: tuple[tuple[str, Fraction], ...]) -> list[Charge]:
        return [Charge(self.prefix + name, "epsilon", amount) for name, amount in parts]

    def affordable(self, parts: tuple[tuple[str, Fraction], ...]) -> bool:
        return all(
            self.model[name].gone(self.now) + amount <= LIMITS[name] for name, amount in parts
        )

    def took(
        self, request: str, parts: tuple[tuple[str, Fraction], ...], until: int | None
    ) -> None:
        self.requests[request] = parts
        for name, amount in parts:
            account = self.model[name]
            account.period, account.seen = account.period_at(self.now), max(account.seen, self.now)
            account.taken[request] = Taken(
                amount, account.period, until, "reserved" if until is not None else "committed"
            )

    def states(self, request: str) -> set[str]:
        return {self.model[name].taken[request].state for name, _ in self.requests[request]}

    parts = st.dictionaries(st.sampled_from(ACCOUNTS), AMOUNTS, min_size=1).map(
        lambda d: tuple(sorted(d.items()))
    )

    @rule(
        worker=st.integers(0, 1),
        parts=parts,
        hold=st.sampled_from([None, 0, HOUR_NS, 30 * HOUR_NS]),
    )
    def take(self, worker: int, parts: tuple[tuple[str, Fraction], ...], hold: int | None) -> None:
        request = f"{self.prefix}r{next(self.ids)}"
        ledger, charges, affordable = (
            self.workers[worker],
            self.charges(parts),
            self.affordable(parts),
        )
        try:
            if hold is None:
                assert ledger.charge(request, charges, "machine", self.now).state == "committed"
                until = None
            else:
                held = ledger.reserve(request, charges, "machine", self.now, hold)
                assert held.state == "reserved"
                until = held.expires_ns
                assert until == max(max(self.model[n].seen for n, _ in parts), self.now) + hold
        except Denied as denied:
            code = denied.code
        else:
            code = "allowed"
            self.took(request, parts, until)
        assert code == ("allowed" if affordable else "budget")

    @precondition(lambda self: self.requests)
    @rule(worker=st.integers(0, 1), data=st.data(), commit=st.booleans(), told=st.booleans())
    def finish(self, worker: int, data: st.DataObject, commit: bool, told: bool) -> None:
        request = data.draw(st.sampled_from(sorted(self.requests)))
        mine = [
            (self.model[name], self.model[name].taken[request])
            for name, _ in self.requests[request]
        ]
        now, state = (self.now if told else 0), mine[0][1].state
        in_time = all(
            t.until is not None and max(a.seen, now) < t.until and a.period_at(now) == t.period
            for a, t in mine
        )
        ledger = self.workers[worker]
        try:
            done = (ledger.commit if commit else ledger.cancel)(request, self.now if told else None)
        except (Denied, LedgerError):
            done = None
        refused = (state, commit) in {("cancelled", True), ("committed", False)} or (
            state == "reserved" and commit and not in_time
        )
        assert (done is None) == refused
        if done is not None and state == "reserved":
            for account, taken in mine:
                taken.state = "committed" if commit else "cancelled"
                account.seen = max(account.seen, now)
        assert done is None or {done.state} == self.states(request)

    @precondition(lambda self: self.requests)
    @rule(worker=st.integers(0, 1), data=st.data())
    def send_again(self, worker: int, data: st.DataObject) -> None:
        """The same id costs once."""
        request = data.draw(st.sampled_from(sorted(self.requests)))
        before = self.states(request)
        again = self.workers[worker].reserve(
            request, self.charges(self.requests[request]), "machine", self.now, HOUR_NS
        )
        assert {again.state} == before

    @rule(worker=st.integers(0, 1))
    def crash(self, worker: int) -> None:
        """A worker loses everything it had in memory."""
        self.workers[worker].close()
        self.workers[worker] = Ledger.open(self.url)

    @rule(worker=st.integers(0, 1))
    def limits_told_again(self, worker: int) -> None:
        for name in ACCOUNTS:
            self.workers[worker].set_limit(
                self.prefix + name, "epsilon", LIMITS[name], name, self.now
            )

    @rule(
        jump=st.sampled_from(
            [
                1,
                HOUR_NS,
                5 * HOUR_NS,
                26 * HOUR_NS,
                40 * DAY_NS,
                -1,
                -HOUR_NS,
                -3 * DAY_NS,
                -100 * DAY_NS,
            ]
        )
    )
    def clock(self, jump: int) -> None:
        self.now = max(0, self.now + jump)

    @rule(worker=st.integers(0, 1), again=st.booleans())
    def session(self, worker: int, again: bool) -> None:
        name = "again" if again else f"s{next(self.sessions)}"
        self.workers[worker].begin_session(self.prefix + "session", name, self.now)
        account = self.model["session"]
        if not again or not getattr(self, "used", False):
            account.period += 1
            account.seen = max(account.seen, self.now)
        self.used = getattr(self, "used", False) or again

    @invariant()
    def never_more_than_the_limit_and_exactly_what_was_taken(self) -> None:
        for name, account in self.model.items():
            ledger = self.workers[next(self.ids) % 2]
            key = self.prefix + name
            balance = ledger.balance(key, "epsilon", self.now)
            assert balance.spent >= 0
            assert balance.reserved >= 0
            assert balance.spent + balance.reserved <= LIMITS[name]
            assert balance.spent + balance.reserved == account.gone(self.now)
            assert balance.reserved == account.held(self.now)
            assert balance.remaining == LIMITS[name] - balance.spent - balance.reserved

    @invariant()
    def the_ledger_only_grows(self) -> None:
        entries = [
            e
            for e in self.workers[0].entries(after=self.first, limit=10_000)
            if e.account.startswith(self.prefix)
        ]
        assert entries[: len(self.known)] == self.known
        self.known = entries
        opened = [(e.request_id, e.account) for e in entries if e.kind in {"charge", "reserve"}]
        assert len(opened) == len(set(opened))

    def teardown(self) -> None:
        if hasattr(self, "workers"):
            assert self.workers[0].verify() == ()
            for worker in self.workers:
                worker.close()


def _run(url: str, examples: int, steps: int) -> None:
    machine = type("Machine", (LedgerMachine,), {"url": url})
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=examples < 100,
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]


def test_the_ledger_keeps_its_rules_whatever_happens_in_whatever_order(database_url: str) -> None:
    _run(database_url, examples=12 if database_url.startswith("sqlite") else 6, steps=25)


@pytest.mark.heavy
def test_the_ledger_keeps_its_rules_for_long(database_url: str) -> None:
    _run(database_url, examples=300 if database_url.startswith("sqlite") else 100, steps=50)
