"""Findings of one file while it is looked at: equal fields and kinds are counted, not repeated."""

from __future__ import annotations

import re

from gazeveil.release.inventory.fields import kind_of
from gazeveil.release.inventory.finding import Finding, shorten
from gazeveil.release.inventory.patterns import is_clock, spots

NUMBER = re.compile(r"^\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*$")

_MOST_VALUES = 1000
#: Words of trackers that say nothing about a person.
PLAIN = frozenset(
    """true false yes no valid invalid partial fixation saccade unclassified undefined blink noise
    eyesnotfound pursuit smoothpursuit left right both none null nan na n/a - . eye tracker unknown
    mouse gyro accelerometer ok cyclopean smp fix sacc stimulus world head pass removed gaze imu
    syncport in out recording.begin recording.end recording""".split()  # noqa: SIM905 - words
)


class FileNotes:
    """What was found in one file, named by its path below the folder that was asked for."""

    def __init__(self, file: str) -> None:
        self.file = file
        #: (field, kind) -> distinct values, of which the first ones are kept, and count.
        self.seen: dict[tuple[str, str], tuple[dict[str, None], int]] = {}
        #: Values that name people.
        self.names: set[str] = set()

    def add(self, field: str, kind: str, example: str) -> None:
        """Note one value."""
        values, count = self.seen.get((field, kind), ({}, 0))
        if len(values) < _MOST_VALUES:
            values[example.strip()] = None
        self.seen[field, kind] = (values, count + 1)
        if kind == "name":
            self.names.add(example.strip())

    def value(self, field: str, text: str, free: bool = True, name: str | None = None) -> None:
        """Note a value by its field's name, and by what it looks like.

        Parameters
        ----------
        field : str
            Column or key.
        text : str
            The value.
        free : bool
            Whether a text in a field of no known name is free text.
        name : str, optional
            What decides the kind, where that is not the whole field: the last key of a path.
        """
        plain = text.strip()
        if not plain or plain.lower() in PLAIN:
            return
        kind = kind_of(field if name is None else name)
        number = NUMBER.match(plain) is not None
        if number and kind != "clock" and _clock(plain):
            self.add(field, "clock", plain)
        if kind is not None:
            self.add(field, kind, plain)
        if number:
            return
        looks = self.text(field, plain, skip=kind)
        if kind is None and not looks and free:
            self.add(field, "free text", plain)

    def text(self, field: str, text: str, skip: str | None = None) -> bool:
        """Note what a text looks like, in whole or in part; False where it looks like nothing."""
        kinds = [(spot.kind, spot.text) for spot in spots(text)]
        for kind, found in kinds:
            if kind != skip:
                self.add(field, kind, found)
        return bool(kinds)

    def findings(self) -> list[Finding]:
        """All of them, in the order they were met."""
        return [
            Finding(self.file, field, kind, shorten(next(iter(values))), count, tuple(values))
            for (field, kind), (values, count) in self.seen.items()
        ]


def _clock(text: str) -> bool:
    try:
        return is_clock(float(text.replace(",", ".")))
    except ValueError:
        return False
