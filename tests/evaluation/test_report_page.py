"""The report as a page: that it stands alone, and how it looks in a real browser.

Which releases another one beats, with and without the luck of people and stimuli, and the
picture of all utilities.
"""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import GazeveilError
from gazeveil.evaluation.report import write_report
from gazeveil.evaluation.results import Results
from gazeveil.plot.paths import INKS
from tests.evaluation.report_page import Page
from tests.support.chromium import chromium

# --- that it stands alone
# --------------------------------------------------------------------------------------------------


def test_the_page_asks_nobody_for_anything_and_runs_no_script(written: Path, page: Page) -> None:
    assert not page.of("script", "iframe", "object", "embed", "link", "img", "form", "base")
    for _, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"src", "href", "xlink:href", "data", "action"}:
                assert value.startswith(("#", "data:image/png")) or re.fullmatch(
                    r"[a-z0-9-]+\.png", value
                ), value
    style = re.search(r"<style>(.*?)</style>", written.read_text(encoding="utf-8"), re.DOTALL)
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)
    assert any(
        a.get("http-equiv") == "Content-Security-Policy"
        and "default-src 'none'" in str(a["content"])
        for a in page.of("meta")
    )
    assert written.stat().st_size < 3_000_000


def test_every_picture_lies_beside_the_page_as_png(written: Path, page: Page) -> None:
    names = {str(a["href"]) for a in page.of("a") if str(a["href"]).endswith(".png")}
    expected = {
        "identification.png",
        "front-1.png",
        "front-2.png",
        "gallery.png",
        "traces.png",
        "maps.png",
        "adaptive.png",
    }
    assert names == expected == {p.name for p in written.parent.glob("*.png")}
    for name in names:
        assert (written.parent / name).read_bytes().startswith(b"\x89PNG")


