"""A page of another origin in Chromium: it asks, chooses among its elements while it is scrolled,
is loaded again and goes on, until the wearer stops it. The pages are the examples themselves.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, Page, expect

from tests.support.gatekeeper_browser import Desk, SignedIn
from tests.support.gatekeeper_running import Process, free_port
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
    return {**found, "/manual.html": first[1]}


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
