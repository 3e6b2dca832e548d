"""A table that says whose each file is: `index = "recordings.csv"` in a dataset.toml.

Columns `file` (relative to the table), `person` and `stimulus`; `session`, `task`, `rate_hz`,
`space` (`screen` or `sphere`) and the five numbers of a screen where they are known. Files that it
does not list are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen
from gazeveil.gaze.recording import KEY_NAMES
from gazeveil.io.parsing.delimited import open_sheet
from gazeveil.io.parsing.table import listed


def read_index(path: Path) -> dict[Path, dict[str, object]]:
    """File -> options of the reader that are its own.

    Raises
    ------
    FormatError
        Without the columns file, person and stimulus, for a file that is listed twice, is not
        there or lies outside the folder, or for a number that is none.
    """
    table = open_sheet(path, comment="").table
    missing = [n for n in ("file", "person", "stimulus") if not table.has(n)]
    if missing:
        problem = f"there is no column '{missing[0]}' (columns: {listed(table.names)})"
        raise FormatError(path, problem, "An index has file, person and stimulus.", 1)
    known = [n for n in (*KEY_NAMES, "rate_hz", "space", *SCREEN_SIZES) if table.has(n)]
    cells = {n: table.words(n) for n in known}
    root = path.parent.resolve()
    result: dict[Path, dict[str, object]] = {}
    for row, name in enumerate(table.words("file")):
        file = path.parent / name
        line = table.line_of(row)
        if root not in file.resolve().parents:
            raise FormatError(path, f"'{name}' lies outside the folder", "Mend the line.", line)
        if not file.is_file():
            raise FormatError(path, f"there is no file '{name}'", "Mend the line.", line)
        if file in result:
            raise FormatError(path, f"'{name}' is listed twice", "Remove one line.", line)
        result[file] = _options({n: c[row] for n, c in cells.items()}, path, line)
    return result


def _options(cells: Mapping[str, str], path: Path, line: int) -> dict[str, object]:
    options: dict[str, object] = {n: cells[n] for n in KEY_NAMES if cells.get(n)}
    try:
        if cells.get("rate_hz"):
            options["rate_hz"] = float(cells["rate_hz"])
        if all(cells.get(n) for n in SCREEN_SIZES):
            options["screen"] = Screen(*(float(cells[n]) for n in SCREEN_SIZES))
        elif cells.get("space"):
            options["space"] = cells["space"]
    except ValueError as error:
        raise FormatError(path, "a number of this line is none", "Mend the line.", line) from error
    return options
