"""The demo apps that live by saccades in Chromium: redirected walking hears beginnings alone, gaze
guidance beginnings and landings, and both do with them what their rules say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Page, WebSocket, expect

from tests.support.gatekeeper_browser import Desk, browser, desk, panel, signed_in  # noqa: F401
from tests.support.gatekeeper_layout import measured
from tests.support.gatekeeper_running import Process, Running, TrackerTalk, free_port
from tests.support.places import ROOT

RATE_HZ = 250.0
#: Middles of the first two paintings and a place between, in degrees of the sphere.
FIRST, SECOND, BETWEEN = (30.0, 85.0), (90.0, 85.0), (60.0, 30.0)


@pytest.fixture(scope="module", params=["fine"])
def process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("moves") / "home"
    with Process(
        home, free_port(), GAZEVEIL_TRACKER="websocket", GAZEVEIL_LEVEL=request.param
    ) as started:
        yield started


@pytest.fixture
def tracker(desk: Desk) -> Iterator[TrackerTalk]:
    token = desk.api.post("/v1/tracker/token").json()["token"]
    with Running(desk.process.address, "").talk(token, "/v1/tracker") as talk:
        yield TrackerTalk(talk, RATE_HZ)


def fly(tracker: TrackerTalk, places: list[tuple[float, float]], rest_s: float = 0.4) -> None:
    """Rest at places one after the other; each way between takes 48 ms."""
    share = np.linspace(0, 1, 13)[1:]
    for i, (x, y) in enumerate(places):
        if i:
            x0, y0 = places[i - 1]
            tracker.send(x0 + (x - x0) * share, y0 + (y - y0) * share)
        tracker.look(x, y, rest_s)


class Heard:
    """All that the service says to the app's own connection."""

    def __init__(self, page: Page) -> None:
        self.messages: list[dict[str, Any]] = []
        page.on("websocket", self._open)

    def _open(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: self.messages.append(json.loads(data)))

    def told(self) -> list[dict[str, Any]]:
        answers = ("welcome", "subscribed", "pong")
        return [one for one in self.messages if one["type"] not in answers]


def opened(desk: Desk, part: str, name: str, **options: Any) -> tuple[Page, Heard]:
    """One demo app, granted events and nothing else."""
    desk.consent(True)
    token = desk.app(name, grant={"scopes": ["events"]})
    page = desk.watch(desk.context(owner=False, **options).new_page())
    heard = Heard(page)
    page.goto(f"{desk.process.address}/demo/#{part}={token}")
    return page, heard


def test_a_turn_lasts_for_what_is_left_of_a_flight_and_no_longer(desk: Desk) -> None:
    got = desk.blank().evaluate(
        """async () => {
        const { Redirector, ...rules } = await import('/demo/redirect.js');
        const one = new Redirector(40);
        one.begun(1000);
        const early = one.at(1010), late = one.at(2000);
        one.begun(2000);
        one.begun(2020);
        const again = one.at(3000);
        const { TURN_DEG_S, FLIGHT_MS, FOUND_MS, leftOf } = rules;
        const left = [0, 10, 100].map(leftOf);
        return { early, late, again, TURN_DEG_S, FLIGHT_MS, FOUND_MS, left }; }"""
    )
    rate = got["TURN_DEG_S"] / 1000
    assert got["early"] == pytest.approx(10 * rate)
    assert got["late"] == pytest.approx(40 * rate)
    # Two notices 20 ms apart turn for 60 ms and not for 80.
    assert got["again"] == pytest.approx((40 + 60) * rate)
    left = got["FLIGHT_MS"] - got["FOUND_MS"]
    assert got["left"] == [left, left - 5, 0]


def test_a_walker_who_is_turned_comes_round(desk: Desk) -> None:
    x, y = desk.blank().evaluate(
        """async () => {
        const { Walker } = await import('/demo/redirect.js');
        const one = new Walker();
        for (let i = 0; i < 3600; i += 1) one.walk(0.01, i / 10);
        return [one.x_m, one.y_m]; }"""
    )
    assert np.hypot(x, y) < 0.1, "36 m and a whole turn lead back"


