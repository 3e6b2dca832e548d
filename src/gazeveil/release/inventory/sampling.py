"""The lines of a file, or those that are quick to look at.

Of a long file the first 64 KiB and two windows of 16 KiB, in the middle and at the end, are read;
of a gzip archive, whose middle cannot be reached, the first 64 KiB. `all_text` reads everything,
line by line.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from gazeveil.errors import FormatError
from gazeveil.io.source import Head, decode

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
            with io.TextIOWrapper(source, encoding=_encoding(path), errors="replace") as text:
                for line in text:
                    yield line.rstrip("\n")
        except (OSError, EOFError, zlib.error) as error:
            if not zipped:
                raise
            raise FormatError(
                path, "the gzip archive is damaged or ends early", "Copy the file again."
            ) from error


def _encoding(path: Path) -> str:
    data = Head.of(path).data
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
    encoding = _encoding(path)
    text = head.data.decode(encoding, "replace")
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
