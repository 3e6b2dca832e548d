"""Lines of a text file in, lines out, one at a time: gzip or not, in any usual encoding."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gazeveil.errors import FormatError
from gazeveil.io.source import Head

#: 2000-01-01 00:00:00 UTC: the time that every file of a copy has.
NEUTRAL_S = 946_684_800
_GZIP = b"\x1f\x8b"


def lines_of(path: Path) -> Iterator[str]:
    """Lines without their ends.

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


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, zipped where the name ends in `.gz`; neither the archive nor the file says
    when.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as archive:
                _write(cast(BinaryIO, archive), lines)
        else:
            _write(raw, lines)


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(line.encode("utf-8") + b"\n")


def forget_times(folder: Path) -> None:
    """Give every file and folder the same time of change and of access."""
    for place in sorted(folder.rglob("*"), reverse=True):
        os.utime(place, (NEUTRAL_S, NEUTRAL_S))
    os.utime(folder, (NEUTRAL_S, NEUTRAL_S))
