"""Variables of a MATLAB 5 file, with every way in which such a file can be broken turned into one
sentence.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.io.source import Head, read_bytes

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
