"""A page of another origin in Chromium: it asks, chooses among its elements while it is scrolled,
is loaded again and goes on, until the wearer stops it. The pages are the examples themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, Page, expect

from tests.support.gatekeeper_browser import Desk, SignedIn
from tests.support.gatekeeper_running import Process, Running, TrackerTalk, free_port, until
from tests.support.places import ROOT

EXAMPLES = ROOT / "examples" / "gatekeeper"

#: The screen of the browser, so that a pixel is as wide for the page as for the device.
SIZE = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("origin") / "home"
    with Process(home, free_port(), GAZEVEIL_TRACKER="mouse") as started:
        yield started


@pytest.fixture(scope="module")
def signed_in(browser: Browser, process: Process) -> SignedIn:
    return SignedIn(browser, process)


def pages() -> dict[str, str]:
    """The examples, and the first page of the manual."""
    found = {f"/{page.name}": page.read_text(encoding="utf-8") for page in EXAMPLES.glob("*.html")}
    manual = (ROOT / "docs" / "howto" / "gatekeeper" / "apps.md").read_text(encoding="utf-8")
    first = re.search(r"```html\n(.+?)```", manual, re.DOTALL)
    second = re.search(r"```js\n(.+?)```", manual, re.DOTALL)
    return {**found, "/manual.html": first[1], "/looks.html": LOOKS % second[1], "/zoom.html": ZOOM}


#: Two things that lie in the upper left quarter: doubled, one lies where the other does not reach.
ZOOM = """<style>
  body { margin: 0 } button { position: absolute; width: 200px; height: 160px; top: 100px }
</style>
<button id="lamp" style="left: 60px">Lamp</button>
<button id="radio" style="left: 380px">Radio</button><p id="said"></p>
<script type="module">
  import gaze from "http://127.0.0.1:8765/client.js";
  const said = document.getElementById("said");
  await gaze.ask("choose");
  const choice = gaze.choose(document.querySelectorAll("button"), { by: "dwell" });
  said.textContent = "ready";
  said.textContent = (await choice).id;
</script>"""

#: Two pictures, and the second page of the manual as it stands.
LOOKS = """<style>img { width: 400px; height: 300px; margin: 100px }</style>
<img alt="Boat" src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>">
<img alt="Jug" src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>">
<script type="module">
  import gaze from "http://127.0.0.1:8765/client.js";
  %s
</script>"""


@pytest.fixture(scope="module")
def shop(process: Process) -> Iterator[str]:
    """The examples on an origin of their own, with the address of this service in them."""

    class Examples(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages().get(self.path, "")
            self.send_response(200 if text else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.replace("http://127.0.0.1:8765", process.address).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Examples)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def opened(desk: Desk, address: str) -> Page:
    """A page of the shop, in a browser that is not the owner's."""
    page = desk.context(viewport=SIZE, screen=SIZE).new_page()
    page.on("pageerror", lambda error: desk.mistakes.append(str(error)))
    page.goto(address)
    return page


def say_yes(owner: Page, address: str, answer: str = "Yes, this visit") -> None:
    """Answer the question of a page, which is named by its address."""
    owner.bring_to_front()
    ask = owner.locator(".ask", has_text=address)
    ask.get_by_role("button", name=answer).click()
    expect(ask).to_have_count(0)


def rest_on(page: Page, thing: str) -> None:
    """Come from elsewhere and rest the pointer on an element."""
    page.mouse.move(5, 5)
    page.wait_for_timeout(400)
    box = page.locator(thing).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)


def test_it_asks_chooses_while_it_scrolls_is_loaded_again_and_goes_on(
    desk: Desk, shop: str
) -> None:
    desk.consent(True)
    owner = desk.owner()
    page = opened(desk, f"{shop}/choose.html")
    page.click("#ask")
    ask = owner.locator(".ask", has_text=shop)
    expect(ask).to_contain_text("Choose by looking.")
    expect(ask).to_contain_text("It could recognise you by it.")
    say_yes(owner, shop)
    page.bring_to_front()
    said = page.locator("#said")
    expect(said).to_have_text("Rest your eyes on a picture.")
    # What is chosen has been scrolled to: its place is not that of the first look.
    page.locator("#Jug").scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 0
    rest_on(page, "#Jug")
    expect(said).to_have_text("You chose Jug.")
    expect(page.locator("#Jug")).to_have_class("chosen")
    page.reload()
    expect(said).to_have_text("Rest your eyes on a picture.")
    assert desk.api.get("/v1/asks").json()["asks"] == [], "a reload is no new question"
    page.evaluate("scrollTo(0, 0)")
    rest_on(page, "#Boat")
    expect(said).to_have_text("You chose Boat.")
    owner.bring_to_front()
    owner.locator("#in-use").get_by_role("button", name=f"Stop {shop}").click()
    expect(said).not_to_contain_text("You chose")
    expect(said).to_contain_text("was revoked")


