"""What one run of `scrub` knows: the labels it has given, what the user keeps, and what it did."""

from __future__ import annotations

import gzip
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

from gazeveil import checks
from gazeveil.release.inventory.finding import PLAIN, name_pattern, spots

_SAFE = re.compile(r"[A-Za-z0-9#][\w .,+/()#%°²µ\[\]-]{0,60}")
_LABEL_BYTES = 4


class ScrubJob:
    """Labels, choices and counts of one run.

    Equal texts get equal labels in all files of a run, so that a person's files, a stimulus and a
    kind of message stay recognisable as such. Labels come from the operating system's randomness:
    they say nothing about the text, and a second run gives others.

    Parameters
    ----------
    keep_text : iterable of str
        Regular expressions; a text that one of them matches as a whole stays as it is.
    keep_fields : iterable of str
        Columns of people's tables that stay.
    identifiers : iterable of str
        Names and numbers that the inventory found: they may stand in no kept text.
    """

    def __init__(
        self,
        keep_text: Iterable[str] = (),
        keep_fields: Iterable[str] = (),
        identifiers: Iterable[str] = (),
    ) -> None:
        self._keep = []
        for text in keep_text:
            try:
                self._keep.append(re.compile(text))
            except re.error:
                checks.refuse("scrub", "keep_text", "a regular expression", text)
        self.keep_fields = frozenset(name.strip().lower() for name in keep_fields)
        self.identifiers = frozenset(i for i in identifiers if not self.keeps(i))
        self._known = name_pattern(self.identifiers)
        self._labels: dict[str, str] = {}
        self._used: set[str] = set()
        #: What was done -> how often.
        self.done: Counter[str] = Counter()
        #: Texts of the experiment that stay, because they name no person and look like nothing.
        self.kept: set[str] = set()

    def keeps(self, text: str) -> bool:
        """Whether the user has named this text to stay."""
        return any(pattern.fullmatch(text) for pattern in self._keep)

    def label(self, text: str) -> str:
        """The label that stands for a text; empty text stays empty."""
        plain = text.strip()
        if not plain:
            return ""
        if self.keeps(plain):
            self.kept.add(plain)
            return plain
        if plain not in self._labels:
            self._labels[plain] = self._fresh()
        self.done["texts replaced by labels"] += 1
        return self._labels[plain]

    def number(self, text: str) -> str:
        """A label of digits alone, for formats whose file names count people."""
        name = f"number of {text.strip()}"
        if name not in self._labels:
            while (label := str(10**5 + secrets.randbelow(9 * 10**5))) in self._used:
                pass
            self._used.add(label)
            self._labels[name] = label
        self.done["texts replaced by labels"] += 1
        return self._labels[name]

    def _fresh(self) -> str:
        """A label that no other text has, and that is not taken for a date by its digits."""
        while (word := secrets.token_hex(_LABEL_BYTES)).isdecimal() or f"id{word}" in self._used:
            pass
        self._used.add(f"id{word}")
        return f"id{word}"

    def event(self, text: str, words: frozenset[str]) -> str:
        """A word that the vendor's software writes, or the label of any other text."""
        plain = text.strip()
        return plain if plain.lower() in words or plain.lower() in PLAIN else self.label(plain)

    def is_harmless(self, text: str) -> bool:
        """Whether a short text names nobody and looks like no date, number of a device or path."""
        if not _SAFE.fullmatch(text) or next(spots(text), None) is not None:
            return False
        return self._known is None or self._known.search(text) is None

    def word(self, text: str) -> str:
        """A term of a sidecar or of a column: it stays where it is harmless."""
        plain = text.strip()
        if self.is_harmless(plain):
            self.kept.add(plain)
            return plain
        return self.label(plain)

    def leak(self, text: str) -> str | None:
        """An identifier that a finished text still holds."""
        match = None if self._known is None else self._known.search(text)
        return None if match is None else match[0]

    @property
    def key(self) -> dict[str, str]:
        """Text -> label: who is who, for the holder of the raw files alone."""
        return dict(self._labels)


#: 2000-01-01 00:00:00 UTC: the time that every file of a copy has.
NEUTRAL_S = 946_684_800


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, zipped where the name ends in `.gz`; neither the archive nor the file says
    when.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as archive:
                _write(cast(BinaryIO, archive), lines)
        else:
            _write(raw, lines)


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(line.encode("utf-8") + b"\n")


def forget_times(folder: Path) -> None:
    """Give every file and folder the same time of change and of access."""
    for place in sorted(folder.rglob("*"), reverse=True):
        os.utime(place, (NEUTRAL_S, NEUTRAL_S))
    os.utime(folder, (NEUTRAL_S, NEUTRAL_S))
