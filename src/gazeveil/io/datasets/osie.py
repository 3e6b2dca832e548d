"""osie: the format by name; files are not taken by sniffing."""

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
    raise FormatError(path, "osie files cannot be read yet")


FORMAT = Format("osie", "osie", sniff, scan)
