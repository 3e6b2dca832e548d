"""JSON documents and lines of them, and what binary files say in text."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import read_text
from gazeveil.release.inventory.finding import FileNotes, kind_of
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


def look(sampled: Sampled, notes: FileNotes, all_items: bool = False) -> int:
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
    from gazeveil.release.inventory.documents import walk

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
