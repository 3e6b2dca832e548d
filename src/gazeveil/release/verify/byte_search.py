"""Texts looked for in every byte of a folder: names of files, contents, packed contents and the
columns and metadata of Parquet files.

Packed bytes are as good as random, and hold any short word where there are enough of them: "anna"
is in every gigabyte. There a find must lie in readable text, so long that chance does not make it;
contents that are unpacked have no such rule.
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import re
import unicodedata
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import polars as pl

_CHUNK = 1 << 23

#: Longest text that is looked for, in bytes; pieces of a file overlap by as much.
LONGEST = 800

#: Files whose bytes are packed, and whose contents are looked at unpacked.
_PACKED = (".gz", ".zip", ".parquet")
_BYTES = "the bytes of"

#: Packed contents of more than both, in bytes and as a multiple of the file, are not read on: a
#: file of a megabyte can hold a week of reading.
_MOST_BYTES, _MOST_TIMES = 1 << 30, 200

#: How often chance may make a find in packed bytes.
_FALSE_ALARM = 1e-9

_LONG_ENOUGH = 5
_READABLE = re.compile(r"[\t\n\r -~]*")
_READABLE_SHARE = 98 / 256


class _Bytes(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


class _PackedError(Exception):
    """Why packed contents cannot be looked at."""


def finds(
    folder: Path, texts: Iterable[str], unread: list[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Texts that are in a folder as words of their own, whatever their case, each with the first
    place where it is found. Files whose packed contents cannot be looked at are added to `unread`,
    with the reason: a text could hide there.
    """
    wanted = {k: t for t in texts for k in _written(t.strip()) if len(k) <= LONGEST}
    root = folder.parent if folder.is_file() else folder
    # Beside one file lie its certificate and page, which begin with its name.
    pattern = f"{folder.name}*" if folder.is_file() else "**/*"
    for path in sorted(root.glob(pattern)) if wanted else ():
        name = path.relative_to(root).as_posix()
        packed = path.stat().st_size if path.suffix in _PACKED else 0
        try:
            for place, piece in _pieces(path, name):
                hits = _hits(piece, list(wanted), packed if place == _BYTES else 0)
                found = list(dict.fromkeys(wanted[key] for key in hits))
                yield from ((text, f"{place} {name}") for text in found)
                wanted = {k: t for k, t in wanted.items() if t not in found} if found else wanted
                if not wanted:
                    return
        except _PackedError as error:
            if unread is not None:
                unread.append(f"{name} ({error})")


def _written(text: str) -> set[str]:
    """A text as files may hold it: in UTF-8, Latin-1 and UTF-16, with accents composed or not, as
    JSON, HTML and addresses escape it, in hexadecimal digits and in base64.
    """
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    forms |= {form.lower() for form in forms} | {form.upper() for form in forms if form.islower()}
    encoded = {t.encode(code, "ignore") for t in forms for code in ("utf-8", "utf-16-le")}
    encoded |= {t.encode("latin-1") for t in forms if t.isascii() or _fits_latin(t)}
    escaped = {json.dumps(t)[1:-1] for t in forms} | {quote(t) for t in forms}
    escaped |= {t.encode("ascii", "xmlcharrefreplace").decode() for t in forms}
    # Digits and letters of a short word are in any number.
    packed = {t.encode("utf-8", "ignore") for t in forms if len(t) >= _LONG_ENOUGH}
    escaped |= {p.hex() for p in packed} | {b64encode(p).decode().rstrip("=") for p in packed}
    # A zero byte at an end belongs to the letter before, in one order of UTF-16 alone.
    return {_plain(e.strip(b"\0")) for e in encoded} | escaped


def _fits_latin(text: str) -> bool:
    return all(ord(c) < 256 for c in text)


def _plain(data: bytes) -> str:
    # One character for each byte: bytes of any kind become a text that can be searched.
    return data.decode("latin-1")


def by_chance(word: str, readable: int, size: int) -> float:
    """How often random bytes hold a word, whatever its case, within readable text.

    Parameters
    ----------
    word : str
        With no letter or digit before and after it.
    readable : int
        Length of the readable text around it, with the word itself.
    size : int
        How many random bytes there are.

    Examples
    --------
    >>> by_chance("anna", 4, 10**9) > 0.5, by_chance("anna", 40, 10**9) < 1e-9
    (True, True)
    """
    same = math.prod((2 if c.lower() != c.upper() else 1) / 256 for c in word)
    around = readable - len(word)
    # Half of all bytes part words; the word may lie anywhere in the text.
    return size * same / 4 * (around + 1) * _READABLE_SHARE**around


def _readable(text: str, begin: int, end: int) -> int:
    """Length of the readable text around a part of a text."""
    before = _READABLE.match(text[max(0, begin - LONGEST) : begin][::-1])
    after = _READABLE.match(text, end, end + LONGEST)
    return sum(len(m.group()) for m in (before, after) if m is not None) + end - begin


def _hits(piece: bytes, wanted: list[str], packed: int) -> Iterator[str]:
    """Words that are in a piece; `packed` is the size of a file whose bytes are packed, else 0."""
    text = _plain(piece)
    found = pl.Series([text]).str.extract_many(
        wanted, ascii_case_insensitive=True, overlapping=True
    )
    lowered, lower = {w.lower(): w for w in wanted}, text.lower()
    for hit in {h.lower() for h in found[0]}:
        # "anna" is no find in "joanna1"; "_" and "-" part words.
        whole = rf"(?<![^\W_]){re.escape(hit)}(?![^\W_])"
        if hit in lowered and any(
            (readable := _readable(lower, *m.span())) == len(lower)
            or by_chance(hit, readable, packed) < _FALSE_ALARM
            for m in re.finditer(whole, lower)
        ):
            yield lowered[hit]


def _pieces(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    yield "the name of", name.encode("utf-8", "surrogateescape")
    if not path.is_file():
        return
    with path.open("rb") as file:
        yield from ((_BYTES, p) for p in _overlapping(file))
    if path.suffix == ".gz" and _begins(path, b"\x1f\x8b"):  # else it is no gzip file
        with gzip.open(path) as unpacked:
            yield from _unpacked("the packed bytes of", unpacked, path)
    elif path.suffix == ".zip" and zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    yield "a member's name in", member.filename.encode("utf-8", "surrogateescape")
                    with archive.open(member) as unpacked_member:
                        yield from _unpacked("a member of", unpacked_member, path)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError) as error:
            raise _PackedError("damaged, encrypted or packed in an unusual way") from error
    elif path.suffix == ".parquet":
        yield from (("the columns of", p) for p in _columns(path))


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _unpacked(place: str, file: _Bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    """The pieces of packed contents."""
    most, size = max(_MOST_BYTES, _MOST_TIMES * path.stat().st_size), 0
    try:
        for piece in _overlapping(file):
            yield place, piece
            size += len(piece)
            if size > most:
                raise _PackedError(f"it unpacks to more than {_MOST_TIMES} times its size")
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise _PackedError("its packed contents are damaged") from error


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
