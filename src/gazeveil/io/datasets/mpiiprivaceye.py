"""MPIIPrivacEye: 17 people in their daily life, 51 recordings; published as features of windows,
not as gaze.

`Features_and_Ground_Truth/P<person>_R<recording>_data.csv`, no header: the first 52 columns are the
eye-movement features of windows of 30 s every 1 s, then come features of the scene, and the last
column is the binary annotation of privacy. There are no samples, so `read` cannot make recordings
of it; :func:`features` and :func:`privacy_labels` read the files. The people 4, 6 and 15 do not
exist, and the last part of P10 R1 has no eye features.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.io.datasets.mpiidpeye import (
    FEATURES,
    Key,
    cells,
    feature_files,
    person_and_recording,
    read_features,
    read_matrix,
)
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head


def sniff(head: Head) -> bool:
    """`P<person>_R<recording>_data` with more than 52 numbers per row."""
    return (
        "_data" in head.name
        and person_and_recording(head.path) is not None
        and cells(head) > FEATURES
    )


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """Say which function reads these files."""
    raise FormatError(
        path,
        "MPIIPrivacEye publishes features of windows, not samples of gaze",
        "Read it with gazeveil.io.datasets.mpiiprivaceye.features(path).",
    )


def _files(path: str | Path) -> list[Path]:
    return feature_files(path, "*_data.csv*", "P<person>_R<recording>_data.csv")


def features(path: str | Path) -> tuple[Floats, list[Key]]:
    """The 52 eye-movement features of each window of a file, or of all files in a folder.

    Returns
    -------
    values : array of float64, shape (windows, 52)
        In file order; windows are 30 s long and 1 s apart.
    keys : list of (person, stimulus, session, task, index)
        One per row: person `P1`, stimulus `R1` to `R3`, index of the window in its file from 0.

    Raises
    ------
    FormatError
        Where there are no such files, or a row has fewer than 53 numbers.
    """
    return read_features(_files(path), {}, FEATURES + 1)


def privacy_labels(path: str | Path) -> Ints:
    """The annotation of each window, in the rows of :func:`features`: the last column, -1 where it
    is missing.

    Raises
    ------
    FormatError
        If the last column holds anything but 0 and 1.
    """
    return np.concatenate([_labels(place) for place in _files(path)])


def privacy_by_window(path: str | Path) -> dict[tuple[str, str, int], int]:
    """The annotation by person, recording and index of the window, as in the keys of
    :func:`features`; -1 where it is missing.

    Raises
    ------
    FormatError
        As :func:`privacy_labels`.
    """
    by_window = {}
    for place in _files(path):
        person, recording = person_and_recording(place) or ("", "")
        for index, label in enumerate(_labels(place).tolist()):
            by_window[person, recording, index] = label
    return by_window


def _labels(place: Path) -> Ints:
    """The last column of one file."""
    last = read_matrix(place, FEATURES + 1)[:, -1]
    wrong = np.isfinite(last) & (last != 0) & (last != 1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise FormatError(
            place,
            f"the last column holds {last[row]:g}, not 0 or 1",
            "The annotation must be the last column.",
            row + 1,
        )
    return np.where(np.isfinite(last), last, -1).astype(np.int64)


FORMAT = Format(
    "mpiiprivaceye",
    "MPIIPrivacEye: features and privacy annotation (CSV, no samples)",
    sniff,
    scan,
    dataset=Dataset(
        title="MPIIPrivacEye",
        publisher=(
            "Steil, Koelle, Heuten, Boll, Bulling (MPI for Informatics, University of Stuttgart)"
        ),
        licence="CC BY-NC-SA 4.0, see the publisher's page",
        citation=(
            "Steil et al. 2019, PrivacEye: privacy-preserving head-mounted eye tracking using"
            " egocentric scene image and eye movement features, ETRA"
        ),
        layout=(
            "Features_and_Ground_Truth/P<person>_R<recording>_data.csv (features only:"
            " gazeveil.io.datasets.mpiiprivaceye.features)"
        ),
    ),
)
