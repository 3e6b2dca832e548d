"""JSON files, with the line of a fault in the message."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import read_text


def read_json(path: Path) -> dict[str, object]:
    """The object a JSON file holds.

    Raises
    ------
    FormatError
        For a file that is cut, is not JSON, or holds something other than an object.
    """
    return _read(str(path), path.stat().st_mtime_ns if path.exists() else 0)


# Files with many recordings are asked for once per recording.
@lru_cache(maxsize=4)
def _read(path: str, changed_ns: int) -> dict[str, object]:
    place = Path(path)
    try:
        content = json.loads(read_text(place))
    except json.JSONDecodeError as error:
        raise FormatError(
            place,
            f"it is not whole JSON ({error.msg})",
            "Copy it again; it was cut or edited.",
            error.lineno,
        ) from error
    except RecursionError as error:
        raise FormatError(
            place, "its objects are nested too deeply", "Check that this is the file you meant."
        ) from error
    if not isinstance(content, dict):
        raise FormatError(
            place,
            "it holds a list or a value where an object was expected",
            "Check that this is the file you meant.",
        )
    return content
