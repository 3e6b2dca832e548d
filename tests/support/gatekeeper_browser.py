"""A real Chromium and the owner's desk in it, for tests of the pages: the service runs as a process
of its own with a simulated tracker.

A test module, or the conftest of a folder, imports the fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.chromium import chromium
from tests.support.gatekeeper_running import Process, free_port

WAIT_MS = 60_000
expect.set_options(
    timeout=WAIT_MS
)  # on a busy machine the first answer of a fresh process takes seconds

#: Runs in the owner's page: a token for a program that acts for the owner.
TOKEN = """async () => (await (await import("/dash/owner.js"))
  .owner("POST", "/v1/owner/tokens", { name: "desk" })).token"""

#: Chromium says every refusal on the console; refusals are what is tested here, mistakes of the
#: service are not.
REFUSAL = re.compile(r"status of (401|403|404|409|422|429) ")

#: Runs in the page: an app that connects with client.js.
CONNECT = (
    "const { connect } = await import('/client.js'); const gaze = connect(location.origin, { token"
    " });"
)


@contextmanager
def launched() -> Iterator[Browser]:
    """A Chromium that knows this machine alone. While it runs, no other may, and no event loop of
    asyncio, in this thread: a fixture ends it with its folder or module.
    """
    with sync_playwright() as playwright:
        # Any other host is unknown to this browser, so a page that needs one would fail.
        rules = (
            "--host-resolver-rules=MAP gaze.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1,"
            " EXCLUDE *.localhost"
        )
        made = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", rules],
        )
        yield made
        made.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as made:
        yield made


@pytest.fixture(scope="package")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("browser") / "home", free_port()) as started:
        yield started


class SignedIn:
    """The owner's browser after the one-time link was opened in it; its key stays in it. A program
    of the owner has a token.
    """

    def __init__(self, browser: Browser, process: Process) -> None:
        self.context = browser.new_context()
        self.context.set_default_timeout(WAIT_MS)
        page = self.context.new_page()
        page.goto(process.link)
        expect(page.locator("#board")).to_be_visible(timeout=WAIT_MS)
        assert page.url == f"{process.address}/"
        self.token = str(page.evaluate(TOKEN))
        page.close()


@pytest.fixture(scope="package")
def signed_in(browser: Browser, process: Process) -> Iterator[SignedIn]:
    made = SignedIn(browser, process)
    yield made
    made.context.close()


class Desk:
    """The owner's browser and a direct line to the service to set things up quickly."""

    def __init__(self, browser: Browser, process: Process, signed_in: SignedIn) -> None:
        self.browser, self.process, self.signed_in = browser, process, signed_in
        self.api = self.as_app(signed_in.token)
        self.contexts: list[BrowserContext] = []
        self.mistakes: list[str] = []

    def context(self, **options: Any) -> BrowserContext:
        """Another browser, in which nobody is signed in."""
        context = self.browser.new_context(**options)
        context.set_default_timeout(WAIT_MS)
        self.contexts.append(context)
        return context

    def owner_page(self) -> Page:
        """An empty page of the owner's browser."""
        return self.watch(self.signed_in.context.new_page())

    def watch(self, page: Page) -> Page:
        page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.mistakes.append(message.text)
                if message.type == "error" and not REFUSAL.search(message.text)
                else None
            ),
        )
        return page

    def owner(self, **media: Any) -> Page:
        page = self.owner_page()
        page.emulate_media(**media)
        page.goto(self.process.address)
        expect(page.locator("#board")).to_be_visible(timeout=WAIT_MS)
        return page

    def app(self, name: str, **grant: Any) -> str:
        """A new app; with a grant if one is named."""
        answer = self.api.post("/v1/apps", json={"name": name, "origins": []})
        assert answer.status_code == 201, answer.text
        if grant:
            self.grant(name, **grant)
        return str(answer.json()["token"])

    def as_app(self, token: str) -> httpx.Client:
        """The app's own line to the service."""
        return httpx.Client(
            base_url=self.process.address, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def grant(self, name: str, **grant: Any) -> None:
        given = self.api.post(f"/v1/apps/{name}/grant", json=grant)
        assert given.status_code == 200, given.text

    def consent(self, on: bool) -> None:
        assert self.api.post("/v1/consent", json={"on": on}).status_code == 200

    def known(self, name: str) -> dict[str, Any]:
        """What the service says about an app."""
        return next(
            dict(app) for app in self.api.get("/v1/apps").json()["apps"] if app["app"] == name
        )

    def streams(self, name: str) -> list[Any]:
        """What the service says an app has open."""
        return list(self.known(name)["streams"])

    def blank(self) -> Page:
        """A page of the device's own origin on which an app's code can run."""
        page = self.watch(self.context().new_page())
        page.goto(f"{self.process.address}/health")
        return page

    def clear(self) -> None:
        """As the device came: sharing off, no app, no ask."""
        self.consent(False)
        for app in self.api.get("/v1/apps").json()["apps"]:
            self.api.delete(f"/v1/apps/{app['app']}")
        for ask in self.api.get("/v1/asks").json()["asks"]:
            self.api.delete(f"/v1/asks/{ask['id']}")

    def close(self) -> None:
        for page in self.signed_in.context.pages:
            page.close()
        for context in self.contexts:
            context.close()
        self.api.close()


@pytest.fixture
def desk(browser: Browser, process: Process, signed_in: SignedIn) -> Iterator[Desk]:
    made = Desk(browser, process, signed_in)
    made.clear()
    yield made
    made.close()
    assert made.mistakes == [], made.mistakes
