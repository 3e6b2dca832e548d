"""A clock that is set back revives nothing: no ended grant, no token, also not across a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.ledger import forward_clock
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.forward_clock import ForwardClock
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.credentials.tokens import Tokens

HOUR_NS = 3600 * 10**9
NOON_NS = 20_000 * 24 * HOUR_NS


def keeper(ledger: Ledger, clock_ns: Callable[[], int] | None = None) -> Gatekeeper:
    granted = Grant(scopes=frozenset({"tile"}), expires_ns=NOON_NS + HOUR_NS)
    return Gatekeeper(
        Policy({"a": granted}, consent=True),
        ledger,
        rate_hz=60.0,
        clock_ns=clock_ns,
        audit=AuditLog(ledger),
    )


def test_an_ended_grant_stays_ended_when_the_clock_is_set_back() -> None:
    now = [NOON_NS]
    with Ledger.open() as ledger:
        app = keeper(ledger, lambda: now[0]).app("a")
        app.current_tile()
        now[0] += 2 * HOUR_NS
        with pytest.raises(Denied, match="expired"):
            app.current_tile()
        now[0] -= 24 * HOUR_NS
        with pytest.raises(Denied, match="expired"):
            app.current_tile()


def test_an_end_that_was_reached_holds_after_a_restart_with_the_clock_set_back(
    tmp_path: Path,
) -> None:
    url, now = f"sqlite:///{tmp_path / 'ledger.db'}", [NOON_NS]
    with Ledger.open(url) as ledger:
        device = keeper(ledger, lambda: now[0])
        device.app("a").current_tile()
        now[0] += 2 * HOUR_NS
        # Nobody asks any more: the platform's own look at the clock writes the end down.
        device.record_ends()
        device.record_ends()
        device.record_revocation("consent", "device", NOON_NS)  # written late
        device.close()
    with Ledger.open(url) as ledger:
        assert [row.kind for row in AuditLog(ledger).last()].count("end") == 1
        with pytest.raises(Denied, match="expired"):
            keeper(ledger, lambda: NOON_NS).app("a").current_tile()


def test_a_token_that_has_ended_stays_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = [0]
    monkeypatch.setattr(forward_clock.time, "time_ns", lambda: NOON_NS + shift[0])
    with Ledger.open() as ledger:
        tokens = Tokens(ledger)
        token = tokens.issue("a", "app", NOON_NS + HOUR_NS)
        assert tokens.check(token, ledger.now_ns()) is not None
        shift[0] = 2 * HOUR_NS
        assert tokens.check(token, ledger.now_ns()) is None
        shift[0] = 0
        assert tokens.check(token, ledger.now_ns()) is None


def test_time_goes_on_after_the_system_s_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, passed = [NOON_NS], [0]
    monkeypatch.setattr(forward_clock.time, "time_ns", lambda: wall[0])
    monkeypatch.setattr(forward_clock.time, "monotonic_ns", lambda: passed[0])
    now_ns = ForwardClock()
    assert now_ns() == NOON_NS
    wall[0] -= HOUR_NS
    passed[0] += 5
    assert now_ns() == NOON_NS + 5
    wall[0] = NOON_NS + 100
    passed[0] += 5
    assert now_ns() == NOON_NS + 100
    assert ForwardClock(time.time_ns() + HOUR_NS)() >= NOON_NS
