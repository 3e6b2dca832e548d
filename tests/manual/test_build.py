"""The manual as HTML: built without a warning, every link leads somewhere, nothing is loaded from
another host, search finds words.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.heavy


class Links(HTMLParser):
    """Where a page leads, and what can be led to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        for name in ("href", "src"):
            if given.get(name):
                self.targets.append(str(given[name]))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="sphinx is not installed: the manual is not built")
    out = tmp_path_factory.mktemp("manual") / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def broken(folder: Path) -> list[str]:
    """Links of a folder of pages that lead to no file, or to no place in it."""
    pages = {p: Links(p.read_text(encoding="utf-8")) for p in folder.rglob("*.html")}
    wrong = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = place.exists()
            if known and parts.fragment and place in pages:
                known = unquote(parts.fragment) in pages[place].ids
            if not known:
                wrong.append(f"{page.relative_to(folder)}: {target}")
    return wrong


def test_no_link_is_broken(built: Path) -> None:
    assert len(list(built.rglob("*.html"))) > 100
    assert broken(built) == []


def test_a_prime_is_no_apostrophe_and_an_option_no_dash(built: Path) -> None:
    page = html.unescape((built / "explain" / "proofs" / "marginals.html").read_text("utf-8"))
    assert "q R')" in page
    assert "R\u2019" not in page


#: Where a page or a style sheet names what the browser loads with it: links that a reader follows
#: (`<a href>`) are none of them.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object|input)\b[^>]*?\s(?:src|srcset|data)
        \s*=\s*["']?([^"'\s>]+)
      | <link\b(?![^>]*\brel=["']?(?:index|search|next|prev|canonical))[^>]*?\shref\s*=\s*
        ["']?([^"'\s>]+)
      | url\(\s*["']?([^"')\s]+)
      | @import\s+["']([^"']+)""",
    re.VERBOSE | re.IGNORECASE,
)


def outside(folder: Path) -> list[str]:
    """What the pages and style sheets of a folder load from another host."""
    wrong = []
    for page in (*folder.rglob("*.html"), *folder.rglob("*.css")):
        for found in LOADED.finditer(page.read_text(encoding="utf-8")):
            target = next(filter(None, found.groups()))
            if urlsplit(target).netloc:
                wrong.append(f"{page.relative_to(folder)}: {target}")
    return wrong


def test_nothing_is_loaded_from_another_host(built: Path) -> None:
    assert outside(built) == []


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("pandas", "start/tutorial-screen"),
        ("tutorial", "start/tutorial-vr"),
        ("glossary", "reference/glossary"),
        ("consent", "howto/consent"),
        ("proof", "explain/proofs"),
    ],
)
def test_search_finds(built: Path, word: str, page: str) -> None:
    text = (built / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(")"))
    # The browser looks words up by their stem, as the index was made.
    from sphinx.search.en import SearchEnglish

    stem = SearchEnglish({}).stem(word)
    found: set[int] = set()
    for terms in (index["terms"], index["titleterms"]):
        hits = terms.get(stem, [])
        found |= {hits} if isinstance(hits, int) else set(hits)
    assert page in {index["docnames"][i] for i in found}


def test_every_proof_is_in_the_manual(built: Path) -> None:
    names = {p.stem for p in (ROOT / "proofs").glob("*.md")}
    assert names == {p.stem for p in (built / "explain" / "proofs").glob("*.html")}
    text = (built / "explain" / "proofs" / "gaussian.html").read_text(encoding="utf-8")
    assert re.search(r"<h1>.+</h1>", text)
    assert "r<sup>2</sup>" in text, "exponents are raised"
