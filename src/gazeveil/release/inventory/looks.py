"""JSON documents and lines of them, and what binary files say in text.

EyeLink ASC: the `**` header and the messages.

Delimited text with or without a commented header: CSV, TSV, SMI, ARFF, Tobii, headsets.

A table is looked at line by line, so that one of any length takes no memory.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import find_separator, read_text
from gazeveil.release.inventory.finding import NUMBER, FileNotes, kind_of
from gazeveil.release.inventory.sampling import Sampled

_FEW = 20
_MANY_KEYS = 40
_SOME_KEYS = 5
_PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+)')


def is_lines(sampled: Sampled) -> bool:
    """Whether each line is a document of its own."""
    first, _, rest = sampled.text.partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True


def is_json(text: str) -> bool:
    """Whether a text begins as JSON does."""
    return text.lstrip()[:1] in ("{", "[")


def look_at_json(sampled: Sampled, notes: FileNotes, all_items: bool = False) -> int:
    """Note every key's value; of a long list the first 20 unless all are asked for.

    Returns
    -------
    int
        The number of lines that were looked at.
    """
    return (_look_lines if is_lines(sampled) else _look_whole)(sampled, notes, all_items)


def _look_lines(sampled: Sampled, notes: FileNotes, all_items: bool) -> int:
    looked = 0
    for _, line in sampled.lines:
        looked += 1
        try:
            walk("", json.loads(line), notes, all_items)
        except (json.JSONDecodeError, RecursionError):
            notes.text("a line", line)
    return looked


def _look_whole(sampled: Sampled, notes: FileNotes, all_items: bool) -> int:
    """One document, read whole: keys at its end say as much as those at its beginning."""
    text = sampled.text
    try:
        text = read_text(sampled.path)
        walk("", json.loads(text), notes, all_items)
    except (json.JSONDecodeError, RecursionError, FormatError):
        for name, value in _PAIR.findall(text):
            notes.value(name, value.strip('"'))
    return text.count("\n") + 1


def walk(field: str, value: object, notes: FileNotes, all_items: bool) -> None:
    """Note a value and everything in it; `field` is the path of keys that led there."""
    if isinstance(value, dict):
        many = _keys_are_data(value)
        for name, inner in value.items():
            notes.text(f"{field}.*" if field else "*", name)
            below = f"{field}.*" if many else (f"{field}.{name}" if field else name)
            walk(below, inner, notes, all_items)
    elif isinstance(value, list):
        for inner in value if all_items else value[:_FEW]:
            walk(field, inner, notes, all_items)
    elif isinstance(value, bool) or value is None:
        return
    else:
        notes.value(field or "value", str(value), name=field.rsplit(".", 1)[-1])


def _keys_are_data(value: dict[str, object]) -> bool:
    """Whether keys are names of trials or people rather than of fields."""
    alike = len({type(inner) for inner in value.values()}) == 1
    nested = alike and isinstance(next(iter(value.values())), dict | list)
    return len(value) > _MANY_KEYS or (len(value) > _SOME_KEYS and nested)


_PRINTABLE = re.compile(rb"[\x20-\x7e]{6,}")
_LOOKED_BYTES = 1 << 20
_MATLAB_BYTES = 16 << 20
#: Metadata that polars and Arrow write for themselves.
_OWN_KEYS = frozenset({"ARROW:schema", "pandas"})


def look_at_binary(path: Path, notes: FileNotes) -> None:
    """Note what a binary file says in text."""
    with path.open("rb") as file:
        head = file.read(_LOOKED_BYTES)
    if head.startswith(b"PAR1"):
        _parquet(path, notes)
    elif head.startswith(b"MATLAB 5.0"):
        notes.text("MATLAB header", head[:116].decode("latin-1"))
        _matlab(path, notes)
    else:
        # Numbers make text by chance: of an array only the header is text.
        for text in _PRINTABLE.findall(head[:256] if head.startswith(b"\x93NUMPY") else head):
            notes.text("text in the file", text.decode("ascii"))


def _parquet(path: Path, notes: FileNotes) -> None:
    import polars as pl

    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
        metadata = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, OSError):
        return
    for name, value in metadata.items():
        if name in _OWN_KEYS:
            continue
        if is_json(value):
            _json_text(f"metadata {name}", value, notes)
        else:
            notes.value(f"metadata {name}", value, name=name)
    for name, kind in schema.items():
        field = kind_of(name)
        if kind == pl.String:
            for text in frame.select(pl.col(name).drop_nulls().unique()).collect().to_series():
                notes.value(name, str(text))
        elif field is not None or kind.is_integer():
            first = frame.select(pl.col(name).drop_nulls().first()).collect().item()
            if first is not None:
                notes.value(name, str(first))


def _json_text(field: str, text: str, notes: FileNotes) -> None:
    from gazeveil.release.inventory.looks import walk

    try:
        walk(field, json.loads(text), notes, True)
    except (json.JSONDecodeError, RecursionError):
        notes.text(field, text)


def _matlab(path: Path, notes: FileNotes) -> None:
    """Texts in variables and fields of structures."""
    if path.stat().st_size > _MATLAB_BYTES:
        return
    from scipy.io import loadmat

    try:
        variables = loadmat(path, squeeze_me=True, struct_as_record=False)
    except Exception:
        return
    for name, value in variables.items():
        if not name.startswith("__"):
            _matlab_value(name, value, notes, 0)


def _matlab_value(field: str, value: object, notes: FileNotes, depth: int) -> None:
    names = getattr(value, "_fieldnames", None)
    if names is not None and depth < 4:
        for name in names:
            _matlab_value(f"{field}.{name}", getattr(value, name), notes, depth + 1)
    elif isinstance(value, str | int | float):
        notes.value(field, str(value), name=field.rsplit(".", 1)[-1])


_HEADER = re.compile(
    r"^\*\*\s*(CONVERTED FROM|RECORDED BY|SERIAL NUMBER|SREB[\d.]*|[A-Z_]+)(?::|\s)\s*(.*)$"
)
_MESSAGE = re.compile(r"^MSG\s+(\d+(?:\.\d+)?)\s?(.*)$")
_KINDS = {
    "DATE": "date",
    "SERIAL NUMBER": "serial",
    "CAMERA_CONFIG": "serial",
    "RECORDED BY": "name",
    "CONVERTED FROM": "path",
    "CAMERA": "device model",
    "EYELINK": "device model",
    "VERSION": "device model",
    "SOURCE": "device model",
}
#: Messages that the tracker and its software write themselves; the rest is text of the experiment.
TRACKER_MESSAGE = re.compile(
    r"^(?:!CAL\b|!MODE\s+RECORD\b|RECCFG\b|ELCLCFG\b|ELCL_|GAZE_COORDS\b|DISPLAY_COORDS\b"
    r"|THRESHOLDS\b|CAMERA_LENS_FOCAL_LENGTH\b|PUPIL_DATA_TYPE\b|VALIDATE\b|RETRACE_INTERVAL\b"
    r"|DRIFTCORRECT\b|SYNCTIME$|TRIAL OK$|TRIAL_RESULT\s+-?\d{1,4}$)"
)


def look_at_eyelink(sampled: Sampled, notes: FileNotes) -> int:
    """Note the header's fields, the tracker's clock, the rate, and what messages say.

    Returns
    -------
    int
        The number of lines that were looked at.
    """
    clock, looked = False, 0
    for _, line in sampled.lines:
        looked += 1
        if line.startswith("**"):
            _header(line, notes)
        elif line.startswith("MSG"):
            _message(line, notes)
        elif line[:1].isdigit() and not clock:
            clock = True
            notes.add("sample time", "clock", line.split()[0])
        elif line.startswith(("SAMPLES", "EVENTS")):
            rate = re.search(r"RATE\s+([\d.]+)", line)
            if rate is not None:
                notes.add("RATE", "rate", rate[1])
    return looked


def _header(line: str, notes: FileNotes) -> None:
    match = _HEADER.match(line)
    if match is None:
        notes.text("header", line)
        return
    name, value = match[1].strip(), match[2].strip()
    if not value:
        return
    if name.startswith("SREB"):
        notes.add("SREB", "serial", value)
    elif name in _KINDS:
        kind = _KINDS[name]
        notes.add(name, kind, value if name != "CONVERTED FROM" else value.split(" using ")[0])
        notes.text(name, value, skip=kind)
        if kind == "path":
            notes.names.discard(value)
    elif name != "TYPE":
        notes.value(name, value)


def _message(line: str, notes: FileNotes) -> None:
    match = _MESSAGE.match(line)
    if match is None:
        return
    text = match[2].strip()
    if text.startswith("RECCFG"):
        rate = re.match(r"RECCFG\s+\w+\s+(\d+)", text)
        notes.add("RECCFG", "rate", rate[1] if rate else text)
    elif text.startswith(("GAZE_COORDS", "DISPLAY_COORDS")):
        notes.add(text.split()[0], "screen", text)
    elif text.startswith("TRACKER_TIME"):
        notes.add("MSG TRACKER_TIME", "clock", text)
    elif text and TRACKER_MESSAGE.match(text) is None:
        notes.add("MSG", "free text", text)
        notes.text("MSG", text)


_COMMENT = re.compile(r"^\s*(?:##?|%@?|//|;;|\*\*)\s?(.*)$")
_KEY_VALUE = re.compile(
    r"^(?:METADATA\s+)?([A-Za-z][^:=\t]{0,60}?)\s*(?:[:=\t]|\s(?=[-\d.]+$))\s*(.*)$"
)
_ATTRIBUTE = re.compile(r"^@attribute\s+('[^']+'|\"[^\"]+\"|\S+)", re.IGNORECASE)
_MOST_ROWS = 400
_MOST_TEXTS = 10_000
_FEWEST_FOR_RATE = 10


def look_at_table(sampled: Sampled, notes: FileNotes) -> int:
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
    """Summary of a column: its texts, and a clock's first and last time."""

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
