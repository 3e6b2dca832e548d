"""The published feature files of MPIIDPEye and MPIIPrivacEye: one row per window, 52 columns in a
fixed order, no header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import parse_table
from gazeveil.io.source import Head, read_text, stem

#: Number of eye-movement features at the start of each row.
FEATURES = 52

#: (person, stimulus, session, task, index of the window in its file).
Key: TypeAlias = tuple[str, str, str, str, int]

_NAME = re.compile(r"P(?P<person>\d+)_R(?P<recording>\d+)", re.IGNORECASE)


def cells(head: Head) -> int:
    """Cells of the first line if all are numbers (NaN included), else 0."""
    try:
        return len([float(c) for c in head.first.split(",")])
    except ValueError:
        return 0


def person_and_recording(path: Path) -> tuple[str, str] | None:
    """("P4", "R2") of a file name with `P4_R2` in it, else None."""
    match = _NAME.search(stem(path))
    return None if match is None else (f"P{int(match['person'])}", f"R{int(match['recording'])}")


def read_matrix(path: Path, least: int) -> Floats:
    """All columns of a file without header, shape (windows, columns).

    Raises
    ------
    FormatError
        For fewer than `least` columns, and for rows of different length.
    """
    text = read_text(path)
    width = text.lstrip("\n").partition("\n")[0].count(",") + 1
    if width < least:
        raise FormatError(
            path,
            f"the first row has {width} columns, {least} are needed",
            "Check that this is a feature file.",
            1,
        )
    table = parse_table(path, text, ",", header=[f"f{i}" for i in range(width)])
    return np.stack([table.floats(n) for n in table.names], axis=1)


def read_features(
    files: Iterable[Path], stimuli: dict[str, str], least: int
) -> tuple[Floats, list[Key]]:
    """The first 52 columns of each file, one below the other, and a key for each row."""
    blocks, keys = [], []
    for path in files:
        names = person_and_recording(path)
        if names is None:
            raise FormatError(
                path,
                "the file name does not say P<person>_R<recording>",
                "Keep the published file names.",
            )
        person, recording = names
        values = read_matrix(path, least)[:, :FEATURES]
        blocks.append(values)
        keys += [
            (person, stimuli.get(recording, recording), "1", "reading" if stimuli else "", i)
            for i in range(len(values))
        ]
    return (np.concatenate(blocks) if blocks else np.empty((0, FEATURES))), keys
