"""The first rows of a delimited file as numbers: what a guess, or a doubt about one, looks at."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.io.csv_layout import comment_of, separator_of
from gazeveil.io.parsing.delimited import find_separator
from gazeveil.io.source import Head

#: Rows below which nothing is guessed from values: too few to tell a unit by.
LEAST_ROWS = 20


@dataclass(frozen=True)
class FirstRows:
    """Column names, as the file has them, and whole rows from the first 64 KiB of a file. The
    separator is empty where no line has any.
    """

    path: Path
    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    separator: str

    @classmethod
    def of(cls, head: Head, options: Mapping[str, object]) -> FirstRows:
        """Look at a file's head; the options may say separator and comment."""
        comment = comment_of(options)
        lines = [t for t in head.lines if t.strip() and not (comment and t.startswith(comment))]
        if not lines or "\0" in head.text[:1000]:
            return cls(head.path, (), (), "")
        separator = separator_of(options) or find_separator(lines[0])
        if not separator:
            return cls(head.path, (), (), "")
        rows = list(csv.reader(lines, delimiter=separator))
        names = tuple(c.strip() for c in rows[0])
        # The head may end inside a line, which then has fewer cells or a cut number.
        whole = rows[1:-1] if len(head.data) >= 1 << 15 else rows[1:]
        return cls(
            head.path, names, tuple(tuple(r) for r in whole if len(r) == len(names)), separator
        )

    @property
    def is_headed(self) -> bool:
        """Whether the first line holds names: at least two, and no number among them."""
        return len(self.names) >= 2 and not any(_is_number(n) for n in self.names if n)

    def numbers(self, name: str) -> Floats:
        """A column's cells as numbers, NaN where they are none."""
        column = self.names.index(name)
        return np.array([_number(row[column], self.separator) for row in self.cells])


def _is_number(text: str) -> bool:
    return bool(np.isfinite(_number(text, ";")))


def _number(text: str, separator: str) -> float:
    text = text.strip()
    if separator != ",":
        text = text.replace(",", ".", 1)
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if np.isfinite(value) else float("nan")
