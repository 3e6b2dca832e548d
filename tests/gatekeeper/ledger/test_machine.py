"""The ledger against a model of its rules: charges, requests sent again, crashes, clock jumps, two
workers, on both engines.

The model knows nothing of accounts or sums: it keeps a list of what was taken and adds it up.
"""

from __future__ import annotations

import itertools
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

from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.ledger.ledger import DAY_NS, Charge, Ledger
from tests.support.ledger_entries import adds_up
from tests.support.postgres import database_url, postgres, quick_folder  # noqa: F401

HOUR_NS = 3_600_000_000_000
LIMITS = {"shop": Fraction(2), "device": Fraction(3)}
PARTS = st.dictionaries(
    st.sampled_from(sorted(LIMITS)),
    st.sampled_from([Fraction(n) for n in ("0", "1/7", "1/3", "2/3", "1", "5/2")]),
    min_size=1,
)

_examples = itertools.count()


class LedgerMachine(RuleBasedStateMachine):
    url = ""

    @initialize()
    def begin(self) -> None:
        self.prefix = f"x{next(_examples)} "
        self.workers = [Ledger.open(self.url), Ledger.open(self.url)]
        self.now, self.ids = 20_000 * DAY_NS, itertools.count()
        self.seen = dict.fromkeys(LIMITS, 0)
        #: Account, day and amount of all that was taken.
        self.taken: list[tuple[str, int, Fraction]] = []
        self.requests: dict[str, list[Charge]] = {}

    def gone(self, name: str) -> Fraction:
        day = max(self.seen[name], self.now) // DAY_NS
        mine = (amount for account, on, amount in self.taken if (account, on) == (name, day))
        return sum(mine, start=Fraction(0))

    @rule(worker=st.integers(0, 1), parts=PARTS)
    def charge(self, worker: int, parts: dict[str, Fraction]) -> None:
        request = f"{self.prefix}{next(self.ids)}"
        charges = [
            Charge(self.prefix + n, "epsilon", amount, LIMITS[n]) for n, amount in parts.items()
        ]
        affordable = all(self.gone(name) + amount <= LIMITS[name] for name, amount in parts.items())
        try:
            self.workers[worker].charge(request, charges, "machine", self.now)
        except Denied:
            assert not affordable
            return
        assert affordable
        self.requests[request] = charges
        for name, amount in parts.items():
            self.seen[name] = max(self.seen[name], self.now)
            self.taken.append((name, self.seen[name] // DAY_NS, amount))

    @precondition(lambda self: self.requests)
    @rule(worker=st.integers(0, 1), data=st.data())
    def send_again(self, worker: int, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted(self.requests)))
        self.workers[worker].charge(request, self.requests[request], "machine", self.now)

    @rule(worker=st.integers(0, 1))
    def crash(self, worker: int) -> None:
        self.workers[worker].close()
        self.workers[worker] = Ledger.open(self.url)

    @rule(hours=st.sampled_from([1, 5, 26, 40 * 24, -1, -3 * 24, -100 * 24]))
    def clock(self, hours: int) -> None:
        self.now = max(0, self.now + hours * HOUR_NS)

    @invariant()
    def never_more_than_the_limit_and_exactly_what_was_taken(self) -> None:
        ledger = self.workers[next(self.ids) % 2]
        for name, limit in LIMITS.items():
            spent = ledger.spent(self.prefix + name, "epsilon", self.now)
            assert spent == self.gone(name) <= limit

    def teardown(self) -> None:
        assert adds_up(self.workers[0])
        for worker in self.workers:
            worker.close()


@pytest.mark.parametrize(
    "examples", [10, pytest.param(150, marks=pytest.mark.heavy)], ids=["quick", "long"]
)
def test_the_ledger_does_what_its_rules_say(database_url: str, examples: int) -> None:
    LedgerMachine.url = database_url
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
