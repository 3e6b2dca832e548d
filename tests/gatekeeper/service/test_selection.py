"""Selection by gaze over the service: its WebSocket, whose gesture counts, and both clients, one of
them in a real Chromium.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.asyncio.client import connect as connect_async

from gazeveil.gatekeeper.client import Target, connect
from gazeveil.gatekeeper.core.selection import MOST_OPEN
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.service.sockets.channel import Channel
from gazeveil.gatekeeper.service.sockets.connections import Broadcaster, Connection
from gazeveil.gatekeeper.trackers import open_tracker
from tests.support.chromium import chromium
from tests.support.gatekeeper_running import Running, Talk, TrackerTalk, running, until

TARGETS = [
    {"name": "radio", "x_deg": 100.0, "y_deg": 80.0, "width_deg": 10.0, "height_deg": 10.0},
    {"name": "lamp", "x_deg": 140.0, "y_deg": 80.0, "width_deg": 10.0, "height_deg": 10.0},
]
PYTHON_TARGETS = [Target(**one) for one in TARGETS]  # type: ignore[arg-type]
ON_LAMP, NOWHERE = (145.0, 85.0), (230.0, 120.0)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("select") / "home") as found:
        yield found


@pytest.fixture(scope="module")
def tracker(here: Running) -> Iterator[TrackerTalk]:
    with here.tracker() as found:
        yield found


def selecting(here: Running, **changes: Any) -> str:
    """A new app that may select and nothing else."""
    return here.app(grant={"scopes": ["select"], "streams": 0, "areas": 0}, **changes)


def look(
    here: Running, tracker: TrackerTalk, place: tuple[float, float], seconds: float = 1.0
) -> None:
    """Come from elsewhere and rest on a place."""
    tracker.look(*NOWHERE, 0.4)
    tracker.look(*place, seconds)
    worked_off(here, tracker)


def worked_off(here: Running, tracker: TrackerTalk) -> None:
    """Wait until the core has seen all that was sent so far; the channel keeps the order."""
    assert here.service is not None
    mark = TrackerTalk.latest_ns + tracker.step_ns
    seen = threading.Event()
    watching = here.service.keeper.watch(lambda t_ns, *_: seen.set() if mark in t_ns else None)
    tracker.send(np.nan, np.nan, valid=False)  # a lost sample says nothing about the eye
    assert seen.wait(30)
    watching.close()


def confirm(here: Running, tracker: TrackerTalk, way: str) -> None:
    if way == "tracker":
        tracker.talk.say(type="confirm")
        worked_off(here, tracker)
    else:
        assert here.owner.post("/v1/confirm").status_code == 204


def silent(talk: Talk) -> bool:
    """Whether nothing has come but the answer to a ping."""
    talk.say(type="ping")
    return talk.hear() == {"type": "pong"}


@pytest.mark.parametrize("way", ["tracker", "owner"])
def test_a_gesture_of_the_platform_tells_the_choice_and_ends_it(
    here: Running, tracker: TrackerTalk, way: str
) -> None:
    with here.talk(selecting(here)) as talk:
        assert talk.subscribe(what="select", targets=TARGETS) == {
            "type": "subscribed",
            "id": 1,
            "what": "select",
        }
        look(here, tracker, ON_LAMP)
        assert silent(talk)
        look(here, tracker, NOWHERE)
        confirm(here, tracker, way)
        assert silent(talk), "a gesture that meant nothing of the app's is not told"
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, way)
        assert talk.hear() == {"type": "event", "id": 1, "kind": "choice", "target": "lamp"}
        assert talk.hear() == {
            "type": "ended",
            "id": 1,
            "code": "chosen",
            "reason": "The wearer has chosen.",
        }
        confirm(here, tracker, way)
        assert silent(talk)
        assert talk.subscribe(what="select", targets=TARGETS)["type"] == "subscribed", (
            "the number is free again"
        )


def test_a_rest_tells_the_choice(here: Running, tracker: TrackerTalk) -> None:
    with here.talk(selecting(here)) as talk:
        talk.subscribe(what="select", targets=TARGETS, by="dwell", dwell_ms=600)
        look(here, tracker, ON_LAMP, 0.5)
        assert silent(talk)
        look(here, tracker, ON_LAMP, 1.0)
        assert [talk.hear().get(word) for word in ("target", "code")] == ["lamp", "chosen"]


def messages(
    here: Running, tracker: TrackerTalk, places: list[tuple[float, float]], on: tuple[float, float]
) -> list[str]:
    """Every byte that an app with `select` alone is sent while a wearer looks about and then
    chooses.
    """
    app = f"twin-{time.monotonic_ns()}"
    token = here.app(app, grant={"scopes": ["select"], "streams": 0, "areas": 0})
    found: list[str] = []
    with here.talk(None) as talk, here.client(token) as client:
        talk.say(type="hello", token=token)
        talk.say(type="subscribe", id=1, what="select", targets=TARGETS)
        for number, what in enumerate(("fixation", "saccade", "pursuit", "tile"), 2):
            talk.say(type="subscribe", id=number, what=what)
        for place in places:
            look(here, tracker, place, 0.6)
            talk.say(type="ping")
            answers = [
                client.get(path)
                for path in (
                    "/v1/me",
                    "/v1/tile",
                    "/v1/areas",
                    "/v1/areas/1/metrics",
                    "/v1/fixations/1/dwell",
                )
            ]
            found += [f"{answer.status_code} {answer.text}" for answer in answers]
        look(here, tracker, on)
        confirm(here, tracker, "owner")
        while not found or '"chosen"' not in found[-1]:
            found.append(str(talk.socket.recv(timeout=60)))
    return [text.replace(app, "APP") for text in found]


def test_two_wearers_with_the_same_choice_send_an_app_the_same_bytes(
    here: Running, tracker: TrackerTalk
) -> None:
    about = [(105.0, 85.0), (144.0, 84.0), (60.0, 40.0), (105.0, 85.0), (300.0, 150.0)]
    one = messages(here, tracker, about, (141.5, 81.5))
    other = messages(here, tracker, [NOWHERE] * 5, (148.5, 88.5))
    assert one == other
    assert sum('"target":"lamp"' in text for text in one) == 1
    control = messages(here, tracker, about, (105.0, 85.0))
    assert control != one
    assert [text.replace("radio", "lamp") for text in control] == one


def test_a_gesture_of_an_app_is_refused(here: Running, tracker: TrackerTalk) -> None:
    """The attack: the app presses for the wearer, to hear at once what is looked at."""
    token = selecting(here)
    with here.talk(token) as talk:
        talk.subscribe(what="select", targets=TARGETS)
        look(here, tracker, ON_LAMP)
        address = here.address + "/v1/confirm"
        for headers, status in (
            ({"Authorization": f"Bearer {token}"}, 403),
            ({}, 401),
            ({"Authorization": f"Bearer {token}", "X-Gazeveil": "1"}, 403),
            (
                {
                    "Authorization": f"{here.owner.headers['authorization']}",
                    "Origin": "https://shop.example",
                },
                403,
            ),
        ):
            assert httpx.post(address, headers=headers).status_code == status
        with here.talk(None, "/v1/tracker") as other:
            other.say(type="hello", token=token)
            assert other.hear()["code"] == "role"
        talk.say(type="confirm")
        assert talk.hear()["code"] == "message"
        assert silent(talk)
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, "owner")
        assert talk.hear()["target"] == "lamp"


def test_a_page_may_say_whose_gesture_it_is(here: Running, tracker: TrackerTalk) -> None:
    first, second = selecting(here), selecting(here)
    name = here.last
    with here.talk(first) as one, here.talk(second) as two:
        one.subscribe(what="select", targets=TARGETS)
        two.subscribe(
            what="select",
            targets=[{"name": "all", "x_deg": 0, "y_deg": 0, "width_deg": 360, "height_deg": 180}],
        )
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, "owner")
        assert silent(one)
        assert silent(two)
        look(here, tracker, ON_LAMP)
        assert here.owner.post("/v1/confirm", json={"app": name}).status_code == 204
        assert two.hear()["target"] == "all"
        assert silent(one)
        assert here.owner.post("/v1/confirm", json={"app": "no such app"}).status_code == 422


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"targets": []}, "parameter"),
        ({"targets": [TARGETS[0], TARGETS[0]]}, "parameter"),
        ({"targets": [{**TARGETS[0], "width_deg": 0}]}, "area"),
        ({"targets": TARGETS, "by": "dwell", "dwell_ms": 100}, "parameter"),
    ],
)
def test_selections_that_are_none_are_refused_with_a_reason(
    here: Running, wish: dict[str, Any], code: str
) -> None:
    with here.talk(selecting(here)) as talk:
        answer = talk.subscribe(what="select", **wish)
        assert (answer["type"], answer["code"]) == ("refused", code)
        assert answer["reason"].endswith(".")


@pytest.mark.parametrize(
    "wish",
    [
        {"targets": [{**TARGETS[0], "secret": 1}]},
        {"targets": [{"name": "radio"}]},
        {"targets": [{**TARGETS[0], "name": "x" * 65}]},
        {"targets": [{**TARGETS[0], "name": str(i)} for i in range(33)]},
        {"targets": TARGETS, "by": "pinch"},
        {"targets": TARGETS, "dwell_ms": "800"},
    ],
)
def test_messages_that_are_none_cannot_be_read(here: Running, wish: dict[str, Any]) -> None:
    with here.talk(selecting(here)) as talk:
        talk.say(type="subscribe", id=1, what="select", **wish)
        assert talk.hear()["code"] == "message"


def test_leaving_frees_the_selections_an_app_may_have(here: Running) -> None:
    token = selecting(here)
    with contextlib.ExitStack() as tabs:
        one, *others = [tabs.enter_context(here.talk(token)) for _ in range(MOST_OPEN + 1)]
        for tab in (one, *others[1:]):
            assert tab.subscribe(what="select", targets=TARGETS)["type"] == "subscribed"
        two = others[0]
        assert two.subscribe(what="select", targets=TARGETS)["code"] == "rate", (
            "another connection is the same app"
        )
        one.say(type="unsubscribe", id=1)
        assert one.hear()["code"] == "closed"
        assert two.subscribe(what="select", targets=TARGETS)["type"] == "subscribed"
    with here.talk(token) as three:
        until(lambda: three.subscribe(what="select", targets=TARGETS)["type"] == "subscribed", 10)


def test_the_audit_log_says_that_there_was_a_choice_and_not_which(
    here: Running, tracker: TrackerTalk
) -> None:
    with here.talk(selecting(here)) as talk:
        talk.subscribe(what="select", targets=TARGETS)
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, "tracker")
        talk.until("ended")
    page = here.owner.get("/v1/audit", params={"last": 20})
    assert [row["detail"] for row in page.json()["entries"] if row["kind"] == "choice"][-1] == {
        "by": "confirm"
    }
    assert "lamp" not in page.text


def test_a_choice_is_sent_though_much_else_waits_and_after_the_word_that_it_may_be_waited_for() -> (
    None
):
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(json.loads(str(message["text"])))

    async def work(early: bool) -> list[dict[str, Any]]:
        sent.clear()
        broadcaster = Broadcaster()
        broadcaster.loop = asyncio.get_running_loop()
        connection = Connection(broadcaster, "a", send, 4)
        other, channel = (
            Channel(connection, 1, "fixation", announced=True),
            Channel(connection, 2, "select"),
        )
        connection.channels.update({1: other, 2: channel})
        if not early:
            connection.announce(channel, {"type": "subscribed", "id": 2})
        channel.chosen("lamp")
        connection.end(channel, "chosen", "The wearer has chosen.")
        for number in range(20):
            other.message({"kind": "fixation", "number": number})
        if early:
            connection.announce(channel, {"type": "subscribed", "id": 2})
        broadcaster.flush()
        await asyncio.sleep(0)
        return [message for message in sent if message["id"] == 2]

    for early in (False, True):
        found = asyncio.run(work(early))
        assert [message["type"] for message in found] == ["subscribed", "event", "ended"], early
        assert len(sent) == 7, "of the others the oldest went"


def test_trackers_that_speak_the_channel_hand_a_gesture_on() -> None:
    async def work() -> int:
        tracker: Any = open_tracker("websocket://127.0.0.1:0")
        made: list[bool] = []
        tracker.on_confirm = lambda: made.append(True)
        taking = asyncio.create_task(anext(aiter(tracker.samples())))
        await tracker.listening.wait()
        async with connect_async(f"ws://127.0.0.1:{tracker.port}") as socket:
            await socket.send(json.dumps({"type": "hello"}))
            await socket.recv()
            await socket.send(json.dumps({"type": "confirm"}))
            await socket.send(
                json.dumps({"type": "samples", "t_ns": [0], "x_deg": [1.0], "y_deg": [1.0]})
            )
            await taking
        await tracker.close()
        assert tracker.counts["malformed"] == 0
        return len(made)

    assert asyncio.run(work()) == 1


# --- clients
# --------------------------------------------------------------------------------------------------


def waiting(here: Running, app: str) -> bool:
    assert here.service is not None
    return any(
        channel.announced
        for connection in here.service.broadcaster.of(app)
        for channel in tuple(connection.channels.values())
    )


def later(call: Any) -> queue.Queue[str]:
    """What a call that waits gives, or the code it is refused with; on a thread that nobody waits
    for.
    """
    found: queue.Queue[str] = queue.Queue()

    def run() -> None:
        try:
            found.put(call())
        except Denied as no:
            found.put(no.code)

    threading.Thread(target=run, daemon=True).start()
    return found


def test_the_python_client_waits_for_the_choice(here: Running, tracker: TrackerTalk) -> None:
    token, name = selecting(here), here.last
    with connect(here.address, token) as gaze:
        found = later(lambda: gaze.choose(PYTHON_TARGETS).name)
        until(lambda: waiting(here, name))
        look(here, tracker, ON_LAMP)
        assert found.empty()
        confirm(here, tracker, "tracker")
        assert found.get(timeout=60) == "lamp"
        until(lambda: not waiting(here, name))
        found = later(
            lambda: asyncio.run(gaze.choose_async(PYTHON_TARGETS, by="dwell", dwell_ms=500)).name
        )
        until(lambda: waiting(here, name))
        look(here, tracker, NOWHERE, 1.5)  # the pause after a choice
        look(here, tracker, ON_LAMP)
        assert found.get(timeout=60) == "lamp"
        until(lambda: not waiting(here, name))
        assert later(lambda: gaze.choose([])).get(timeout=60) == "parameter"
        found = later(lambda: gaze.choose(PYTHON_TARGETS).name)
        until(lambda: waiting(here, name))
        here.owner.post(f"/v1/apps/{name}/revoke", json={})
        assert found.get(timeout=60) == "revoked"


def test_the_browser_client_waits_for_the_choice(here: Running, tracker: TrackerTalk) -> None:
    playwright = pytest.importorskip(
        "playwright.sync_api",
        reason="playwright is not installed: the client is not tried in a browser",
    )
    token, name = selecting(here), here.last
    begin = """([token, targets]) => { globalThis.result = (async () => {
        const { connect } = await import('/client.js');
        globalThis.gaze = connect(location.origin, { token });
        const first = (await gaze.choose(targets)).name;
        const second = (await gaze.choose(targets, { by: 'dwell', dwell_ms: 500 })).name;
        const stop = new AbortController();
        const stopped = gaze.choose(targets, { signal: stop.signal }).catch((error) => error.name);
        await new Promise((resolve) => setTimeout(resolve, 200));
        stop.abort();
        const codes = [];
        const wrong = [[[], {}], [targets, { by: 'dwell', dwell_ms: 1 }]];
        for (const [some, options] of wrong)
          codes.push(await gaze.choose(some, options).catch((error) => error.code));
        return [first, second, await stopped, ...codes];
    })(); }"""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_page()
        page.goto(f"{here.address}/health")
        page.evaluate(begin, [token, TARGETS])
        until(lambda: waiting(here, name))
        look(here, tracker, ON_LAMP)
        confirm(here, tracker, "owner")
        until(lambda: selection_number(here, name) == 2)
        look(here, tracker, NOWHERE, 1.5)
        look(here, tracker, (105.0, 85.0))
        assert page.evaluate("globalThis.result") == [
            "lamp",
            "radio",
            "AbortError",
            "parameter",
            "parameter",
        ]
        browser.close()


def selection_number(here: Running, name: str) -> int:
    assert here.service is not None
    return max(
        (
            channel.id
            for connection in here.service.broadcaster.of(name)
            for channel in tuple(connection.channels.values())
            if channel.announced
        ),
        default=0,
    )
