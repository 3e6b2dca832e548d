"""What files say, and :func:`inventory`: everything a file or folder says beside its gaze.

What files say: JSON documents and lines of them, delimited text with or without a header of
comments (CSV, TSV, SMI, ARFF, EyeLink ASC, headsets), and what binary files say in text.

A table is looked at line by line, so that one of any length takes no memory. Of binary files
Parquet is looked at; of others what stands in their bytes as text.

The lines of a file, or those that are quick to look at.

Of a long file the first 64 KiB and two windows of 16 KiB, in the middle and at the end, are read;
of a gzip archive, whose middle cannot be reached, the first 64 KiB. `all_text` reads everything,
line by line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from gazeveil.errors import FormatError, GazeveilError
from gazeveil.io.reading import read
from gazeveil.io.source import Head, decode, find_separator, read_text
from gazeveil.io.vendors.eyelink.asc import TRACKER_MESSAGE
from gazeveil.release.inventory.finding import (
    NUMBER,
    FileNotes,
    Finding,
    Inventory,
    kind_of,
    name_pattern,
)

_WINDOW_BYTES = 1 << 14
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Sampled:
    """Lines of a file with their one-based numbers, 0 where the number is not known; they can be
    gone through more than once. `whole` says that these are all lines; `text` is the beginning of
    the file.
    """

    path: Path
    lines: Iterable[tuple[int, str]]
    whole: bool
    text: str


@dataclass(frozen=True)
class _AllLines:
    """All lines of a file, read anew each time."""

    path: Path

    def __iter__(self) -> Iterator[tuple[int, str]]:
        try:
            yield from enumerate(lines_of(self.path), 1)
        except FormatError:
            return  # a cut archive: what could be read was looked at


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a text file without their ends: gzip or not, in any usual encoding.

    Raises
    ------
    FormatError
        For an archive that ends early or is damaged.
    """
    with path.open("rb") as raw:
        zipped = raw.read(2) == _GZIP
        raw.seek(0)
        source = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
        try:
            with io.TextIOWrapper(
                source, encoding=_encoding(Head.of(path).data), errors="replace"
            ) as text:
                for line in text:
                    yield line.rstrip("\n")
        except (OSError, EOFError, zlib.error) as error:
            if not zipped:
                raise
            raise FormatError(
                path, "the gzip archive is damaged or ends early", "Copy the file again."
            ) from error


def _encoding(data: bytes) -> str:
    """The encoding of a file that begins so."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        # The last character of the head may be cut.
        data[:-4].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def sampled(path: Path, all_text: bool = False) -> Sampled | None:
    """Lines of a text file, or None for a file that is no text."""
    head = Head.of(path)
    if b"\0" in head.data[:4096] and not head.data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    text = head.data.decode(_encoding(head.data), "replace")
    if all_text:
        return Sampled(path, _AllLines(path), True, text)
    lines, size = text.splitlines(), path.stat().st_size
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
        more = len(head.data) < size if not zipped else len(head.data) >= Head.BYTES
        # The last line of the head may be cut, as the first and the last of a window.
        numbered = list(enumerate(lines[:-1] if more and len(lines) > 1 else lines, 1))
        for start in (size // 2, size - _WINDOW_BYTES) if more and not zipped else ():
            if start >= Head.BYTES:
                file.seek(start)
                window = decode(file.read(_WINDOW_BYTES), "replace")
                numbered += [(0, line) for line in window.splitlines()[1:-1]]
    return Sampled(path, tuple(numbered), not more, text)


_FEW, _SOME_KEYS, _MANY_KEYS = 20, 5, 40
_PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+)')
_PRINTABLE = re.compile(rb"[\x20-\x7e]{6,}")
_LOOKED_BYTES = 1 << 20
#: Metadata that polars and Arrow write for themselves.
_OWN_KEYS = frozenset({"ARROW:schema", "pandas"})


def look_at_json(sampled: Sampled, notes: FileNotes, all_items: bool = False) -> int:
    """Note every key's value; of a long list the first 20 unless all are asked for. Returns the
    number of lines that were looked at.
    """
    first, _, rest = sampled.text.partition("\n")
    if rest.strip() and _walk_text("", first, None, all_items):
        looked = 0
        for _, line in sampled.lines:
            looked += 1
            if not _walk_text("", line, notes, all_items):
                notes.text("a line", line)
        return looked
    try:
        # Read whole: keys at its end say as much as those at its beginning.
        text = read_text(sampled.path)
    except FormatError:
        text = sampled.text
    if not _walk_text("", text, notes, all_items):
        for name, value in _PAIR.findall(text):
            notes.value(name, value.strip('"'))
    return text.count("\n") + 1


def _walk_text(field: str, text: str, notes: FileNotes | None, all_items: bool) -> bool:
    """Note what a document holds; False where it is no JSON."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    if notes is not None:
        _walk(field, value, notes, all_items)
    return True


