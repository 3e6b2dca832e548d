"""Texts that look like a date, a time of day, a Unix clock, a path, an e-mail address or a serial
number, wherever they stand.

A name of a person has no such form; names are found by the field they stand in and then looked for
everywhere (:mod:`gazeveil.release.inventory.names`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_MONTH = (
    r"(?:Jan|Feb|Mar|Mär|Mrz|Apr|May|Mai|Jun|Jul|Aug|Sep|Sept|Oct|Okt|Nov|Dec|Dez)[a-zä]{0,7}\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"
_OF_DAY = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"

_DATES = (
    # 2017-10-13-10-27, 2023/03/08 09:25:20, 2023-03-08T09:25:20.5Z, 2023_03_08
    rf"(?<!\d){_YEAR}([-/._])(?:0?[1-9]|1[0-2])\1{_DAY}(?!\d)"
    r"(?:[T_ -]\d\d?[-:h_]?\d\d?(?:[-:m_]?\d\d?)?(?:[.,]\d+)?Z?)?",
    # 08.03.2023, 3/8/2023
    rf"(?<![\d.]){_DAY}([./-])(?:0?[1-9]|[12]\d|3[01])\1{_YEAR}(?![\d.]\d)(?:\s+{_OF_DAY})?",
    # 20230308, 20230308T092520
    rf"(?<![\d.]){_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[T_-]\d{{4,6}})?(?![\d.])",
    # Wed Mar  8 09:25:20 2023, Mar 8, 2023, 8 March 2023
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?\b{_MONTH}\s+{_DAY},?\s+"
    rf"(?:{_OF_DAY}\s+)?{_YEAR}\b",
    rf"\b{_DAY}\.?\s+{_MONTH}\s+{_YEAR}\b(?:\s+{_OF_DAY})?",
)

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("e-mail", re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")),
    (
        "path",
        re.compile(
            r"(?:https?|file)://[^\s\"'<>]+|\b[A-Za-z]:[\\/][^\s\"'<>|,;]+|\\\\[\w.-]+\\[^\s\"',;]+"
            r"|(?<![\w/.:<>\])])~?/(?:[\w.+@ -]+/)+[\w.+@-]*[\w]"
        ),
    ),
    *(("date", re.compile(shape)) for shape in _DATES),
    ("clock", re.compile(rf"(?<![\d:.]){_OF_DAY}(?![\d:])")),
    (
        "attribute",
        re.compile(
            r"(?<![a-z])aged?\W{1,3}\d{1,3}(?:\.\d+)?|\b\d{1,3}(?:\.\d+)?[- ]years?\b", re.I
        ),
    ),
    (
        "eye distance",
        re.compile(r"(?<![a-z])(?:ipd|interpupillary distance)\D{1,6}\d+(?:\.\d+)?", re.IGNORECASE),
    ),
    (
        "serial",
        re.compile(
            # UUID; MAC; CLU-DBC07, TG03B-080200004381; licence of Experiment Builder; 16 hex digits
            r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
            r"|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"
            r"|\b(?=[A-Z0-9]*[A-Z])[A-Z0-9]{2,12}-(?=[A-Z0-9]*\d)[A-Z0-9]{4,}\b"
            r"|\bLID:\w+"
            r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"
        ),
    ),
)

# A sign is no part of a clock; a dash between a word and a clock is no sign.
_DIGITS = re.compile(r"(?<![\w.])(?<!(?<!\w)-)\d{9,19}(?:\.\d+)?(?![\w])")
#: Digits before the point -> (from, to): the years 2000 to 2040 in seconds, ms, us and ns since
#: 1970; milliseconds and 100 ns since the year 1 (.NET, Unity); 100 ns since 1601 (Windows).
_CLOCKS = (
    (946_684_800, 2_208_988_800),
    (946_684_800_000, 2_208_988_800_000),
    (946_684_800_000_000, 2_208_988_800_000_000),
    (946_684_800_000_000_000, 2_208_988_800_000_000_000),
    (63_082_281_600_000, 64_344_585_600_000),
    (630_822_816_000_000_000, 643_445_856_000_000_000),
    (125_911_584_000_000_000, 138_534_624_000_000_000),
)


class Spot(NamedTuple):
    """A text of a kind, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


def is_clock(number: float) -> bool:
    """Whether a number is a time of the years 2000 to 2040 in one of the usual clocks."""
    return any(low <= number < high for low, high in _CLOCKS)


def spots(text: str) -> Iterator[Spot]:
    """What a text holds, each character once: a date inside a path is part of the path.

    Examples
    --------
    >>> [(s.kind, s.text) for s in spots("anna@lab.org on 2023-03-08, 1629390345499163431")]
    [('e-mail', 'anna@lab.org'), ('date', '2023-03-08'), ('clock', '1629390345499163431')]
    """
    taken: list[Spot] = []
    for kind, shape in _SHAPES:
        for match in shape.finditer(text):
            if match[0].strip() and not _overlaps(taken, match.start(), match.end()):
                taken.append(Spot(kind, match[0], match.start(), match.end()))
    for match in _DIGITS.finditer(text):
        if is_clock(float(match[0])) and not _overlaps(taken, match.start(), match.end()):
            taken.append(Spot("clock", match[0], match.start(), match.end()))
    yield from sorted(taken, key=lambda s: s.start)


def _overlaps(taken: list[Spot], start: int, end: int) -> bool:
    return any(start < spot.end and spot.start < end for spot in taken)
