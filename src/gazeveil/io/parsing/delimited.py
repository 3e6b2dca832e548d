"""Delimited text whose separator and decimal sign the file decides: what the vendors' exports have
in common.

Columns are found by a key that forgets case, blanks, brackets and punctuation, because exports of
one tracker differ in these (`Head Rotation. x`, `head_rotation.x`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.source import Head, decode, read_text

_SEPARATORS = "\t;,|"
_COMMA_NUMBER = re.compile(r"^\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*$")
_LOOK_ROWS = 200
_LONG_RUNS = 20

#: Words for "yes, there is an eye" in validity columns.
YES = ("true", "1", "valid", "yes", "1.0")
NO = ("false", "0", "invalid", "no", "0.0", "", "nan", "none", "n/a")


def key(name: str) -> str:
    """A column name without case, blanks and punctuation."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def find_separator(header: str) -> str:
    """The separator a header line uses most, or an empty text where it uses none."""
    best = max(_SEPARATORS, key=header.count)
    return best if best in header else ""


def header_cells(head: Head, comment: str = "#") -> list[str]:
    """Column names in the first line that is neither blank nor a comment, unquoted; empty where
    there is no separator.
    """
    line = next((t for t in head.lines if t.strip() and not t.startswith(comment)), "")
    separator = find_separator(line)
    return [c.strip().strip('"') for c in line.split(separator)] if separator else []


def header_keys(head: Head) -> frozenset[str]:
    """Keys of the column names, for sniffing."""
    return frozenset(key(c) for c in header_cells(head))


@dataclass(frozen=True)
class KeyedTable:
    """A table whose columns are found by :func:`key`; what was read once is kept, because many
    recordings may lie in one file.

    Parameters
    ----------
    table : Table
        The rows.
    decimal : str
        The decimal sign that the file has; in `table` it is a point.
    """

    table: Table
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def _names(self) -> dict[str, str]:
        # Names of other alphabets have no key; they are found as they are written.
        return {key(n) or n: n for n in reversed(self.table.names)}

    @cached_property
    def _numbers(self) -> dict[tuple[str, Sequence[str]], Floats]:
        return {}

    @cached_property
    def _times(self) -> dict[tuple[str, str, bool], Ints]:
        return {}

    def name(self, *wanted: str) -> str | None:
        """The file's name of the first of these columns that is there, or None."""
        return next((self._names[k] for w in wanted if (k := key(w) or w) in self._names), None)

    def has(self, *wanted: str) -> bool:
        """Whether all these columns are there."""
        return all((key(w) or w) in self._names for w in wanted)

    def need(self, *wanted: str) -> str:
        """The file's name of the first of these columns that is there; an error that lists what is
        there otherwise.
        """
        name = self.name(*wanted)
        if name is None:
            self.table.column(wanted[0])
            raise AssertionError  # the line above has raised
        return name

    def floats(self, *wanted: str, missing: Sequence[str] = ()) -> Floats:
        """The first of these columns as numbers."""
        cache_key = self.need(*wanted), tuple(missing)
        if cache_key not in self._numbers:
            self._numbers[cache_key] = self.table.floats(*cache_key)
            self._numbers[cache_key].setflags(write=False)
        return self._numbers[cache_key]

    def times_ns(self, *wanted: str, unit: str, relative: bool = False) -> Ints:
        """The first of these columns as nanoseconds; see
        :meth:`gazeveil.io.parsing.table.Table.times_ns`.
        """
        cache_key = self.need(*wanted), unit, relative
        if cache_key not in self._times:
            self._times[cache_key] = self.table.times_ns(*cache_key)
        return self._times[cache_key]

    def maybe_floats(self, *wanted: str, missing: Sequence[str] = ()) -> Floats | None:
        """The first of these columns as numbers, None where none is there."""
        name = self.name(*wanted)
        return None if name is None else self.floats(name, missing=missing)

    def vectors(self, pattern: str) -> Floats:
        """Three columns as (n, 3): `pattern` has `{}` where x, y and z stand."""
        return (
            np.stack([self.floats(pattern.format(axis)) for axis in "xyz"], axis=1)
            if len(self)
            else np.empty((0, 3))
        )

    def flags(self, *wanted: str) -> Bools:
        """The first of these columns as yes and no.

        Raises
        ------
        FormatError
            For a word that is neither.
        """
        name = self.need(*wanted)
        cells = self.table.column(name).cast(pl.String).fill_null("")
        # There are few different words, and to look at each costs less than to change all cells.
        words = {w: w.strip().lower() for w in cells.unique().to_list()}
        yes = cells.is_in([w for w, plain in words.items() if plain in YES])
        wrong = [w for w, plain in words.items() if plain not in YES and plain not in NO]
        if wrong:
            row = int(cells.is_in(wrong).arg_true()[0])
            coded = str(cells[row]).replace(".", "", 1).isdecimal()
            raise FormatError(
                self.table.path,
                f"'{cells[row]}' in column '{name}' is neither yes nor no",
                "Write 1 where it holds and 0 where not (of Tobii's codes of validity 0 and 1 mean"
                " valid, 2 to 4 lost)."
                if coded
                else "Mend the line.",
                self.table.line_of(row),
            )
        return yes.to_numpy().astype(np.bool_)

    def groups(self, *columns: str | None) -> list[tuple[tuple[str, ...], Ints]]:
        """Rows that share the words in some columns, in order of first appearance; None stands for
        a column of empty words.
        """
        if not len(self):
            return [(tuple("" for _ in columns), np.empty(0, dtype=np.int64))]
        cells = {
            f"{i}": self.table.column(c).cast(pl.String).fill_null("")
            for i, c in enumerate(columns)
            if c is not None
        }
        if not cells:
            return [(tuple("" for _ in columns), np.arange(len(self), dtype=np.int64))]
        frame = pl.DataFrame(cells)
        changed = frame.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))))
        starts = changed.to_series().arg_true().to_numpy()
        if len(starts) * _LONG_RUNS < len(self):
            return _runs(frame, starts, len(columns))
        frame = frame.select(pl.all().str.strip_chars()).with_row_index("row")
        grouped = frame.group_by(list(cells), maintain_order=True).agg(pl.col("row"))
        parts = [
            tuple(str(record.get(f"{i}", "")) for i in range(len(columns)))
            for record in grouped.select(list(cells)).iter_rows(named=True)
        ]
        return [
            (part, rows.to_numpy().astype(np.int64))
            for part, rows in zip(parts, grouped["row"], strict=True)
        ]