def _walk(field: str, value: object, notes: FileNotes, all_items: bool) -> None:
    """Note a value and everything in it; `field` is the path of keys that led there."""
    if isinstance(value, dict):
        # Keys may be names of trials or people rather than of fields.
        nested = {type(inner) for inner in value.values()} in ({dict}, {list})
        many = len(value) > _MANY_KEYS or (len(value) > _SOME_KEYS and nested)
        for name, inner in value.items():
            notes.text(f"{field}.*".lstrip("."), name)
            _walk(f"{field}.{'*' if many else name}".lstrip("."), inner, notes, all_items)
    elif isinstance(value, list):
        for inner in value if all_items else value[:_FEW]:
            _walk(field, inner, notes, all_items)
    elif not isinstance(value, bool) and value is not None:
        notes.value(field or "value", str(value), name=field.rsplit(".", 1)[-1])


def look_at_binary(path: Path, notes: FileNotes) -> None:
    """Note what a binary file says in text."""
    with path.open("rb") as file:
        head = file.read(_LOOKED_BYTES)
    if head.startswith(b"PAR1"):
        # Its other text is its writer's: a name and a build, the same in every file.
        _parquet(path, notes)
        return
    # Numbers make text by chance: of an array only the header is text.
    for text in _PRINTABLE.findall(head[:256] if head.startswith(b"\x93NUMPY") else head):
        notes.text("text in the file", text.decode("ascii"))


def _parquet(path: Path, notes: FileNotes) -> None:
    import polars as pl

    try:
        frame, metadata = pl.scan_parquet(path), pl.read_parquet_metadata(path)
        schema = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError):
        return
    for name, value in metadata.items():
        if name not in _OWN_KEYS and not _walk_text(f"metadata {name}", value, notes, True):
            notes.value(f"metadata {name}", value, name=name)
    for name, kind in schema.items():
        values = frame.select(pl.col(name).drop_nulls())
        if kind == pl.String:
            found = values.unique().collect().to_series().to_list()
        elif kind_of(name) is not None or kind.is_integer():
            found = values.head(1).collect().to_series().to_list()
        else:
            continue
        for value in found:
            notes.value(name, str(value))


_COMMENT = re.compile(r"^\s*(?:##?|%@?|//|;;|\*\*)\s?(.*)$")
_KEY_VALUE = re.compile(
    r"^(?:METADATA\s+)?([A-Za-z][^:=\t]{0,60}?)\s*(?:[:=\t]|\s(?=[-\d.]+$))\s*(.*)$"
)
_EYELINK = re.compile(r"^(CONVERTED FROM|RECORDED BY|SREB[\d.]*)\s+(.*?)(?: using (.*))?$")
_ATTRIBUTE = re.compile(r"^@attribute\s+('[^']+'|\"[^\"]+\"|\S+)", re.IGNORECASE)
_MESSAGE = re.compile(r"^MSG\s+(\d+(?:\.\d+)?)\s?(.*)$")
_RATE = re.compile(r"^(?:SAMPLES|EVENTS)\b.*\bRATE\s+([\d.]+)|^RECCFG\s+\w+\s+(\d+)")
_MOST_ROWS = 400
_MOST_TEXTS = 10_000
_FEWEST_FOR_RATE = 10


