"""The owner's page by keyboard alone: from opening it to granting an ask, choosing how long,
switching off and deleting an app; the focus is always seen.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Page, Route, expect

from tests.support.gatekeeper_browser import CONNECT, Desk
from tests.support.gatekeeper_layout import measured

#: Stops on the way to a control at most.
MOST_STOPS = 60

#: What has the focus: its name, whether the ring around it is seen, and whether it is in the
#: window.
FOCUS = """() => {
  const e = document.activeElement;
  const shown = e.matches("input[type=radio]") ? e.closest(".choice") ?? e : e;
  const words = e.labels?.[0]?.querySelector("strong") ?? e.labels?.[0]?.querySelector("span");
  const label = words?.textContent.trim();
  const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
  return {
    name: e === document.body ? "" : e.getAttribute("aria-label") ?? label ?? e.textContent.trim(),
    ring: style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 3,
    seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
  };
}"""


def focused(page: Page) -> str:
    """The name of what has the focus, after seeing that it is seen."""
    found = page.evaluate(FOCUS)
    assert found["name"], "the focus is lost"
    assert found["ring"], f"{found['name']} has the focus and does not show it"
    return str(found["name"])


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until a control has the focus; every stop on the way shows it."""
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        if focused(page) == name:
            assert page.evaluate(FOCUS)["seen"], f"{name} has the focus outside the window"
            return
    raise AssertionError(f"{name} cannot be reached with {key}")


def asks(desk: Desk, name: str) -> None:
    with desk.as_app(desk.app(name)) as app:
        assert app.post("/v1/ask", json={"want": "follow"}).json()["state"] == "waiting"


def test_from_opening_the_page_to_a_grant_off_and_a_deletion(desk: Desk) -> None:
    asks(desk, "keys")
    page = desk.owner(reduced_motion="reduce")  # a page that glides is not where it will be
    expect(page.locator(".ask")).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip", (
        "the first stop leads past the head of the page"
    )
    # Sharing on, with Space.
    tab_to(page, "Sharing")
    page.keyboard.press("Space")
    expect(page.locator("#consent")).to_have_attribute("aria-checked", "true")
    # The question: two ways to say yes, and no.
    tab_to(page, "Yes, this visit: keys")
    tab_to(page, "Yes, until I stop it: keys")
    page.keyboard.press("Enter")
    card = page.locator('.app[data-app="keys"]')
    expect(card).to_contain_text("Allowed")
    expect(page.locator("#said")).to_contain_text("keys is allowed.")
    given = desk.known("keys")["grant"]
    assert (given["preset"], given["lasts"]) == ("follow", "until-stopped")
    # The question is gone: the keyboard goes on at the app. Escape leaves the dialog without a
    # decision, the focus is back on its button.
    expect(page.get_by_role("button", name="Change keys")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#grant-dialog input[name=preset]:checked")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#grant-dialog input[name=preset]:checked")).to_have_value("study")
    page.keyboard.press("Escape")
    expect(page.locator("#grant-dialog")).to_be_hidden()
    assert focused(page) == "Change keys"
    # How long, with the arrows.
    page.keyboard.press("Enter")
    tab_to(page, "This visit")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "Until I stop it"
    tab_to(page, "Allow")
    page.keyboard.press("Enter")
    expect(page.locator("#grant-dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Change keys")).to_be_focused()
    tab_to(page, "Stop keys")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Stopped")
    expect(
        page.get_by_role("button", name="Allow keys")
    ).to_be_focused()  # the focus stays in the card that was renewed
    # Off, backwards.
    tab_to(page, "Sharing", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#consent")).to_have_attribute("aria-checked", "false")
    assert desk.api.get("/v1/apps").json()["consent"] is False
    assert page.evaluate("document.activeElement.id") == "consent", "the switch keeps the focus"
    # Delete: a question first, with Cancel in the focus, so that Enter twice deletes nothing.
    tab_to(page, "Delete keys")
    page.keyboard.press("Enter")
    expect(page.locator("#question-dialog")).to_be_visible()
    assert focused(page) == "Cancel"
    page.keyboard.press("Enter")
    expect(page.locator("#question-dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Delete keys")).to_be_focused()
    assert focused(page) == "Delete keys"
    page.keyboard.press("Enter")
    tab_to(page, "Delete")
    page.keyboard.press("Enter")
    expect(card).to_have_count(0)
    expect(page.get_by_role("button", name="Add an app")).to_be_focused()  # no app is left
    assert [app["app"] for app in desk.api.get("/v1/apps").json()["apps"]] == []


def test_the_focus_goes_to_the_neighbour_of_a_card_that_vanishes(desk: Desk) -> None:
    for name in ("alpha", "beta", "gamma"):
        asks(desk, name)
    page = desk.owner(reduced_motion="reduce")  # a page that glides is not where it will be
    expect(page.locator(".ask")).to_have_count(3)
    tab_to(page, "No: beta")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="No: gamma")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="No: alpha")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#asks")).to_be_hidden()
    expect(page.get_by_role("button", name="Allow alpha")).to_be_focused()
    # Somebody else deletes the app whose card has the focus.
    desk.api.delete("/v1/apps/alpha")
    expect(page.get_by_role("button", name="Allow beta")).to_be_focused()


# --- The pages at the widths of a phone, a tablet and a desk: no overlap, nothing cut off, no
# sideways scrolling, by measured boxes.
# --------------------------------------------------------------------------------------------------


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
    page.evaluate("for (const card of document.querySelectorAll('details')) card.open = true")
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
    stranger = desk.context().new_page()
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