def test_pictures_have_words_headings_go_in_order_and_tables_have_captions(page: Page) -> None:
    pictures = [a for a in page.of("svg") if a.get("role") == "img"]
    assert len(pictures) == 7 + 6
    assert all(len(str(a.get("aria-label"))) > 15 for a in pictures)
    assert len(page.of("svg")) == len(pictures)
    levels = [int(t[1]) for t, _ in page.elements if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert len(page.of("caption")) == len(page.of("table")) > 4
    assert all(a.get("scope") in {"col", "row"} for a in page.of("th"))
    assert page.of("html")[0]["lang"] == "en"
    assert any(a.get("name") == "viewport" for a in page.of("meta"))


def test_names_inside_the_page_are_unique_and_links_lead_somewhere(page: Page) -> None:
    names = [a["id"] for _, a in page.elements if "id" in a]
    assert len(names) == len(set(names))
    for _, attributes in page.elements:
        for name in ("href", "xlink:href"):
            if str(attributes.get(name, "")).startswith("#"):
                assert str(attributes[name])[1:] in names
        for value in attributes.values():
            for target in re.findall(r"url\(#([^)]+)\)", value or ""):
                assert target in names


def test_the_same_results_give_the_same_bytes(
    study: Results, written: Path, tmp_path: Path
) -> None:
    again = write_report(study, tmp_path / "again.html", with_raw=True)
    assert again == tmp_path / "again.html"
    assert again.read_bytes() == written.read_bytes()


def _luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("side", [0, 1])
def test_every_ink_that_text_is_set_in_can_be_read_on_its_paper(side: int) -> None:
    for name, pair in INKS.items():
        if name not in {"paper", "panel", "rule", "faint"}:
            for paper in ("paper", "panel"):
                a, b = sorted((_luminance(pair[side]), _luminance(INKS[paper][side])))
                assert (b + 0.05) / (a + 0.05) >= 4.5, (name, paper)
    assert len({p[side] for p in INKS.values()}) == len(INKS)


def test_a_report_goes_to_a_folder_or_an_html_file_and_nowhere_else(
    study: Results, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(GazeveilError, match="folder or an HTML file"):
        write_report(study, file)
    (tmp_path / "odd.html").mkdir()
    with pytest.raises(GazeveilError, match="folder or an HTML file"):
        write_report(study, tmp_path / "odd.html")
    assert file.read_text() == "mine"


# --- in a real browser
# --------------------------------------------------------------------------------------------------

PROBE = """<!DOCTYPE html><title>probe</title>
<iframe id="f" src="report.html" style="width:WIDTHpx;height:800px;border:0"></iframe>
<pre id="said"></pre>
<script>
document.getElementById("f").onload = () => {
  const frame = document.getElementById("f"), d = frame.contentDocument;
  const w = frame.contentWindow, root = d.documentElement;
  for (const e of d.querySelectorAll("details")) e.open = true;
  const cut = [], small = [];
  for (const svg of d.querySelectorAll("figure svg")) {
    const box = svg.getBoundingClientRect();
    for (const t of svg.querySelectorAll("text")) {
      const b = t.getBoundingClientRect();
      if (b.left < box.left - 1 || b.right > box.right + 1
          || b.top < box.top - 1 || b.bottom > box.bottom + 1) cut.push(t.textContent);
      const scale = box.width / svg.viewBox.baseVal.width;
      const size = parseFloat(w.getComputedStyle(t).fontSize) * scale;
      if (size < 8.5) small.push(t.textContent + " " + size);
    }
  }
  const wide = [...d.querySelectorAll("main *")].filter(e => !e.closest(".box")
    && !e.closest("svg") && e.getBoundingClientRect().right > w.innerWidth + 1);
  document.getElementById("said").textContent = JSON.stringify({
    scroll: root.scrollWidth, inner: w.innerWidth, cut, small,
    wide: wide.map(e => e.tagName + " " + e.textContent.slice(0, 60)),
    asked: w.performance.getEntriesByType("resource").map(e => e.name),
    background: w.getComputedStyle(d.body).backgroundColor,
    text: w.getComputedStyle(d.body).color,
    ink: w.getComputedStyle(d.querySelector("figure svg text")).fill});
};
</script>"""


class Server:
    """A folder on a port of this machine, and what was asked of it."""

    def __init__(self, folder: Path, browser: str) -> None:
        self.browser = browser
        asked: list[str] = []
        self.asked = asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                asked.append(self.path)

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
        )
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def served(written: Path) -> Iterator[Server]:
    server = Server(written.parent, chromium())
    yield server
    server.server.shutdown()
    server.server.server_close()


def look(served: Server, folder: Path, width: int, *options: str) -> dict[str, object]:
    (folder / "probe.html").write_text(PROBE.replace("WIDTH", str(width)), encoding="utf-8")
    command = [
        served.browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={folder / 'profile'}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--virtual-time-budget=8000",
        f"--window-size={width + 60},900",
        "--dump-dom",
        *options,
        f"{served.address}/probe.html",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    finally:
        shutil.rmtree(folder / "profile", ignore_errors=True)
        (folder / "probe.html").unlink()
    said = re.search(r'<pre id="said">(.+?)</pre>', done.stdout, re.DOTALL)
    if said is None:
        pytest.skip(f"Chromium does not run here: {done.stderr[-200:]}")
    from html import unescape

    found: dict[str, object] = json.loads(unescape(said.group(1)))
    return found


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_window_and_asks_for_nothing_else(
    served: Server, written: Path, width: int
) -> None:
    seen = look(served, written.parent, width)
    assert seen["inner"] == width
    assert seen["scroll"] == width
    assert seen["wide"] == []
    assert seen["cut"] == []
    assert seen["small"] == []
    assert seen["asked"] == []
    assert {p for p in served.asked if "favicon" not in p} == {"/probe.html", "/report.html"}
    assert seen["background"] == "rgb(254, 254, 254)"


def test_the_page_and_its_pictures_turn_dark_with_the_reader(served: Server, written: Path) -> None:
    seen = look(served, written.parent, 390, "--blink-settings=preferredColorScheme=0")
    assert seen["background"] == "rgb(20, 24, 29)"
    assert seen["text"] == "rgb(232, 236, 240)"
    # The first text of a picture is a tick label.
    assert seen["ink"] == "rgb(163, 175, 186)"


PEOPLE, STIMULI = 20, 8
