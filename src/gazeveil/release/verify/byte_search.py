"""Texts looked for in every byte of a folder: names of files, contents, packed contents and the
columns and metadata of Parquet files.
"""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import polars as pl

_CHUNK = 1 << 23

#: Longest text that is looked for, in bytes; pieces of a file overlap by as much.
LONGEST = 800


class _Bytes(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


def finds(folder: Path, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Texts that are in a folder as words of their own, whatever their case, each with the first
    place where it is found.
    """
    wanted = {_plain(t.strip().lower().encode("utf-8")): t for t in texts}
    wanted = {k: t for k, t in wanted.items() if len(k) <= LONGEST}
    root = folder.parent if folder.is_file() else folder
    # Beside one file lie its certificate and page, which begin with its name.
    pattern = f"{folder.name}*" if folder.is_file() else "**/*"
    for path in sorted(root.glob(pattern)) if wanted else ():
        name = path.relative_to(root).as_posix()
        for place, piece in _pieces(path, name):
            for key in _hits(piece, list(wanted)):
                yield wanted.pop(key), f"{place} {name}"
            if not wanted:
                return


def _plain(data: bytes) -> str:
    # One character for each byte: bytes of any kind become a text that can be searched.
    return data.decode("latin-1")


def _hits(piece: bytes, wanted: list[str]) -> Iterator[str]:
    text = _plain(piece)
    found = pl.Series([text]).str.extract_many(
        wanted, ascii_case_insensitive=True, overlapping=True
    )
    lowered = {w.lower(): w for w in wanted}
    for hit in {h.lower() for h in found[0]}:
        # "anna" is no find in "joanna1"; "_" and "-" part words.
        whole = rf"(?<![^\W_]){re.escape(hit)}(?![^\W_])"
        if hit in lowered and re.search(whole, text, re.IGNORECASE):
            yield lowered[hit]


def _pieces(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    yield "the name of", name.encode("utf-8")
    if not path.is_file():
        return
    with path.open("rb") as file:
        yield from (("the bytes of", p) for p in _overlapping(file))
    if path.suffix == ".gz":
        with gzip.open(path) as unpacked:
            try:
                yield from (("the packed bytes of", p) for p in _overlapping(unpacked))
            except (OSError, EOFError):  # not gzip; its bytes were looked at
                return
    elif path.suffix == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                yield "a member's name in", member.filename.encode("utf-8")
                with archive.open(member) as unpacked_member:
                    yield from (("a member of", p) for p in _overlapping(unpacked_member))
    elif path.suffix == ".parquet":
        yield from (("the columns of", p) for p in _columns(path))


def _overlapping(file: _Bytes) -> Iterator[bytes]:
    rest = b""
    while data := file.read(_CHUNK):
        yield rest + data
        rest = (rest + data)[-LONGEST:]


def _columns(path: Path) -> Iterator[bytes]:
    """Texts in the columns and the metadata of a Parquet file, which its bytes hold packed."""
    try:
        stored = pl.read_parquet_metadata(path)
        frame = pl.scan_parquet(path)
        kinds = frame.collect_schema()
        texts = [n for n, kind in kinds.items() if kind in (pl.String, pl.Categorical)]
        values = [
            str(v) for n in texts for v in frame.select(pl.col(n).unique()).collect()[n].to_list()
        ]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return  # a damaged file; its hash says so
    yield "\n".join([*kinds, *stored.keys(), *stored.values(), *values]).encode("utf-8")
