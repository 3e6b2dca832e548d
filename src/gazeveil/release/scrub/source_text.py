"""Lines out, one at a time, into files that do not say when they were written."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

#: 2000-01-01 00:00:00 UTC: the time that every file of a copy has.
NEUTRAL_S = 946_684_800


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
