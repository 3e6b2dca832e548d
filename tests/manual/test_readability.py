"""Pages of lessons and guides are easy to read, and the manual stays short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.manual import pages
from tests.support.places import ROOT
from tests.support.readability import page_ease, prose, reading_ease, syllables

DOCS = ROOT / "docs"
LESSONS = [
    page
    for page in pages()
    if page.is_relative_to(DOCS / "start") or page.is_relative_to(DOCS / "howto")
]


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_lesson_reads_easily(page: Path) -> None:
    assert page_ease(page) >= 50


def test_the_manual_grows_no_longer() -> None:
    manual = [page for page in pages() if page.is_relative_to(DOCS)]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in manual) <= 75_000


@pytest.mark.parametrize(
    ("word", "count"),
    [("gaze", 1), ("table", 2), ("released", 2), ("recording", 3), ("epsilon", 3), ("charged", 1)],
)
def test_syllables(word: str, count: int) -> None:
    assert syllables(word) == count


def test_only_prose_is_read_and_long_words_read_badly() -> None:
    page = "# Head\n\nA cat sat. [It](x.md) ran.\n\n| a | b |\n\n```sh\nls\n```\n<!-- no -->\n"
    assert prose(page).split() == ["A", "cat", "sat.", "It", "ran."]
    assert reading_ease("The cat sat on the mat. It ran.") > 100
    assert reading_ease("Epistemological considerations notwithstanding, heterogeneity.") < 0
