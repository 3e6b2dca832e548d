"""MPIIDPEye: 20 people read a comic, an online newspaper and a textbook in a headset, 10 minutes
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
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle, natural
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import guess_unit, numbers
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.table import parse_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, read_text, stem

#: Stimulus of each recording.
DOCUMENTS = {"R1": "comic", "R2": "newspaper", "R3": "textbook"}

#: The eye camera's image as a screen: 80 degrees wide and high, a nominal scale.
EYE_IMAGE = Screen(1.0, 1.0, 100.0, 100.0, 50.0 / float(np.tan(np.radians(40.0))))

#: Columns of a file without a header.
COLUMNS = ("x", "y", "time", "confidence", "diameter")
_RATE_HZ = 30.0


def _is_features(head: Head) -> bool:
    return "pami_features" in head.name and cells(head) == FEATURES


def column_order(line: str) -> list[str] | None:
    """Our name of each column of a header line, or None if one of x, y and time is not there."""
    names = []
    for cell in line.lower().split(";"):
        parts = cell.replace("_", " ").split()
        guess = next(
            (n for n in ("time", "confidence", "diameter") if any(w.startswith(n) for w in parts)),
            "",
        )
        names.append(guess or next((n for n in ("x", "y") if parts and parts[-1].endswith(n)), ""))
    return names if {"x", "y", "time"} <= set(names) else None


def sniff(head: Head) -> bool:
    """Pupil places separated by `;`, or feature files that have no pupil places beside them."""
    if _is_features(head):
        return not (head.path.parent.parent / "Eye_Tracking_Data").is_dir()
    named = person_and_recording(head.path) is not None or "Eye_Tracking_Data" in head.path.parts
    if head.first.count(";") < 2 or not named:
        return False
    row = numbers(head.first, ";")
    return len(row) == len(COLUMNS) if row is not None else column_order(head.first) is not None


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file of pupil places."""
    if _is_features(Head.of(path)):
        raise FormatError(
            path,
            "it holds features of windows, not samples of gaze",
            "Read it with gazeveil.io.datasets.mpiidpeye.features(path), which gives rows and"
            " keys.",
        )
    person, recording = person_and_recording(path) or (stem(path), "")
    stimulus = DOCUMENTS.get(recording, recording or stem(path))
    return [
        Handle(
            person,
            stimulus,
            partial(load, path, person, stimulus),
            task="reading",
            source=str(path),
        )
    ]


def load(path: Path, person: str, stimulus: str) -> Recording:
    """One file of pupil places as a recording."""
    text = read_text(path)
    first = text.lstrip("\n").partition("\n")[0]
    order = column_order(first)
    if order is not None:
        text = text.lstrip("\n").partition("\n")[2]
    elif numbers(first, ";") is None:
        raise FormatError(
            path,
            "the header does not name x, y and a timestamp",
            "Name the columns, or leave out the header.",
            1,
        )
    names = [n or f"other_{i}" for i, n in enumerate(order or COLUMNS)]
    table = parse_table(path, text, ";", first_line=1 if order is None else 2, header=names)
    confidence = table.floats("confidence") if table.has("confidence") else None
    unit = guess_unit(table.floats("time"), _RATE_HZ)
    x_deg, y_deg = EYE_IMAGE.from_px(table.floats("x"), 1.0 - table.floats("y"))
    return assemble(
        path,
        person=person,
        stimulus=stimulus,
        task="reading",
        t_ns=table.times_ns("time", unit=unit, relative=True),
        space=EYE_IMAGE,
        x_deg=x_deg,
        y_deg=y_deg,
        valid=None if confidence is None else confidence > 0,
        confidence=confidence,
        pupil=table.floats("diameter") if table.has("diameter") else None,
        metadata={"calibrated": False, "pupil_unit": "eye-image px"},
    )


def features(path: str | Path) -> tuple[Floats, list[Key]]:
    """The 52 features of each window of a feature file, or of all feature files in a folder.

    Parameters
    ----------
    path : path
        A file `Data_P<person>_R<recording>_Pami_Features_52.csv[.gz]`, or a folder with such files
        anywhere in it.

    Returns
    -------
    values : array of float64, shape (windows, 52)
        In file order; windows are 30 s long and 0.5 s apart.
    keys : list of (person, stimulus, session, task, index)
        One per row: person `P4`, stimulus `comic`, `newspaper` or `textbook`, index of the window
        in its file from 0.

    Raises
    ------
    FormatError
        Where there are no such files, or a row does not have 52 numbers.
    """
    called = "Data_P<person>_R<recording>_Pami_Features_52.csv"
    return read_features(feature_files(path, "*Pami_Features*", called), DOCUMENTS, FEATURES)


FORMAT = Format(
    "mpiidpeye",
    "MPIIDPEye: pupil places while reading three kinds of document (CSV)",
    sniff,
    scan,
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
)


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


def feature_files(path: str | Path, pattern: str, called: str) -> list[Path]:
    """A feature file, or all below a folder whose names fit a pattern, in order.

    Raises
    ------
    FormatError
        Where there are none; `called` says what their names look like.
    """
    place = Path(path)
    files = (
        [place]
        if place.is_file()
        else sorted(
            (p for p in place.rglob(pattern) if p.is_file()), key=lambda p: natural(p.as_posix())
        )
    )
    if not files:
        raise FormatError(place, "there are no feature files here", f"They are called {called}.")
    return files


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