def test_the_first_page_of_the_manual_chooses(desk: Desk, shop: str) -> None:
    desk.consent(True)
    owner = desk.owner()
    page = opened(desk, f"{shop}/manual.html")
    say_yes(owner, shop)
    page.bring_to_front()
    for _ in range(3):  # the first rest may begin before the choice is open
        rest_on(page, "#coffee")
        page.wait_for_timeout(1500)
    expect(page.locator("#said")).to_have_text("You chose coffee.")


#: How a page is zoomed, by the browser's own means; each doubles what is seen of it. And the middle
#: of the radio then, in the page's own pixels, which two fingers do not change.
ZOOMS = {
    "pinch": ("Emulation.setPageScaleFactor", {"pageScaleFactor": 2}, (480, 180)),
    "style": (
        "Runtime.evaluate",
        {"expression": "document.documentElement.style.zoom = 2"},
        (960, 360),
    ),
}


@pytest.mark.parametrize("zoom", ZOOMS)
def test_a_zoomed_page_chooses_what_is_looked_at(desk: Desk, shop: str, zoom: str) -> None:
    """The places of things and of the pointer go through different ways; a zoom that one of them
    does not see would choose a neighbour.
    """
    desk.consent(True)
    owner = desk.owner()
    page = opened(desk, f"{shop}/zoom.html")
    say_yes(owner, shop)
    page.bring_to_front()
    expect(page.locator("#said")).to_have_text("ready")
    command, how, middle = ZOOMS[zoom]
    page.context.new_cdp_session(page).send(command, how)
    for _ in range(5):
        page.mouse.move(middle[0] - 300, 5)
        page.wait_for_timeout(600)
        page.mouse.move(*middle, steps=3)
        page.wait_for_timeout(1500)
        if page.locator("#said").text_content() != "ready":
            break
    expect(page.locator("#said")).to_have_text("radio")


def test_the_second_page_of_the_manual_counts_looks_at_pictures(desk: Desk, shop: str) -> None:
    desk.consent(True)
    owner = desk.owner()
    page, said = opened(desk, f"{shop}/looks.html"), list[str]()
    page.on("console", lambda message: said.append(message.text))
    say_yes(owner, shop)
    page.bring_to_front()
    for _ in range(20):
        rest_on(page, "img[alt=Jug]")
        page.wait_for_timeout(1200)
        page.mouse.move(5, 5)
        page.wait_for_timeout(400)
        name, visits, dwell_ms = next(one for one in reversed(said) if "Jug" in one).split()
        if int(visits):
            break
    assert (name, int(visits) >= 1, int(dwell_ms) >= 400) == ("Jug", True, True)
    assert {"Boat 0 0", "Jug 0 0"} <= set(said)


#: Connects as the page's own origin and asks for everything that events need.
ASK = """async (address) => {
  const { connect } = await import(`${address}/client.js`);
  globalThis.gaze = connect(address);
  globalThis.heard = [];
  for (const kind of ["paused", "resumed", "ended"]) {
    await gaze.on(kind, (event) => heard.push({ ...event, to: kind }));
  }
  globalThis.answer = gaze.ask("study");
}"""

LISTEN = """async () => {
  const answer = await globalThis.answer;
  for (const kind of ["fixation", "saccade-start"]) {
    await gaze.on(kind, (event) => heard.push({ ...event, to: kind }));
  }
  return answer;
}"""


def test_a_page_hears_movements_pauses_and_the_end(
    browser: Browser, shop: str, tmp_path: Path
) -> None:
    screen = {"TRACKER": "websocket", "SCREEN": "1280x720px,527x296mm,600mm"}
    settings = {f"GAZEVEIL_{name}": value for name, value in screen.items()}
    with Process(tmp_path / "home", free_port(), **settings) as driven:
        desk = Desk(browser, driven, SignedIn(browser, driven))
        desk.consent(True)
        owner, page = desk.owner(), opened(desk, f"{shop}/manual.html")
        page.evaluate(ASK, driven.address)
        say_yes(owner, shop)
        assert page.evaluate(LISTEN) == "granted"

        def heard(kind: str, count: int = 1) -> list[dict[str, Any]]:
            ready = "([kind, count]) => heard.filter((one) => one.to === kind).length >= count"
            page.wait_for_function(ready, arg=[kind, count])
            return list(page.evaluate("(kind) => heard.filter((one) => one.to === kind)", kind))

        assert heard("paused")[0]["reason"] == "tracker"
        token = (driven.home / "tracker-token").read_text().strip()
        with Running(driven.address, "").talk(token, "/v1/tracker") as talk:
            tracker = TrackerTalk(talk, 120.0)
            for x in (-15.0, 15.0, -15.0, 15.0):
                tracker.look(x, 0.0, 0.6)
            fixation, start = heard("fixation")[0], heard("saccade-start")[0]
            assert heard("resumed")
            assert 0 < abs(fixation["x_deg"] + 15.0) < 5.0, "the middle of a cell"
            assert fixation["t_ms"] % 100 == start["t_ms"] % 100 == 0
            assert heard("paused", 2)[1]["reason"] == "tracker", "the tracker says nothing more"
            tracker.look(0.0, 0.0, 0.6)
            assert heard("resumed", 2)
        desk.api.post(f"/v1/apps/{desk.api.get('/v1/apps').json()['apps'][0]['app']}/revoke")
        ends = heard("ended", 3)
        assert {(one["kind"], one["code"]) for one in ends} == {
            ("fixation", "revoked"),
            ("saccade-start", "revoked"),
            ("grant", "revoked"),
        }
        desk.close()
        assert desk.mistakes == []


