"""The page of Python's names has every public one."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import gazeveil
import gazeveil.errors
import gazeveil.plot
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
LISTED = set(re.findall(r"\.\. auto(?:function|class|module):: (\S+)", PAGE))


def named(value: Any) -> set[str]:
    """The places under which a value may stand on the page: its home, or who hands it on."""
    home = f"{value.__module__}.{value.__qualname__}"
    return {home, *(f"{parent}.{value.__qualname__}" for parent in _parents(home))}


def _parents(home: str) -> list[str]:
    parts = home.split(".")[:-1]
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def test_every_public_name_is_on_the_page() -> None:
    modules = {"errors", "plot", "__version__"}
    missing = [
        name
        for name in gazeveil.__all__
        if name not in modules and not named(getattr(gazeveil, name)) & LISTED
    ]
    assert missing == [], "docs/reference/api.md lacks them"
    assert "gazeveil.errors" in LISTED


def test_every_picture_is_on_the_page() -> None:
    names = gazeveil.plot.__all__
    missing = [n for n in names if not named(getattr(gazeveil.plot, n)) & LISTED]
    assert missing == [], "docs/reference/api.md lacks them"


def test_every_name_on_the_page_is_there() -> None:
    for place in LISTED - {"gazeveil.errors"}:
        module, _, name = place.rpartition(".")
        assert hasattr(import_module(module), name), place
    assert inspect.getmodule(gazeveil.errors.DataError) is gazeveil.errors
