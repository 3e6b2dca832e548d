"""Files that are loaded whole and kept until they change, because files with many recordings are
asked for once per recording: JSON, arrays of NumPy, variables of MATLAB.
"""

from __future__ import annotations

import io
import json
import tokenize
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import FormatError
from gazeveil.io.source import Head, read_bytes, read_text

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


@kept(4)
def read_json(path: Path) -> dict[str, object]:
    """The object a JSON file holds.

    Raises
    ------
    FormatError
        For a file that is cut, is not JSON, or holds something other than an object.
    """
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise FormatError(
            path,
            f"it is not whole JSON ({error.msg})",
            "Copy it again; it was cut or edited.",
            error.lineno,
        ) from error
    except RecursionError as error:
        raise FormatError(
            path, "its objects are nested too deeply", "Check that this is the file you meant."
        ) from error
    if not isinstance(content, dict):
        raise FormatError(
            path,
            "it holds a list or a value where an object was expected",
            "Check that this is the file you meant.",
        )
    return content


def timed_lines(
    path: Path, time: str, most: float, missing: str
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line number and object of each line, which has a number below `most` under `time`.

    Raises
    ------
    FormatError
        For a line that is not JSON or has no such time, which the message calls `missing`.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise FormatError(
                path,
                f"the line is not JSON ({reason})",
                "The file was cut; copy it again or remove the line.",
                number,
            ) from error
        stamp = record.get(time) if isinstance(record, dict) else None
        # JSON as Python reads it has NaN and infinity, and integers of any length.
        if not isinstance(stamp, int | float) or not abs(stamp) < most:
            raise FormatError(
                path, f"the line has no {missing}", "Mend or remove the line.", number
            )
        yield number, record


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
        read = (
            np.lib.format.read_array_header_1_0
            if np.lib.format.read_magic(file) == (1, 0)
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


# What SciPy raises on a file that ends early or holds other bytes, apart from its own error.
_CUT = (
    ValueError,
    TypeError,
    IndexError,
    EOFError,
    OSError,
    MemoryError,
    NotImplementedError,
    zlib.error,
)


def has_variable(head: Head, name: str) -> bool:
    """Whether a file is a MATLAB 5 file that holds a variable."""
    if not head.name.endswith(".mat") or not head.data.startswith(b"MATLAB 5.0"):
        return False
    from scipy.io import whosmat
    from scipy.io.matlab import MatReadError

    try:
        file: Any = io.BytesIO(read_bytes(head.path))
        return any(variable == name for variable, *_ in whosmat(file))
    except (MatReadError, FormatError, *_CUT):
        return False


def read_variable(path: Path, name: str, remedy: str) -> Any:
    """One variable, without the cells of size one that MATLAB puts around everything; a structure
    has its fields as attributes. `remedy` is what to do where the file has no such variable.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        file: Any = io.BytesIO(read_bytes(path))
        return loadmat(file, squeeze_me=True, struct_as_record=False, variable_names=[name])[name]
    except KeyError as error:
        raise FormatError(path, f"there is no variable '{name}' in it", remedy) from error
    except (MatReadError, *_CUT) as error:
        raise FormatError(
            path, "it is not a whole MATLAB 5 file", "Copy it again; it was cut in transfer."
        ) from error
