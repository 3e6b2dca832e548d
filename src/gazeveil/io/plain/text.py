"""The text of a table: its first rows for guessing, and all rows in blocks of whole lines, so that
a large file is never in memory at once.

A block is parsed as the whole file would be, with the header in front of it; errors name the line
of the file. Files in UTF-16, and those whose lines end in a lone carriage return, are one block.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import COMMA_NUMBER, Table, find_separator, open_sheet, stamp
from gazeveil.io.plain.other_tables import frame_at
from gazeveil.io.source import Head, byte_pieces, read_text, unix

#: Size of a block in bytes.
BLOCK_BYTES = 8 << 20
#: Rows below which nothing is guessed from values: too few to tell a unit by.
LEAST_ROWS = 20
_MOST_ROWS = 1000
_NEWLINE = ord("\n")
_UTF8_MARK = b"\xef\xbb\xbf"


def separator_of(options: Mapping[str, object]) -> str | None:
    """The separator that the options say, or None."""
    separator = options.get("separator")
    if separator is not None and not (isinstance(separator, str) and len(separator) == 1):
        checks.refuse("Format csv", "separator", "one character", separator)
    return separator


def comment_of(options: Mapping[str, object]) -> str:
    """What a line of comment begins with."""
    return str(options.get("comment", "#"))


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
    def at(cls, path: Path, options: Mapping[str, object]) -> FirstRows:
        """Look at a file; kept for a while, because one step of reading after another asks."""
        table = options.get("table")
        if table is not None:
            frame = frame_at(path, str(table)).head(_MOST_ROWS)
            cells = frame.select(pl.all().cast(pl.String).fill_null("")).rows()
            return cls(path, tuple(frame.columns), tuple(cells), ",")
        return _first_rows(path, stamp(path), separator_of(options), comment_of(options))

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
        try:
            rows = list(csv.reader(lines[: _MOST_ROWS + 2], delimiter=separator))
        except csv.Error:  # a cell longer than any of gaze
            return cls(head.path, (), (), "")
        names = tuple(c.strip() for c in rows[0])
        # The head may end inside a line, which then has fewer cells or a cut number.
        whole = rows[1:-1] if len(head.data) >= 1 << 15 or len(rows) > _MOST_ROWS else rows[1:]
        return cls(
            head.path, names, tuple(tuple(r) for r in whole if len(r) == len(names)), separator
        )

    @property
    def is_headed(self) -> bool:
        """Whether the first line holds names: at least two, and no number among them."""
        numbers = (np.isfinite(_number(n.strip(), ";")) for n in self.names if n)
        return len(self.names) >= 2 and not any(numbers)

    def words(self, name: str) -> list[str]:
        """A column's cells, stripped."""
        column = self.names.index(name)
        return [row[column].strip() for row in self.cells]

    def numbers(self, name: str) -> Floats:
        """A column's cells as numbers, NaN where they are none."""
        return np.array([_number(cell, self.separator) for cell in self.words(name)])


@lru_cache(maxsize=64)
def _first_rows(
    path: Path, _stamp: tuple[int, int], separator: str | None, comment: str
) -> FirstRows:
    return FirstRows.of(Head.of(path), {"separator": separator, "comment": comment})


def _number(text: str, separator: str) -> float:
    if separator != ",":
        text = text.replace(",", ".", 1)
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if np.isfinite(value) else float("nan")


def sheets(
    path: Path,
    separator: str | None = None,
    decimal: str | None = None,
    comment: str | None = "",
    types: Mapping[str, type[pl.DataType]] | None = None,
    table: str | None = None,
) -> Iterator[Table]:
    """The rows of a file, block by block. What is not given is found at the beginning of the file
    (:func:`gazeveil.io.parsing.table.open_sheet`); columns of `types` are parsed as numbers. With
    a `comment` of None, lines that begin with `#` are comments unless they look like rows. A
    `table` of :mod:`gazeveil.io.plain.other_tables` is one block.

    Raises
    ------
    FormatError
        For a file that cannot be opened, is no table, or an archive that ends early.
    """
    asking, comment = comment is None, "#" if comment is None else comment
    if table is not None:
        frame = frame_at(path, table)
        kinds = {name: (types or {}).get(name, pl.String) for name in frame.columns}
        yield Table(path, frame.cast(kinds), b"", 1)  # type: ignore[arg-type]
        return
    head = Head.of(path)
    # Lines can be told apart before a file is decoded, but for these.
    wide = head.data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head.data
    if wide or b"\n" not in head.data:
        yield open_sheet(path, separator, decimal, comment, read_text(path), 1, types)
        return
    header, header_lines = _header(path, unix(head.text), comment)
    separator = separator or find_separator(header)
    if decimal is None:
        first = FirstRows.of(head, {"separator": separator, "comment": comment})
        cells = (cell for row in first.cells for cell in row)
        decimal = "," if separator != "," and any(map(COMMA_NUMBER.match, cells)) else "."
    start = (header + "\n").encode()
    line, empty = 1, True
    for data in _blocks(path):
        text, rows_from = _as_utf8(data), line
        if line == 1:
            text = text.split(b"\n", header_lines)[-1]
            rows_from += header_lines
        if asking and (text.startswith(b"#") or b"\n#" in text):
            _ask_of_rows(path, text, header.count(separator), separator)
        # Several times as fast as to count them in bytes.
        line += int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE))
        if text and not text.isspace():
            empty = False
            # The header takes the line before the first.
            yield open_sheet(path, separator, decimal, comment, start + text, rows_from - 1, types)
    if empty:
        yield open_sheet(path, separator, decimal, comment, start)


def _ask_of_rows(path: Path, text: bytes, cells: int, separator: str) -> None:
    """Refuse where lines of comment have as many cells as the header: they may be rows."""
    lines = [t for t in text.split(b"\n") if t.startswith(b"#")]
    alike = [t for t in lines if separator and t.count(separator.encode()) == cells > 1]
    if alike:
        raise FormatError(
            path,
            f"{len(alike)} lines begin with '#' and have as many cells as the header",
            "If they are rows, say comment=''; if they are comments, say comment='#'.",
        )


def _blocks(path: Path) -> Iterator[bytes]:
    """The lines of a file, in blocks of about :data:`BLOCK_BYTES`."""
    block = rest = b""
    for piece in byte_pieces(path, BLOCK_BYTES):
        data = rest + piece
        end = _whole_lines(data)
        rest = data[end:]
        if end and block:
            yield block
        block = data[:end] or block
    # A last line without its break belongs to the last block.
    yield block + rest


def _whole_lines(data: bytes) -> int:
    """Where the last line ends that is whole: a line break inside quotes ends none."""
    end = data.rfind(b"\n") + 1
    if b'"' in data and data.count(b'"', 0, end) % 2:
        # The last quote opens a cell that goes on in the next piece.
        end = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
    return end


def _as_utf8(data: bytes) -> bytes:
    data = data.removeprefix(_UTF8_MARK)
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("latin-1").encode()
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _header(path: Path, text: str, comment: str) -> tuple[str, int]:
    """The header line, and the lines up to and with it."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not (comment and line.startswith(comment)):
            return line, number
    raise FormatError(
        path, "its first line is not a header with separated column names", "Check the file.", 1
    )
