"""The switch shows what is in force: with the service killed, hung or restarted, with the database
stopped while OFF is pressed, and while a call runs.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, Page, Route, expect

from tests.support import gatekeeper_browser
from tests.support.gatekeeper_browser import Desk
from tests.support.gatekeeper_running import Process, free_port
from tests.support.postgres import Server, postgres, quick_folder  # noqa: F401
from tests.support.stalls import SteadyClock

GONE = "The service does not answer. Nothing can be sent while it is gone."
UNWRITTEN = "Off. Not written yet: the database does not answer."

#: What the page may take to say that nobody answers.
SOON_S = 3.0


@pytest.fixture
def killed(browser: Browser, tmp_path: Path) -> Iterator[Desk]:
    """A service of its own that a test may kill."""
    with Process(tmp_path / "home", free_port()) as process:
        made = Desk(browser, process, gatekeeper_browser.SignedIn(browser, process))
        yield made
        made.close()


def switch(page: Page) -> tuple[str | None, str | None, str]:
    """What the switch shows: its state, what a screen reader is told, and its word."""
    button = page.locator("#consent")
    return (
        button.get_attribute("data-state"),
        button.get_attribute("aria-checked"),
        page.locator("#consent-word").inner_text(),
    )


def test_a_service_that_is_killed_is_said_to_be_gone_and_nothing_is_shown_as_known(
    killed: Desk,
) -> None:
    killed.consent(True)
    killed.app("shop", preset="follow", lasts="until-stopped")
    page = killed.owner_page()
    with page.expect_event("websocket", timeout=gatekeeper_browser.WAIT_MS) as opened:
        page.goto(killed.process.address)
    expect(page.locator("#consent")).to_have_attribute("data-state", "on")
    # A page whose live view has begun hears of the end at once; before, it looks every two seconds.
    opened.value.wait_for_event("framereceived", timeout=gatekeeper_browser.WAIT_MS)
    killed.process.kill(signal.SIGKILL)
    with SteadyClock() as clock:
        expect(page.locator("#consent-means")).to_have_text(GONE)
        assert clock() < SOON_S
    assert switch(page) == ("unknown", None, "?")
    expect(page.locator("#consent")).to_have_accessible_name("Sharing is not known. Switch off")
    expect(page.locator('.app[data-app="shop"] .badge')).to_have_text("Not known")
    expect(page.locator("#in-use")).to_be_hidden()
    # Pressing takes nothing for granted: it is still not known, and the sentence stays.
    page.click("#consent")
    expect(page.locator("#consent")).to_have_attribute("data-state", "unknown")
    expect(page.locator("#consent-means")).to_have_text(GONE)
    killed.process.start()
    # The page finds out by itself, whether the session outlives a restart or not.
    expect(page.locator('#locked:visible, #consent[data-state="on"]:visible')).to_be_visible()


def test_a_service_that_hangs_is_not_said_to_be_gone(killed: Desk) -> None:
    killed.consent(True)
    page = killed.owner_page()
    page.goto(killed.process.address)
    expect(page.locator("#consent")).to_have_attribute("data-state", "on")
    killed.process.process.send_signal(signal.SIGSTOP)
    try:
        # It may go on at any moment, so nothing is said about what is sent.
        expect(page.locator("#consent-means")).to_contain_text("It is not known what is sent now.")
        assert switch(page)[:2] == ("unknown", None)
    finally:
        killed.process.process.send_signal(signal.SIGCONT)
    expect(page.locator("#consent")).to_have_attribute("data-state", "on")


def test_while_a_call_runs_the_switch_is_pending_and_a_refusal_leaves_what_is_in_force(
    desk: Desk,
) -> None:
    page = desk.owner()
    expect(page.locator("#consent")).to_have_attribute("data-state", "off")
    held: list[Route] = []
    page.route("**/v1/consent", lambda route: held.append(route))
    page.click("#consent")
    expect(page.locator("#consent")).to_have_attribute("data-state", "pending")
    assert switch(page) == ("pending", "false", "…"), "in force is what was before the press"
    expect(page.locator("#consent")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#consent-means")).to_contain_text(
        "Switching on. Off: no app gets anything"
    )
    for _ in range(1200):
        if held:
            break
        page.wait_for_timeout(50)
    held[0].fulfill(
        status=503,
        json={
            "error": {
                "code": "disk",
                "reason": "The policy file cannot be written. Free some space, then try again.",
            }
        },
    )
    expect(page.locator("#consent")).to_have_attribute("data-state", "off")
    expect(page.locator("#said")).to_contain_text("Free some space, then try again.")
    # A press while it is switched on takes away at once: the later press counts, whatever order
    # answers come in.
    page.click("#consent")
    page.click("#consent")
    for _ in range(1200):  # a press is over before its request has been sent
        if len(held) == 3:
            break
        page.wait_for_timeout(50)
    assert [route.request.post_data_json for route in held[1:]] == [{"on": True}, {"on": False}]
    held[2].fulfill(json={"on": False, "written": True})
    held[1].fulfill(json={"on": True, "written": True})
    expect(page.locator("#consent")).to_have_attribute("data-state", "off")
    desk.mistakes[:] = [one for one in desk.mistakes if "status of 503" not in one]


def test_off_pressed_with_the_database_stopped_is_in_force_and_says_what_is_not_written(
    browser: Browser, tmp_path: Path, postgres: Server
) -> None:
    with Process(tmp_path / "home", free_port(), GAZEVEIL_DATABASE=postgres.fresh()) as process:
        desk = Desk(browser, process, gatekeeper_browser.SignedIn(browser, process))
        desk.consent(True)
        owner = desk.owner_page()
        owner.goto(process.address)
        postgres.stop("immediate")
        try:
            with SteadyClock() as clock:
                owner.click("#consent")
                expect(owner.locator("#consent-means")).to_have_text(UNWRITTEN)
                assert clock() < SOON_S
            assert switch(owner) == ("off", "false", "Off")
            expect(owner.locator("#consent-means")).to_have_text(UNWRITTEN)
        finally:
            postgres.start()
        expect(owner.locator("#consent-means")).to_have_text(
            re.compile("^Off: no app gets anything")
        )
        assert desk.api.get("/v1/apps").json()["consent"] is False
        # Without a press: sharing stays on, and the page says that nothing is given.
        owner.click("#consent")
        expect(owner.locator("#consent")).to_have_attribute("data-state", "on")
        postgres.stop("immediate")
        try:
            expect(owner.locator("#consent-means")).to_contain_text(
                "The database does not answer. Nothing is given while it is silent."
            )
            assert switch(owner) == ("on", "true", "On")
        finally:
            postgres.start()
        expect(owner.locator("#consent-means")).not_to_contain_text("The database does not answer.")
        desk.close()
