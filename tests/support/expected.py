"""What a run of the tests must find on its machine, and the marks of tests that need it.

`GAZEVEIL_EXPECTS="data chromium postgres torch dask"` names what must be there; `make test` sets
it. A test that is skipped for want of something expected makes the whole run fail.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

from tests.support.postgres import programs
from tests.support.recordings import data_folder

#: Words in the reason of a skip that say what was missing.
REASONS = {
    "data": ("GAZEVEIL_DATA",),
    "chromium": ("Chromium", "playwright"),
    "postgres": ("PostgreSQL", "postgres"),
    "torch": ("torch", "extra 'deep'"),
    "dask": ("distributed", "dask"),
}

#: Names in a test, its fixtures or the functions it calls that give it a mark.
MARKS = {
    "data": {"real", "real_cohort", "data_folder"},
    "browser": {"browser", "served", "desk", "sync_playwright"},
    "postgres": {"postgres"},
    "stats": {"ALPHA", "follows", "fits", "assert_distribution", "assert_pmf"},
}


def expected(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What the environment says must be there."""
    words = tuple(environment.get("GAZEVEIL_EXPECTS", "").split())
    if unknown := sorted(set(words) - set(REASONS)):
        raise ValueError(f"GAZEVEIL_EXPECTS may name {', '.join(REASONS)}, not {unknown[0]!r}.")
    return words


def is_here(word: str) -> bool:
    """Whether one of them is on this machine."""
    if word == "data":
        return data_folder().is_dir() and any(data_folder().iterdir())
    if word == "chromium":
        names = ("chromium", "chromium-browser", "google-chrome")
        return find_spec("playwright") is not None and any(map(shutil.which, names))
    if word == "postgres":
        return programs() is not None
    return find_spec({"torch": "torch", "dask": "distributed"}[word]) is not None


def missed(reason: str, words: tuple[str, ...]) -> str | None:
    """Which of the expected a skip's reason says is missing."""
    for word in words:
        if any(part in reason for part in REASONS[word]):
            return word
    return None


_MARKED = re.compile(rf"\b({'|'.join(sorted(set().union(*MARKS.values())))})\b")


def _names(code: CodeType) -> frozenset[str]:
    return frozenset(code.co_names + code.co_varnames + code.co_cellvars).union(
        *(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType))
    )


@cache
def _names_by_function(path: Path) -> dict[str, frozenset[str]]:
    """All names that each top-level function or class of a file uses, its arguments too; nothing
    of a file without a word that gives a mark.
    """
    text = path.read_text("utf-8")
    if not _MARKED.search(text):
        return {}
    codes = compile(text, path, "exec").co_consts
    return {code.co_name: _names(code) for code in codes if isinstance(code, CodeType)}


def marks_of(path: Path, function: str) -> set[str]:
    """The marks of a test function: what it, its fixtures and its file's functions use."""
    by_function = _names_by_function(path)
    seen: set[str] = set()
    new = {function}
    while new:
        seen |= new
        new = {w for name in new for w in by_function.get(name, ()) if w not in seen}
    return {mark for mark, words in MARKS.items() if seen & words}
