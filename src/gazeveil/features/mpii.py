"""The feature files of MPIIDPEye and MPIIPrivacEye as a FeatureTable (Steil et al. 2019).

The files are read by :mod:`gazeveil.io.datasets.mpii`; here they get names and public bounds.
Windows without eye features stay, as NaN (`table.complete()` leaves them out).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.errors import DataError, FormatError
from gazeveil.features.definitions import WINDOW, bounds_of, window_definitions
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.io.datasets import mpii


def table_from_mpii(
    values: ArrayLike, keys: Sequence[tuple[str, str, str, str, int]]
) -> FeatureTable:
    """Rows of MPIIDPEye or MPIIPrivacEye feature files as a table with names and bounds in file
    order.

    Parameters
    ----------
    values : array, shape (windows, at least 52)
        The files' columns; those after the 52nd (scene features, annotations) are left out. NaN
        stays NaN.
    keys : sequence of (person, stimulus, session, task, index)
        One per row.

    Raises
    ------
    DataError
        With fewer than 52 columns, or another number of keys than rows.
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < len(WINDOW):
        raise DataError(f"MPII features need at least 52 columns. Got shape {rows.shape}.")
    person, stimulus, session, task = (
        np.array([k[i] for k in keys], dtype=np.str_) for i in range(4)
    )
    index = np.array([k[4] for k in keys], dtype=np.int64)
    # The files' pupil diameters are pixels of the eye camera; both datasets have windows of 30 s.
    bounds = bounds_of(window_definitions(30.0, "px"))
    return FeatureTable(
        rows[:, : len(WINDOW)], WINDOW, Keys(person, stimulus, session, task, index), bounds
    )


def mpii_features(path: str | Path) -> FeatureTable:
    """Read a feature file of MPIIDPEye or MPIIPrivacEye, or all of them in a folder, into one
    table.

    The person is `P<number>`; the stimulus is `comic`, `newspaper` or `textbook` for MPIIDPEye and
    `R<number>` for MPIIPrivacEye.

    Raises
    ------
    FormatError
        Nothing there, or a file that does not hold these features.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder")
    return table_from_mpii(*mpii.features(place))


#: Names of a table of people in a dataset's folder.
PEOPLE_TABLES = ("participants.tsv", "participants.csv", "participant_info.csv", "people.csv")


def mpii_people(path: str | Path) -> dict[str, dict[str, object]]:
    """Read attributes of the people (age, gender) from a table in the folder or the one above it.
    The table is one of :data:`PEOPLE_TABLES`; without it there are none.

    `4`, `04` and `P04` are the person `P4` of :func:`mpii_features`.

    Raises
    ------
    FormatError
        For a table without a person, or with a person twice.
    """
    from gazeveil.io.tables_file import read_people

    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    places = (f / name for f in (folder, folder.parent) for name in PEOPLE_TABLES)
    table = next((p for p in places if p.is_file()), None)
    if table is None:
        return {}
    return {_person(name): attributes for name, attributes in read_people(table).items()}


def _person(name: str) -> str:
    digits = name.strip().lstrip("Pp")
    return f"P{int(digits)}" if digits.isdigit() else name
