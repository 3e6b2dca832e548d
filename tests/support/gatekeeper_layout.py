"""Whether a page lies well: measured boxes in Chromium, nothing judged by eye. The measure itself
is `gatekeeper_layout.js`.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

#: Pixels by which boxes may touch: lines of text have a descent that letters seldom use.
SLACK_PX = 2

MEASURE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def measured(page: Page, width: int, height: int = 800) -> list[str]:
    """What is wrong with the page at a width, after everything has come to rest."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(120)
    answer = page.evaluate(MEASURE, SLACK_PX)
    assert answer["measured"] > 5, "the measure saw next to nothing"
    return [f"{width} px: {one}" for one in answer["found"]]