def test_a_spot_is_steady_from_a_beginning_to_a_landing_elsewhere(desk: Desk) -> None:
    got = desk.blank().evaluate(
        """async () => {
        const { Cue, FLICKER_HZ, PATIENCE_MS } = await import('/demo/cue.js');
        const at = (x) => ({ x, y: 0, width: 10, height: 10 });
        const cue = new Cue([at(0), at(50)]);
        const top = 1000 / FLICKER_HZ / 4;
        cue.count(0);
        const moving = cue.light(top);
        cue.begun(100);
        const steady = cue.light(100 + top);
        const elsewhere = cue.landed(30, 5, 200);
        const again = cue.light(200 + top);
        cue.begun(300);
        const hit = cue.landed(5, 5, 350);
        const next = cue.target.x;
        cue.begun(400);
        cue.count(400 + PATIENCE_MS + 50);
        const { shown_ms: shown, hits } = cue;
        return { moving, steady, elsewhere, again, hit, next, shown, hits }; }"""
    )
    assert got["moving"] == pytest.approx(1)
    assert got["steady"] == 0
    assert got["elsewhere"] is False
    assert abs(got["again"]) > 0.9
    assert got["hit"] is True
    assert got["next"] == 50
    assert got["hits"] == 1
    # 0 to 100, 200 to 300, 350 to 400, and 50 ms after a landing that never came.
    assert got["shown"] == pytest.approx(100 + 100 + 50 + 50)


def test_walking_hears_beginnings_alone_and_turns_by_them(desk: Desk, tracker: TrackerTalk) -> None:
    page, heard = opened(desk, "walking", "walking-on")
    app = panel(page, "Walking on")
    expect(app.locator(".state")).to_contain_text("32 ms of a flight are left")
    fly(tracker, [FIRST, SECOND] * 5)
    tracker.look(*SECOND, 0.5)
    expect(app).to_contain_text("It was told 9 times that a saccade had begun, and nothing else.")
    told = heard.told()
    assert len(told) == 9
    assert all(set(one) == {"type", "id", "t_ms"} for one in told)
    assert {one["type"] for one in told} == {"saccade-start"}
    expect(app.locator("label.inline")).to_be_hidden()
    # Notices of a tracker that sends faster than the clock come together: at least one turn. It is
    # made frame by frame after the notice, and a busy machine draws few of them.
    turned = 0.0
    for _ in range(600):
        said = app.get_by_text("Turned by").inner_text()
        turned = float(said.split("°")[0].removeprefix("Turned by "))
        if turned + 0.05 >= 12.6 * 0.032:
            break
        page.wait_for_timeout(50)
    assert 12.6 * 0.032 <= turned + 0.05 <= 9 * 12.6 * 0.032 + 0.1


def test_guidance_is_steady_until_the_landing_and_counts_hits(
    desk: Desk, tracker: TrackerTalk
) -> None:
    page, heard = opened(desk, "guidance", "led-gallery")
    app = panel(page, "Led gallery")
    expect(app.locator(".state")).to_contain_text(
        "about 13 ms after a saccade's beginning, before the eyes land"
    )
    fly(tracker, [BETWEEN, FIRST, BETWEEN, SECOND, BETWEEN])
    tracker.look(*BETWEEN, 0.5)
    expect(app).to_contain_text("4 beginnings and 4 landings; 2 were on what it cued")
    assert "landed on “The pass”" not in app.inner_text()
    kinds = [one["type"] for one in heard.told()]
    assert kinds == ["saccade-start", "event"] * 4
    cells = [one for one in heard.told() if one["type"] == "event"]
    assert {one["kind"] for one in cells} == {"saccade"}
    assert all("duration_ms" not in one or one["duration_ms"] == 0 for one in cells)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_both_lie_well_and_work_by_keyboard(desk: Desk, scheme: Any, width: int) -> None:
    desk.consent(True)
    tokens = {
        part: desk.app(name, grant={"scopes": ["events"]})
        for part, name in (("walking", "walking-on"), ("guidance", "led-gallery"))
    }
    context = desk.context(
        owner=False,
        color_scheme=scheme,
        reduced_motion="reduce",
        viewport={"width": width, "height": 900},
    )
    page = desk.watch(context.new_page())
    page.goto(f"{desk.process.address}/demo/#" + "&".join(f"{p}={t}" for p, t in tokens.items()))
    for title in ("Walking on", "Led gallery"):
        expect(panel(page, title).locator(".state")).to_contain_text("Running")
    assert measured(page, width) == []
    box = panel(page, "Led gallery").locator("input[name=show]")
    box.focus()
    page.keyboard.press("Space")
    expect(box).to_be_checked()
    stop = panel(page, "Walking on").get_by_role("button", name="Stop")
    stop.focus()
    page.keyboard.press("Enter")
    expect(panel(page, "Walking on").locator(".state")).to_have_text("Stopped by you.")


def test_the_benchmark_and_the_page_have_the_same_rules(desk: Desk) -> None:
    text = (ROOT / "benchmarks" / "event_apps.py").read_text(encoding="utf-8")
    told = desk.blank().evaluate(
        """async () => {
        const { TURN_DEG_S, FLIGHT_MS, FOUND_MS } = await import('/demo/redirect.js');
        return [TURN_DEG_S, FLIGHT_MS, FOUND_MS]; }"""
    )
    written = text.split("TURN_DEG_S, FLIGHT_MS, FOUND_MS = ")[1].split("\n")[0]
    assert [float(value) for value in written.split(", ")] == told
