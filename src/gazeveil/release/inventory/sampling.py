"""The text of a file, or a part of it that is quick to look at.

Of a long file the first 64 KiB and two windows of 16 KiB, in the middle and at the end, are read;
of a gzip archive, whose middle cannot be reached, the first 96 KiB. `all_text` reads everything.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import Head, read_bytes

_FIRST_BYTES, _WINDOW_BYTES = 1 << 16, 1 << 14


@dataclass(frozen=True)
class Sampled:
    """Lines of a file with their one-based numbers; 0 where the number is not known.

    Parameters
    ----------
    path : Path
        The file.
    lines : tuple of (int, str)
        Number and text.
    whole : bool
        Whether these are all lines.
    text : str
        The lines of the beginning as one text.
    """

    path: Path
    lines: tuple[tuple[int, str], ...]
    whole: bool
    text: str


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: zeros that UTF-16 does not explain."""
    return b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def sampled(path: Path, all_text: bool = False) -> Sampled | None:
    """Lines of a text file, or None for a file that is no text."""
    with path.open("rb") as file:
        first = file.read(_FIRST_BYTES)
        size = path.stat().st_size
        zipped = first.startswith(b"\x1f\x8b")
        if is_binary(Head.of(path).data if zipped else first):
            return None
        if all_text:
            return _whole(path)
        if zipped:
            data, more = _unzipped(path)
            windows: list[bytes] = []
        else:
            data, more, windows = first, size > len(first), []
            for start in (size // 2, size - _WINDOW_BYTES) if more else ():
                if start >= _FIRST_BYTES:
                    file.seek(start)
                    windows.append(file.read(_WINDOW_BYTES))
    text = _decoded(data)
    lines = text.splitlines()
    if more and len(lines) > 1:
        lines.pop()  # it may be cut
    numbered = list(enumerate(lines, 1))
    for window in windows:
        numbered += [(0, line) for line in _decoded(window).splitlines()[1:-1]]
    return Sampled(path, tuple(numbered), not more, "\n".join(lines))


def _whole(path: Path) -> Sampled:
    try:
        text = _decoded(read_bytes(path))
    except FormatError:
        text = ""
    return Sampled(path, tuple(enumerate(text.splitlines(), 1)), True, text)


def _unzipped(path: Path) -> tuple[bytes, bool]:
    try:
        with gzip.open(path) as file:
            data = file.read(_FIRST_BYTES + 2 * _WINDOW_BYTES)
            return data, bool(file.read(1))
    except (OSError, EOFError, zlib.error):
        return Head.of(path).data, True


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
