"""The owner's page by keyboard alone: from opening it to granting an ask, choosing how long,
switching off and deleting an app; the focus is always seen.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Page, expect

from tests.support.gatekeeper_browser import Desk, browser, desk, process, signed_in  # noqa: F401

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


def test_a_token_is_made_and_read_by_keyboard(desk: Desk) -> None:
    page = desk.owner(reduced_motion="reduce")  # a page that glides is not where it will be
    tab_to(page, "Add an app")
    page.keyboard.press("Enter")
    assert focused(page) == "Name"
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    expect(page.locator("#token-dialog")).to_be_visible()
    assert page.inner_text("#token-dialog .secret").startswith("gv_app_")
    tab_to(page, "Done")
    page.keyboard.press("Enter")
    expect(page.locator("#token-dialog")).to_be_hidden()
    assert focused(page), "the focus is somewhere"
