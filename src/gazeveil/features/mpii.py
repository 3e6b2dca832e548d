"""The feature files of MPIIDPEye and MPIIPrivacEye as a FeatureTable.

`Data_P<person>_R<recording>_Pami_Features_52.csv` (MPIIDPEye; recording 1 is a comic, 2 an online newspaper, 3 a textbook) and
`P<person>_R<recording>_data.csv` (MPIIPrivacEye): numbers without a header, the 52 window features first (Steil et al. 2019).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.errors import DataError, FormatError
from gazeveil.features.definitions import WINDOW, bounds_of, window_definitions
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import natural
from gazeveil.io.source import read_text
from gazeveil.io.table import parse_table

_NAME = re.compile(r"(?:^|_)(P\d+)_R(\d+)_(?:data|.*features_52)\.(?:csv|txt)(?:\.gz)?$", re.IGNORECASE)

#: What people read in each recording of MPIIDPEye.
DOCUMENTS = {"1": "comic", "2": "newspaper", "3": "textbook"}


def table_from_mpii(
    values: ArrayLike | Sequence[ArrayLike],
    person: str | Sequence[str],
    stimulus: str | Sequence[str],
    session: str | Sequence[str] = "1",
    task: str | Sequence[str] = "",
) -> FeatureTable:
    """Rows of one or more MPIIDPEye or MPIIPrivacEye feature files as a table with names and bounds in file order.

    Parameters
    ----------
    values : array, shape (windows, at least 52), or a sequence of such arrays
        The file's columns; those after the 52nd (scene features, annotations) are left out. NaN stays NaN.
    person, stimulus, session, task : str or sequence of str
        Of the file, or of each file.
    """
    several = isinstance(values, Sequence) and len(values) > 0 and np.ndim(values[0]) == 2
    blocks = [np.asarray(b, dtype=np.float64) for b in (values if isinstance(values, Sequence) and several else [values])]
    for block in blocks:
        if block.ndim != 2 or block.shape[1] < len(WINDOW):
            raise DataError(f"MPII features need at least 52 columns. Got shape {block.shape}.")
    words = [[w] * len(blocks) if isinstance(w, str) else list(w) for w in (person, stimulus, session, task)]
    for name, column in zip(("person", "stimulus", "session", "task"), words, strict=True):
        if len(column) != len(blocks):
            checks.refuse("table_from_mpii", name, f"one text, or one for each of the {len(blocks)} files", column)
    keys = Keys.of_recordings(list(zip(*words, strict=True)), [np.arange(len(b)) for b in blocks])
    rows = np.concatenate([b[:, : len(WINDOW)] for b in blocks])
    # The files' pupil diameters are pixels of the eye camera.
    return FeatureTable(rows, WINDOW, keys, bounds_of(window_definitions(30.0, "px")))


def mpii_features(path: str | Path) -> FeatureTable:
    """Read a feature file of MPIIDPEye or MPIIPrivacEye, or all of them in a folder, into one table.

    The person is `P<number>`; the stimulus is the document (`comic`, `newspaper`, `textbook`) for MPIIDPEye and `R<number>` for
    MPIIPrivacEye. Rows without eye features stay, as NaN (`table.complete()` leaves them out).

    Raises
    ------
    FormatError
        Nothing there, a name that does not say person and recording, or a file with fewer than 52 columns.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder")
    if place.is_dir():
        files = sorted((f for f in place.rglob("*") if f.is_file() and _NAME.search(f.name)), key=lambda f: natural(f.as_posix()))
        if not files:
            raise FormatError(place, "no file here is named like an MPII feature file", "Expected Data_P1_R1_Pami_Features_52.csv or P1_R1_data.csv.")
    else:
        files = [place]
    people: list[str] = []
    stimuli: list[str] = []
    for file in files:
        found = _NAME.search(file.name)
        if found is None:
            raise FormatError(file, "the name does not say whose features these are", "Expected Data_P1_R1_Pami_Features_52.csv or P1_R1_data.csv.")
        reading = "features_52" in file.name.lower()
        people.append(found[1].upper())
        stimuli.append(DOCUMENTS.get(found[2], f"R{found[2]}") if reading else f"R{found[2]}")
    return table_from_mpii([_values(file) for file in files], people, stimuli)


def _values(path: Path) -> NDArray[np.float64]:
    text = read_text(path)
    width = text.lstrip().split("\n", 1)[0].count(",") + 1
    if width < len(WINDOW):
        raise FormatError(path, f"the first row has {width} cells, the features are {len(WINDOW)}", "Is this an MPII feature file?", 1)
    table = parse_table(path, text, ",", header=[str(i) for i in range(width)])
    return np.stack([table.floats(str(i)) for i in range(len(WINDOW))], axis=1)
