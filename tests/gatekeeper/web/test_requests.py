"""What apps ask, on the owner's page: only the system's words, frozen at display, blocked after
three refusals; and in whose words the rest is said.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Route, expect

from tests.support.gatekeeper_browser import CONNECT, Desk


def ask(desk: Desk, token: str, **wish: Any) -> int:
    with desk.as_app(token) as app:
        return app.post("/v1/ask", json=wish).status_code


def waits(desk: Desk, token: str, want: str) -> bool:
    with desk.as_app(token) as app:
        return bool(app.post("/v1/ask", json={"want": want}).json()["state"] == "waiting")


def test_a_card_shows_the_systems_words_and_of_the_app_only_its_name(desk: Desk) -> None:
    token = desk.app("shop")
    # Text of the app's own, made to look like the system's.
    for text in ({"why": "Recommended"}, {"want": "safe and verified"}, {"sentence": "Safe."}):
        assert ask(desk, token, **{"want": "follow", **text}) == 422
    assert waits(desk, token, "follow")
    page = desk.owner()
    card = page.locator(".ask")
    device = desk.api.get("/v1/apps").json()
    told = next(one["sentence"] for one in device["presets"] if one["name"] == "follow")
    expect(card).to_contain_text(told)
    # The app's own name is quoted and in mono, and it is the only text of the app's.
    name = card.locator("h3 q")
    expect(name).to_have_text("shop")
    assert "mono" in name.evaluate("(e) => getComputedStyle(e).fontFamily").lower()
    left = re.sub(r"\d\d \w{3}, \d\d:\d\d:\d\d", "", card.inner_text(), count=1)
    for said in (
        told,
        "It could recognise you by it.",
        "Sharing is off: a yes counts from when you switch it on.",
        "shop",
        " asks",
        "Move an avatar's eyes.",
        "Yes, this visit",
        "Yes, until I stop it",
        "No",
    ):
        assert said in left, said
        left = left.replace(said, "", 1)
    assert left.strip() == "", left


def test_an_ask_swapped_between_reading_and_pressing_gets_nothing_that_was_not_read(
    desk: Desk,
) -> None:
    token = desk.app("swapper")
    assert waits(desk, token, "count")
    page = desk.owner()
    card = page.locator(".ask", has_text="swapper")
    expect(card).to_contain_text("Count looks.")
    # The app tries to change what it asks while the owner reads.
    assert ask(desk, token, want="study") == 409
    (waiting,) = desk.api.get("/v1/asks").json()["asks"]
    assert waiting["want"] == "count"
    # Another page of the owner says no, and the app asks for more under the eyes of this one.
    held: list[Route] = []
    page.route("**/v1/apps/swapper/grant", lambda route: held.append(route))
    card.get_by_role("button", name="Yes, this visit").click()
    page.wait_for_timeout(300)
    assert desk.api.delete(f"/v1/asks/{waiting['id']}").status_code == 204
    assert waits(desk, token, "study")
    held[0].continue_()
    expect(page.locator("#said")).to_contain_text("Nothing was allowed. Read it again.")
    assert desk.known("swapper")["state"] == "none"
    expect(card).to_contain_text("Take part in a study.")
    page.unroute_all()
    # What is read now is what is granted.
    card.get_by_role("button", name="Yes, until I stop it").click()
    expect(card).to_have_count(0)
    given = desk.known("swapper")
    assert (given["state"], given["grant"]["preset"], given["grant"]["lasts"]) == (
        "granted",
        "study",
        "until-stopped",
    )


def test_the_third_no_blocks_and_unblock_lets_it_ask_again(desk: Desk) -> None:
    token = desk.app("nagger")
    page = desk.owner()
    for turn in range(3):
        assert waits(desk, token, "follow")
        page.get_by_role("button", name="No: nagger").click()
        said = "can ask no more until you unblock it" if turn == 2 else "You said no to nagger."
        expect(page.locator("#said")).to_contain_text(said)
        expect(page.locator(".ask")).to_have_count(0)
    assert ask(desk, token, want="follow") == 403
    card = page.locator('.app[data-app="nagger"]')
    expect(card).to_contain_text("You said no three times.")
    expect(card.locator(".badge")).to_have_text("Blocked")
    card.get_by_role("button", name="Unblock").click()
    expect(card.get_by_role("button", name="Unblock")).to_have_count(0)
    assert waits(desk, token, "follow")
    expect(page.locator(".ask")).to_have_count(1)


def test_a_page_that_is_scrolled_down_leads_to_a_new_question(desk: Desk) -> None:
    token = desk.app("late")
    page = desk.owner(reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 700})
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    bar = page.locator("#asks-bar")
    expect(bar).to_be_hidden()
    assert waits(desk, token, "follow")
    expect(bar).to_have_text("A question waits for your decision")
    expect(bar).to_be_in_viewport()
    expect(page.locator("#said")).to_contain_text("late asks: move an avatar's eyes.")
    bar.click()
    expect(page.locator(".ask")).to_be_in_viewport()
    expect(bar).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Yes, this visit: late")).to_be_focused()


def test_the_dialog_offers_least_first_and_this_visit(desk: Desk) -> None:
    desk.app("newcomer")
    page = desk.owner()
    page.locator('.app[data-app="newcomer"]').get_by_role("button", name="Allow").click()
    dialog = page.locator("#grant-dialog")
    values = "(all) => all.map((e) => e.value)"
    presets = ["choose", "count", "follow", "study"]
    assert dialog.locator("input[name=preset]").evaluate_all(values) == presets
    assert dialog.locator("input[name=lasts]").evaluate_all(values) == ["visit", "until-stopped"]
    assert [
        dialog.locator(f"input[name={one}]:checked").input_value() for one in ("preset", "lasts")
    ] == ["choose", "visit"]
    dialog.locator("input[value=follow]").check()
    dialog.locator("input[value=until-stopped]").check()
    dialog.get_by_role("button", name="Allow").click()
    expect(dialog).to_be_hidden()
    given = desk.known("newcomer")["grant"]
    assert (given["preset"], given["lasts"]) == ("follow", "until-stopped")
    expect(page.locator('.app[data-app="newcomer"]')).to_contain_text("Until I stop it.")


LISTENING = f"(token) => {{ (async () => {{ {CONNECT} gaze.on('region', () => {{}}); }})(); }}"


def test_the_bar_of_what_is_in_use_names_the_app_and_stops_it(desk: Desk) -> None:
    desk.consent(True)
    page = desk.owner()
    token = desk.app("avatar", preset="follow", lasts="until-stopped")
    desk.blank().evaluate(LISTENING, token)
    page.bring_to_front()
    bar = page.locator("#in-use")
    expect(bar).to_contain_text("avatar")
    expect(bar).to_contain_text("which way your eyes look")
    expect(page).to_have_title(re.compile(r"● avatar in use"))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(bar).to_be_in_viewport()  # it stays in view wherever the page is scrolled
    bar.get_by_role("button", name="Stop avatar").click()
    expect(bar).to_be_hidden()
    expect(page).not_to_have_title(re.compile("in use"))
    assert desk.known("avatar")["state"] == "revoked"


def test_what_goes_wrong_is_said_in_a_plain_sentence(desk: Desk) -> None:
    desk.app("taken")
    page = desk.owner()
    page.click("#add")
    problem = page.locator("#add-dialog .problem")
    for name, origin, said in (
        ("not a name", "", "A name has up to 64 letters"),
        ("ok", "https://shop.example/page", "without a path"),
        ("taken", "", "There is an app of this name already"),
    ):
        page.fill("#add-dialog input[name=name]", name)
        page.fill("#add-dialog textarea", origin)
        page.click("#add-dialog button[type=submit]")
        expect(problem).to_contain_text(said)
        assert not re.search(r"\d{3}\b.*status|[{}]|_|body\.", problem.inner_text())

    def answered(**answer: Any) -> None:
        page.unroute_all()
        page.route(
            re.compile(r"/v1/apps$"),
            lambda route: (
                route.fulfill(**answer) if route.request.method == "POST" else route.fallback()
            ),
        )

    answered(
        status=422,
        json={
            "error": {
                "code": "value",
                "reason": "The value at 'body.name' is not allowed (string_pattern_mismatch).",
            }
        },
    )
    page.fill("#add-dialog input[name=name]", "fine")
    page.fill("#add-dialog textarea", "")
    page.click("#add-dialog button[type=submit]")
    expect(problem).to_have_text(
        "The device does not take this entry. Look at what was typed, then try again."
    )
    answered(status=500, body="<html>Traceback</html>")
    page.click("#add-dialog button[type=submit]")
    expect(problem).to_have_text(
        "That did not work. Try again; if it stays so, restart the service."
    )
    desk.mistakes[:] = [one for one in desk.mistakes if "status of 500" not in one]
