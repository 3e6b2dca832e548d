"""Delimited text with or without a commented header: CSV, TSV, SMI, ARFF, Tobii, headsets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gazeveil.io.parsing.delimited import find_separator
from gazeveil.release.inventory.fields import kind_of
from gazeveil.release.inventory.notes import NUMBER, FileNotes
from gazeveil.release.inventory.sampling import Sampled

_COMMENT = re.compile(r"^\s*(?:##?|%@?|//|;;|\*\*)\s?(.*)$")
_KEY_VALUE = re.compile(
    r"^(?:METADATA\s+)?([A-Za-z][^:=\t]{0,60}?)\s*(?:[:=\t]|\s(?=[-\d.]+$))\s*(.*)$"
)
_ATTRIBUTE = re.compile(r"^@attribute\s+('[^']+'|\"[^\"]+\"|\S+)", re.IGNORECASE)
_MOST_ROWS = 400
_FEWEST_FOR_RATE = 10


@dataclass(frozen=True)
class _Body:
    """Column names and rows of cells."""

    columns: tuple[str, ...]
    rows: list[list[str]]


def look(sampled: Sampled, notes: FileNotes) -> None:
    """Note what comments, column names and cells say."""
    body = _split(sampled, notes)
    if [name.lower() for name in body.columns] == ["key", "value"]:
        for row in body.rows:
            notes.value(row[0], ", ".join(row[1:]))
        return
    for index, name in enumerate(body.columns):
        cells = [row[index].strip() for row in body.rows if index < len(row)]
        _column(name, cells, notes)


def _split(sampled: Sampled, notes: FileNotes) -> _Body:
    """Comments are noted on the way; an ARFF header names the columns one by one."""
    names: list[str] = []
    rows: list[list[str]] = []
    separator = ""
    arff = False
    for _, line in sampled.lines:
        comment = _COMMENT.match(line)
        if comment is not None:
            _comment(comment[1], notes)
        elif line[:1] == "@":
            arff = True
            attribute = _ATTRIBUTE.match(line)
            if attribute is not None:
                names.append(attribute[1].strip("'\""))
            elif line.lower().startswith("@relation"):
                notes.text("@relation", line)
        elif line.strip():
            if not names and not arff:
                separator = find_separator(line)
                first = _cells(line, separator)
                if all(not c or NUMBER.match(c) or c == "n/a" for c in first):
                    names = [f"column {i + 1}" for i in range(len(first))]
                    rows.append(first)
                else:
                    names = first
            else:
                separator = separator or find_separator(line) or ","
                rows.append(_cells(line, separator))
                if len(rows) >= _MOST_ROWS and not sampled.whole:
                    break
    return _Body(tuple(names), rows)


def _cells(line: str, separator: str) -> list[str]:
    return [c.strip().strip('"') for c in (line.split(separator) if separator else [line])]


def _comment(text: str, notes: FileNotes) -> None:
    pair = _KEY_VALUE.match(text.strip())
    if pair is not None and pair[2].strip():
        notes.value(pair[1].strip(), pair[2].strip(), free=kind_of(pair[1]) is not None)
    elif text.strip():
        notes.text("comment", text)
        if re.search(r"[A-Za-z]{3}", text):
            notes.add("comment", "free text", text)


def _column(name: str, cells: list[str], notes: FileNotes) -> None:
    """Note one column: by its name, by its texts, and a clock's step as the rate."""
    notes.text(f"column name {name}", name)
    kind = kind_of(name)
    numbers = [c for c in cells if c and NUMBER.match(c)]
    texts = dict.fromkeys(c for c in cells if c and not NUMBER.match(c))
    if kind == "clock" and numbers:
        notes.add(name, "clock", numbers[0])
        _rate(name, numbers, notes)
    elif numbers:
        looked = numbers if kind in ("name", "attribute", "serial") else numbers[:1]
        for text in dict.fromkeys(looked):
            notes.value(name, text)
    for text in texts:
        notes.value(name, text)


def _rate(name: str, numbers: list[str], notes: FileNotes) -> None:
    """The mean step of a clock, to its last digit, tells recordings apart."""
    if len(numbers) < _FEWEST_FOR_RATE:
        return
    try:
        first, last = (float(numbers[i].replace(",", ".")) for i in (0, -1))
    except ValueError:
        return
    if last > first:
        notes.add(name, "rate", f"mean step {(last - first) / (len(numbers) - 1):.14g}")
