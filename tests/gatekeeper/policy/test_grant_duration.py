"""How long grants last, what is left of budgets in words, who uses the gaze now, and what the audit
log says of it; on clocks that the tests move.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.core.in_use import ANSWER_NS, InUse
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import LASTS, Grant
from gazeveil.gatekeeper.policy.grant_duration import ONCE_NS, UNUSED_NS, as_written, tonight_ns
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.wearers import Wearer
from gazeveil.gatekeeper.service.time_left import words
from tests.support.gatekeeper_running import ALL, KALEIDO, Running, running, until

SECOND_NS = 10**9
SCOPES = frozenset({"tile", "events", "areas"})


class Device:
    """A Gatekeeper whose wall clock the test moves."""

    def __init__(self, ledger: Ledger, lasts: str, **more: Any) -> None:
        self.now_ns = 1_800_000_000 * SECOND_NS
        self.grant = Grant(SCOPES, lasts=lasts, **more)
        self.keeper = Gatekeeper(
            Policy({"shop": self.grant}, consent=True),
            ledger,
            rate_hz=100.0,
            clock_ns=lambda: self.now_ns,
        )
        self.shop = self.keeper.app("shop")
        self._t_ns = 0

    def after(self, nanoseconds: int) -> None:
        self.now_ns += nanoseconds

    def look(self, x_deg: float) -> None:
        t = self._t_ns + np.arange(1, 41) * 10_000_000
        self._t_ns = int(t[-1])
        self.keeper.push(t, np.full(40, x_deg), np.full(40, 90.0))

    def denied(self) -> str:
        with pytest.raises(Denied) as no:
            self.shop.current_tile()
        assert no.value.code == "expired"
        assert "Ask the owner for a new one." in no.value.reason
        return no.value.reason


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as found:
        yield found


def test_the_least_is_first_in_every_list() -> None:
    assert LASTS == ("once", "in-use", "tonight", "for-good")


def test_once_ends_with_the_first_connection_that_used_it(ledger: Ledger) -> None:
    one = Device(ledger, "once")
    one.keeper.connected("shop")
    one.keeper.disconnected("shop")  # it was given nothing, so this was no use
    one.after(ONCE_NS)
    one.keeper.connected("shop")
    one.shop.current_tile()
    one.after(10 * ONCE_NS)  # as long as it is connected
    one.shop.current_tile()
    one.keeper.disconnected("shop")
    assert "was for one use, which is over" in one.denied()
    one.keeper.connected("shop")
    one.denied()


def test_once_is_not_stretched_by_connections_that_overlap(ledger: Ledger) -> None:
    one = Device(ledger, "once")
    got: list[object] = []
    one.keeper.connected("shop")
    one.shop.add_event_listener("fixation", got.append)
    one.keeper.connected("shop")
    kept = one.shop.add_event_listener("fixation", got.append)
    one.keeper.disconnected("shop")
    for x in (90.0, 200.0, 90.0):
        one.look(x)
    assert (kept.code, got) == ("expired", [])


def test_once_does_not_outlive_a_switch_of_wearers(ledger: Ledger) -> None:
    """The connection used to end under the next wearer's policy, and the grant was there again for
    the first one.
    """
    one = Device(ledger, "once")
    one.keeper.set_policy(
        replace(
            one.keeper.policy,
            apps={"shop": one.grant, "game": replace(one.grant)},
            others={"anna": Wearer()},
        )
    )
    one.keeper.connected("shop")
    one.shop.current_tile()
    one.keeper.switch_wearer("anna")
    one.keeper.disconnected("shop")
    one.keeper.switch_wearer("owner")
    one.keeper.connected("shop")
    assert "was for one use, which is over" in one.denied()
    one.keeper.app("game").current_tile()  # which was not used


def test_once_without_a_connection_ends_ten_minutes_after_its_first_call(ledger: Ledger) -> None:
    one = Device(ledger, "once")
    one.after(100 * ONCE_NS)  # not used yet
    one.shop.current_tile()
    one.after(ONCE_NS - 1)
    one.shop.current_tile()
    one.after(1)
    one.denied()
    one.after(-ONCE_NS)  # a clock that is put back gives nothing back
    one.denied()


def test_in_the_core_alone_the_last_subscription_ends_the_use(ledger: Ledger) -> None:
    one = Device(ledger, "once")
    first, second = (
        one.shop.on_tile(lambda *_: None),
        one.shop.add_event_listener("fixation", lambda _: None),
    )
    first.close()
    one.shop.current_tile()
    second.close()
    one.denied()


def test_in_use_ends_after_five_minutes_without_a_connection_or_call(ledger: Ledger) -> None:
    one = Device(ledger, "in-use")
    for _ in range(5):
        one.after(UNUSED_NS - 1)
        one.shop.current_tile()
    one.keeper.connected("shop")
    one.after(10 * UNUSED_NS)
    one.shop.current_tile()
    one.keeper.disconnected("shop")
    one.after(UNUSED_NS - 1)
    one.shop.current_tile()
    one.after(UNUSED_NS)
    assert "not used for 5 minutes" in one.denied()


def test_a_grant_that_is_never_used_in_use_ends_too_and_a_new_one_begins_anew(
    ledger: Ledger,
) -> None:
    one = Device(ledger, "in-use")
    one.after(UNUSED_NS)
    one.denied()
    one.keeper.consent(False)
    one.keeper.consent(True)  # is no new grant
    one.denied()
    one.keeper.grant("shop", replace(one.grant))
    one.shop.current_tile()


def test_tonight_ends_at_the_next_local_midnight(ledger: Ledger) -> None:
    now = 1_800_000_000 * SECOND_NS
    midnight = tonight_ns(now)
    there = datetime.fromtimestamp(midnight // SECOND_NS)
    assert (there.hour, there.minute, there.second) == (0, 0, 0)
    assert 0 < midnight - now <= 25 * 3600 * SECOND_NS
    assert tonight_ns(midnight) > midnight
    one = Device(ledger, "tonight", expires_ns=midnight)
    one.shop.current_tile()
    one.after(midnight - now)
    one.denied()
    with pytest.raises(ParameterError, match="lasts is 'tonight'"):
        Grant(SCOPES, lasts="tonight")


def test_what_must_not_outlive_the_process_has_expired_in_the_file() -> None:
    policy = Policy(
        {
            name: Grant(SCOPES, lasts=name, expires_ns=99 if name == "tonight" else None)
            for name in LASTS
        },
        consent=True,
    )
    there = Policy.parse(as_written(policy, 50).text())
    assert {app: grant.expires_ns for app, grant in there.apps.items()} == {
        "once": 50,
        "in-use": 50,
        "tonight": 99,
        "for-good": None,
    }
    assert {app: grant.lasts for app, grant in there.apps.items()} == {name: name for name in LASTS}


# --- the running service
# --------------------------------------------------------------------------------------------------


def test_the_least_is_what_a_grant_lasts_unless_the_owner_says_more(tmp_path: Path) -> None:
    grant = {"grant": {"scopes": ["tile"]}}
    with running(tmp_path / "home") as here:
        tokens = {
            name: here.owner.post("/v1/apps", json={"name": name}).json()["token"]
            for name in ("silent", *LASTS)
        }
        here.owner.post("/v1/consent", json={"on": True})
        assert (
            here.owner.post("/v1/apps/silent/grant", json=grant).json()["grant"]["lasts"] == "once"
        )
        for name in LASTS:
            told = here.owner.post(f"/v1/apps/{name}/grant", json={**grant, "lasts": name}).json()[
                "grant"
            ]
            assert told["lasts"] == name
            assert (told["expires_ns"] is not None) == (name == "tonight")
        with here.talk(tokens["once"]) as talk:
            assert talk.subscribe(1, what="tile")["type"] == "subscribed"
        with here.client(tokens["once"]) as app:
            until(lambda: app.get("/v1/me").json()["state"] == "expired")
            answer = app.get("/v1/tile")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "expired")
    with running(tmp_path / "home") as here:  # a restart ends what was for while it runs
        states = {app["app"]: app["state"] for app in here.owner.get("/v1/apps").json()["apps"]}
        assert states == {
            "silent": "expired",
            "once": "expired",
            "in-use": "expired",
            "tonight": "granted",
            "for-good": "granted",
        }


def test_a_spent_budget_is_told_as_spent_and_what_is_left_as_time(tmp_path: Path) -> None:
    with running(tmp_path / "home", rate_hz=60.0) as here:
        # One epsilon is sixty samples: a second at the rate of this tracker.
        grant = {
            **ALL,
            "mechanisms": ALL["mechanisms"][:1],
            "scopes": ["samples"],
            "budgets": {"epsilon": "3"},
            "per": "day",
        }
        token = here.app("shop", grant=grant)
        with here.client(token) as app:
            assert app.get("/v1/me").json()["state"] == "granted"
            with here.tracker(60.0) as tracker, here.talk(token) as talk:
                assert talk.subscribe(1, what="samples", mechanism=KALEIDO)["type"] == "subscribed"
                (row,) = app.get("/v1/me").json()["budgets"]
                assert (row["seconds_left"], row["words"]) == (2, "about 2 seconds of use today")
                for _ in range(4):
                    tracker.send(np.full(60, 180.0), 90.0)
                assert talk.until("ended")["code"] == "budget"
            (row,) = app.get("/v1/me").json()["budgets"]
            assert (row["remaining"], row["seconds_left"], row["words"]) == (
                "0",
                0,
                "used up for today",
            )
            assert app.get("/v1/me").json()["state"] == "spent"
        until(lambda: here.owner.get("/v1/apps").json()["apps"][0]["state"] == "spent")


@pytest.mark.parametrize("lasts", ["once", "for-good"])
def test_a_grant_that_ends_while_no_samples_come_is_told_nothing_when_the_tracker_leaves(
    ledger: Ledger, lasts: str
) -> None:
    one = Device(ledger, lasts, expires_ns=None if lasts == "once" else 1_800_000_001 * SECOND_NS)
    told: list[object] = []
    one.keeper.connected("shop")
    listening = one.shop.add_event_listener("fixation", told.append)
    one.look(20.0)  # this look is open
    if lasts == "once":
        one.keeper.disconnected("shop")
    one.after(SECOND_NS)
    one.keeper.lost()
    assert told == []
    assert listening.code == "expired"


def test_what_has_expired_hears_it_without_a_sample_and_while_samples_wait(ledger: Ledger) -> None:
    one = Device(ledger, "for-good", expires_ns=1_800_000_001 * SECOND_NS)
    first = one.shop.add_event_listener("fixation", lambda _: None)
    one.keeper.end_expired()
    assert first.ended is None
    one.after(SECOND_NS)
    holder = threading.Thread(target=one.keeper.state.lock.acquire)
    holder.start()  # a thread that ends keeps the lock, as samples that wait for the ledger do
    holder.join()
    one.keeper.end_expired()
    assert first.code == "expired"


def test_a_long_block_ends_for_an_app_where_its_grant_does(ledger: Ledger) -> None:
    one = Device(ledger, "for-good", expires_ns=1_800_000_001 * SECOND_NS)
    told: list[int] = []

    def tell(_: object) -> None:
        told.append(one.now_ns)
        one.after(SECOND_NS // 5)  # as if each look took so long to be worked off

    listening = one.shop.add_event_listener("fixation", tell)
    t = np.arange(1, 60_001) * 10_000_000
    one.keeper.push(t, np.where(np.arange(60_000) // 50 % 2, 20.0, 60.0), np.full(60_000, 90.0))
    assert listening.code == "expired"
    assert len(told) < 100, "of 1200 looks"


def test_an_open_connection_hears_that_its_grant_ended_though_the_tracker_is_silent(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "home") as here:
        ends = time.time_ns() + 3 * SECOND_NS
        token = here.app("shop", grant={"scopes": ["events"], "expires_ns": ends})
        with here.talk(token) as talk:
            assert talk.subscribe(1, what="fixation")["type"] == "subscribed"
            assert talk.until("ended")["code"] == "expired"


def test_times_of_use_in_words() -> None:
    some = Fraction(1)
    assert words(some, 3 * 3600 + 1800, "day") == "about 3 hours of use today"
    assert words(some, 7199, "day") == "about 119 minutes of use today"
    assert words(some, 90, "ever") == "about 90 seconds of use in all"
    assert words(some, 1, "session") == "about 1 second of use until consent is given anew"
    assert words(some, 100_000, "day") == "enough for all of today"
    assert words(None, None, "day") == "no limit"
    assert words(some, None, "day", 1) == "1 more count today"
    assert words(Fraction(0), None, "ever", 0) == "used up for good"


def test_who_uses_the_gaze_is_told_when_it_begins_and_when_it_ends(ledger: Ledger) -> None:
    one = Device(ledger, "for-good")
    told: list[InUse] = []
    one.keeper.on_use(told.append)
    one.shop.current_tile()
    assert one.keeper.in_use() == (("shop", "tile"),)
    listening = one.shop.add_event_listener("fixation", lambda _: None)
    one.after(ANSWER_NS)
    assert one.keeper.in_use() == (("shop", "events"),)
    listening.close()
    assert one.keeper.in_use() == ()
    assert told == [
        (("shop", "tile"),),
        (("shop", "events"), ("shop", "tile")),
        (("shop", "events"),),
        (),
    ]
    one.keeper.consent(False)
    with pytest.raises(Denied):
        one.shop.current_tile()
    assert one.keeper.in_use() == (), "who is refused uses nothing"


def test_the_owner_sees_who_uses_the_gaze_and_what_was_granted(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
        here.owner.post("/v1/consent", json={"on": True})
        here.owner.post("/v1/apps/shop/grant", json={"preset": "avatar", "lasts": "in-use"})
        with here.talk(token) as talk:
            assert talk.subscribe(1, what="tile")["type"] == "subscribed"
            assert here.owner.get("/v1/in-use").json() == {
                "in_use": [{"app": "shop", "what": "tile"}]
            }
            assert here.owner.get("/v1/apps").json()["apps"][0]["in_use"] == ["tile"]
        until(lambda: here.owner.get("/v1/in-use").json() == {"in_use": []}, 15, 0.2)
        rows = here.owner.get("/v1/audit", params={"last": 20}).json()["entries"]
        (row,) = [row for row in rows if row["kind"] == "grant"]
        assert row["name"] == "shop"
        assert row["app"] != "shop"
        assert {key: row["detail"][key] for key in ("preset", "lasts")} == {
            "preset": "avatar",
            "lasts": "in-use",
        }
        assert row["detail"]["scopes"] == "tile"
        assert abs(row["t_ns"] / 1e9 - time.time()) < 60
        here.owner.delete("/v1/apps/shop")
        rows = here.owner.get("/v1/audit", params={"last": 20}).json()["entries"]
        assert {row["name"] for row in rows if row["kind"] == "drop"} == {None}, (
            "the log keeps no name"
        )


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home") as found:
        yield found


def test_every_way_to_be_told_no_is_a_sentence_with_a_next_step(here: Running) -> None:
    """What an app's developer meets first, from a stranger's call to a used-up name; each says what
    to do.
    """
    token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
    with here.client(token) as app:
        said = [app.get("/v1/tile")]
        here.owner.post("/v1/consent", json={"on": True})
        said.append(app.get("/v1/tile"))
        here.owner.post(
            "/v1/apps/shop/grant",
            json={
                "grant": {"scopes": ["areas"], "areas": 0, "calls_per_minute": 4},
                "lasts": "for-good",
            },
        )
        said += [app.get("/v1/tile"), app.get("/v1/areas"), app.get("/v1/areas")]
        here.owner.post("/v1/apps/shop/revoke")
        said.append(app.get("/v1/areas"))
    assert [answer.json()["error"]["code"] for answer in said if answer.status_code != 200] == [
        "no-consent",
        "scope",
        "scope",
        "rate",
        "revoked",
    ]
    for answer in said:
        if answer.status_code != 200:
            reason = answer.json()["error"]["reason"]
            assert any(step in reason for step in ("Ask ", "Wait", "The wearer can")), reason
