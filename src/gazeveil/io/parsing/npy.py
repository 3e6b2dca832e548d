"""NumPy files, never with pickled objects: an array file from elsewhere must not run code."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import FormatError
from gazeveil.io.parsing.kept import kept
from gazeveil.io.source import Head, read_bytes

_MAGIC = b"\x93NUMPY"

# What NumPy raises on a header or a body that was cut or overwritten.
_BROKEN = (
    ValueError,
    SyntaxError,
    TypeError,
    OSError,
    EOFError,
    OverflowError,
    MemoryError,
    KeyError,
    tokenize.TokenError,
)


def header(head: Head) -> tuple[tuple[int, ...], np.dtype[np.generic]] | None:
    """(shape, dtype) of an array file, or None for any other file."""
    if not head.data.startswith(_MAGIC):
        return None
    file = io.BytesIO(head.data)
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    except _BROKEN:
        return None
    return shape, dtype


@kept(4)
def read_npy(path: Path) -> NDArray[np.generic]:
    """The array of a file: mapped from disk where it is not compressed, so that one row costs one
    row.

    Raises
    ------
    FormatError
        For a file that is not an array, was cut, or holds pickled objects.
    """
    if not Head.of(path).data.startswith(_MAGIC):
        raise FormatError(
            path,
            "it is not a whole NumPy array file",
            "Copy it again; it was cut, or it is of another kind.",
        )
    try:
        if path.suffix.lower() == ".gz":
            array = np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
        else:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _BROKEN as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise FormatError(
                path,
                "it holds pickled objects, which could run code when read",
                "Save plain numbers with numpy.save.",
            ) from error
        raise FormatError(
            path, "it is not a whole NumPy array file", "Copy it again; it was cut in transfer."
        ) from error
    assert isinstance(array, np.ndarray)
    return array
