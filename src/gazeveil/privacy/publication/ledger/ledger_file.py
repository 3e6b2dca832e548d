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
        _begin(path)


def find_or_create(path: Path) -> None:
    """See that there is a ledger; a new one begins where there never was one.

    Raises
    ------
    DataError
        If there was one, and it is gone: earlier releases would not count any more.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(path):
        if path.exists():
            return
        if _lock_of(path).stat().st_size:
            raise DataError(
                f"The ledger {path} is gone, and with it what was released before of whom. Restore"
                f" it from a copy, or begin anew with --new-ledger {path}: then earlier releases"
                " count no more."
            )
        _begin(path)


def _begin(path: Path) -> None:
    key = os.urandom(32).hex()
    store(path, {"format": FORMAT, "version": VERSION, "key": key, "releases": []})
    # The lock stays when the ledger goes: it says that there was one.
    with contextlib.suppress(OSError):
        _lock_of(path).write_text("There is a ledger of releases beside this file.\n")


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
    """Write a ledger; a crash leaves the old one or the new one.

    Raises
    ------
    DataError
        If the disk refuses it.
    """
    try:
        _store(path, content)
    except OSError as error:
        raise DataError(
            f"The ledger {path} cannot be written ({(error.strerror or str(error)).lower()}), and"
            " without it nothing more is released. Look at the permissions and the free space."
        ) from error


def _store(path: Path, content: Mapping[str, Any]) -> None:
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


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the ledger against changes by other processes."""
    handle = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