def look_at_table(sampled: Sampled, notes: FileNotes) -> int:
    """Note what comments, messages, column names and cells say; the number of lines that were
    looked at.

    Of a file that is sampled the first 400 rows and those of the later windows are looked at.
    """
    table = _TableLook(notes)
    looked = 0
    for number, line in sampled.lines:
        if sampled.whole or not number or table.rows < _MOST_ROWS:
            table.line(line, in_order=number > 0)
            looked += 1
    for column in table.columns:
        column.finish(notes)
    return looked


class _Column:
    """Summary of a column: its texts, and a clock's first and last time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = kind_of(name)
        self.texts: set[str] = set()
        self.first = self.last = ""
        self.numbers = 0

    def cell(self, cell: str, notes: FileNotes, in_order: bool) -> None:
        """Look at one cell; a text, or a number that names a person, once."""
        number = NUMBER.match(cell) is not None
        if number and in_order:
            self.first, self.last = self.first or cell, cell
            self.numbers += 1
        telling = not number or self.kind in ("name", "attribute", "serial")
        if telling and cell and cell not in self.texts:
            notes.value(self.name, cell)
            if len(self.texts) < _MOST_TEXTS:
                self.texts.add(cell)
        elif not telling and self.kind != "clock" and self.numbers == 1:
            notes.value(self.name, cell)

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
        self.columns: list[_Column] = []
        self._separator = ""
        self._pairs = False  # a key and its value in each row

    def line(self, line: str, in_order: bool) -> None:
        """Look at one line; `in_order` where it follows the one before."""
        comment, attribute = _COMMENT.match(line), _ATTRIBUTE.match(line)
        message, rate = _MESSAGE.match(line), _RATE.match(line)
        if comment is not None:
            self._comment(comment[1].strip())
        elif attribute is not None:
            # ARFF's header names the columns one by one.
            self.columns.append(_Column(attribute[1].strip("'\"")))
        elif line[:1] == "@":
            self.notes.text("@relation", line)
        elif message is not None:
            self._message(message[1], message[2].strip())
        elif rate is not None:
            self.notes.add("RATE", "rate", rate[1])
        elif line.strip():
            self._row(line, in_order)

    def _comment(self, text: str) -> None:
        tracker = _EYELINK.match(text)
        pair = tracker or _KEY_VALUE.match(text)
        if tracker is not None:
            self.notes.text(tracker[1], tracker[3] or "")
        if pair is not None and pair[2].strip():
            self.notes.value(pair[1].strip(), pair[2].strip(), free=kind_of(pair[1]) is not None)
        elif text:
            self.notes.text("comment", text)
            if re.search(r"[A-Za-z]{3}", text):
                self.notes.add("comment", "free text", text)

    def _message(self, time: str, text: str) -> None:
        """A message of EyeLink's."""
        if ("MSG time", "clock") not in self.notes.seen:
            self.notes.add("MSG time", "clock", time)
        rate = _RATE.match(text)
        if rate is not None:
            self.notes.add("RECCFG", "rate", rate[2])
        elif text.startswith(("GAZE_COORDS", "DISPLAY_COORDS")):
            self.notes.add(text.split()[0], "screen", text)
        elif text and re.match(TRACKER_MESSAGE, text) is None:
            self.notes.add("MSG", "free text", text)
            self.notes.text("MSG", text)

    def _row(self, line: str, in_order: bool) -> None:
        self._separator = self._separator or find_separator(line)
        cells = [c.strip().strip('"') for c in line.split(self._separator or ",")]
        if not self.columns:
            if all(not c or NUMBER.match(c) or c == "n/a" for c in cells):
                self.columns = [_Column(f"column {i + 1}") for i in range(len(cells))]
            else:
                self.columns = [_Column(name) for name in cells]
                self._pairs = [name.lower() for name in cells] == ["key", "value"]
                for name in cells:
                    self.notes.text(f"column name {name}", name)
                return
        self.rows += 1
        if self._pairs:
            self.notes.value(cells[0], ", ".join(cells[1:]))
            return
        for column, cell in zip(self.columns, cells, strict=False):
            column.cell(cell, self.notes, in_order)


_PROSE = ("readme", "licen", "changes")
_LETTERS = re.compile(r"[^\W\d_]{2}").search


