"""Datasets of the Max Planck Institute for Informatics: MPIIDPEye and MPIIPrivacEye.

mpiidpeye
---------
MPIIDPEye: 20 people read a comic, an online newspaper and a textbook in a headset, 10 minutes
each; Pupil Labs add-on, 30 Hz.

`Eye_Tracking_Data/...P<person>_R<recording>....csv[.gz]`, separated by `;`: pupil x, pupil y,
timestamp, confidence, pupil diameter. These are raw pupil places in the eye camera's image (0..1
from its lower left corner), not calibrated gaze. They are put on a nominal Screen on which the
whole eye image is 80 degrees wide and high, so that speeds have the right order;
`metadata["calibrated"]` is False. Columns go by name where the file has a header, else they stand
in the order above. R1 is the stimulus `comic`, R2 `newspaper`, R3 `textbook`. Time is in seconds,
unless its steps say milliseconds, microseconds or nanoseconds. Confidence 0 is not valid.

`Eye_Movement_Features/Data_P<person>_R<recording>_Pami_Features_52.csv` holds 52 features of
windows of 30 s every 0.5 s. They are no samples; :func:`features` reads them.

mpiiprivaceye
-------------
MPIIPrivacEye: 17 people in their daily life, 51 recordings; published as features of windows,
not as gaze.

`Features_and_Ground_Truth/P<person>_R<recording>_data.csv`, no header: the first 52 columns are the
eye-movement features of windows of 30 s every 1 s, then come features of the scene, and the last
column is the binary annotation of privacy. There are no samples, so `read` cannot make recordings
of it; :func:`features` and :func:`privacy_labels`
read the files. The people 4, 6 and 15 do not
exist, and the last part of P10 R1 has no eye features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle, natural
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, guess_unit, numbers
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import parse_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, read_text, stem

#: Stimulus of each recording of MPIIDPEye.
DOCUMENTS = {"R1": "comic", "R2": "newspaper", "R3": "textbook"}
#: The eye camera's image as a screen: 80 degrees wide and high, a nominal scale.
EYE_IMAGE = Screen(1.0, 1.0, 100.0, 100.0, 50.0 / float(np.tan(np.radians(40.0))))
#: Columns of a file of pupil places without a header.
COLUMNS = ("x", "y", "time", "confidence", "diameter")
_RATE_HZ = 30.0
#: Number of eye-movement features at the start of each row.
FEATURES = 52
#: (person, stimulus, session, task, index of the window in its file).
Key: TypeAlias = tuple[str, str, str, str, int]

_NAME = re.compile(r"P(?P<person>\d+)_R(?P<recording>\d+)", re.IGNORECASE)
_PAMI = "pami_features"


def _person_and_recording(path: Path) -> tuple[str, str] | None:
    """("P4", "R2") of a file name with `P4_R2` in it, else None."""
    match = _NAME.search(stem(path))
    return None if match is None else (f"P{int(match['person'])}", f"R{int(match['recording'])}")


def _cells(head: Head) -> int:
    """Cells of the first line if all are numbers (NaN included), else 0."""
    return len(numbers(head.first) or ())


def _order(line: str) -> list[str] | None:
    """Our name of each column of a header line, or None if one of x, y and time is not there."""
    names = []
    for cell in line.lower().split(";"):
        parts = cell.replace("_", " ").split()
        found = (n for n in COLUMNS[2:] if any(w.startswith(n) for w in parts))
        axis = (n for n in "xy" if parts and parts[-1].endswith(n))
        names.append(next(found, next(axis, "")))
    return names if {"x", "y", "time"} <= set(names) else None


def _sniff_places(head: Head) -> bool:
    """Pupil places separated by `;`, or feature files that have no pupil places beside them."""
    if _PAMI in head.name and _cells(head) == FEATURES:
        return not (head.path.parent.parent / "Eye_Tracking_Data").is_dir()
    named = _person_and_recording(head.path) is not None or "Eye_Tracking_Data" in head.path.parts
    row = numbers(head.first, ";")
    fits = _order(head.first) is not None if row is None else len(row) == len(COLUMNS)
    return named and fits and head.first.count(";") >= 2


def _scan_places(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file of pupil places."""
    if _PAMI in path.name.lower():
        return _refuse(path, root)
    person, recording = _person_and_recording(path) or (stem(path), "")
    stimulus = DOCUMENTS.get(recording, recording or stem(path))
    names = Names(person, stimulus, task="reading")
    return [names.handle(partial(_load, path, names), path)]


def _refuse(path: Path, root: Path) -> Iterable[Handle]:
    """Say which function reads files of features."""
    raise FormatError(
        path,
        "it holds features of windows, not samples of gaze",
        "Read it with gazeveil.io.datasets.mpii.features(path), which gives rows and keys.",
    )


