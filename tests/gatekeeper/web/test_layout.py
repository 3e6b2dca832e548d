"""The pages at the widths of a phone, a tablet and a desk: no overlap, nothing cut off, no sideways
scrolling, by measured boxes.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Page, Route, expect

from tests.support.gatekeeper_browser import (
    CONNECT,
    Desk,
    browser,  # noqa: F401 - a fixture
    desk,  # noqa: F401 - a fixture
    process,  # noqa: F401 - a fixture
    signed_in,  # noqa: F401 - a fixture
)
from tests.support.gatekeeper_layout import measured

WIDTHS = (360, 390, 768, 1280)

#: As long as a name may be: what breaks a layout first.
LONG_NAME = "an-app-with-the-longest-name-that-is-allowed-here-0123456789.abcd"[:64]

#: What a tracker says of itself that sends faster than it declares.
TROUBLE = (
    "The tracker lsl sends 1000 samples in a second of its own time, and its nominal rate is 120."
    " Name its rate with --rate 1000 and add ?declared=ignored to --in (to --tracker of `serve`)."
)


def with_trouble(route: Route) -> None:
    """The service's own answer, with a tracker that lies about its rate."""
    answer = route.fetch()
    told = answer.json()
    if "tracker" in told:
        told["tracker"] |= {"connected": False, "trouble": TROUBLE}
    route.fulfill(response=answer, json=told)


@pytest.fixture
def board(desk: Desk) -> Page:
    """A board with everything on it: an ask, a granted app that is in use, a long name, an empty
    card.
    """
    desk.consent(True)
    for name in (LONG_NAME, "second", "third"):
        with desk.as_app(desk.app(name)) as app:
            assert app.post("/v1/ask", json={"want": "follow"}).json()["state"] == "waiting"
    desk.app("idle")
    token = desk.app("avatar", preset="follow", lasts="until-stopped")
    page = desk.owner(reduced_motion="reduce")
    expect(page.locator("#tracker-trouble")).to_be_hidden()
    page.route("**/v1/apps", with_trouble)
    desk.blank().evaluate(
        f"(token) => {{ (async () => {{ {CONNECT} gaze.on('region', () => {{}}); }})(); }}", token
    )
    page.bring_to_front()
    expect(page.locator("#live-apps figure").first).to_be_visible()
    expect(page.locator("#in-use")).to_contain_text("Paused: the tracker is gone")
    expect(page.locator(".ask").nth(2)).to_be_visible()
    expect(page.locator("#tracker-trouble")).to_have_text(TROUBLE)
    return page


def everywhere(page: Page) -> list[str]:
    """What is wrong at any width."""
    return [one for width in WIDTHS for one in measured(page, width)]


def test_the_board_its_asks_and_the_bar_of_what_is_in_use_lie_well(board: Page) -> None:
    assert everywhere(board) == []


def test_every_dialog_lies_well(desk: Desk, board: Page) -> None:
    board.get_by_role("button", name=f"Allow {LONG_NAME}").click()
    assert everywhere(board) == []
    left, right = board.locator(".what").bounding_box(), board.locator(".lasts").bounding_box()
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"], "two columns at 1280 px"
    board.keyboard.press("Escape")
    board.click("#add")
    board.fill("#add-dialog input[name=name]", "not a name")
    board.click("#add-dialog button[type=submit]")
    assert everywhere(board) == []
    board.fill("#add-dialog input[name=name]", "newcomer")
    board.click("#add-dialog button[type=submit]")
    board.wait_for_selector("#token-dialog .secret")
    assert everywhere(board) == []
    board.click("#token-dialog button[type=submit]")
    board.locator(f'.app[data-app="{LONG_NAME}"]').get_by_role("button", name="Delete").click()
    assert everywhere(board) == []
    board.keyboard.press("Escape")


def test_the_locked_page_lies_well(desk: Desk) -> None:
    stranger = desk.context(owner=False).new_page()
    stranger.goto(desk.process.address)
    expect(stranger.locator("#locked")).to_be_visible()
    assert everywhere(stranger) == []


BAD = """() => {
  const box = document.createElement("div");
  box.style.cssText = "position: absolute; left: 20px; top: 120px; width: 40px";
  box.style.whiteSpace = "nowrap";
  box.textContent = "text that lies on the board and leaves its box";
  document.body.append(box);
}"""


def test_the_measure_sees_what_is_wrong(desk: Desk) -> None:
    page = desk.owner()
    assert measured(page, 1280) == []
    page.evaluate(BAD)
    found = "\n".join(measured(page, 1280))
    assert "overlap" in found
    assert "text wider than its box div" in found
