"""JSON files and files of JSON lines, with the line of a fault in the message."""

from __future__ import annotations

import json
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.parsing.kept import kept
from gazeveil.io.source import read_text


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
) -> list[tuple[int, dict[str, object]]]:
    """Line number and object of each line, which has a number below `most` under `time`.

    Raises
    ------
    FormatError
        For a line that is not JSON or has no such time, which the message calls `missing`.
    """
    result = []
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
        result.append((number, record))
    return result
