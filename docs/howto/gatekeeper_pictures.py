"""Pictures of the owner's page and the demo apps for the manual, made in a real Chromium: `python
docs/howto/gatekeeper_pictures.py`.

Starts `gazeveil serve` with a simulated tracker and a home folder of its own, walks through it as
an owner does, and writes `docs/figures/gatekeeper-*.png` with few colours, so that they stay small.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

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
        context = browser.new_context(viewport={"width": 1240, "height": 860})
        page = context.new_page()
        page.goto(service.link)
        page.wait_for_selector("#board:not([hidden])")
        page.click("#demo")
        with context.expect_page() as opened:
            page.click("text=Open the demo")
        demo = opened.value
        page.bring_to_front()
        page.locator(".ask").nth(3).wait_for()
        picture(page, "asks")
        page.locator(".ask", has_text="gallery-analytics").get_by_role(
            "button", name="Decide"
        ).click()
        picture(page, "dialog")
        page.keyboard.press("Escape")
        page.click("#consent")
        for _ in range(6):
            page.locator(".ask button.primary").first.click()
            page.click("#grant-dialog button[type=submit]")
            page.wait_for_selector("#grant-dialog", state="hidden")
            page.wait_for_timeout(500)
        demo.bring_to_front()
        picture(demo, "demo", 1960, settle_ms=20_000)
        picture(page, "dashboard", 1240)
        page.emulate_media(color_scheme="dark")
        picture(page, "dark", 800)
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 360, "height": 740})
        picture(page, "phone", 1480)
        browser.close()
    moves(chromium)


def moves(chromium: str) -> None:
    """The two apps that live by saccades, on a device of the fine level."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Process(Path(folder) / "home", free_port(), GAZEVEIL_LEVEL="fine") as service,
        sync_playwright() as playwright,
    ):
        owner = service.owner()
        tokens = {}
        for part, name in (("walking", "walking-on"), ("guidance", "led-gallery")):
            tokens[part] = owner.post("/v1/apps", json={"name": name, "origins": []}).json()[
                "token"
            ]
            owner.post(f"/v1/apps/{name}/grant", json={"grant": {"scopes": ["events"]}})
        owner.post("/v1/consent", json={"on": True})
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1240, "height": 860}).new_page()
        fragment = "&".join(f"{part}={token}" for part, token in tokens.items())
        page.goto(f"{service.address}/demo/#{fragment}")
        page.locator("input[name=show]").check()
        picture(page, "moves", 880, settle_ms=30_000)
        browser.close()


if __name__ == "__main__":
    main()
