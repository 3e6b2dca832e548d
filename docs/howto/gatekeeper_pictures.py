"""Pictures of the wearer's page for the manual, made in a real Chromium: `python
docs/howto/gatekeeper_pictures.py`.

Starts `gazeveil serve` with a home folder of its own and a tracker that goes before the last
picture, walks through it as an owner does, and writes `docs/figures/gatekeeper-*.png` with few
colours, so that they stay small.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
sys.path.insert(0, str(ROOT))

from tests.support.gatekeeper_running import Process, Running, TrackerTalk, free_port  # noqa: E402

#: Colours of a picture.
COLOURS = 160


def picture(page: Page, name: str, height: int | None = None, settle_ms: int = 1500) -> None:
    """Write what the page shows, from its top, `height` pixels of it."""
    page.bring_to_front()
    if page.locator("#said").count():
        expect(page.locator("#said")).to_be_empty(timeout=15_000)
    page.wait_for_timeout(settle_ms)
    path = FIGURES / f"gatekeeper-{name}.png"
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    # A bar that sticks to the window would lie across the middle of a picture that is taller than
    # it.
    page.evaluate("document.querySelector('.in-use')?.style.setProperty('position', 'static')")
    size = page.viewport_size
    assert size is not None
    page.screenshot(
        path=path,
        full_page=height is not None,
        clip={"x": 0, "y": 0, "width": size["width"], "height": height} if height else None,
    )
    with Image.open(path) as made:
        made.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")


#: What asks and what listens while the pictures are taken.
LISTEN = """(token) => {
  import("/client.js").then(({ connect }) => {
    connect(location.origin, { token }).on("region", () => {});
  });
}"""


#: A call of the owner, which the page signs.
POST = """async ([path, body]) =>
  (await import("/dash/owner.js")).owner("POST", path, body)"""


@contextmanager
def looking(service: Process) -> Iterator[None]:
    """A tracker whose wearer looks from place to place, until it goes."""
    token = (service.home / "tracker-token").read_text().strip()
    stop = threading.Event()
    with Running(service.address, "").talk(token, "/v1/tracker") as talk:
        tracker = TrackerTalk(talk, 120.0)

        def look() -> None:
            for x, y in itertools.cycle(((180, 90), (150, 80), (205, 100), (190, 70), (165, 110))):
                tracker.look(x, y, 0.6)
                if stop.wait(0.6):
                    return

        thread = threading.Thread(target=look)
        thread.start()
        yield
        stop.set()
        thread.join()


def main() -> None:
    """Walk through it once."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("These pictures need Chromium.")
    with (
        tempfile.TemporaryDirectory() as folder,
        Process(Path(folder) / "home", free_port(), GAZEVEIL_TRACKER="websocket") as service,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1240, "height": 620}).new_page()
        page.goto(service.link)
        page.locator("#board").wait_for()

        def post(path: str, body: dict[str, object]) -> dict[str, str]:
            return page.evaluate(POST, [path, body])

        post("/v1/consent", {"on": True})
        token = post("/v1/apps", {"name": "avatar", "origins": []})["token"]
        post("/v1/apps/avatar/grant", {"preset": "follow", "lasts": "until-stopped"})
        for origin, want in (("https://shop.example", "choose"), ("https://game.example", "count")):
            httpx.post(f"{service.address}/v1/ask", headers={"Origin": origin}, json={"want": want})
        with looking(service):
            app = browser.new_context().new_page()
            app.goto(f"{service.address}/health")
            app.evaluate(LISTEN, token)
            page.bring_to_front()
            page.locator("#live-apps figure").wait_for()
            picture(page, "asks", settle_ms=8000)
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.locator("#in-use")).to_contain_text("Paused: the tracker is gone")
        picture(page, "phone", 1400)
        browser.close()


if __name__ == "__main__":
    main()
