"""Several people on one device: nothing of one wearer's gaze, consent or budget reaches the next
one's apps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import (
    PRESETS,
    AuditLog,
    Denied,
    Gatekeeper,
    Grant,
    Ledger,
    LedgerError,
    Policy,
    PublicEvent,
    SaccadeStart,
    Target,
)
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.ledger import ledger as ledger_module
from gazeveil.gatekeeper.ledger.ledger import ForwardClock
from gazeveil.gatekeeper.policy.decision import UNUSED_NS
from gazeveil.gatekeeper.policy.policy import Wearer
from gazeveil.gatekeeper.service.credentials import Tokens

RATE_HZ = 120.0
NOISE = "gaussian:sigma_deg=5"
GRANT = PRESETS["study"].grant(calls_per_minute=100_000)
FAMILY = Policy(
    {"shop": GRANT},
    consent=True,
    others={"anna": Wearer(True, {"shop": GRANT}), "ben": Wearer(False, {"shop": GRANT})},
)

#: What a Gatekeeper keeps when another person puts the device on. Everything else must be made
#: anew: a new attribute belongs here only if nothing of it comes of gaze.
OF_THE_DEVICE = {
    "lock",
    "ledger",
    "audit",
    "clock_ns",
    "device_name",
    "level",
    "space",
    "rate_hz",
    "grid",
    "numbers",
    "closed",
    "_seed",
    "_arrivals",  # numbers of commands, which must not begin again
    "given",  # numbers of the commands that gave something
    "_keep",
    "opening",  # calls that are under way: each counts itself out
    "policy_lock",
    "taken",  # how often something was taken away, by whomever
    "uses",  # by grant, and every wearer has grants of their own
    "indicator",  # forgets the answers of the last wearer
}


class Wear:
    """A Gatekeeper whose clocks a test moves."""

    def __init__(self, ledger: Ledger, policy: Policy = FAMILY, **options: Any) -> None:
        self.now_ns, self.t_ns = 10**18, 0
        self.keeper = Gatekeeper(
            policy, ledger, rate_hz=RATE_HZ, clock_ns=lambda: self.now_ns, **options
        )

    def look(self, x_deg: float, y_deg: float, seconds: float = 1.0) -> None:
        count = round(seconds * RATE_HZ)
        t = self.t_ns + (1 + np.arange(count)) * round(1e9 / RATE_HZ)
        self.t_ns = int(t[-1])
        self.keeper.push(t, np.full(count, x_deg), np.full(count, y_deg))


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as one:
        yield one


@pytest.fixture
def wear(ledger: Ledger) -> Iterator[Wear]:
    one = Wear(ledger)
    with one.keeper:
        yield one


def test_a_device_with_one_wearer_needs_no_switch(ledger: Ledger) -> None:
    with Wear(ledger, Policy({"shop": GRANT}, consent=True)).keeper as keeper:
        assert (keeper.wearer, keeper.app("shop").areas()) == ("owner", ())
        accounts = keeper.state.account("shop"), keeper.state.account()
        assert accounts == ("app:shop", "device"), "old ledgers stay valid"


@pytest.mark.parametrize("name", [None, "zoe"])
def test_an_unknown_wearer_has_no_consent_and_no_grant_and_nobody_can_give_them(
    wear: Wear, name: str | None
) -> None:
    wear.keeper.switch_wearer("owner")
    wear.keeper.switch_wearer(name)
    assert wear.keeper.policy.apps == {}
    for call in (
        lambda: wear.keeper.app("shop").areas(),
        lambda: wear.keeper.app("shop").open_private_stream(NOISE, lambda *_: None),
    ):
        with pytest.raises(Denied) as no:
            call()
        assert no.value.code == "no-consent"
    with pytest.raises(ParameterError, match="switch to a wearer that it names"):
        wear.keeper.consent(True)
    with pytest.raises(ParameterError, match="switch to a wearer that it names"):
        wear.keeper.grant("shop", GRANT)


def test_consent_and_grants_follow_the_wearer(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("ben")
    with pytest.raises(Denied, match="Sharing is off"):
        keeper.app("shop").areas()
    keeper.consent(True)
    keeper.app("shop").areas()
    keeper.revoke("shop")
    keeper.switch_wearer("anna")
    assert keeper.app("shop").areas() == (), "what ben took back, anna has not"
    keeper.consent(False)
    keeper.switch_wearer("owner")
    assert keeper.app("shop").areas() == ()
    keeper.switch_wearer("ben")
    with pytest.raises(Denied, match="revoked"):
        keeper.app("shop").areas()


def test_every_subscription_ends_with_the_code_wearer(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    shop = keeper.app("shop")
    open_ = [
        shop.open_private_stream(NOISE, lambda *_: None),
        shop.add_event_listener("fixation", lambda _: None),
        shop.on_tile(lambda *_: None),
        keeper.watch(lambda *_: None),
    ]
    keeper.switch_wearer("anna")
    assert [one.code for one in open_] == ["wearer"] * 4
    assert keeper.state.subscriptions == {}


def test_nothing_of_one_wearers_gaze_is_seen_by_the_next_ones_apps(wear: Wear) -> None:
    """The apps of two wearers are one app with one token: it keeps every number and id it got under
    the first.
    """
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    shop = keeper.app("shop")
    area = shop.register_area("left", 60, 60, 60, 60)
    seen: list[Any] = []
    shop.add_event_listener("fixation", seen.append)
    for x in (90.0, 200.0, 90.0, 200.0, 90.0):
        wear.look(x, 90.0)
    assert shop.get_fixations(area.id)
    assert shop.metrics(area.id).fixations
    assert shop.current_tile() is not None
    assert seen
    keeper.switch_wearer("anna")
    for call in (
        lambda: shop.get_fixations(area.id),
        lambda: shop.metrics(area.id),
        lambda: shop.get_dwell_time(seen[0].number),
    ):
        with pytest.raises(Denied) as no:
            call()
        assert no.value.code == "unknown"
    assert shop.current_tile() is None
    again = shop.register_area("left", 60, 60, 60, 60)
    wear.look(90.0, 90.0, 0.02)  # the first samples of the new wearer decide nothing yet
    assert (shop.get_fixations(again.id), shop.metrics(again.id).fixations) == ((), 0)
    assert keeper.state.t_ms == 0, "the clock of the events begins with the wearer"


def test_a_fixation_across_the_switch_belongs_to_nobody(wear: Wear) -> None:
    keeper = wear.keeper
    keeper.switch_wearer("owner")
    wear.look(90.0, 90.0, 5.0)
    keeper.switch_wearer("anna")
    heard: list[Any] = []
    keeper.app("shop").add_event_listener("fixation", heard.append)
    wear.look(90.0, 90.0, 0.5)
    wear.look(250.0, 40.0, 0.5)
    wear.look(90.0, 90.0, 1.0)
    assert heard
    assert max(event.duration_ms for event in heard) <= 1000, (
        "five seconds of the last wearer's are not told"
    )


def test_only_what_is_of_the_device_outlives_a_switch(ledger: Ledger) -> None:
    one = Wear(ledger)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        shop = keeper.app("shop")
        shop.open_private_stream(NOISE, lambda *_: None)
        shop.register_area("left", 60, 60, 60, 60)
        shop.current_tile()
        for x in (90.0, 200.0, 90.0, 200.0):
            one.look(x, 90.0)
            state = keeper._state
        before = dict(vars(state))
        quantiser = keeper._quantiser
        keeper.switch_wearer("anna")
        fresh = Gatekeeper(FAMILY.worn_by("anna"), ledger, rate_hz=RATE_HZ)
        plain = (int, str, float, bool, tuple, type(None))
        for name, value in vars(state).items():
            if name in OF_THE_DEVICE or name in ("wearer", "policy"):
                continue
            if (
                name == "selections"
            ):  # keeps how often apps opened one, and nothing of where anybody looked
                assert (value._fixation, value._open, value._chosen_ns) == (None, {}, {})
                continue
            if isinstance(value, plain):
                assert value == vars(fresh._state)[name], name
            else:
                assert value is not before[name], f"{name} is the same object for both wearers"
        assert keeper._quantiser is not quantiser
        assert not keeper._pending
        fresh.close()


def test_budgets_do_not_come_back_by_switching_away_and_back(ledger: Ledger) -> None:
    poor = replace(GRANT, budgets={"epsilon": Fraction(1)})
    others = {"anna": Wearer(True, {"shop": poor})}
    with Wear(ledger, Policy({"shop": poor}, consent=True, others=others)).keeper as keeper:

        def spend() -> None:
            text = "kaleido-uniform:epsilon=1,w=60,r_deg=2"
            keeper.app("shop").open_private_stream(text, lambda *_: None).close()

        for name in ("owner", "anna"):  # hers is whole
            keeper.switch_wearer(name)
            spend()
        for name, code in (("owner", "budget"), (None, "no-consent"), ("anna", "budget")):
            keeper.switch_wearer(name)
            with pytest.raises(Denied) as no:
                spend()
            assert no.value.code == code


def test_a_lease_asked_for_under_one_wearer_is_not_paid_by_the_next(ledger: Ledger) -> None:
    one = Wear(ledger)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        keeper.app("shop").open_private_stream(NOISE, lambda *_: None)
        gate, worker = threading.Event(), keeper._state.billing
        worker.later(gate.wait)  # the ledger is slow: the next lease waits behind this
        one.look(90.0, 90.0, 0.8)  # more than half of the first lease: the second is asked for
        keeper.switch_wearer("anna")
        gate.set()
        ledger.database.later(lambda: None).result()  # what waited is paid
        rho = ledger.spent("app:shop", "rho", one.now_ns)
        assert rho > 0
        assert ledger.spent("wearer:anna:app:shop", "rho", one.now_ns) == 0
        assert ledger.spent("wearer:anna:device", "rho", one.now_ns) == 0


def test_with_a_broken_ledger_a_switch_takes_away_and_gives_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(ledger)
    one = Wear(ledger, FAMILY, audit=log)
    with one.keeper as keeper:
        keeper.switch_wearer("owner")
        stream = keeper.app("shop").open_private_stream(NOISE, lambda *_: None)

        def broken(*_: object) -> int:
            raise LedgerError("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(log, "record", broken)
            with pytest.raises(LedgerError):
                keeper.switch_wearer("anna")
            assert stream.code == "wearer"
            assert keeper.policy.consent is False
        keeper.switch_wearer("anna")  # made again, it is whole
        assert keeper.app("shop").areas() == ()


def test_raw_gaze_of_an_unknown_wearer_is_not_shown_to_the_owner(wear: Wear) -> None:
    shown: list[Any] = []
    wear.keeper.watch(lambda *block: shown.append(block))
    wear.look(90.0, 90.0, 0.1)
    assert not shown
    wear.keeper.switch_wearer("owner")
    wear.keeper.watch(lambda *block: shown.append(block))
    wear.look(90.0, 90.0, 0.1)
    assert shown


# --- What was looked at while an app might not know it stays untold, also when it is granted
# more.
# --------------------------------------------------------------------------------------------------


SECOND_NS = 10**9
AREAS_GRANT = Grant(frozenset({"areas", "fixations", "saccades"}))


class Device:
    """A Gatekeeper whose wall clock the test moves, and an app with one area, the whole view."""

    def __init__(self, ledger: Ledger, grant: Grant) -> None:
        self.now_ns = 1_800_000_000 * SECOND_NS
        self.keeper = Gatekeeper(
            Policy({"shop": grant}, consent=True),
            ledger,
            rate_hz=100.0,
            clock_ns=lambda: self.now_ns,
        )
        self.shop = self.keeper.app("shop")
        self.area = self.shop.register_area("view", 0, 0, 360, 180).id
        self._t_ns = 0

    def look_about(self, fixations: int) -> None:
        """Look at so many places, then at one more, whose fixation is still open."""
        for x_deg in 20.0 + 40.0 * np.arange(fixations + 1):
            t = self._t_ns + np.arange(1, 51) * 10_000_000
            self._t_ns = int(t[-1])
            self.keeper.push(t, np.full(50, x_deg), np.full(50, 90.0))

    def told(self) -> tuple[int, int, int | None]:
        metrics = self.shop.metrics(self.area)
        return metrics.fixations, len(self.shop.get_fixations(self.area)), metrics.order


def revoke(device: Device) -> None:
    device.keeper.revoke("shop")


def outlast(nanoseconds: int) -> Callable[[Device], None]:
    def wait(device: Device) -> None:
        device.now_ns += nanoseconds

    return wait


@pytest.mark.parametrize(
    ("grant", "end"),
    [
        (AREAS_GRANT, revoke),
        (replace(AREAS_GRANT, lasts="visit"), outlast(UNUSED_NS)),
        (replace(AREAS_GRANT, expires_ns=1_800_000_060 * SECOND_NS), outlast(60 * SECOND_NS)),
    ],
    ids=["revoked", "a visit that is over", "expired"],
)
def test_an_app_that_is_granted_again_is_not_told_what_was_between(
    ledger: Ledger, grant: Grant, end: Callable[[Device], None]
) -> None:
    """Its area went on counting, and all of it could be read when the next grant was there."""
    device = Device(ledger, grant)
    device.look_about(3)
    assert device.told() == (3, 3, 1)
    end(device)
    device.look_about(5)
    device.keeper.grant("shop", replace(AREAS_GRANT, expires_ns=None))
    assert device.told() == (0, 0, None)
    device.look_about(2)
    # The fixation that was open at the grant began before it.
    assert device.told() == (2, 2, 1)


def test_another_scope_does_not_read_back_to_before_it_was_granted(ledger: Ledger) -> None:
    device = Device(ledger, Grant(frozenset({"areas"})))
    device.look_about(3)
    assert device.shop.metrics(device.area).fixations == 3
    device.keeper.grant("shop", AREAS_GRANT)
    assert device.shop.get_fixations(device.area) == ()


def test_a_listener_is_not_told_of_the_look_that_was_open_when_it_came(ledger: Ledger) -> None:
    """Nor when its saccade began; of what began since it is told all, in each mode."""
    device = Device(ledger, replace(AREAS_GRANT, scopes=AREAS_GRANT.scopes | {"events"}))
    device.keeper.revoke("shop")
    device.look_about(1)
    device.keeper.grant("shop", replace(AREAS_GRANT, scopes=AREAS_GRANT.scopes | {"events"}))
    since_ms = device.keeper.state.t_ms
    told: dict[str, list[PublicEvent | SaccadeStart]] = {}
    for name, kind, mode in (
        ("fixation", "fixation", "end"),
        ("saccade", "saccade", "end"),
        ("both", "saccade", "start-stop"),
        ("start", "saccade", "start"),
    ):
        device.shop.add_event_listener(kind, told.setdefault(name, []).append, mode)
    device.look_about(3)
    assert {name: [event.kind for event in events] for name, events in told.items()} == {
        "fixation": ["fixation"] * 3,
        "saccade": ["saccade"] * 4,
        "both": ["saccade-start", "saccade"] * 4,
        "start": ["saccade-start"] * 4,
    }
    assert all(event.t_ms >= since_ms for events in told.values() for event in events)
    # What is told is what an area that was registered then tells.
    assert len(device.shop.get_fixations(device.area)) == 3


def test_a_grant_that_is_changed_while_it_is_in_force_keeps_what_was_counted(
    ledger: Ledger,
) -> None:
    """Nor does a change for another app begin anything anew, nor consent that comes back."""
    device = Device(ledger, AREAS_GRANT)
    device.look_about(3)
    device.keeper.grant("shop", replace(AREAS_GRANT, calls_per_minute=300))
    device.keeper.grant("other", AREAS_GRANT)
    device.keeper.consent(False)
    device.look_about(5)
    device.keeper.consent(True)
    assert device.told() == (3, 3, 1)


# --- What is taken away while a row of the audit log is written is not given when the row is
# there.
# --------------------------------------------------------------------------------------------------


END_NS = 10**18

CALLS_GRANT = Grant(
    frozenset({"areas", "fixations", "saccades", "tile", "select", "events", "samples"}),
    (NOISE,),
    budgets={"rho": Fraction(10**6)},
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
    "current_tile": lambda app: app.current_tile(),
    "on_tile": lambda app: app.on_tile(lambda tile, t_ms: None),
    "select": lambda app: app.select([Target("t", 0, 0, 360, 180)], lambda name: None),
    "listener": lambda app: app.add_event_listener("fixation", lambda event: None),
    "samples": lambda app: app.open_private_stream(NOISE, lambda *_: None),
}

TAKE: dict[str, Callable[[Gatekeeper, SetClock], None]] = {
    "revoked": lambda keeper, clock: keeper.revoke("shop"),
    "no-consent": lambda keeper, clock: keeper.consent(False),
    "no-grant": lambda keeper, clock: keeper.drop("shop"),
    "scope": lambda keeper, clock: keeper.grant("shop", Grant()),
    "wearer": lambda keeper, clock: keeper.switch_wearer("ben"),
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
        others = {"ben": Wearer(False, {"shop": CALLS_GRANT})}
        clock, policy = SetClock(), Policy({"shop": CALLS_GRANT}, consent=True, others=others)
        keeper = Gatekeeper(policy, ledger, rate_hz=100.0, audit=log, clock_ns=clock)
        keeper.switch_wearer("owner")
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


# --- A clock that is set back revives nothing: no ended grant, no token, also not across a
# restart.
# --------------------------------------------------------------------------------------------------


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


def test_an_end_that_was_reached_holds_with_the_clock_set_back_and_after_a_restart(
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
        now[0] -= 24 * HOUR_NS
        with pytest.raises(Denied, match="expired"):
            device.app("a").current_tile()
        AuditLog(ledger).record("consent", "device", {}, NOON_NS)  # written late
        device.close()
    with Ledger.open(url) as ledger:
        assert [row.kind for row in AuditLog(ledger).last()].count("end") == 1
        with pytest.raises(Denied, match="expired"):
            keeper(ledger, lambda: NOON_NS).app("a").current_tile()


def test_an_end_that_came_while_the_service_was_stopped_is_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, now = f"sqlite:///{tmp_path / 'ledger.db'}", [NOON_NS]
    monkeypatch.setattr(ledger_module.time, "time_ns", lambda: now[0])
    for now[0] in (NOON_NS, NOON_NS + 2 * HOUR_NS):
        with Ledger.open(url) as ledger:
            device = keeper(ledger)
            device.record_ends()
            device.record_ends()
    now[0] = NOON_NS
    with Ledger.open(url) as ledger:
        assert [row.kind for row in AuditLog(ledger).last()] == ["end"]
        with pytest.raises(Denied, match="expired"):
            keeper(ledger).app("a").current_tile()


def test_a_token_that_has_ended_stays_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, now = f"sqlite:///{tmp_path / 'ledger.db'}", [NOON_NS]
    monkeypatch.setattr(ledger_module.time, "time_ns", lambda: now[0])
    with Ledger.open(url) as ledger:
        tokens = Tokens(ledger.database, ledger.now_ns)
        token = tokens.issue("a", "app", NOON_NS + HOUR_NS)
        assert tokens.holder(token) is not None
        for now[0] in (NOON_NS + 2 * HOUR_NS, NOON_NS):
            assert tokens.holder(token) is None
        tokens.record_ends()
    with Ledger.open(url) as ledger:
        assert Tokens(ledger.database, ledger.now_ns).holder(token) is None


def test_time_goes_on_after_the_system_s_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, passed = [NOON_NS], [0]
    monkeypatch.setattr(ledger_module.time, "time_ns", lambda: wall[0])
    monkeypatch.setattr(ledger_module.time, "monotonic_ns", lambda: passed[0])
    now_ns = ForwardClock()
    assert now_ns() == NOON_NS
    wall[0] -= HOUR_NS
    passed[0] += 5
    assert now_ns() == NOON_NS + 5
    wall[0] = NOON_NS + 100
    passed[0] += 5
    assert now_ns() == NOON_NS + 100
    assert ForwardClock(time.time_ns() + HOUR_NS)() >= NOON_NS