def inventory(
    path: str | os.PathLike[str],
    all_text: bool = False,
    people: Iterable[str] | None = None,
    progress: Callable[[list[Path]], Iterable[Path]] = lambda files: files,
) -> Inventory:
    """Find dates, clocks, serial numbers, names, paths, free text, rates, attributes, eye distance,
    height, screens and devices in a file or in all files of a folder.

    Parameters
    ----------
    path : path
        A file or a folder, of any format; gzip or not.
    all_text : bool
        Look at every line. Otherwise headers and samples of the bodies are looked at, and
        `lines` of the result says how many lines these were.
    people : iterable of str
        Names to look for beside those that the files' own fields give; the people that `read` finds
        there if not given.
    progress : callable
        Wraps the list of files, for a progress bar.

    Returns
    -------
    Inventory

    Raises
    ------
    FormatError
        Where there is no such file or folder.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    root = place if place.is_dir() else place.parent
    files = files_below(place)
    notes, lines, unread = [], 0, []
    for file in progress(files):
        of_file = FileNotes(file.relative_to(root).as_posix())
        try:
            lines += _look(file, of_file, all_text)
        except (OSError, FormatError):
            unread.append(of_file.file)
        _place(file, of_file)
        notes.append(of_file)
    names = {name for of_file in notes for name in of_file.names}
    names |= set(_people(place) if people is None else people)
    _look_for_names(files, notes, names, all_text)
    findings = tuple(finding for of_file in notes for finding in of_file.findings())
    return Inventory(findings, len(files), lines, all_text, tuple(unread))


def _people(place: Path) -> tuple[str, ...]:
    """The people of recordings, as their reader names them; none where nothing can be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader's notes are for who reads
            return tuple(key[0] for key in read(place, clash="session").keys)
    except (GazeveilError, OSError):
        return ()


def files_below(place: Path) -> list[Path]:
    """The file itself, or all regular files of a folder in order; hidden ones too, because they
    would be uploaded. Links to folders are followed, each folder once, as `read` follows them.
    """
    if place.is_file():
        return [place]
    files, visited = [], set()
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:  # a link back to a folder that was looked at
            folders.clear()
            continue
        visited.add(real)
        files += [p for name in names if (p := Path(folder, name)).is_file()]
    return sorted(files)


def _look(file: Path, notes: FileNotes, all_text: bool) -> int:
    """Note a file's content; the number of lines that were looked at."""
    text = sampled(file, all_text)
    if text is None:
        look_at_binary(file, notes)
        return 0
    if text.text.lstrip()[:1] in ("{", "["):
        return look_at_json(text, notes, all_text)
    name = Head(file, b"").name
    if not name.endswith((".md", ".rst", ".log")) and not name.startswith(_PROSE):
        return look_at_table(text, notes)
    looked = 0
    for number, line in text.lines:
        looked += 1
        notes.text(f"line {number}" if number else "a line", line)
    return looked


def _place(file: Path, notes: FileNotes) -> None:
    """The file's name and its time of change."""
    notes.add("file name", "file name", notes.file)
    notes.text("file name", notes.file)
    changed = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC)
    notes.add("file time", "file time", f"{changed:%Y-%m-%d %H:%M:%S}")


def _look_for_names(
    files: list[Path], notes: list[FileNotes], names: set[str], all_text: bool
) -> None:
    """Known names in file names, and in the text of files outside the fields that gave them."""
    pattern = name_pattern(names)
    if pattern is None:
        return
    for file, of_file in zip(files, notes, strict=True):
        if (match := pattern.search(of_file.file)) is not None:
            of_file.add("file name", "name", match[0])
        try:
            text = sampled(file, all_text)
        except (OSError, FormatError):
            continue
        known = {
            v for (_, kind), (values, _) in of_file.seen.items() if kind == "name" for v in values
        }
        # Rows of numbers hold no names; to ask one by one costs more than to parse them.
        asked = text is not None and (all_text or _LETTERS("\n".join(t for _, t in text.lines)))
        for number, line in text.lines if text is not None and asked else ():
            match = pattern.search(line) if _LETTERS(line) else None
            if match is not None and match[0] not in known:
                known.add(match[0])
                of_file.add(f"line {number}" if number else "a line", "name", match[0])


__all__ = ["Finding", "files_below", "inventory"]
