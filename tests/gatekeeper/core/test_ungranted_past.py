"""What was looked at while an app might not know it stays untold, also when it is granted more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from gazeveil.gatekeeper.core.events.listeners import SaccadeStart
from gazeveil.gatekeeper.core.events.log import PublicEvent
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.grant_duration import UNUSED_NS
from gazeveil.gatekeeper.policy.policy import Policy

SECOND_NS = 10**9
GRANT = Grant(frozenset({"areas", "fixations", "saccades"}))


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


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as found:
        yield found


def revoke(device: Device) -> None:
    device.keeper.revoke("shop")


def outlast(nanoseconds: int) -> Callable[[Device], None]:
    def wait(device: Device) -> None:
        device.now_ns += nanoseconds

    return wait


@pytest.mark.parametrize(
    ("grant", "end"),
    [
        (GRANT, revoke),
        (replace(GRANT, lasts="visit"), outlast(UNUSED_NS)),
        (replace(GRANT, expires_ns=1_800_000_060 * SECOND_NS), outlast(60 * SECOND_NS)),
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
    device.keeper.grant("shop", replace(GRANT, expires_ns=None))
    assert device.told() == (0, 0, None)
    device.look_about(2)
    # The fixation that was open at the grant began before it.
    assert device.told() == (2, 2, 1)


def test_another_scope_does_not_read_back_to_before_it_was_granted(ledger: Ledger) -> None:
    device = Device(ledger, Grant(frozenset({"areas"})))
    device.look_about(3)
    assert device.shop.metrics(device.area).fixations == 3
    device.keeper.grant("shop", GRANT)
    assert device.shop.get_fixations(device.area) == ()


def test_a_listener_is_not_told_of_the_look_that_was_open_when_it_came(ledger: Ledger) -> None:
    """Nor when its saccade began; of what began since it is told all, in each mode."""
    device = Device(ledger, replace(GRANT, scopes=GRANT.scopes | {"events"}))
    device.keeper.revoke("shop")
    device.look_about(1)
    device.keeper.grant("shop", replace(GRANT, scopes=GRANT.scopes | {"events"}))
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
    device = Device(ledger, GRANT)
    device.look_about(3)
    device.keeper.grant("shop", replace(GRANT, calls_per_minute=300))
    device.keeper.grant("other", GRANT)
    device.keeper.consent(False)
    device.look_about(5)
    device.keeper.consent(True)
    assert device.told() == (3, 3, 1)