def _runs(
    frame: pl.DataFrame, starts: NDArray[Any], width: int
) -> list[tuple[tuple[str, ...], Ints]]:
    """Rows of each part, where parts stand in long runs of rows."""
    found: dict[tuple[str, ...], list[Ints]] = {}
    ends = [*starts[1:].tolist(), frame.height]
    words = frame[starts].rows(named=True)
    for record, start, end in zip(words, starts.tolist(), ends, strict=True):
        part = tuple(record.get(f"{i}", "").strip() for i in range(width))
        found.setdefault(part, []).append(np.arange(start, end, dtype=np.int64))
    return [(part, np.concatenate(rows)) for part, rows in found.items()]


def open_sheet(
    path: Path,
    separator: str | None = None,
    decimal: str | None = None,
    comment: str = "",
    text: str | bytes | None = None,
    first_line: int = 1,
    types: Mapping[str, type[pl.DataType]] | None = None,
) -> KeyedTable:
    """Read delimited text with a header.

    Parameters
    ----------
    path : Path
        The file.
    separator : str, optional
        One character; found from the header where not given.
    decimal : str, optional
        `"."` or `","`; found from the first rows where not given. A comma cannot be both separator
        and decimal sign.
    comment : str
        Prefix of lines that are not rows.
    text : str or bytes, optional
        The text, where it has been read already, bytes in UTF-8; it starts at line `first_line` of
        the file.
    types : mapping of column to polars type, optional
        Columns that are parsed as numbers at once, where all their cells are numbers.

    Raises
    ------
    FormatError
        For a file that is empty, cut or not a table.
    """
    text = read_text(path) if text is None else text
    if separator is None:
        start = text[: 1 << 16] if isinstance(text, str) else decode(text[: 1 << 16], "replace")
        lines = (t for t in start.split("\n", 64) if t.strip())
        header = next((t for t in lines if not (comment and t.startswith(comment))), "")
        separator = find_separator(header)
    if not separator:
        raise FormatError(
            path,
            "its first line is not a header with separated column names",
            "Check that this is the exported text file.",
            first_line,
        )
    table = parse_table(
        path,
        text,
        separator,
        first_line,
        comment=comment,
        # Without a word about the decimal sign, cells are looked at as text first.
        types=types if decimal else None,
        decimal_comma=decimal == ",",
    )
    if decimal is None:
        decimal = "," if separator != "," and _has_comma_numbers(table) else "."
    if decimal == ",":
        written = pl.col(pl.String)
        pointed = written.str.replace(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$", "${1}.${2}")
        table = replace(table, frame=table.frame.with_columns(pointed))
    return KeyedTable(table, decimal)


def _has_comma_numbers(table: Table) -> bool:
    return any(
        cell is not None and _COMMA_NUMBER.match(cell)
        for row in table.frame.head(_LOOK_ROWS).iter_rows()
        for cell in row
    )


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files in a folder, gzip or not."""
    for name in names:
        for place in (folder / name, folder / f"{name}.gz"):
            if place.is_file():
                return place
    return None


def stamp(path: Path) -> tuple[int, int]:
    """Size and change time of a file: what tells a parsed copy of it from a newer one."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns
