"""Tables that break lines between words and never inside one.

A column is at least as wide as its longest word. Where the terminal is too narrow even for that,
the table is wider than the terminal: a name that is cut in two cannot be copied.

Control characters in a cell are written out: names in files are of any text, and one that clears
the screen could show another table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from gazeveil.cli.wording import without_controls

# Wide enough that nothing is broken.
_WIDE = 10_000


class TableConsole(Console):
    """A console that fits tables before it prints them."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; tables without a broken word."""
        own = self.width
        self.width = max(own, *(fit(o, own) for o in objects if isinstance(o, Table)), 0)
        try:
            super().print(*objects, **options)
        finally:
            self.width = own

    def render_str(self, text: str, **options: Any) -> Text:
        """Text as rich shows it, with control characters written out."""
        return super().render_str(without_controls(text), **options)


def fit(table: Table, width: int) -> int:
    """Give every column of a table a width that breaks no word; returns the width of the table.
    `width` is that of the terminal, in characters.
    """
    if not table.columns:
        return 0
    wide = TableConsole(width=_WIDE, markup=False)
    lines = [_longest(column, whole=True) for column in table.columns]
    limits = [_limits(column) for column in table.columns]
    for column in table.columns:
        column.min_width = column.max_width = None
    around = Measurement.get(wide, wide.options, table).maximum - sum(lines)
    widths = shared_widths([a for a, _ in limits], [b for _, b in limits], width - around)
    for column, own in zip(table.columns, widths, strict=True):
        column.width = own
    return sum(widths) + around


def shared_widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Widths of columns, each from its least to its most, that share the room.

    What is left after all have their least goes to the narrowest column that wants more, one
    character at a time.

    Examples
    --------
    >>> shared_widths([4, 6], [10, 20], 24)
    [10, 14]
    >>> shared_widths([4, 6], [10, 20], 5)
    [4, 6]
    """
    widths = list(least)
    left = room - sum(widths)
    while left > 0:
        wanting = [i for i, own in enumerate(widths) if own < most[i]]
        if not wanting:
            break
        widths[min(wanting, key=lambda i: widths[i])] += 1
        left -= 1
    return widths


def _limits(column: Column) -> tuple[int, int]:
    """The least and the most characters of a column: its longest word, and its longest line or what
    it may have at most. A column that is cut with an ellipsis may be cut anywhere.
    """
    line = _longest(column, whole=True)
    word = line if column.no_wrap else _longest(column, whole=False)
    most = line if column.max_width is None else min(line, column.max_width)
    if column.no_wrap and column.overflow == "ellipsis":
        return most, most
    return word, max(word, most)


def _longest(column: Column, whole: bool) -> int:
    """Characters of the longest line or word of a column."""
    longest = 1
    for cell in (column.header, column.footer, *column.cells):
        for line in without_controls(str(cell)).splitlines():
            parts = [line] if whole else line.split()
            longest = max(longest, *(cell_len(part) for part in parts), 1)
    return longest
