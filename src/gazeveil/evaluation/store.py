"""Finished cells, on disk or in memory; each is written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypeAlias

#: What a cell holds: plain values as JSON has them.
Content: TypeAlias = dict[str, Any]

#: Folder of the cells inside a study's folder.
CELLS = "cells"


class Store:
    """Cells by their names.

    Parameters
    ----------
    folder : Path, optional
        A study's folder; in memory if not given.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = None if folder is None else folder / CELLS
        self._memory: dict[str, Content] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, name: str) -> bool:
        return name in self._memory or (
            self.folder is not None and (self.folder / f"{name}.json").is_file()
        )

    def get(self, name: str) -> Content | None:
        """A cell, or None where it is not finished; a file that is not whole JSON (a disk that
        failed) counts as not finished.
        """
        if self.folder is None:
            return self._memory.get(name)
        try:
            content = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def put(self, name: str, content: Content) -> None:
        """Keep a finished cell; one that is there already stays as it is."""
        if self.folder is None:
            # Through JSON here too, so that figures do not depend on where cells are kept.
            self._memory.setdefault(name, json.loads(_text(content)))
            return
        if self.get(name) is not None:
            return
        # Workers of two studies may write the same cell at one time: each has a file of its own
        # until it is whole.
        waiting = self.folder / f".{name}.{os.getpid()}.part"
        with waiting.open("w", encoding="utf-8") as file:
            file.write(_text(content))
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(self.folder / f"{name}.json")

    def tidy(self) -> None:
        """Remove what a killed run left half written."""
        if self.folder is not None:
            for left in self.folder.glob(".*.part"):
                left.unlink(missing_ok=True)


def _text(content: Content) -> str:
    return (
        json.dumps(
            content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        + "\n"
    )
