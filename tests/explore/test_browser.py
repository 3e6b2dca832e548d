"""The page in Chromium: narrow and wide, by keyboard, light and dark, served and saved."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, Page, expect

from gazeveil.explore.board import Board
from gazeveil.explore.server import ExploreServer, save
from tests.support.exploring import HOSTILE, board  # noqa: F401
from tests.support.gatekeeper_browser import launched
from tests.support.gatekeeper_layout import measured


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def links(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    path = save(board, tmp_path_factory.mktemp("saved") / "page.html")
    with ExploreServer(board) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"served": server.link, "saved": path.as_uri()}
        server.shutdown()


@pytest.fixture
def opened(
    browser: Browser, links: dict[str, str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    kind, width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, mistakes = context.new_page(), []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.on("console", lambda message: mistakes.append(message.text))
    page.on("dialog", lambda dialog: mistakes.append("a name ran as a script"))
    page.goto(links[kind])
    expect(page.locator("#headline")).to_contain_text("of 4 people")
    yield page
    context.close()
    assert mistakes == []


@pytest.mark.parametrize(
    "opened",
    [("served", 360, "light"), ("served", 1280, "dark"), ("saved", 360, "dark")],
    indirect=True,
)
def test_the_page_lies_well(opened: Page) -> None:
    width = opened.viewport_size["width"]  # type: ignore[index]
    if opened.locator("#group").is_visible():
        opened.locator("#grouped").click()
        expect(opened.locator("#people")).to_contain_text(HOSTILE)
    assert measured(opened, width) == []
    sizes = opened.locator("svg text").evaluate_all(
        "(all) => all.map((t) => t.getBoundingClientRect().height)"
    )
    assert min(sizes) > 9, "letters in pictures can be read"
    dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(254, 254, 254)")


@pytest.mark.parametrize(
    "opened", [("served", 1280, "light"), ("saved", 1280, "light")], indirect=True
)
def test_everything_is_reached_and_moved_by_keyboard(opened: Page) -> None:
    opened.locator("#mechanism").focus()
    opened.keyboard.press("Tab")
    expect(opened.locator("#value")).to_be_focused()
    expect(opened.locator("#shown")).to_have_text("1")
    released = opened.locator("#trace path.after").first
    recorded = opened.locator("#trace path.before").first
    before, raw = released.get_attribute("d"), recorded.get_attribute("d")
    opened.keyboard.press("ArrowRight")
    expect(opened.locator("#shown")).to_have_text("10")
    expect(opened.locator("#value")).to_have_attribute("aria-valuetext", "sigma_deg 10")
    expect(released).not_to_have_attribute("d", str(before))
    expect(opened.locator("#promise")).to_contain_text("recording")
    expect(opened.locator("circle.rate")).to_have_count(2)
    assert raw, "the recorded trace is drawn"
    right, left, _, up, down, *_ = opened.locator("#trace text").all_text_contents()
    assert int(right[:-1]) > int(left[:-1]), "larger values to the right are at the top"
    assert int(up[:-1]) < int(down[:-1]), "y grows downwards"
    opened.locator("#mechanism").focus()
    opened.keyboard.press("m")
    expect(opened.locator("#parameter")).to_have_text("piece_s")
    expect(opened.locator("#headline")).to_contain_text("pieces")


@pytest.mark.parametrize("opened", [("served", 1280, "light")], indirect=True)
def test_people_are_chosen(opened: Page) -> None:
    opened.locator("#grouped").click()
    opened.locator("#people input").nth(3).uncheck()
    expect(opened.locator("#grouped")).to_have_text("People: 3 of 4")
    expect(opened.locator("#headline")).to_contain_text("of 3 people")
    for i in range(3):
        opened.locator("#people input").nth(i).uncheck()
    expect(opened.locator("#state")).to_contain_text("Nobody is chosen")


def test_without_the_secret_the_page_says_what_to_do(
    browser: Browser, links: dict[str, str]
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(links["served"].partition("#")[0])
        expect(page.locator("#about")).to_contain_text("Open the link")
