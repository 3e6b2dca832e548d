"""Delimited text as columns of strings that become numbers on request, so that a bad cell can be
named by line. Columns whose type is said are parsed at once, which is several times faster; where
one cell is of another type, all columns are strings.

Columns go by name, never by position: as it is written, without regard to case and surrounding
blanks, or by a key that forgets blanks, brackets and punctuation too, because exports of one
tracker differ in these (`Head Rotation. x`, `head_rotation.x`). Separator and decimal sign are
found from the file where they are not said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.source import decode, find_separator, key, read_text

#: Nanoseconds in one unit of time.
UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "100ns": 100, "ns": 1}

#: Largest time in nanoseconds, just inside 64 bits.
MOST_NS = 9_200_000_000_000_000_000

#: What trackers write for "nothing", compared without regard to case.
MISSING = (
    "",
    "na",
    "nan",
    "n/a",
    "null",
    "none",
    ".",
    "-",
    "-nan",
    "-nan(ind)",
    "inf",
    "-inf",
    "+inf",
    "infinity",
    "-infinity",
)

#: A number with a decimal comma.
COMMA_NUMBER = re.compile(r"^\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*$")
_LOOK_ROWS = 200
_LONG_RUNS = 20

#: Words for "yes, there is an eye" in validity columns.
YES = ("true", "1", "valid", "yes", "1.0")
NO = ("false", "0", "invalid", "no", "0.0", "", "nan", "none", "n/a")


# Lines of nothing but blanks are not rows; `Table.line_of` steps over them too.
_BLANK_LINES = re.compile(r"\n[ \t]*(?=\n|\Z)")


def printable(cell: object, longest: int = 40) -> str:
    """A cell or name for a message: short, and without control characters."""
    text = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(cell)[: longest + 1]
    )
    return text if len(text) <= longest else text[: longest - 3] + "..."


def listed(names: Sequence[str]) -> str:
    """The first names of a header for a message."""
    return ", ".join(printable(n) for n in names[:12]) + (", ..." if len(names) > 12 else "")


@dataclass(frozen=True)
class Table:
    """Rows of a text file.

    Parameters
    ----------
    path : Path
        The file, for messages.
    frame : polars.DataFrame
        Columns of strings, and of numbers where their type was said.
    lines : str or bytes
        The text the rows came from, for finding the line of a bad cell.
    first_line : int
        One-based line of the file on which `lines` starts.
    comment : str
        Prefix of lines that are not rows; empty for none.
    decimal : str
        The decimal sign that the file has; in `frame` it is a point.
    """

    path: Path
    frame: pl.DataFrame
    lines: str | bytes
    first_line: int
    comment: str = ""
    decimal: str = "."

    def __len__(self) -> int:
        return self.frame.height

    @cached_property
    def _index(self) -> dict[str, str]:
        """Spellings of each column: its key, without case, and as it is written."""
        found: dict[str, str] = {}
        for spelling in (key, lambda n: n.strip().lower(), lambda n: n):
            found |= {spelling(n): n for n in reversed(self.frame.columns)}
        return found

    @cached_property
    def _numbers(self) -> dict[tuple[str, Sequence[str]], Floats]:
        return {}

    @property
    def names(self) -> list[str]:
        """Column names as the file has them."""
        return self.frame.columns

    def name(self, *names: str) -> str | None:
        """The file's name of the first of these columns that is there, or None."""
        spellings = (s for w in names for s in (w, w.strip().lower(), key(w)) if s)
        return next((self._index[s] for s in spellings if s in self._index), None)

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(self.name(w) is not None for w in names)

    def need(self, *names: str) -> str:
        """The file's name of the first of these columns that is there; an error that lists what is
        there otherwise.
        """
        name = self.name(*names)
        if name is None:
            raise FormatError(
                self.path,
                f"there is no column '{names[0]}' (columns: {listed(self.names)})",
                "Check the export settings or the column map.",
                self.first_line,
            )
        return name

    def column(self, *names: str) -> pl.Series:
        """The first of these columns as the frame has it."""
        return self.frame[self.need(*names)]

    def words(self, name: str) -> list[str]:
        """A column as stripped text; missing cells are empty."""
        return [(w or "").strip() for w in self.column(name).to_list()]

    def floats(self, *names: str, missing: Sequence[str] = ()) -> Floats:
        """The first of these columns as numbers, NaN where missing or infinite; kept, because many
        recordings may lie in one file.

        Raises
        ------
        FormatError
            For a cell that is neither a number nor one of the usual words for "missing" (or those
            in `missing`), with its line.
        """
        name = self.need(*names)
        if (name, tuple(missing)) not in self._numbers:
            self._numbers[name, tuple(missing)] = self._parsed(name, missing)
        return self._numbers[name, tuple(missing)]

    def _parsed(self, name: str, missing: Sequence[str]) -> Floats:
        text = self.frame[name]
        values = text.cast(pl.Float64, strict=False)
        if values.null_count() and text.dtype == pl.String:
            text = text.str.strip_chars()
            values = text.cast(pl.Float64, strict=False)
            bad = values.is_null() & text.is_not_null()
            if bad.any():
                allowed = [*MISSING, *(m.lower() for m in missing)]
                wrong = (bad & ~text.str.to_lowercase().is_in(allowed)).arg_true()
                if len(wrong):
                    row = int(wrong[0])
                    raise FormatError(
                        self.path,
                        f"'{printable(text[row])}' in column '{name}' is not a number",
                        "Mend or remove the line.",
                        self.line_of(row),
                    )
        # A row that was cut ends before the last column.
        if text.null_count() and (text.is_null() & self.frame.to_series(-1).is_null()).any():
            self._refuse_short_rows()
        result = values.to_numpy().astype(np.float64)
        result[~np.isfinite(result)] = np.nan
        result.setflags(write=False)
        return result

    def maybe_floats(self, *names: str, missing: Sequence[str] = ()) -> Floats | None:
        """The first of these columns as numbers, None where none is there."""
        return None if self.name(*names) is None else self.floats(*names, missing=missing)

    def vectors(self, pattern: str) -> Floats:
        """Three columns as (n, 3): `pattern` has `{}` where x, y and z stand."""
        return (
            np.stack([self.floats(pattern.format(axis)) for axis in "xyz"], axis=1)
            if len(self)
            else np.empty((0, 3))
        )

    def flags(self, *names: str) -> Bools:
        """The first of these columns as yes and no.

        Raises
        ------
        FormatError
            For a word that is neither.
        """
        name = self.need(*names)
        cells = self.frame[name].cast(pl.String).fill_null("")
        # There are few different words, and to look at each costs less than to change all cells.
        words = {w: w.strip().lower() for w in cells.unique().to_list()}
        yes = cells.is_in([w for w, plain in words.items() if plain in YES])
        wrong = [w for w, plain in words.items() if plain not in YES and plain not in NO]
        if wrong:
            row = int(cells.is_in(wrong).arg_true()[0])
            coded = str(cells[row]).replace(".", "", 1).isdecimal()
            raise FormatError(
                self.path,
                f"'{cells[row]}' in column '{name}' is neither yes nor no",
                "Write 1 where it holds and 0 where not (of Tobii's codes of validity 0 and 1 mean"
                " valid, 2 to 4 lost)."
                if coded
                else "Mend the line.",
                self.line_of(row),
            )
        return yes.to_numpy().astype(np.bool_)

    def groups(self, *columns: str | None) -> list[tuple[tuple[str, ...], Ints]]:
        """Rows that share the words in some columns, in order of first appearance; None stands for
        a column of empty words.
        """
        if not len(self):
            return [(tuple("" for _ in columns), np.empty(0, dtype=np.int64))]
        cells = {
            f"{i}": self.column(c).cast(pl.String).fill_null("")
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

    def times_ns(self, *names: str, unit: str, relative: bool = False) -> Ints:
        """The first of these columns as nanoseconds, exactly: digits that a double would round are
        kept.

        Parameters
        ----------
        *names : str
            The columns.
        unit : str
            `s`, `ms`, `us`, `100ns` or `ns`.
        relative : bool
            Count from the smallest time, for clocks whose nanoseconds would not fit 64 bits.

        Raises
        ------
        FormatError
            For a cell that is not a time, or too large a one for the unit: a sample without time
            cannot be placed.
        """
        scale = UNIT_NS[checks.one_of("times_ns", "unit", unit, UNIT_NS)]
        name = self.need(*names)
        text = self.frame[name]
        if text.dtype == pl.Float64:
            return self._float_times(text, name, unit, relative)
        whole = text.cast(pl.Int64, strict=False)
        if whole.null_count() and text.dtype == pl.String:
            # Blanks around numbers are rare, and stripping them costs as much as reading the file.
            text = text.str.strip_chars()
            whole = text.cast(pl.Int64, strict=False)
        if not whole.null_count():
            ticks = whole.to_numpy()
            ticks = ticks - (ticks.min() if relative and len(ticks) else 0)
            self._refuse_large(np.abs(ticks.astype(np.float64)) * scale, name, unit)
            return ticks * scale
        return self._float_times(text, name, unit, relative)

    def _float_times(self, text: pl.Series, name: str, unit: str, relative: bool) -> Ints:
        scale = UNIT_NS[unit]
        values = text.cast(pl.Float64, strict=False)
        if values.null_count() or not values.is_finite().all():
            row = int((values.is_null() | ~values.is_finite()).fill_null(True).arg_true()[0])
            cell = "" if text[row] is None else printable(text[row])
            raise FormatError(
                self.path,
                f"'{cell}' in column '{name}' is not a time",
                "Mend or remove the line.",
                self.line_of(row),
            )
        seconds = values.to_numpy()
        # Whole and fractional part apart, so that 1e9-second clocks keep their nanoseconds.
        origin = np.floor(seconds.min()) if relative and len(seconds) else 0.0
        self._refuse_large(np.abs(seconds - origin) * scale, name, unit)
        base = np.floor(seconds - origin)
        return base.astype(np.int64) * scale + np.round((seconds - origin - base) * scale).astype(
            np.int64
        )

    def _refuse_large(self, nanoseconds: Floats, name: str, unit: str) -> None:
        """Times that do not fit 64 bits would wrap around to other times."""
        if len(nanoseconds) and nanoseconds.max() > MOST_NS:
            row = int(nanoseconds.argmax())
            raise FormatError(
                self.path,
                f"'{printable(self.frame[name][row])}' in column '{name}' is too large for a time"
                f" in {unit}",
                "Check the unit, or mend the line.",
                self.line_of(row),
            )

    def _numbered(self) -> Iterator[tuple[int, str]]:
        """Lines that are the header or a row, with their numbers from 0."""
        text = self.lines if isinstance(self.lines, str) else decode(self.lines)
        for number, line in enumerate(text.split("\n")):
            if line.strip() and not (self.comment and line.lstrip().startswith(self.comment)):
                yield number, line

    def line_of(self, row: int) -> int:
        """One-based line of the file that holds a row."""
        for seen, (number, _) in enumerate(self._numbered()):
            # The header is the first such line.
            if seen == row + 1:
                return self.first_line + number
        return self.first_line

    def _refuse_short_rows(self) -> None:
        """A row with fewer cells than the header is a cut file, not missing data."""
        width, separator = 0, ""
        for number, line in self._numbered():
            if not width:
                separator = max("\t;,", key=line.count)
                width = line.count(separator)
            # Cells after the last written one may be left off by some exporters only if the row is
            # otherwise whole: that cannot be told from a cut row, so it is refused.
            elif '"' not in line and line.count(separator) < width:
                raise FormatError(
                    self.path,
                    f"the row has {line.count(separator) + 1} cells, the header {width + 1}",
                    "The file was cut; copy it again or remove the line.",
                    self.first_line + number,
                )

    def refuse_long_row(self, separator: str) -> None:
        """Refuse a row with more cells than the header."""
        width = 0
        for number, line in self._numbered():
            cells = line.count(separator) + 1
            width = width or cells
            if cells > width:
                raise FormatError(
                    self.path,
                    f"the row has {cells} cells, the header {width}",
                    "Mend or remove the line.",
                    self.first_line + number,
                )


def parse_table(
    path: Path,
    text: str | bytes,
    separator: str,
    first_line: int = 1,
    header: Sequence[str] | None = None,
    comment: str = "",
    quoted: bool = True,
    types: Mapping[str, type[pl.DataType]] | None = None,
    decimal_comma: bool = False,
) -> Table:
    """Parse delimited text that starts with its header line, or use `header` where the text has
    none. Columns of `types` are numbers where all their cells are.

    Raises
    ------
    FormatError
        For text that is not a table, a header without rows excepted: that is an empty table.
    """
    if header is not None:
        assert isinstance(text, str)
        text = separator.join(header) + "\n" + text
        first_line -= 1

    def read(plain: str | bytes, typed: Mapping[str, type[pl.DataType]] | None) -> pl.DataFrame:
        return pl.read_csv(
            plain.encode() if isinstance(plain, str) else plain,
            separator=separator,
            infer_schema=False,
            schema_overrides=typed,
            comment_prefix=comment or None,
            quote_char='"' if quoted else None,
            truncate_ragged_lines=False,
            raise_if_empty=True,
            decimal_comma=decimal_comma and bool(typed),
        )

    try:
        # Blank lines come out as rows of nothing; looking for them in every file would cost as much
        # as reading it.
        frame = _read_or_none(read, text, types) if not text[:1].isspace() else None
        if frame is None or _has_empty_row(frame):
            plain = decode(text) if isinstance(text, bytes) else text
            frame = read(_BLANK_LINES.sub("", plain), None)
    except pl.exceptions.PolarsError as error:
        Table(path, pl.DataFrame(), text, first_line, comment).refuse_long_row(separator)
        raise FormatError(
            path,
            f"it cannot be parsed as a table ({printable(str(error).splitlines()[0], 80)})",
            "Check that the file is complete.",
        ) from error
    return Table(path, frame, text, first_line, comment)


def _read_or_none(
    read: Callable[..., pl.DataFrame],
    text: str | bytes,
    types: Mapping[str, type[pl.DataType]] | None,
) -> pl.DataFrame | None:
    """The table, with numbers where all cells of a column are; None where a blank line after a
    comment is taken for the header.
    """
    for typed in (types, None) if types else (None,):
        try:
            return read(text, typed)
        except pl.exceptions.PolarsError:
            continue
    return None


def _has_empty_row(frame: pl.DataFrame) -> bool:
    nothing = pl.all_horizontal(pl.all().is_null()).any()
    return bool(frame.to_series(-1).null_count()) and bool(frame.select(nothing).item())


def read_table(path: Path, separator: str) -> Table:
    """Read a whole file as a table whose first line is the header."""
    return parse_table(path, read_text(path), separator)


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
) -> Table:
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
        pointed = pl.col(pl.String).str.replace(
            r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$", "${1}.${2}"
        )
        table = replace(table, frame=table.frame.with_columns(pointed))
    return replace(table, decimal=decimal)


def _has_comma_numbers(table: Table) -> bool:
    return any(
        cell is not None and COMMA_NUMBER.match(cell)
        for row in table.frame.head(_LOOK_ROWS).iter_rows()
        for cell in row
    )


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files in a folder, gzip or not."""
    places = (folder / f"{name}{ending}" for name in names for ending in ("", ".gz"))
    return next((place for place in places if place.is_file()), None)


def stamp(path: Path) -> tuple[int, int]:
    """Size and change time of a file: what tells a parsed copy of it from a newer one."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns
