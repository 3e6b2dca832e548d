"""No app fills the audit log by asking for what it may not have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gazeveil.gatekeeper import AuditLog, Denied, Gatekeeper, Grant, Ledger, Policy
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.refusal_rows import ROWS_PER_MINUTE

MINUTE_NS = 60_000_000_000
ASKED = 5 * ROWS_PER_MINUTE

#: More than its scope, more often than it may, and by an app that nobody granted anything.
CASES: dict[str, tuple[Grant, Callable[[App], object]]] = {
    "scope": (Grant(frozenset({"select"})), App.current_tile),
    "rate": (Grant(frozenset({"tile"}), calls_per_minute=0), App.current_tile),
    "no-grant": (Grant(), App.areas),
}


@pytest.mark.parametrize("code", CASES)
def test_refusals_beyond_sixty_a_minute_are_counted_and_the_next_row_says_how_many(
    code: str,
) -> None:
    grant, ask = CASES[code]
    now = [1_000 * MINUTE_NS]
    with Ledger.open("sqlite://") as ledger:
        log = AuditLog(ledger)
        keeper = Gatekeeper(
            Policy({"greedy": grant, "other": Grant(frozenset({"tile"}))}, consent=True),
            ledger,
            rate_hz=100.0,
            audit=log,
            clock_ns=lambda: now[0],
        )
        app = keeper.app("stranger" if code == "no-grant" else "greedy")
        for _ in range(ASKED):
            with pytest.raises(Denied) as no:
                ask(app)
            assert no.value.code == code
        keeper.app("other").current_tile()
        rows = list(log.entries())
        assert [row.kind for row in rows] == [*["denied"] * ROWS_PER_MINUTE, "answer"]
        now[0] += MINUTE_NS
        with pytest.raises(Denied):
            ask(app)
        last = list(log.entries())[-1]
        assert last.detail["unrecorded"] == ASKED - ROWS_PER_MINUTE
