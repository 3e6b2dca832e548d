"""The Gatekeeper's core: tiles, listeners, and the policy on every call."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import (
    LEVELS,
    AuditLog,
    Denied,
    Gatekeeper,
    Grant,
    Ledger,
    LedgerError,
    Policy,
    PrecisionLevel,
    PublicEvent,
    SaccadeStart,
    Target,
)
from gazeveil.gatekeeper.core.events import first_number
from tests.support.wearers import ALL, grant, keeper, later, looks, policy

# --- tiles
# --------------------------------------------------------------------------------------------------


def test_the_tile_changes_with_events_alone_and_not_at_an_edge() -> None:
    k = keeper("a")
    app = k.app("a")
    told: list[tuple[int | None, int]] = []
    app.on_tile(lambda tile, t_ms: told.append((tile, t_ms)))
    assert app.current_tile() is None
    k.push(*looks([(22, 92), (43, 92), (47, 92), (43, 92), (47, 92), (70, 92), (340, 92)]))
    assert app.current_tile() in (17, 23)
    k.lost()
    assert [tile for tile, _ in told] == [16, 17, 23, None]
    assert app.current_tile() is None
    assert all(t % 100 == 0 for _, t in told)


# --- listeners
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("pursuit", "start-stop"),
        ("fixation", "start"),
        ("blink", "end"),
        ("fixation", "start-stop"),
        ("saccade", "always"),
    ],
)
def test_listeners_that_do_not_exist_are_refused(kind: str, mode: str) -> None:
    with pytest.raises(Denied) as no:
        keeper("a").app("a").add_event_listener(kind, print, mode=mode)
    assert no.value.code == "parameter"


def test_a_callback_that_fails_ends_its_own_subscription_only() -> None:
    k = keeper("a", "b")
    heard: list[object] = []
    ends: list[tuple[str, str]] = []

    def broken(event: object) -> None:
        raise RuntimeError("mine")

    bad = k.app("a").add_event_listener("fixation", broken)
    bad.on_end(lambda reason, code: ends.append((reason, code)))
    good = k.app("b").add_event_listener("fixation", heard.append)
    k.push(*looks([(100, 80), (140, 80)] * 4))
    assert bad.ended is not None
    assert ends == [("Its callback failed.", "closed")]
    assert good.ended is None
    assert len(heard) >= 6


def test_a_callback_may_call_the_gatekeeper_and_close_itself() -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    seen: list[int] = []

    def once(event: PublicEvent | SaccadeStart) -> None:
        seen.append(app.metrics(area.id).fixations)
        subscription.close()

    subscription = app.add_event_listener("fixation", once)
    k.push(*looks([(100, 80), (140, 80)] * 4))
    assert (seen, subscription.code) == ([1], "closed")
    late: list[str] = []
    subscription.on_end(lambda reason, code: late.append(code))
    assert late == ["closed"]


# --- the policy on every call
# --------------------------------------------------------------------------------------------------

CALLS = {
    "areas": lambda app, area: app.areas(),
    "register": lambda app, area: app.register_area("x", 0, 0, 20, 20),
    "metrics": lambda app, area: app.metrics(area),
    "fixations": lambda app, area: app.get_fixations(area),
    "dwell": lambda app, area: app.get_dwell_time(first_number(1, "a")),
    "saccades": lambda app, area: app.get_saccades(area),
    "events": lambda app, area: app.add_event_listener("fixation", print),
    "tile": lambda app, area: app.current_tile(),
    "on_tile": lambda app, area: app.on_tile(print),
    "samples": lambda app, area: app.open_private_stream("gaussian:sigma_deg=2", lambda *q: None),
    "select": lambda app, area: app.select([Target("x", 90, 70, 20, 20)], print),
}


SCOPE = {"register": "areas", "metrics": "areas", "dwell": "fixations", "on_tile": "tile"}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_needs_its_scope_consent_and_a_grant(call: str) -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("x", 90, 70, 20, 20).id
    k.push(*looks([(100, 80), (140, 80)] * 3))
    app.get_fixations(area)
    CALLS[call](app, area)
    for change, code in (
        (lambda: k.grant("a", grant(scopes=ALL - {SCOPE.get(call, call)}, mechanisms=())), "scope"),
        (lambda: k.grant("a", grant(expires_ns=1)), "expired"),
        (lambda: k.grant("a", grant(calls_per_minute=0)), "rate"),
        (lambda: (k.grant("a", grant()), k.consent(False)), "no-consent"),
        (lambda: (k.consent(True), k.revoke("a")), "revoked"),
        (lambda: k.set_policy(Policy({}, consent=True)), "no-grant"),
    ):
        change()
        with pytest.raises(Denied) as no:
            CALLS[call](app, area)
        assert no.value.code == code
    k.close()


def test_calls_are_counted_over_a_minute() -> None:
    now = [10**18]
    k = keeper("a", grants={"calls_per_minute": 5}, clock_ns=lambda: now[0])
    app = k.app("a")
    for _ in range(5):
        app.areas()
        now[0] += 10**9
    with pytest.raises(Denied) as no:
        app.areas()
    assert no.value.code == "rate"
    now[0] += 55 * 10**9  # the first call is a minute ago
    app.areas()
    now[0] -= 10**12  # a clock that is put back gives nothing back
    with pytest.raises(Denied):
        app.areas()
    now[0] += 10**12 + 61 * 10**9
    app.areas()


def test_without_consent_nothing_is_looked_at() -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    first = looks([(100, 80), (140, 80)] * 3)
    k.push(*first)
    before = app.metrics(area.id)
    k.consent(False)
    second = later(first, looks([(100, 80), (140, 80)] * 3))
    k.push(*second)
    k.lost()
    k.consent(True)
    assert app.metrics(area.id) == before
    third = later(second, looks([(100, 80), (140, 80)]))
    k.push(*third)
    k.lost()
    assert app.metrics(area.id).fixations == before.fixations + 1


def test_no_audit_row_no_answer_and_taking_away_works_with_a_broken_disk() -> None:
    ledger = Ledger.open("sqlite://")
    log = AuditLog(ledger)
    k = Gatekeeper(policy("a"), ledger, rate_hz=100.0, audit=log, seed=1)
    app = k.app("a")
    area = app.register_area("x", 90, 70, 20, 20)
    with pytest.raises(Denied):
        k.app("stranger").areas()
    for odd in ("", "x" * 1000, "\x00", 7):
        with pytest.raises(Denied):
            k.app(odd).areas()  # type: ignore[arg-type]
    kinds = [row.kind for row in log.entries()]
    assert kinds == ["answer", *["denied"] * 5]
    stream = app.add_event_listener("fixation", lambda e: None)

    def broken(*args: object, **named: object) -> None:
        raise OSError("No space left on device: 123.456789")

    log.record = broken  # type: ignore[method-assign, assignment]
    for call in (
        lambda: app.metrics(area.id),
        lambda: app.get_fixations(area.id),
        app.current_tile,
        lambda: app.on_tile(print),
    ):
        with pytest.raises(LedgerError) as error:
            call()
        assert "123.456789" not in str(error.value)
    with pytest.raises(LedgerError):
        k.grant("b", grant())
    assert "b" not in k.policy.apps
    with pytest.raises(LedgerError):
        k.revoke("a")
    assert k.policy.apps["a"].revoked
    assert stream.code == "revoked"
    with pytest.raises(LedgerError):
        k.consent(False)
    assert not k.policy.consent


def test_a_closed_gatekeeper_answers_nothing_and_ends_everything() -> None:
    k = keeper("a")
    subscription = k.app("a").add_event_listener("fixation", print)
    with k:
        pass
    k.close()
    assert subscription.code == "closed"
    k.push(0, 1.0, 1.0)
    k.lost()
    with pytest.raises(Denied) as no:
        k.app("a").areas()
    assert no.value.code == "closed"


def test_levels_are_checked_and_named() -> None:
    assert (LEVELS["fine"].resolution_deg, LEVELS["fine"].tick_ms, LEVELS["coarse"].tiles) == (
        1.0,
        10,
        (8, 4),
    )
    for wrong in (
        {"resolution_deg": 0},
        {"tick_ms": 0},
        {"least_side_deg": 1.0},
        {"tiles": (0, 4)},
        {"tiles": 8},
    ):
        with pytest.raises(ParameterError):
            PrecisionLevel(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        keeper("a", level="finer")


# --- Pushing on an event loop: what `push_now` takes is what `push` would have told, and it
# never waits.
# --------------------------------------------------------------------------------------------------


RATE_HZ = 100.0
STEP_NS = round(1e9 / RATE_HZ)
SCOPES = frozenset({"events", "samples"})


def policy_of_push_now() -> Policy:
    grant = Grant(SCOPES, ("gaussian:sigma_deg=3",), budgets={"rho": Fraction(10**6)})
    return Policy({"app": grant}, consent=True)


def block(first: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rests of a third of a second, forty degrees apart."""
    index = np.arange(first, first + count)
    return (
        index * STEP_NS,
        100.0 + 40.0 * (index // 33 % 3),
        np.full(count, 90.0),
        np.ones(count, dtype=np.bool_),
    )


class Heard:
    """A Gatekeeper with a test seed, one stream and one listener, and what they were told."""

    def __init__(self, ledger: Ledger) -> None:
        self.keeper = Gatekeeper(policy_of_push_now(), ledger, rate_hz=RATE_HZ, seed=5)
        self.samples: list[np.ndarray] = []
        self.events: list[object] = []
        app = self.keeper.app("app")
        app.open_private_stream(
            "gaussian:sigma_deg=3", lambda t, x, y, v: self.samples.append(np.stack([t, x, y, v]))
        )
        app.add_event_listener("fixation", self.events.append)


def test_what_is_taken_at_once_is_what_push_would_have_told() -> None:
    with Ledger.open("sqlite://") as one, Ledger.open("sqlite://") as other:
        plain, quick = Heard(one), Heard(other)
        at_once = 0
        for first in range(0, 1200, 12):
            plain.keeper.push(*block(first, 12))
            taken = quick.keeper.push_now(*block(first, 12))
            at_once += taken
            if not taken:
                quick.keeper.push(*block(first, 12))
        plain.keeper.close()
        quick.keeper.close()
    # One block in eight begins a lease of a second, and the first is compiled for.
    assert 70 <= at_once <= 95
    assert np.array_equal(
        np.concatenate(plain.samples, axis=1), np.concatenate(quick.samples, axis=1)
    )
    assert plain.events == quick.events
    assert plain.events


def test_the_first_block_the_end_of_a_lease_and_a_lock_are_waited_for_elsewhere() -> None:
    with Ledger.open("sqlite://") as ledger:
        heard = Heard(ledger)
        keeper = heard.keeper
        assert not keeper.push_now(*block(0, 10)), "nothing is compiled yet"
        keeper.push(*block(0, 10))
        assert keeper.push_now(*block(10, 80))
        assert not keeper.push_now(*block(90, 20)), "ten samples are paid for"
        keeper.push(*block(90, 20))
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with keeper._state.lock:
                held.set()
                let_go.wait(120)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(60)
        began = time.monotonic()
        assert not keeper.push_now(*block(110, 10))
        assert time.monotonic() - began < 60, "the lock is held for two minutes"
        let_go.set()
        holder.join()
        assert keeper.push_now(*block(110, 10))
        keeper.close()
