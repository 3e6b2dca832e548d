"""What a page may call beside a choice: areas whose metrics are pushed, regions for an avatar,
targets that move, and what it hears when no gaze comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.gatekeeper import PRESETS, Gatekeeper, Ledger, Policy
from tests.support.gatekeeper_running import Running, Talk, running, until


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("six") / "home") as found:
        yield found


def area(name: str, x_deg: float, y_deg: float, side_deg: float = 10.0) -> dict[str, Any]:
    sides = {"width_deg": side_deg, "height_deg": side_deg}
    return {"name": name, "x_deg": x_deg, "y_deg": y_deg, **sides}


def metrics(talk: Talk, name: str, fixations: int) -> dict[str, Any]:
    """The pushed metrics of an area once it has so many fixations."""
    while True:
        message = talk.until("event")
        if (message.get("name"), message.get("fixations")) == (name, fixations):
            return message


def test_metrics_are_pushed_and_gone_with_the_subscription(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker:
        for _ in range(20):  # a reload begins anew, however often
            with here.talk(token) as talk:
                shelf = [area("shelf", 90, 80), area("tiny", 200, 90, 0.1)]
                assert talk.subscribe(1, what="areas", targets=shelf)["type"] == "subscribed"
                assert metrics(talk, "shelf", 0)["visits"] == 0
        with here.talk(token) as talk:
            talk.subscribe(
                1, what="areas", targets=[area("shelf", 90, 80), area("tiny", 202, 92, 0.1)]
            )
            for x, y in ((95, 85), (203, 93), (95, 85), (300, 85)):
                tracker.look(x, y)
            seen = metrics(talk, "shelf", 2)
            assert (seen["visits"], seen["order"]) == (2, 1)
            assert seen["dwell_ms"] >= 600
            talk.say(type="move", id=1, targets=[area("shelf", 300, 20)])
            tracker.settle(here)
            for x, y in ((305, 25), (95, 85), (305, 25), (200, 120)):
                tracker.look(x, y)
            assert metrics(talk, "shelf", 4)["fixations"] == 4, "what was counted stays"
            talk.say(type="move", id=1, targets=[area("door", 300, 20)])
            assert talk.until("refused")["code"] == "parameter"


def test_regions_say_which_way_the_eyes_look_and_nothing_finer() -> None:
    with Ledger.open("sqlite://") as ledger:
        policy = Policy({"room": PRESETS["follow"].grant()}, consent=True)
        keeper = Gatekeeper(policy, ledger, rate_hz=120.0)
        told: list[str] = []
        keeper.app("room").on_region(lambda region, t_ms: told.append(region))
        t_ns = 0

        def look(x_deg: float, y_deg: float, count: int = 60, valid: bool = True) -> None:
            nonlocal t_ns
            t = t_ns + np.arange(1, count + 1) * 8_333_333
            t_ns, same = int(t[-1]), np.ones(count)
            keeper.push(t, x_deg * same, y_deg * same, np.full(count, valid))

        for x, y in ((180, 90), (240, 95), (120, 85), (185, 40), (175, 140), (184, 92)):
            look(x, y)
        look(184, 92, 20, valid=False)  # a blink
        look(240, 90)
        look(120, 90)
        look(120, 90, valid=False)
        assert told == [
            *("closed", "at-you", "right", "left", "up", "down", "at-you"),
            *("right", "left", "closed"),
        ]
        keeper.consent(False)
        look(300, 90, 200)
        assert len(told) == 10


def test_a_page_hears_regions(here: Running) -> None:
    with here.tracker() as tracker, here.talk(here.app()) as talk:
        assert talk.subscribe(1, what="region")["type"] == "subscribed"
        first = talk.until("event")
        assert first.keys() == {"type", "id", "kind", "region", "t_ms"}
        tracker.look(240, 95)
        tracker.look(120, 85)
        tracker.look(240, 95)
        assert talk.until("event")["region"] in ("left", "right")


def test_a_target_that_moves_is_chosen_where_it_is_now(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker, here.talk(token) as talk:
        wish = {"what": "select", "by": "dwell", "dwell_ms": 500}
        both = [area("buy", 90, 80), area("leave", 200, 80)]
        assert talk.subscribe(1, targets=both, **wish)["type"] == "subscribed"
        refused = talk.subscribe(2, targets=both, **wish)
        assert (refused["type"], refused["code"]) == ("refused", "rate"), "one of a connection"
        tracker.look(120, 85, 0.4)
        talk.say(type="move", id=1, targets=[area("buy", 115, 80), area("leave", -400, -400)])
        talk.say(type="ping")
        talk.until("pong")
        tracker.look(120, 85, 0.3)  # this look had begun before the target was there
        tracker.look(205, 85, 1.0)  # and this one is where a target was
        tracker.look(120, 85, 1.0)
        assert talk.until("event")["target"] == "buy"


def test_two_tabs_may_choose_and_one_look_answers_one_of_them(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker, here.talk(token) as one, here.talk(token) as two:
        for tab in (one, two):
            wish = {"what": "select", "by": "dwell", "dwell_ms": 500}
            targets = [area("buy", 90, 80)]
            assert tab.subscribe(1, targets=targets, **wish)["type"] == "subscribed"
        tracker.look(300, 85, 0.5)
        tracker.look(95, 85, 1.5)
        tracker.settle(here)
        assert one.until("event")["target"] == "buy"
        with pytest.raises(TimeoutError):
            two.until("event", 0.5)


def test_apps_with_a_grant_hear_that_gaze_stops_and_goes_on(here: Running) -> None:
    token = here.app()
    with here.talk(token) as talk:
        assert talk.until("paused")["reason"] == "tracker"
        with here.tracker() as tracker:
            tracker.look(180, 90)
            talk.until("resumed")
            assert here.service is not None
            until(lambda: here.service.tracker_input.paused, 30)  # type: ignore[union-attr]
            assert talk.until("paused")["reason"] == "tracker"
            tracker.look(180, 90)
            talk.until("resumed")
        talk.until("paused")


def test_samples_without_a_mechanism_get_one_of_the_device(here: Running) -> None:
    token = here.app()
    with here.talk(token) as talk:
        answer = talk.subscribe(1, what="samples")
        assert (answer["type"], answer["mechanism"]) == ("subscribed", "gaussian:sigma_deg=1")


def test_me_tells_the_screen_the_tracker_and_what_is_left(here: Running) -> None:
    token = here.app()
    with here.client(token) as app:
        me = app.get("/v1/me").json()
    assert me["space"] == {
        "kind": "sphere",
        "width_deg": 360.0,
        "height_deg": 180.0,
        "width_mm": None,
        "height_mm": None,
        "distance_mm": None,
    }
    assert me["tracker"] == {"connected": False, "mouse": False}


def test_a_mouse_is_a_tracker_for_pages(tmp_path: Path) -> None:
    with running(tmp_path / "home", tracker="mouse") as here:
        token = here.app()
        with here.talk(token) as talk, here.client(token) as app:
            until(lambda: app.get("/v1/me").json()["tracker"] == {"connected": True, "mouse": True})
            assert app.get("/v1/me").json()["space"]["width_mm"] == 527
            targets = [area("buy", -20, -10), area("leave", 10, -10)]
            assert talk.subscribe(1, what="select", targets=targets)["type"] == "subscribed"
            for _ in range(60):
                talk.say(type="mouse", x_deg=-15.0, y_deg=-5.0)
                time.sleep(0.01)
            talk.say(type="mouse", confirm=True)
            assert talk.until("event")["target"] == "buy"
            talk.say(type="mouse", x_deg=None, y_deg=None)


def test_no_page_is_the_tracker_where_there_is_another(here: Running) -> None:
    with here.talk(here.app()) as talk:
        talk.say(type="mouse", x_deg=1.0, y_deg=1.0)
        assert talk.until("error")["code"] == "message"
