"""Pictures of the wearer's page for the manual, made in a real Chromium: `python
docs/howto/gatekeeper_pictures.py`.

Starts `gazeveil serve` with a simulated tracker and a home folder of its own, walks through it as
an owner does, and writes `docs/figures/gatekeeper-*.png` with few colours, so that they stay small.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
sys.path.insert(0, str(ROOT))

from tests.support.gatekeeper_running import Process, free_port  # noqa: E402

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


def main() -> None:
    """Walk through it once."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("These pictures need Chromium.")
    with (
        tempfile.TemporaryDirectory() as folder,
        Process(Path(folder) / "home", free_port()) as service,
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
        app = browser.new_context().new_page()
        app.goto(f"{service.address}/health")
        app.evaluate(LISTEN, token)
        page.bring_to_front()
        page.locator("#live-apps figure").wait_for()
        picture(page, "asks", settle_ms=8000)
        page.set_viewport_size({"width": 390, "height": 844})
        picture(page, "phone", 1400)
        browser.close()


if __name__ == "__main__":
    main()
