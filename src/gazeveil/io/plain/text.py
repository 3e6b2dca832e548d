"""The text of a table: its first rows for guessing, and all rows in blocks of whole lines, so that
a large file is never in memory at once.

A block is parsed as the whole file would be, with the header in front of it; errors name the line
of the file. Files in UTF-16, and those whose lines end in a lone carriage return, are one block.

Tables that are no delimited text: samples of ioHub in HDF5, gaze streams of XDF, and the lists
of predictions in the cells of jsPsych's tables. Each becomes a frame with one row per sample.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.io.parsing.table import COMMA_NUMBER, Table, open_sheet, stamp
from gazeveil.io.plain.roles import has_gaze, recognise
from gazeveil.io.source import Head, byte_pieces, find_separator, read_text, unix

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
    `table` of :mod:`gazeveil.io.plain.text` is one block.

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
        # One byte is found several times as fast as two.
        if asking and b"#" in text and (text.startswith(b"#") or b"\n#" in text):
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


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, extra) from error


def iohub(path: Path) -> pl.DataFrame:
    """Eye samples of ioHub (PsychoPy), with the participant's code of each session; `status` says
    which eye is lost: its tens the left one, its ones the right one.
    """
    h5py = _package("h5py", "hdf5")
    try:
        with h5py.File(path, "r") as file:
            events = file["data_collection/events/eyetracker"]
            names = [n for n in events if n.endswith("EyeSampleEvent") and len(events[n])]
            if len(names) != 1:
                raise KeyError(f"{len(names)} tables of eye samples")
            rows = events[names[0]][:]
            about = file["data_collection/session_meta_data"][:]
    except (OSError, KeyError, ValueError) as error:
        raise FormatError(
            path, f"it holds no eye samples of ioHub ({error})", "Export its samples as CSV."
        ) from error
    plain = [n for n in rows.dtype.names or () if rows.dtype[n].kind in "iuf"]
    frame = pl.DataFrame({n: rows[n].astype(rows.dtype[n].newbyteorder("=")) for n in plain})
    codes = {int(r["session_id"]): r["code"].decode("utf-8", "replace") for r in about}
    columns = [
        pl.Series(frame["session_id"].to_list())
        .replace_strict(codes, default="", return_dtype=pl.String)
        .alias("code")
    ]
    if "status" in frame.columns:
        status = frame["status"]
        columns += [
            (status // 10 == 0).alias("left_valid"),
            (status % 10 == 0).alias("right_valid"),
        ]
    return frame.with_columns(columns)


def xdf(path: Path) -> pl.DataFrame:
    """The gaze stream of a recording of the Lab Streaming Layer, with its times in seconds."""
    pyxdf = _package("pyxdf", "xdf")
    try:
        streams, _ = pyxdf.load_xdf(str(path), verbose=False)
        found = [(s["info"]["name"][0], f) for s in streams if (f := _stream(s)) is not None]
    except Exception as error:  # whatever a damaged file makes of the library
        raise FormatError(
            path, f"it cannot be read as XDF ({error})", "Copy the file again."
        ) from error
    if len(found) != 1:
        names = ", ".join(name for name, _ in found) or "none"
        raise FormatError(
            path,
            f"one stream of gaze is needed, and there are {len(found)} ({names})",
            "Export the stream that you mean as CSV.",
        )
    return found[0][1]


def _stream(stream: Any) -> pl.DataFrame | None:
    """A stream whose channels have names of gaze; None for others."""
    described = stream["info"].get("desc") or [None]
    channels = ((described[0] or {}).get("channels") or [{}])[0] or {}
    labels = [str(c["label"][0]) for c in channels.get("channel", ()) if c.get("label")]
    values = stream["time_series"]
    named = len(values) > 0 and len(labels) == len(set(labels)) == len(values[0])
    if not named or not (has_gaze(recognise(labels)) or "norm_pos_x" in labels):
        return None
    return pl.DataFrame(values, schema=labels, orient="row").with_columns(
        pl.Series("lsl_time", stream["time_stamps"])
    )


def jspsych(path: Path) -> pl.DataFrame:
    """Gaze predictions of jsPsych's WebGazer extension: a list in one cell of each trial."""
    table = open_sheet(path)
    columns = [n for n in table.names if n.strip().lower() == "webgazer_data"]
    if len(columns) != 1:
        raise FormatError(
            path,
            f"one column 'webgazer_data' is needed, and there are {len(columns)}",
            "Export the table of jsPsych again.",
            1,
        )
    (column,) = columns
    rest = table.frame.drop(column)
    rows = list(_predictions(path, table.column(column).to_list(), table.line_of))
    kinds = {"row": pl.UInt32, "t": pl.Float64, "x": pl.Float64, "y": pl.Float64}
    return (
        pl.DataFrame(rows, schema=kinds, orient="row")
        .join(rest.with_row_index("row"), on="row", how="left")
        .drop("row")
    )


def _predictions(
    path: Path, cells: list[str | None], line_of: Callable[[int], int]
) -> Iterator[tuple[int, float, float, float]]:
    for row, cell in enumerate(cells):
        try:
            for point in json.loads(cell) if cell and cell.strip() not in ("null", '""') else ():
                yield row, float(point["t"]), float(point["x"]), float(point["y"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(
                path,
                "'webgazer_data' is no list of x, y and t",
                "Mend or remove the line.",
                line_of(row),
            ) from error


_READERS = {"iohub": iohub, "xdf": xdf, "jspsych": jspsych}


def frame_at(path: Path, kind: str) -> pl.DataFrame:
    """The table of a file; kept until the next one."""
    return _frame_at(path, stamp(path), kind)


@lru_cache(maxsize=2)
def _frame_at(path: Path, _stamp: tuple[int, int], kind: str) -> pl.DataFrame:
    frame = _READERS[kind](path)
    if not frame.height:
        raise FormatError(path, "it holds no sample of gaze", "Check the recording.")
    return frame
