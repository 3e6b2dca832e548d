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
    """A new folder that takes the place of `path` at the end, and is removed on an error."""
    target = free(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.parent / f".{target.name}.{uuid4().hex[:8]}"
    staging.mkdir()
    try:
        yield staging
        if target.exists():
            target.rmdir()
        staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
