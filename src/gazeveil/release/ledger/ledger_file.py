"""The file of a ledger: its owner's alone, changed whole or not at all, by one process at once."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gazeveil.errors import DataError, FormatError

FORMAT, VERSION = "gazeveil-release-ledger", 1


def create(path: Path) -> None:
    """Begin a ledger with a key of its own.

    Raises
    ------
    DataError
        If there is one: two ledgers of the same people would each know half.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(path):
        if path.exists():
            raise DataError(
                f"{path} exists already, and what it knows would be lost. Use it, or name another"
                " file."
            )
        key = os.urandom(32).hex()
        store(path, {"format": FORMAT, "version": VERSION, "key": key, "releases": []})


def load(path: Path) -> dict[str, Any]:
    """Everything in a ledger.

    Raises
    ------
    FormatError
        If it is missing or damaged: a ledger that cannot be read refuses every release.
    """
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise FormatError(path, "there is no ledger", "Begin one with --new-ledger.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "the ledger is damaged", "Restore it from a copy.") from error
    if (
        not isinstance(stored, dict)
        or stored.get("format") != FORMAT
        or stored.get("version") != VERSION
        or not isinstance(stored.get("releases"), list)
    ):
        raise FormatError(path, "this is not a ledger of releases", "Name another file.")
    return stored


def store(path: Path, content: Mapping[str, Any]) -> None:
    """Write a ledger; a crash leaves the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else changes the ledger meanwhile."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
