"""Files that are no text: Parquet's metadata and columns of text, MATLAB's header and texts, and
whatever printable text other binary files hold.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from gazeveil.release.inventory.documents import is_json
from gazeveil.release.inventory.fields import kind_of
from gazeveil.release.inventory.notes import FileNotes

_PRINTABLE = re.compile(rb"[\x20-\x7e]{6,}")
_LOOKED_BYTES = 1 << 20
_MATLAB_BYTES = 16 << 20
#: Metadata that polars and Arrow write for themselves.
_OWN_KEYS = frozenset({"ARROW:schema", "pandas"})


def look(path: Path, notes: FileNotes) -> None:
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