def _load(path: Path, names: Names) -> Recording:
    """One file of pupil places as a recording."""
    text = read_text(path).lstrip("\n")
    first = text.partition("\n")[0]
    order = _order(first)
    if order is not None:
        text = text.partition("\n")[2]
    elif numbers(first, ";") is None:
        raise FormatError(
            path,
            "the header does not name x, y and a timestamp",
            "Name the columns, or leave out the header.",
            1,
        )
    columns = [n or f"other_{i}" for i, n in enumerate(order or COLUMNS)]
    table = parse_table(path, text, ";", first_line=1 if order is None else 2, header=columns)
    confidence = table.maybe_floats("confidence")
    unit = guess_unit(table.floats("time"), _RATE_HZ)
    x_deg, y_deg = EYE_IMAGE.from_px(table.floats("x"), 1.0 - table.floats("y"))
    return assemble(
        path,
        **vars(names),
        t_ns=table.times_ns("time", unit=unit, relative=True),
        space=EYE_IMAGE,
        x_deg=x_deg,
        y_deg=y_deg,
        valid=None if confidence is None else confidence > 0,
        confidence=confidence,
        pupil=table.maybe_floats("diameter"),
        metadata={"calibrated": False, "pupil_unit": "eye-image px"},
    )


DPEYE = Format(
    "mpiidpeye",
    "MPIIDPEye: pupil places while reading three kinds of document (CSV)",
    _sniff_places,
    _scan_places,
    dataset=Dataset(
        title="MPIIDPEye",
        publisher="Steil, Hagestedt, Huang, Bulling (MPI for Informatics, University of Stuttgart)",
        licence="CC BY-NC-SA 4.0, see the publisher's page",
        citation="Steil et al. 2019, Privacy-aware eye tracking using differential privacy, ETRA",
        layout=(
            "Eye_Tracking_Data/*P<person>_R<recording>*.csv,"
            " Eye_Movement_Features/Data_P<person>_R<recording>_Pami_Features_52.csv"
        ),
    ),
    scrub=PUBLISHED,
)


def _sniff_windows(head: Head) -> bool:
    """`P<person>_R<recording>_data` with more than 52 numbers per row."""
    named = "_data" in head.name and _person_and_recording(head.path) is not None
    return named and _cells(head) > FEATURES


PRIVACEYE = Format(
    "mpiiprivaceye",
    "MPIIPrivacEye: features and privacy annotation (CSV, no samples)",
    _sniff_windows,
    _refuse,
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
            " gazeveil.io.datasets.mpii.features)"
        ),
    ),
    scrub=PUBLISHED,
)


def _files(path: str | Path, *patterns: str) -> list[Path]:
    """A feature file, or all below a folder whose names fit the first pattern that any does."""
    place = Path(path)
    found = ([p for p in place.rglob(pattern) if p.is_file()] for pattern in patterns)
    files = [place] if place.is_file() else next(filter(None, found), [])
    if not files:
        raise FormatError(
            place,
            "there are no feature files here",
            "They are called Data_P<person>_R<recording>_Pami_Features_52.csv or"
            " P<person>_R<recording>_data.csv.",
        )
    return sorted(files, key=lambda p: natural(p.as_posix()))


def _matrix(path: Path, least: int) -> Floats:
    """All columns of a file without header, shape (windows, columns)."""
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


def features(path: str | Path) -> tuple[Floats, list[Key]]:
    """The 52 eye-movement features of each window of a file, or of all files in a folder.

    Parameters
    ----------
    path : path
        A file `Data_P<person>_R<recording>_Pami_Features_52.csv[.gz]` of MPIIDPEye (windows of 30 s
        every 0.5 s) or `P<person>_R<recording>_data.csv[.gz]` of MPIIPrivacEye (every 1 s), or a
        folder with such files anywhere in it.

    Returns
    -------
    values : array of float64, shape (windows, 52)
        In file order.
    keys : list of (person, stimulus, session, task, index)
        One per row: person `P4`, stimulus `comic`, `newspaper` or `textbook`, or `R1` to `R3` of
        MPIIPrivacEye, index of the window in its file from 0.

    Raises
    ------
    FormatError
        Where there are no such files, or a row does not have so many numbers.
    """
    blocks, keys = [], []
    for place in _files(path, "*Pami_Features*", "*_data.csv*"):
        names = _person_and_recording(place)
        if names is None:
            raise FormatError(
                place,
                "the file name does not say P<person>_R<recording>",
                "Keep the published file names.",
            )
        reading = _PAMI in place.name.lower()
        blocks.append(_matrix(place, FEATURES if reading else FEATURES + 1)[:, :FEATURES])
        stimulus = DOCUMENTS.get(names[1], names[1]) if reading else names[1]
        key = (names[0], stimulus, "1", "reading" if reading else "")
        keys += [(*key, i) for i in range(len(blocks[-1]))]
    return np.concatenate(blocks), keys


def privacy_labels(path: str | Path) -> Ints:
    """The annotation of each window of MPIIPrivacEye, in the rows of :func:`features`: the last
    column, -1 where it is missing.

    Raises
    ------
    FormatError
        If the last column holds anything but 0 and 1.
    """
    return np.concatenate([_labels(place) for place in _files(path, "*_data.csv*")])


def privacy_by_window(path: str | Path) -> dict[tuple[str, str, int], int]:
    """The annotation by person, recording and index of the window, as in the keys of
    :func:`features`; -1 where it is missing.
    """
    return {
        (*(_person_and_recording(place) or ("", "")), index): label
        for place in _files(path, "*_data.csv*")
        for index, label in enumerate(_labels(place).tolist())
    }


def _labels(place: Path) -> Ints:
    """The last column of one file."""
    last = _matrix(place, FEATURES + 1)[:, -1]
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
