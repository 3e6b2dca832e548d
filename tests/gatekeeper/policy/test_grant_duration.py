"""How long grants last, what is left of budgets in words, who uses the gaze now, and what the audit
log says of it; on clocks that the tests move.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.core.in_use import ANSWER_NS, InUse
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.grant import LASTS, Grant
from gazeveil.gatekeeper.policy.grant_duration import UNUSED_NS, as_written
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
        assert "Ask " in no.value.reason
        return no.value.reason


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as found:
        yield found


def test_there_are_two_durations() -> None:
    assert LASTS == ("visit", "until-stopped")


def test_a_visit_survives_a_reload_and_ends_two_minutes_after_its_use(ledger: Ledger) -> None:
    one = Device(ledger, "visit")
    for _ in range(5):
        one.after(UNUSED_NS - 1)
        one.shop.current_tile()
    one.keeper.connected("shop")
    one.after(10 * UNUSED_NS)  # as long as it is connected
    one.shop.current_tile()
    one.keeper.disconnected("shop")
    one.after(UNUSED_NS - 1)  # the page is loaded again
    one.keeper.connected("shop")
    one.after(UNUSED_NS)
    one.shop.current_tile()
    one.keeper.disconnected("shop")
    one.after(UNUSED_NS)
    assert "not used for 2 minutes" in one.denied()
    one.after(-UNUSED_NS)  # a clock that is put back gives nothing back
    one.denied()
    one.keeper.connected("shop")
    one.denied()


def test_one_of_two_tabs_may_be_closed(ledger: Ledger) -> None:
    one = Device(ledger, "visit")
    one.keeper.connected("shop")
    one.keeper.connected("shop")
    one.keeper.disconnected("shop")
    one.after(10 * UNUSED_NS)
    one.shop.current_tile()


def test_a_visit_does_not_outlive_its_wearer(ledger: Ledger) -> None:
    one = Device(ledger, "visit")
    one.keeper.set_policy(replace(one.keeper.policy, others={"anna": Wearer()}))
    one.keeper.connected("shop")
    one.shop.current_tile()
    one.keeper.switch_wearer("anna")
    one.keeper.switch_wearer("owner")
    assert "for one visit, which is over" in one.denied()


def test_in_the_core_alone_subscriptions_are_the_use(ledger: Ledger) -> None:
    one = Device(ledger, "visit")
    first, second = (
        one.shop.on_tile(lambda *_: None),
        one.shop.add_event_listener("fixation", lambda _: None),
    )
    one.after(10 * UNUSED_NS)
    first.close()
    one.after(10 * UNUSED_NS)
    one.shop.current_tile()
    second.close()
    one.after(UNUSED_NS)
    one.denied()


def test_a_visit_that_never_began_ends_too_and_a_new_grant_begins_anew(ledger: Ledger) -> None:
    one = Device(ledger, "visit")
    one.after(UNUSED_NS)
    one.denied()
    one.keeper.consent(False)
    one.keeper.consent(True)  # is no new grant
    one.denied()
    one.keeper.grant("shop", replace(one.grant))
    one.shop.current_tile()


def test_what_must_not_outlive_the_process_has_expired_in_the_file() -> None:
    policy = Policy({name: Grant(SCOPES, lasts=name) for name in LASTS}, consent=True)
    there = Policy.parse(as_written(policy, 50).text())
    ends = {app: grant.expires_ns for app, grant in there.apps.items()}
    assert ends == {"visit": 50, "until-stopped": None}
    assert {app: grant.lasts for app, grant in there.apps.items()} == {name: name for name in LASTS}


# --- the running service
# --------------------------------------------------------------------------------------------------


def test_a_visit_is_what_a_grant_lasts_unless_the_owner_says_more(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        tokens = {
            name: here.owner.post("/v1/apps", json={"name": name}).json()["token"]
            for name in ("silent", *LASTS)
        }
        here.owner.post("/v1/consent", json={"on": True})
        follow = {"preset": "follow"}
        told = here.owner.post("/v1/apps/silent/grant", json=follow).json()["grant"]
        assert told["lasts"] == "visit"
        for name in LASTS:
            body = {**follow, "lasts": name}
            told = here.owner.post(f"/v1/apps/{name}/grant", json=body).json()["grant"]
            assert (told["lasts"], told["expires_ns"]) == (name, None)
        for _ in range(2):  # a page that is loaded again
            with here.talk(tokens["visit"]) as talk:
                assert talk.subscribe(1, what="tile")["type"] == "subscribed"
    with running(tmp_path / "home") as here:  # a restart ends what was for a visit
        states = {app["app"]: app["state"] for app in here.owner.get("/v1/apps").json()["apps"]}
        assert states == {"silent": "expired", "visit": "expired", "until-stopped": "granted"}


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


def test_a_grant_that_ends_while_no_samples_come_is_told_nothing_when_the_tracker_leaves(
    ledger: Ledger,
) -> None:
    one = Device(ledger, "until-stopped", expires_ns=1_800_000_001 * SECOND_NS)
    told: list[object] = []
    one.keeper.connected("shop")
    listening = one.shop.add_event_listener("fixation", told.append)
    one.look(20.0)  # this look is open
    one.after(SECOND_NS)
    one.keeper.lost()
    assert told == []
    assert listening.code == "expired"


def test_what_has_expired_hears_it_without_a_sample_and_while_samples_wait(ledger: Ledger) -> None:
    one = Device(ledger, "until-stopped", expires_ns=1_800_000_001 * SECOND_NS)
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
    one = Device(ledger, "until-stopped", expires_ns=1_800_000_001 * SECOND_NS)
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
    one = Device(ledger, "until-stopped")
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
        here.owner.post("/v1/apps/shop/grant", json={"preset": "follow", "lasts": "visit"})
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
            "preset": "follow",
            "lasts": "visit",
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
                "lasts": "until-stopped",
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
