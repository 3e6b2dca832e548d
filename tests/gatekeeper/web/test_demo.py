"""The demo app of `select` in Chromium: it hears the chosen thing and nothing before, and it cannot
make the gesture that chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Locator, Page, WebSocket, expect

from tests.support.gatekeeper_browser import Desk, browser, desk, panel, signed_in  # noqa: F401
from tests.support.gatekeeper_running import Process, Running, TrackerTalk, free_port

#: Middles of things in the room, and a place between them, in degrees of the sphere.
LAMP, RADIO, BETWEEN = (45.0, 90.0), (225.0, 90.0), (90.0, 20.0)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(
        tmp_path_factory.mktemp("demo") / "home", free_port(), GAZEVEIL_TRACKER="websocket"
    ) as started:
        yield started


@pytest.fixture
def tracker(desk: Desk) -> Iterator[TrackerTalk]:
    token = desk.api.post("/v1/tracker/token").json()["token"]
    with Running(desk.process.address, "").talk(token, "/v1/tracker") as talk:
        yield TrackerTalk(talk, 120.0)


def look(tracker: TrackerTalk, place: tuple[float, float], seconds: float) -> None:
    """Come from elsewhere and rest on a place."""
    tracker.look(*BETWEEN, 0.4)
    tracker.look(*place, seconds)


def look_until_chosen(tracker: TrackerTalk, place: tuple[float, float], room: Locator) -> None:
    """Rest on a place, and again: on a busy machine a page may just be connecting anew."""
    for _ in range(4):
        look(tracker, place, 1.5)
        with suppress(AssertionError):
            expect(room.locator(".log")).not_to_be_empty(timeout=15_000)
            return


class Heard:
    """All that the service says to the app's own connection."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def watch(self, page: Page) -> None:
        page.on("websocket", self._open)

    def _open(self, socket: WebSocket) -> None:
        socket.on(
            "framereceived",
            lambda data: self.messages.append(
                json.loads(data) if isinstance(data, str) else {"type": "binary"}
            ),
        )

    def told(self) -> list[dict[str, Any]]:
        """What is more than the answer to the app's own messages."""
        return [
            one for one in self.messages if one["type"] not in ("welcome", "subscribed", "pong")
        ]


def test_the_room_hears_the_chosen_thing_and_nothing_before(
    desk: Desk, tracker: TrackerTalk
) -> None:
    desk.consent(True)
    token = desk.app("quiet-room", preset="select", lasts="for-good")
    owner = desk.owner()
    heard = Heard()
    demo = desk.watch(desk.context(owner=False).new_page())
    heard.watch(demo)
    demo.goto(f"{desk.process.address}/demo/#select={token}")
    room = panel(demo, "Quiet room")
    expect(room.locator(".state")).to_contain_text("is told nothing until then")
    # Looks that choose nothing: between the things, and at things for too short a time.
    for place, seconds in ((BETWEEN, 2.0), (LAMP, 0.2), (RADIO, 0.2), (LAMP, 0.2)):
        look(tracker, place, seconds)
    demo.wait_for_timeout(1000)
    assert heard.told() == [], "nothing before the choice, wherever the wearer looks"
    expect(room).to_contain_text("It was told nothing yet.")
    look_until_chosen(tracker, LAMP, room)
    expect(room.locator(".log")).to_have_text("chosen: Lamp")
    expect(room).to_contain_text("It was told 1 choice, and nothing else.")
    told = [{name: value for name, value in one.items() if name != "id"} for one in heard.told()]
    assert [one["type"] for one in told] == ["event", "ended"]
    assert told[0] == {"type": "event", "kind": "choice", "target": "Lamp"}
    assert told[1]["code"] == "chosen"

    # By the gesture: looking alone chooses nothing, and the app's page cannot make the gesture.
    room.locator("select[name=by]").select_option("confirm")
    look(tracker, RADIO, 2.0)
    demo.bring_to_front()
    demo.keyboard.press("Space")
    refused = demo.evaluate(
        "(token) => fetch('/v1/confirm', { method: 'POST', headers: { Authorization: `Bearer"
        " ${token}` } }).then((a) => a.status)",
        token,
    )
    assert refused in (401, 403)
    demo.wait_for_timeout(1000)
    expect(room.locator(".log li")).to_have_count(1)
    owner.bring_to_front()
    owner.get_by_role("button", name="Confirm choice").focus()
    owner.keyboard.press("Space")
    expect(room.locator(".log li").first).to_have_text("chosen: Radio")
    expect(room).to_contain_text("It was told 2 choices, and nothing else.")


def test_the_demo_begins_with_the_app_that_learns_least(desk: Desk) -> None:
    owner = desk.owner()
    demo = desk.demo(owner)
    expect(demo.locator(".panel")).to_have_count(6)
    assert demo.locator(".panel h2").all_inner_texts() == [
        "Quiet room",
        "Gallery analytics",
        "Walking on",
        "Led gallery",
        "Gaze button",
        "Foveated gallery",
    ]
    owner.bring_to_front()
    ask = owner.locator(".ask", has_text="quiet-room")
    expect(ask).to_contain_text("Choices only.")
    expect(ask).to_contain_text("To let you choose things by looking at them.")
    expect(owner.locator("#wearer")).to_have_text("Worn by owner")
