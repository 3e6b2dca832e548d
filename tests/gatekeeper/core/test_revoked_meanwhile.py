"""What is taken away while a row of the audit log is written is not given when the row is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.gatekeeper import AuditLog, Denied, Gatekeeper, Grant, Ledger, Policy, Target
from gazeveil.gatekeeper.core.app import App

END_NS = 10**18

GRANT = Grant(
    frozenset({"areas", "fixations", "saccades", "tile", "counter", "select", "events"}),
    budgets={"epsilon": Fraction(4)},
    expires_ns=END_NS,
)


class SetClock:
    """A clock that shows what it was set to."""

    now_ns = END_NS - 10**9

    def __call__(self) -> int:
        return self.now_ns


CALLS: dict[str, Callable[[App], object]] = {
    "register_area": lambda app: app.register_area("door", 0, 0, 20, 20),
    "areas": lambda app: app.areas(),
    "get_fixations": lambda app: app.get_fixations(1),
    "get_saccades": lambda app: app.get_saccades(1),
    "metrics": lambda app: app.metrics(1),
    "counter": lambda app: app.counter(1),
    "current_tile": lambda app: app.current_tile(),
    "on_tile": lambda app: app.on_tile(lambda tile, t_ms: None),
    "select": lambda app: app.select([Target("t", 0, 0, 360, 180)], lambda name: None),
    "listener": lambda app: app.add_event_listener("fixation", lambda event: None),
}

TAKE: dict[str, Callable[[Gatekeeper, SetClock], None]] = {
    "revoked": lambda keeper, clock: keeper.revoke("shop"),
    "no-consent": lambda keeper, clock: keeper.consent(False),
    "no-grant": lambda keeper, clock: keeper.drop("shop"),
    "scope": lambda keeper, clock: keeper.grant(
        "shop", replace(GRANT, scopes=frozenset({"samples"}))
    ),
    "expired": lambda keeper, clock: setattr(clock, "now_ns", END_NS),
}


@pytest.mark.parametrize("code", TAKE)
@pytest.mark.parametrize("call", CALLS)
def test_no_answer_is_given_for_what_was_taken_while_its_row_was_written(
    call: str, code: str
) -> None:
    """A disk may take seconds for the row, in which the owner has been told that it is gone."""
    with Ledger.open("sqlite://") as ledger:
        log = AuditLog(ledger)
        clock, policy = SetClock(), Policy({"shop": GRANT}, consent=True)
        keeper = Gatekeeper(policy, ledger, rate_hz=100.0, audit=log, clock_ns=clock)
        app = keeper.app("shop")
        app.register_area("view", 0, 0, 360, 180)
        for i, x_deg in enumerate((20.0, 60.0, 100.0)):
            t_ns = (50 * i + np.arange(1, 51)) * 10_000_000
            keeper.push(t_ns, np.full(50, x_deg), np.full(50, 90.0))
        CALLS[call](app)  # it is allowed as long as nothing is taken
        if call == "select":
            next(s for s, r in keeper.state.subscriptions.items() if r.action == "select").close()
        write = log.record

        def taken_meanwhile(kind: str, *more: object, **named: object) -> None:
            write(kind, *more, **named)  # type: ignore[arg-type]
            if kind == "answer":
                TAKE[code](keeper, clock)

        log.record = taken_meanwhile  # type: ignore[method-assign, assignment]
        with pytest.raises(Denied) as no:
            CALLS[call](app)
        assert no.value.code == code
        keeper.close()
