"""Delimited text as columns of strings that become numbers on request, so that a bad cell can be
named by line. Columns whose type is said are parsed at once, which is several times faster; where
one cell is of another type, all columns are strings.

Columns go by name, never by position; names match without regard to case and surrounding blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.source import decode, read_text

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
    """

    path: Path
    frame: pl.DataFrame
    lines: str | bytes
    first_line: int
    comment: str = ""

    def __len__(self) -> int:
        return self.frame.height

    @cached_property
    def _index(self) -> dict[str, str]:
        return {c.strip().lower(): c for c in reversed(self.frame.columns)}

    @property
    def names(self) -> list[str]:
        """Column names as the file has them."""
        return self.frame.columns

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(n.strip().lower() in self._index for n in names)

    def column(self, name: str) -> pl.Series:
        """A column as the frame has it; a missing one is an error that lists what is there."""
        spelling = self._index.get(name.strip().lower())
        if spelling is None:
            problem = f"there is no column '{name}' (columns: {listed(self.names)})"
            raise FormatError(
                self.path, problem, "Check the export settings or the column map.", self.first_line
            )
        return self.frame[spelling]

    def words(self, name: str) -> list[str]:
        """A column as stripped text; missing cells are empty."""
        return [(w or "").strip() for w in self.column(name).to_list()]

    def floats(self, name: str, missing: Sequence[str] = (), decimal_comma: bool = False) -> Floats:
        """A column as numbers, NaN where missing or infinite.

        Raises
        ------
        FormatError
            For a cell that is neither a number nor one of the usual words for "missing" (or those
            in `missing`), with its line.
        """
        text = self.column(name)
        if decimal_comma:
            text = text.str.replace(",", ".", literal=True)
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
        return result

    def times_ns(self, name: str, unit: str, relative: bool = False) -> Ints:
        """A column of times as nanoseconds, exactly: digits that a double would round are kept.

        Parameters
        ----------
        name : str
            The column.
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
        text = self.column(name)
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
            problem = (
                f"'{printable(self.column(name)[row])}' in column '{name}' is too large for a time"
                f" in {unit}"
            )
            raise FormatError(
                self.path, problem, "Check the unit, or mend the line.", self.line_of(row)
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
