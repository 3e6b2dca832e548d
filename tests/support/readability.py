"""Words and Flesch reading ease of the manual's pages.

`python -m tests.support.readability [FOLDER]` prints both for each page, and the words per folder.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from tests.support.manual import pages
from tests.support.places import ROOT

_FENCE = re.compile(r"^(`{3,}|:{3,}).*?^\1`*:*\s*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NOT_PROSE = re.compile(r"^\s*(\||#|\(.*\)=\s*$|!\[).*$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n\s*\n")


def prose(markdown: str) -> str:
    """The running text of a page: no code, tables, headings, comments, pictures or link targets.

    Anything in code style counts as the word "option".
    """
    text = _COMMENT.sub("", _FENCE.sub("", markdown))
    text = _NOT_PROSE.sub("", text)
    text = re.sub(r"`[^`]+`", "option", _LINK.sub(r"\1", text))
    return _ITEM.sub("\n\n", text).replace("*", "").strip()


def syllables(word: str) -> int:
    """Count groups of vowels; a silent e at the end does not count, a word has at least one."""
    letters = word.lower()
    groups = len(re.findall(r"[aeiouy]+", letters))
    silent = re.search(r"[^aeiouyl]e$|[^aeiouytd]ed$|[^aeiouysxz]es$", letters)
    return max(1, groups - bool(silent))


def reading_ease(text: str) -> float:
    """Flesch reading ease: 206.835 - 1.015 words per sentence - 84.6 syllables per word.

    From 60 on a text is plain English; below 30 it is read by graduates only. Numbers are left out.
    """
    sentences = [re.findall(r"[A-Za-z]+", part) for part in _SENTENCE_END.split(text)]
    lengths = [len(words) for words in sentences if words]
    counts = [syllables(word) for words in sentences for word in words]
    if not counts:
        return 100.0
    return 206.835 - 1.015 * len(counts) / len(lengths) - 84.6 * sum(counts) / len(counts)


def page_ease(page: Path) -> float:
    """Flesch reading ease of the prose of a page."""
    return reading_ease(prose(page.read_text(encoding="utf-8")))


def main() -> None:
    """Print words and reading ease of each page, and the words of each folder."""
    docs = ROOT / "docs"
    folder = docs / (sys.argv[1] if len(sys.argv) > 1 else "")
    totals: Counter[str] = Counter()
    lines: list[str] = []
    for page in pages():
        if not page.is_relative_to(folder):
            continue
        n_words = len(page.read_text(encoding="utf-8").split())
        place = page.relative_to(docs)
        totals[str(place.parent)] += n_words
        lines.append(f"{n_words:6,d} words  ease {page_ease(page):4.0f}  {place}")
    lines += [f"{n:6,d} words  {name}" for name, n in [*totals.items(), ("all", totals.total())]]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
