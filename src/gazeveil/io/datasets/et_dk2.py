"""et-dk2: the format by name; files are not taken by sniffing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.io.registry import Format
from gazeveil.io.source import Head


def sniff(head: Head) -> bool:
    """No file is taken."""
    return False


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """Refuse."""
    raise FormatError(path, "et-dk2 files cannot be read yet")


FORMAT = Format("et-dk2", "et-dk2", sniff, scan)
