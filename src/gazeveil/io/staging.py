"""Folders that are written whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from gazeveil.errors import DataError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


def free(path: str | Path) -> Path:
    """The path, if a cohort can be written there: for callers who have long work to do before they
    write.

    Raises
    ------
    DataError
        If it exists and is not an empty folder: releases are never mixed.
    """
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(
            f"{target} exists and is not an empty folder. Choose another name or remove it first."
        )
    return target


@contextmanager
def plain_os_errors(path: str | Path) -> Iterator[None]:
    """Raise what the operating system refused as an OSError about `path`, also where a library says
    it in words of its own, as polars does of a full disk.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(path)) from error


@contextmanager
def staged(path: str | Path) -> Iterator[Path]:
    """A new folder that takes the place of `path` at the end, and is removed on an error.

    What a killed process left of an earlier attempt is removed first.
    """
    target = free(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target)
    staging = target.parent / f".{target.name}.{uuid4().hex[:8]}"
    staging.mkdir()
    try:
        with _held(staging):
            yield staging
            if target.exists():
                target.rmdir()
            staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def remove_abandoned(path: str | Path) -> int:
    """Remove folders that killed processes left beside `path`; how many there were.

    A folder whose process is alive is held by it, and stays.
    """
    target = Path(path)
    if fcntl is None or not target.parent.is_dir():
        return 0
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}")
    removed = 0
    for folder in target.parent.iterdir():
        if name.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            try:
                with _held(folder):
                    shutil.rmtree(folder)
                    removed += 1
            except OSError:  # held, or not ours to remove
                continue
    return removed


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder as long as this process lives.

    Raises
    ------
    OSError
        If another process holds it.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
