"""What was read from a file, kept until the file changes: files with many recordings are asked for
once per recording.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def kept(most: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Keep what the last `most` files gave, by path and change time."""

    def wrap(read: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize=most)
        def once(path: str, changed_ns: int) -> T:
            return read(Path(path))

        @wraps(read)
        def keeping(path: Path) -> T:
            return once(str(path), path.stat().st_mtime_ns if path.exists() else 0)

        return keeping

    return wrap
