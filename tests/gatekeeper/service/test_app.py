"""The service as its apps meet it: real sockets, the real core, SQLite."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.gatekeeper_running import (
    GAUSSIAN,
    KALEIDO,
    Running,
    Talk,
    TrackerTalk,
    running,
    until,
)
from tests.support.more_time import with_more_time
from tests.support.places import ROOT

TEN = "kaleido-uniform:epsilon=1,w=10,r_deg=5"


def area(name: str, x_deg: float, y_deg: float, side_deg: float = 20.0) -> dict[str, Any]:
    sides = {"width_deg": side_deg, "height_deg": side_deg}
    return {"name": name, "x_deg": x_deg, "y_deg": y_deg, **sides}


def test_an_app_is_granted_watches_samples_and_is_revoked_within_one_sample(
    here: Running, tracker: TrackerTalk
) -> None:
    with here.talk(here.app()) as talk:
        answer = talk.subscribe(1, what="samples", mechanism=KALEIDO)
        assert answer["guarantee"]["status"] == "proved"
        assert "epsilon = 1" in answer["guarantee"]["text"]
        for number in range(5):
            tracker.send(180.0, 90.0)
            samples = talk.until("samples")
            assert (samples["sequence"], samples["dropped"]) == (number, 0)
            assert len(samples["x_deg"]) == 1
        assert here.owner.post(f"/v1/apps/{here.last}/revoke").json()["state"] == "revoked"
        tracker.send(180.0, 90.0)
        ended = talk.hear()
        assert (ended["type"], ended["id"], ended["code"]) == ("ended", 1, "revoked")
        tracker.send(180.0, 90.0)
        tracker.settle(here)
        talk.say(type="ping")
        assert talk.hear() == {"type": "pong"}
        assert talk.subscribe(2, what="samples", mechanism=KALEIDO)["code"] == "revoked"


def test_no_more_samples_come_than_were_paid_for_and_the_app_sees_why(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.app(budgets={"epsilon": Fraction(3)})
    got = 0
    with here.talk(token) as talk, here.client(token) as app:
        talk.subscribe(1, what="samples", mechanism=TEN, encoding="binary")
        for _ in range(10):
            tracker.send(np.full(7, 180.0), 90.0)
        while (message := talk.hear())["type"] != "ended":
            got += len(message["block"])
        assert (got, message["code"]) == (30, "budget")
        assert "epsilon" in message["reason"]
        until(lambda: app.get("/v1/me").json()["budgets"][0]["spent"] == "3")
        me = app.get("/v1/me").json()
        budget = me["budgets"][0]
        assert (budget["limit"], budget["remaining"], budget["seconds_left"]) == ("3", "0", 0)
        assert (me["state"], me["left_s"], budget["words"]) == ("spent", 0, "used up for today")
        assert talk.subscribe(2, what="samples", mechanism=TEN)["code"] == "budget"


def test_binary_and_json_of_two_apps_are_the_same_stream(
    here: Running, tracker: TrackerTalk
) -> None:
    with here.talk(here.app()) as one, here.talk(here.app()) as two:
        one.subscribe(7, what="samples", mechanism=GAUSSIAN, encoding="binary", batch=4)
        two.subscribe(9, what="samples", mechanism=GAUSSIAN, batch=2)
        halves = []
        for number in range(4):
            tracker.send(180.0, 90.0)
            tracker.settle(here)  # what comes while the core is busy may come together
            if number % 2:
                halves.append(two.until("samples"))
        binary = one.until("binary")
        assert (binary["id"], binary["sequence"], len(binary["block"])) == (7, 0, 4)
        assert [h["sequence"] for h in halves] == [0, 2]
        for mine, theirs in (
            (binary["block"].x_deg, "x_deg"),
            (binary["block"].t_ns / 1e6, "t_ms"),
        ):
            np.testing.assert_allclose(mine, halves[0][theirs] + halves[1][theirs], atol=1e-3)
        assert not np.allclose(binary["block"].x_deg, 180.0, atol=1e-6)


def test_subscriptions_are_refused_with_a_reason(here: Running) -> None:
    cases = [
        ({"what": "samples", "mechanism": "none"}, "mechanism"),
        ({"what": "samples", "mechanism": "gaussian:sigma_deg=0.5"}, "mechanism"),
        ({"what": "fixation", "mode": "start-stop"}, "parameter"),
        ({"what": "pursuit", "mode": "start-stop"}, "parameter"),
        ({"what": "select", "targets": []}, "parameter"),
        ({"what": "select", "targets": [area("a", 1, 1)] * 2}, "parameter"),
        ({"what": "select", "targets": [area("a", 1, 1, 0)]}, "area"),
        (
            {"what": "select", "targets": [area("a", 1, 1)], "by": "dwell", "dwell_ms": 9},
            "parameter",
        ),
    ]
    with here.talk(here.app()) as talk:
        for number, (wish, code) in enumerate(cases):
            answer = talk.subscribe(number, **wish)
            assert (answer["type"], answer["code"]) == ("refused", code), (wish, answer)
            assert answer["reason"].endswith(".")
        assert talk.subscribe(9, what="tile")["type"] == "subscribed"
        assert talk.subscribe(9, what="tile")["type"] == "refused"
        talk.say(type="unsubscribe", id=9)
        assert talk.until("ended")["id"] == 9
        talk.say(type="unsubscribe", id=9)
        assert talk.until("refused")["code"] == "unknown"
        answer = talk.subscribe(10, what="samples")
        assert (answer["type"], answer["mechanism"]) == ("subscribed", KALEIDO), "the grant's first"


def test_a_slow_reader_loses_samples_and_the_others_do_not(
    here: Running, tracker: TrackerTalk
) -> None:
    mechanism = "kaleido-uniform:epsilon=1,w=1000,r_deg=5"
    token, slow_name = here.app(), here.last
    with here.talk(token, max_queue=1, close_timeout=0.1) as slow, here.talk(here.app()) as quick:
        slow.subscribe(1, what="samples", mechanism=mechanism, batch=500)
        quick.subscribe(1, what="samples", mechanism=mechanism, batch=500, encoding="binary")
        got = 0
        for _ in range(450):
            tracker.send(np.full(500, 180.0), 90.0)
            got += len(quick.hear()["block"])
        assert got == 225_000
        streams = {a["app"]: a["streams"] for a in here.owner.get("/v1/apps").json()["apps"]}
        assert streams[here.last][0]["dropped"] == 0
        assert streams[slow_name][0]["dropped"] > 10_000
        assert all(c.waiting <= 16 + 2 for c in here.service.broadcaster.connections)
        seen = 0
        while not (message := slow.hear())["dropped"]:
            assert message["sequence"] == seen
            seen += len(message["t_ms"])
        assert message["sequence"] == seen + message["dropped"]


def test_expired_tokens_end_their_connections(here: Running) -> None:
    def work(lasts_s: float) -> None:
        here.app()
        expires_ns = time.time_ns() + round(lasts_s * 1e9)
        token = here.service.tokens.issue(here.last, "app", expires_ns)
        with here.talk(token) as talk:
            talk.subscribe(1, what="tile")
            assert talk.until("ended")["code"] == "expired"
            with pytest.raises(ConnectionClosed):
                talk.hear()
        assert here.client(token).get("/v1/me").status_code == 401

    with_more_time(work, 1.5, 6, 20)


def test_a_fixation_runs_through_thirty_files_at_most(tmp_path: Path) -> None:
    """From the tracker's message to the app's: what a newcomer reads to follow one event."""
    files: set[str] = set()
    noting = threading.Event()

    def note(frame: Any, *_: object) -> None:
        if noting.is_set():
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    try:
        with (
            running(tmp_path / "home") as here,
            here.tracker() as tracker,
            here.talk(here.app()) as talk,
        ):
            assert talk.subscribe(1, what="fixation")["type"] == "subscribed"
            for begin in (True, False):
                for x_deg in (100.0, 140.0, 100.0):
                    tracker.look(x_deg, 90.0)
                tracker.settle(here)
                noting.set() if begin else noting.clear()
            assert talk.until("event")["kind"] == "fixation"
    finally:
        threading.setprofile(None)
    package = str(ROOT / "src" / "gazeveil")
    passed = sorted(name for name in files if name.startswith(package))
    assert 10 < len(passed) <= 30, passed


# --- what a page may call
# --------------------------------------------------------------------------------------------------


def metrics(talk: Talk, name: str, fixations: int) -> dict[str, Any]:
    """The pushed metrics of an area once it has so many fixations."""
    while True:
        message = talk.until("event")
        if (message.get("name"), message.get("fixations")) == (name, fixations):
            return message


def test_metrics_are_pushed_and_gone_with_the_subscription(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.app()
    shelf = [area("shelf", 90, 80, 10), area("tiny", 200, 90, 0.1)]
    for _ in range(20):  # a reload begins anew, however often
        with here.talk(token) as talk:
            assert talk.subscribe(1, what="areas", targets=shelf)["type"] == "subscribed"
            assert metrics(talk, "shelf", 0)["visits"] == 0
    with here.talk(token) as talk:
        talk.subscribe(1, what="areas", targets=shelf)
        for x, y in ((95, 85), (201, 91), (95, 85), (300, 85)):
            tracker.look(x, y)
        seen = metrics(talk, "shelf", 2)
        assert seen["visits"] == 2
        assert seen["dwell_ms"] >= 600
        talk.say(type="move", id=1, targets=[area("shelf", 300, 20, 10)])
        talk.say(type="ping")
        talk.until("pong")  # the shelf has moved
        for x, y in ((305, 25), (95, 85), (305, 25), (200, 120)):
            tracker.look(x, y)
        assert metrics(talk, "shelf", 4)["fixations"] == 4, "what was counted stays"
        talk.say(type="move", id=1, targets=[area("door", 300, 20)])
        assert talk.until("refused")["code"] == "parameter"


def test_a_target_that_moves_is_chosen_where_it_is_now_by_one_of_two_tabs(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.app()
    wish = {"what": "select", "by": "dwell", "dwell_ms": 500}
    both = [area("buy", 90, 80, 10), area("leave", 200, 80, 10)]
    with here.talk(token) as talk, here.talk(token) as tab:
        assert talk.subscribe(1, targets=both, **wish)["type"] == "subscribed"
        tracker.look(120, 85, 0.4)
        moved = [area("buy", 115, 80, 10), area("leave", -400, -400, 10)]
        talk.say(type="move", id=1, targets=moved)
        talk.say(type="ping")
        talk.until("pong")
        assert tab.subscribe(1, targets=moved, **wish)["type"] == "subscribed"
        tracker.look(120, 85, 0.3)  # this look had begun before the target was there
        tracker.look(205, 85, 1.0)  # and this one is where a target was
        tracker.look(120, 85, 1.0)
        assert talk.until("event")["target"] == "buy"
        tracker.settle(here)
        tab.say(type="ping")
        assert tab.hear()["type"] == "pong", "one look answers one of them"


def test_no_page_is_a_tracker_where_there_is_another(here: Running) -> None:
    with here.talk(here.app()) as talk:
        talk.say(type="mouse", x_deg=1.0, y_deg=1.0)
        assert talk.until("error")["code"] == "message"


# --- trackers
# --------------------------------------------------------------------------------------------------


def test_a_tracker_that_vanishes_and_comes_again_ends_no_stream(here: Running) -> None:
    with here.talk(here.app()) as talk:
        talk.subscribe(1, what="samples", mechanism=KALEIDO)
        for _ in range(2):
            with here.tracker() as tracker:
                tracker.look(180.0, 90.0, 0.3)
                assert talk.until("samples")["dropped"] == 0
                assert here.owner.get("/health").json()["tracker"]
                with pytest.raises(AssertionError, match="busy"), here.tracker():
                    pass
            until(lambda: not here.owner.get("/health").json()["tracker"])


def test_the_wrong_tracker_is_refused(here: Running) -> None:
    token = here.service.new_tracker_token()
    screen = dict.fromkeys(("width_px", "height_px", "width_mm", "height_mm", "distance_mm"), 1)
    for credential, path in ((here.app(), "/v1/tracker"), (token, "/v1/stream")):
        with pytest.raises(AssertionError, match="role"), here.talk(credential, path):
            pass
    for hello in (
        {"rate_hz": 60.0},
        {"rate_hz": -(10**400)},
        {"space": {"kind": "screen", **screen}},
        {"space": 3},
    ):
        with here.talk(None, "/v1/tracker") as talk:
            talk.say(type="hello", token=token, **hello)
            assert talk.hear()["type"] == "error"
            with pytest.raises(ConnectionClosed):
                talk.hear()
    with here.talk(None, "/v1/tracker") as talk:
        talk.say(type="hello", token=token, rate_hz=120, space={"kind": "sphere"})
        assert talk.hear()["type"] == "welcome"
