"""What apps ask, on the owner's page: only the system's words, frozen at display, blocked after
three dismissals; and in whose words the rest is said.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Page, expect

from tests.support.gatekeeper_browser import Desk, browser, desk, process, signed_in  # noqa: F401


def ask(desk: Desk, token: str, **wish: Any) -> int:
    with desk.as_app(token) as app:
        return app.post("/v1/ask", json=wish).status_code


def open_dialog(page: Page, app: str) -> Any:
    page.locator(".ask", has_text=app).get_by_role("button", name="Decide").click()
    return page.locator("#grant-dialog")


def test_a_card_shows_the_systems_words_and_of_the_app_only_its_name(desk: Desk) -> None:
    token = desk.app("shop")
    # The attack of the issue: text of the app's own, made to look like the system's.
    for text in (
        {"why": "Recommended"},
        {"mechanisms": ["only the tile, verified"]},
        {"purpose": "Recommended"},
        {"scopes": ["safe and verified"]},
    ):
        assert ask(desk, token, **{"preset": "avatar", "purpose": "avatar", **text}) == 422
    assert ask(desk, token, preset="avatar", purpose="avatar") == 202
    page = desk.owner()
    card = page.locator(".ask")
    device = desk.api.get("/v1/apps").json()
    means = next(one["means"] for one in device["presets"] if one["name"] == "avatar")
    purpose = next(one["means"] for one in device["purposes"] if one["code"] == "avatar")
    expect(card.locator("dd").nth(0)).to_contain_text(means)
    expect(card.locator("dd").nth(1)).to_contain_text(purpose)
    expect(card.locator("dd").nth(1)).to_contain_text("Nobody has checked this.")
    # The app's own name is quoted and in mono, and it is the only text of the app's.
    name = card.locator("h3 q")
    expect(name).to_have_text("shop")
    assert "mono" in name.evaluate("(e) => getComputedStyle(e).fontFamily").lower()
    left = card.inner_text()
    for said in (
        means,
        purpose,
        "Nobody has checked this.",
        "shop",
        "asks",
        "It would get",
        "It says why",
        "Eyes of an avatar.",
        "Decide…",
        "Dismiss",
    ):
        assert said in left, said
        left = left.replace(said, "", 1)
    assert re.fullmatch(r"\s*\d\d \w{3}, \d\d:\d\d:\d\d\s*", left), left


def test_an_ask_swapped_between_reading_and_pressing_gets_nothing_that_was_not_read(
    desk: Desk,
) -> None:
    token = desk.app("swapper")
    assert ask(desk, token, preset="aoi-analytics", purpose="count-looks") == 202
    page = desk.owner()
    dialog = open_dialog(page, "swapper")
    expect(dialog.locator("input[name=preset]:checked")).to_have_value("aoi-analytics")
    # The app tries to change what it asks while the owner reads.
    assert ask(desk, token, preset="research", purpose="study") == 409
    waiting = desk.api.get("/v1/asks").json()["asks"]
    assert [one["preset"] for one in waiting] == ["aoi-analytics"]
    # It gets rid of the ask that was read (here another page of the owner dismisses it) and asks
    # for more under the open dialog.
    assert desk.api.delete(f"/v1/asks/{waiting[0]['id']}").status_code == 204
    assert ask(desk, token, preset="research", purpose="study") == 202
    dialog.get_by_role("button", name="Grant").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#said")).to_contain_text("Nothing was granted. Read it again.")
    assert desk.known("swapper")["state"] == "none"
    expect(page.locator(".ask")).to_contain_text("Research study")
    expect(page.get_by_role("button", name="Decide on swapper")).to_be_focused()
    # What is read now is what is granted.
    dialog = open_dialog(page, "swapper")
    expect(dialog.locator("input[name=preset]:checked")).to_have_value("research")
    dialog.locator("input[value=aoi-analytics]").check()
    dialog.get_by_role("button", name="Grant").click()
    expect(dialog).to_be_hidden()
    given = desk.known("swapper")
    assert (given["state"], given["grant"]["preset"], given["grant"]["lasts"]) == (
        "granted",
        "aoi-analytics",
        "once",
    )


def test_the_third_dismissal_blocks_and_unblock_lets_it_ask_again(desk: Desk) -> None:
    token = desk.app("nagger")
    page = desk.owner()
    for turn in range(3):
        assert ask(desk, token, preset="avatar", purpose="avatar") == 202
        page.get_by_role("button", name="Dismiss what nagger asks").click()
        said = (
            "can ask no more until you unblock it" if turn == 2 else "Dismissed what nagger asks."
        )
        expect(page.locator("#said")).to_contain_text(said)
        expect(page.locator(".ask")).to_have_count(0)
    assert ask(desk, token, preset="avatar", purpose="avatar") == 403
    card = page.locator('.app[data-app="nagger"]')
    expect(card).to_contain_text(
        "Its asks were dismissed three times. It can ask no more until you unblock it."
    )
    expect(card.locator(".badge")).to_have_text("Blocked")
    card.get_by_role("button", name="Unblock").click()
    expect(card.get_by_role("button", name="Unblock")).to_have_count(0)
    assert ask(desk, token, preset="avatar", purpose="avatar") == 202
    expect(page.locator(".ask")).to_have_count(1)


def test_the_answer_to_a_press_stays_when_news_comes_after_it(desk: Desk) -> None:
    token = desk.app("early")
    page = desk.owner()
    assert ask(desk, token, preset="avatar", purpose="avatar") == 202
    page.get_by_role("button", name="Dismiss what early asks").click()
    said = page.locator("#said")
    expect(said).to_contain_text("Dismissed what early asks.")
    # The next ask is news of the same second; it once took the place of the answer.
    assert ask(desk, desk.app("late"), preset="avatar", purpose="avatar") == 202
    expect(said).to_contain_text("late asks for")
    expect(said).to_contain_text("Dismissed what early asks.")
    expect(said).to_be_empty()


def test_the_dialog_offers_least_first_and_once(desk: Desk) -> None:
    desk.app("newcomer")
    page = desk.owner()
    page.locator('.app[data-app="newcomer"]').get_by_role("button", name="Grant").click()
    dialog = page.locator("#grant-dialog")
    values = "(all) => all.map((e) => e.value)"
    presets = ["select", "aoi-analytics", "avatar", "research", ""]
    assert dialog.locator("input[name=preset]").evaluate_all(values) == presets
    assert dialog.locator("input[name=lasts]").evaluate_all(values) == [
        "once",
        "in-use",
        "tonight",
        "for-good",
    ]
    assert [
        dialog.locator(f"input[name={one}]:checked").input_value() for one in ("preset", "lasts")
    ] == ["select", "once"]
    assert dialog.locator(".lasts strong").all_inner_texts() == [
        "Once",
        "While in use",
        "Until tonight",
        "For good",
    ]
    dialog.locator("input[value=avatar]").check()
    dialog.locator("input[value=tonight]").check()
    dialog.get_by_role("button", name="Grant").click()
    expect(dialog).to_be_hidden()
    given = desk.known("newcomer")["grant"]
    assert (given["preset"], given["lasts"]) == ("avatar", "tonight")
    expect(page.locator('.app[data-app="newcomer"]')).to_contain_text("Lasts: until tonight. Ends ")


def test_a_spent_budget_is_called_spent_and_not_granted(desk: Desk) -> None:
    desk.consent(True)
    rule = {
        "name": "kaleido-uniform",
        "parameters": {"epsilon": ["<=", "4"], "w": [">=", "30"], "r_deg": [">=", "1"]},
    }
    token = desk.app(
        "spender",
        grant={"scopes": ["samples"], "mechanisms": [rule], "budgets": {"epsilon": "4"}},
        lasts="for-good",
    )
    page = desk.owner()
    card = page.locator('.app[data-app="spender"]')
    expect(card.locator(".badge")).to_have_text("Granted")
    assert "ε" not in card.inner_text(), "numbers are behind the details"
    card.get_by_text("Details").click()
    expect(card).to_contain_text(re.compile(r"0 of 4 ε spent today"))
    blank = desk.blank()
    blank.evaluate(
        """async ([token, mechanism]) => {
          const { connect } = await import('/client.js');
          const gaze = await connect(location.origin, { token });
          try {
            for await (const batch of gaze.samples({ mechanism })) ;
          } catch (error) { return error.code; }
        }""",
        [token, "kaleido-uniform:epsilon=4,w=30,r_deg=1"],
    )
    expect(card.locator(".badge")).to_have_text("Spent")
    expect(card.locator(".badge")).to_have_class("badge warn")
    expect(card).to_contain_text("Its budget is used up.")
    expect(card.locator("details")).to_have_attribute(
        "open", ""
    )  # what was unfolded stays so while the card is renewed


def test_the_bar_of_what_is_in_use_names_the_app_and_stops_it(desk: Desk) -> None:
    desk.consent(True)
    page = desk.owner()
    demo = desk.demo(page)
    page.bring_to_front()
    desk.grant("foveated-gallery", preset="research", lasts="for-good")
    bar = page.locator("#in-use")
    expect(bar).to_contain_text("foveated-gallery")
    expect(bar).to_contain_text("protected samples")
    expect(page).to_have_title(re.compile(r"● foveated-gallery in use"))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(bar).to_be_in_viewport()  # it stays in view wherever the page is scrolled
    bar.get_by_role("button", name="Stop foveated-gallery").click()
    expect(bar).to_be_hidden()
    expect(page).not_to_have_title(re.compile("in use"))
    expect(demo.locator('.panel[aria-label="Foveated gallery"]')).to_have_attribute(
        "data-code", "revoked"
    )
    assert desk.known("foveated-gallery")["state"] == "revoked"


def test_the_audit_log_shows_the_owner_names_and_what_was_granted(desk: Desk) -> None:
    desk.app("reader", preset="avatar", lasts="in-use")
    page = desk.owner()
    row = page.locator("#audit-rows tr", has_text="gets: ").first
    expect(row).to_contain_text("reader")
    expect(row.locator(".hash")).to_have_text(re.compile(r"^[0-9a-f]{8}$"))
    for said in ("the tile looked at", "while in use"):
        expect(row).to_contain_text(said)
    assert not re.search(r"[{}\[\]]", page.locator("#audit-rows").inner_text()), "no JSON"


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