def test_behind_caddy_the_owner_signs_in_and_a_page_of_another_origin_asks(
    browser: Browser, shop: str, tmp_path: Path
) -> None:
    """`packaging/Caddyfile` as it stands, but for its ports and a certificate of its own."""
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed: the example of a proxy with TLS is not run")
    port, front = free_port(), free_port()
    public = f"https://gaze.example:{front}"
    site = (ROOT / "packaging" / "Caddyfile").read_text(encoding="utf-8")
    site = site.replace("gaze.example {", f"gaze.example:{front} {{\n\ttls internal")
    site = site.replace("127.0.0.1:8765\n", f"127.0.0.1:{port}\n")
    options = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n"
    (tmp_path / "Caddyfile").write_text(options + site)
    command = [caddy, "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    places = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(tmp_path / "caddy"))
    settings = {"GAZEVEIL_TRACKER": "mouse", "GAZEVEIL_PUBLIC_ORIGIN": json.dumps([public])}
    with (
        Process(tmp_path / "home", port, **settings) as behind,
        (tmp_path / "caddy.log").open("w") as log,
        subprocess.Popen(command, env={**os.environ, **places}, stderr=log) as proxy,
    ):
        owner, page = (browser.new_context(ignore_https_errors=True).new_page() for _ in range(2))
        try:
            until(lambda: "serving initial configuration" in (tmp_path / "caddy.log").read_text())
            assert behind.link.startswith(public)
            owner.goto(behind.link)
            expect(owner.locator("#board")).to_be_visible()
            owner.click("#consent")
            expect(owner.locator("#consent")).to_have_attribute("data-state", "on")
            streams: list[str] = []
            page.on("websocket", lambda socket: streams.append(socket.url))
            page.goto(f"{shop}/manual.html")
            page.evaluate(ASK, public)
            say_yes(owner, shop)
            assert page.evaluate(LISTEN) == "granted"
            assert streams == [f"{public.replace('https', 'wss')}/v1/stream"]
            assert httpx.get(
                behind.address + "/v1/me", headers={"X-Forwarded-For": "uid 0"}
            ).is_error
        finally:
            for one in (owner, page):
                one.context.close()
            proxy.terminate()


def test_an_avatar_turns_its_eyes_where_the_wearer_looks(desk: Desk, shop: str) -> None:
    desk.consent(True)
    owner = desk.owner()
    page = opened(desk, f"{shop}/avatar.html")
    page.click("#ask")
    expect(owner.locator(".ask", has_text=shop)).to_contain_text("It could recognise you by it.")
    say_yes(owner, shop, "Yes, until I stop it")
    page.bring_to_front()
    face = page.locator("#face")
    # The pointer stands for the eyes from when the page is connected; what it did before is lost.
    expect(page.locator("#said")).to_have_text(re.compile("It looks: "))
    for place, region in (((40, 360), "left"), ((1240, 360), "right"), ((640, 360), "at-you")):
        page.mouse.move(*place, steps=3)
        expect(face).to_have_attribute("data-region", region)


#: What an app reads of each call that it makes with its token.
READ = """async ([address, token]) => {
  const { connect } = await import(`${address}/client.js`);
  const gaze = connect(address, { token });
  const calls = [() => gaze.left(), () => gaze.choose([document.body]), () => gaze.follow().next()];
  return Promise.all(calls.map((call) => call().catch((error) => error.message)));
}"""


def test_a_page_of_an_origin_that_is_not_listed_reads_that_it_is_not(
    desk: Desk, process: Process, shop: str
) -> None:
    """It read that the Gatekeeper did not answer."""
    body = {"name": "listed", "origins": ["https://listed.example"]}
    token = desk.api.post("/v1/apps", json=body).json()["token"]
    read = opened(desk, f"{shop}/choose.html").evaluate(READ, [process.address, token])
    said = (
        "Pages of this origin may not use the app's token. The owner can add the origin to the app."
    )
    assert read == [said] * 3
