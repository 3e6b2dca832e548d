"""The page as one text: markup, style, script and, where it is saved, its figures."""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from pathlib import Path

from gazeveil.evaluation.report.page import STYLE

_WEB = Path(__file__).with_name("web")

#: Where figures stand in the page; the script finds them by this id.
_DATA = '<script type="application/json" id="figures">{}</script>'


def page(figures: object = None) -> str:
    """The whole page. `figures` is everything a saved page shows, as JSON has it; without them the
    page asks its server.
    """
    text = (_WEB / "explore.html").read_text(encoding="utf-8")
    # Data must not end the element that holds it, nor begin a comment in it.
    held = json.dumps(figures, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "POLICY": policy(live=figures is None),
        "STYLE": _style(),
        "SCRIPT": _script(),
        "FIGURES": "" if figures is None else _DATA.format(held),
    }
    for name, part in parts.items():
        text = text.replace(f"<!--{name}-->", part)
    return text


def policy(live: bool) -> str:
    """What a browser lets the page do: run its own script and no other, and ask nobody but its own
    server, or nobody at all.
    """
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}';"
        f" connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _script() -> str:
    return (_WEB / "explore.js").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return STYLE + (_WEB / "explore.css").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
