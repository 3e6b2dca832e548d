"""Delimited text with or without a commented header: CSV, TSV, SMI, ARFF, Tobii, headsets.

A table is looked at line by line, so that one of any length takes no memory.
"""

from __future__ import annotations

import re

from gazeveil.io.parsing.table import find_separator
from gazeveil.release.inventory.finding import NUMBER, FileNotes, kind_of
from gazeveil.release.inventory.sampling import Sampled

_COMMENT = re.compile(r"^\s*(?:##?|%@?|//|;;|\*\*)\s?(.*)$")
_KEY_VALUE = re.compile(
    r"^(?:METADATA\s+)?([A-Za-z][^:=\t]{0,60}?)\s*(?:[:=\t]|\s(?=[-\d.]+$))\s*(.*)$"
)
_ATTRIBUTE = re.compile(r"^@attribute\s+('[^']+'|\"[^\"]+\"|\S+)", re.IGNORECASE)
_MOST_ROWS = 400
_MOST_TEXTS = 10_000
_FEWEST_FOR_RATE = 10


def look(sampled: Sampled, notes: FileNotes) -> int:
    """Note what comments, column names and cells say; the number of lines that were looked at.

    Of a file that is sampled the first 400 rows and those of the later windows are looked at.
    """
    table = _TableLook(notes)
    looked = 0
    for number, line in sampled.lines:
        if sampled.whole or not number or table.rows < _MOST_ROWS:
            table.line(line, in_order=number > 0)
            looked += 1
    table.finish()
    return looked


class _Column:
    """What is remembered of a column: its texts, and a clock's first and last time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = kind_of(name)
        self.texts: set[str] = set()
        self.first = self.last = ""
        self.numbers = 0

    def cell(self, cell: str, notes: FileNotes, in_order: bool) -> None:
        if NUMBER.match(cell):
            if in_order:
                self.first = self.first or cell
                self.last = cell
                self.numbers += 1
            if self.kind in ("name", "attribute", "serial"):
                self._once(cell, notes)
            elif self.kind != "clock" and self.numbers == 1:
                notes.value(self.name, cell)
        elif cell:
            self._once(cell, notes)

    def _once(self, cell: str, notes: FileNotes) -> None:
        if cell not in self.texts:
            notes.value(self.name, cell)
            if len(self.texts) < _MOST_TEXTS:
                self.texts.add(cell)

    def finish(self, notes: FileNotes) -> None:
        """A clock, and its mean step to the last digit, which tells recordings apart."""
        if self.kind != "clock" or not self.numbers:
            return
        notes.add(self.name, "clock", self.first)
        first, last = (float(n.replace(",", ".")) for n in (self.first, self.last))
        if self.numbers >= _FEWEST_FOR_RATE and last > first:
            step = (last - first) / (self.numbers - 1)
            notes.add(self.name, "rate", f"mean step {step:.14g}")


class _TableLook:
    """A table while it is looked at."""

    def __init__(self, notes: FileNotes) -> None:
        self.notes = notes
        self.rows = 0
        self._columns: list[_Column] = []
        self._separator = ""
        self._arff = False
        self._pairs = False  # a key and its value in each row

    def line(self, line: str, in_order: bool) -> None:
        """Look at one line; `in_order` where it follows the one before."""
        comment = _COMMENT.match(line)
        if comment is not None:
            _comment(comment[1], self.notes)
        elif line[:1] == "@":
            self._attribute(line)
        elif line.strip():
            self._row(line, in_order)

    def _attribute(self, line: str) -> None:
        """A line of ARFF's header, which names the columns one by one."""
        self._arff = True
        attribute = _ATTRIBUTE.match(line)
        if attribute is not None:
            self._columns.append(_Column(attribute[1].strip("'\"")))
        elif line.lower().startswith("@relation"):
            self.notes.text("@relation", line)

    def _row(self, line: str, in_order: bool) -> None:
        if not self._columns and not self._arff:
            self._separator = find_separator(line)
            names = _cells(line, self._separator)
            if not all(not c or NUMBER.match(c) or c == "n/a" for c in names):
                self._columns = [_Column(name) for name in names]
                self._pairs = [name.lower() for name in names] == ["key", "value"]
                for name in names:
                    self.notes.text(f"column name {name}", name)
                return
            self._columns = [_Column(f"column {i + 1}") for i in range(len(names))]
        self._separator = self._separator or find_separator(line) or ","
        cells = _cells(line, self._separator)
        self.rows += 1
        if self._pairs:
            self.notes.value(cells[0], ", ".join(cells[1:]))
            return
        for column, cell in zip(self._columns, cells, strict=False):
            column.cell(cell, self.notes, in_order)

    def finish(self) -> None:
        """Note what only the whole column says."""
        for column in self._columns:
            column.finish(self.notes)


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
