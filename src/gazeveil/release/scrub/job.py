"""What one run of `scrub` knows: the labels it has given, what the user keeps, and what it did."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable

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
        self._known = name_pattern(i for i in identifiers if not self.keeps(i))
        #: Text -> label: who is who, for the holder of the raw files alone.
        self.labels: dict[str, str] = {}
        #: What was done -> how often.
        self.done: Counter[str] = Counter()
        #: Texts of the experiment that stay, because they name no person and look like nothing.
        self.kept: set[str] = set()

    def keeps(self, text: str) -> bool:
        """Whether the user has named this text to stay."""
        return any(pattern.fullmatch(text) for pattern in self._keep)

    def label(self, text: str) -> str:
        """The label that stands for a text; empty text stays empty. BIDS writes `sub-` before one
        of a person.
        """
        plain = text.strip()
        if plain.startswith("sub-"):
            return f"sub-{self.label(plain[4:])}"
        if not plain:
            return ""
        if self.keeps(plain):
            self.kept.add(plain)
            return plain
        while plain not in self.labels:
            word = f"id{secrets.token_hex(_LABEL_BYTES)}"
            # A label of digits alone would be taken for a date.
            if not word[2:].isdecimal() and word not in self.labels.values():
                self.labels[plain] = word
        self.done["texts replaced by labels"] += 1
        return self.labels[plain]

    def event(self, text: str, words: frozenset[str]) -> str:
        """A word that the vendor's software writes, or the label of any other text."""
        plain = text.strip()
        return plain if plain.lower() in words or plain.lower() in PLAIN else self.label(plain)

    def message(self, text: str) -> str:
        """A message of the experiment; readers parse what stands behind a semicolon."""
        plain = text.strip()
        if not plain or self.keeps(plain):
            return plain
        return f"{';' if ';' in plain else 'message_'}{self.label(plain)}"

    def word(self, text: str) -> str:
        """A term of a sidecar or of a name: it stays where it is short, holds no name and looks
        like no date, device number or path.
        """
        plain = text.strip()
        if _SAFE.fullmatch(plain) and not any(spots(plain)) and self.leak(plain) is None:
            self.kept.add(plain)
            return plain
        return self.label(plain)

    def leak(self, text: str) -> str | None:
        """An identifier that a text holds."""
        match = None if self._known is None else self._known.search(text)
        return None if match is None else match[0]
