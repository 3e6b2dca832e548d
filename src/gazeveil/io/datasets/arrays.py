"""Datasets that are published as arrays of windows, ready for a network: DGaze, EHTask.

dgaze
-----
DGaze: 43 people, 5 dynamic scenes in an HTC Vive, 100 Hz; published as windows ready for a
network.

`trainingX.npy`, `trainingY.npy`, `testX.npy`, `testY.npy`. A row of X is 50 steps of 13 numbers
(gaze 2, head velocity 2, three nearest objects 3 each; this order is read from the released code)
and a 24 x 24 x 2 saliency map: 1802 numbers. Y is the gaze to predict. Gaze is in degrees right of
and above the centre of the screen.

Rows overlap in time and do not say who looked: each row becomes a recording of half a second of
person "unknown", the stimulus is the file ("train" or "test"), the session the row number from 0.
That is enough for gaze prediction and for nothing about persons. The rest of the row is in
`metadata`: `head_velocity_deg_s` (50, 2), `objects` (50, 9) and `saliency` (1152,) as published,
`target_deg` (2,) in our degrees.  `rows_as_people=True` calls the
person of row 7 "train row 7" and so on, in one session, so that figures have an interval over rows;
`with_target=True` puts the gaze to predict behind the 50 samples, 100 ms after the last, which is
what a prediction is held against.

ehtask
------
EHTask: 30 people, 15 panoramic videos, four tasks in an HTC Vive; published as windows of 10 s
at 25 Hz.

`trainingX.npy`, `trainingY.npy`, `testX.npy`, `testY.npy`, `testRecordingLabel.npy`. A row of X is
500 + 500 + 500 numbers: eye in head, head velocity and gaze in the world, 250 steps of (x, y) each.
Eye in head is a place on the screen in 0..1 from the lower left corner. Gaze in the world is
longitude and latitude in degrees with the centre at 0, or, where all numbers lie within 0 and 1,
fractions of the panorama from its lower left corner. Y is the task: 0 free viewing, 1 visual
search, 2 saliency, 3 tracking.

Rows do not say who looked: the person is "unknown", the stimulus the file ("train" or "test"), the
session the row number from 0. Where `testRecordingLabel.npy` says from which recording a row comes,
the session is "<recording>.<row>" and `metadata["recording"]` has the number, so that windows of
one recording can be kept together. `metadata["head_velocity_deg_s"]` is (250, 2), as published.
`rows_as_people=True` calls the person of row 7 "train row 7" and so
on, in one session, so that figures have an interval over rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.loaded import header, read_npy
from gazeveil.io.parsing.naming import Names
from gazeveil.io.registry import NUMPY, Dataset, Format
from gazeveil.io.source import Head, stem

#: Numbers in a row of DGaze: steps of several, and a saliency map.
_STEPS, _FEATURES, _DGAZE_WIDTH, _DGAZE_HZ = 50, 13, 1802, 100.0
#: Samples from the last of a row to the gaze to predict.
AHEAD = 10
_EHTASK_STEPS, _EHTASK_WIDTH, _EHTASK_HZ = 250, 1500, 25.0
#: Tasks of EHTask by label.
TASKS = ("free-viewing", "search", "saliency", "tracking")

_WIDTH_PX, _HEIGHT_PX = 1080.0, 1200.0
_DISTANCE_PX = 0.5 * _HEIGHT_PX / float(np.tan(np.radians(55.0)))
#: One pixel stands for one millimetre: only the ratio to the distance matters.
VIEW = Screen(_WIDTH_PX, _HEIGHT_PX, _WIDTH_PX, _HEIGHT_PX, _DISTANCE_PX)


def _has_width(width: int, head: Head) -> bool:
    """Whether a file is an array of numbers with so many columns."""
    found = header(head)
    return found is not None and found[0][1:] == (width,) and found[1].kind == "f"


def _rows(path: Path, width: int, title: str, **flags: object) -> NDArray[np.generic]:
    """The array of a file, which must have so many columns."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            checks.refuse(f"Format {title.lower()}", name, "True or False", value)
    array = read_npy(path)
    if array.ndim != 2 or array.shape[1] != width:
        raise FormatError(
            path,
            f"the array has shape {array.shape}, {title} needs (rows, {width})",
            "Check that this is trainingX.npy or testX.npy.",
        )
    return array


def _names(path: Path, row: int, session: str, task: str, rows_as_people: bool) -> Names:
    """Whose a row is said to be, and in which session; the stimulus is the part of the dataset."""
    name = stem(path)
    parts = {"trainingx": "train", "trainx": "train", "testx": "test"}
    split = parts.get(name.lower(), name.removesuffix("X") or name)
    person = f"{split} row {row}" if rows_as_people else "unknown"
    return Names(person, split, "1" if rows_as_people else session, task)


def _partner(path: Path, letter: str) -> Path | None:
    """The file beside `...X.npy` that has another last part, or None."""
    at = path.name.lower().rfind("x.npy")
    sibling = path.with_name(path.name[:at] + letter + path.name[at + 1 :]) if at >= 0 else path
    return sibling if sibling != path and sibling.is_file() else None


def _scan_dgaze(
    path: Path, root: Path, rows_as_people: bool = False, with_target: bool = False
) -> Iterator[Handle]:
    flags = {"rows_as_people": rows_as_people, "with_target": with_target}
    array = _rows(path, _DGAZE_WIDTH, "DGaze", **flags)
    if with_target and _partner(path, "Y") is None:
        raise FormatError(
            path, "the file with the gaze to predict is not beside it", "Put Y beside X."
        )
    for row in range(len(array)):
        names = _names(path, row, str(row), "free-viewing", rows_as_people)
        yield names.handle(partial(_load_dgaze, path, names, row, with_target), path)


def _load_dgaze(path: Path, names: Names, row: int, with_target: bool) -> Recording:
    """One row as a recording of 50 samples, and of one more with the target."""
    numbers = np.array(read_npy(path)[row], dtype=np.float64)
    steps = numbers[: _STEPS * _FEATURES].reshape(_STEPS, _FEATURES)
    metadata: dict[str, object] = {
        "head_velocity_deg_s": steps[:, 2:4],
        "objects": steps[:, 4:],
        "saliency": numbers[_STEPS * _FEATURES :],
    }
    answers = _partner(path, "Y")
    ticks, gaze_deg = np.arange(_STEPS), steps[:, :2]
    if answers is not None:
        target = np.array(read_npy(answers)[row], dtype=np.float64).ravel()[:2]
        metadata["target_deg"] = target * [1.0, -1.0]
        if with_target:
            ticks = np.append(ticks, _STEPS - 1 + AHEAD)
            gaze_deg = np.vstack([gaze_deg, target])
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(ticks * (1e9 / _DGAZE_HZ)).astype(np.int64),
        space=VIEW,
        x_deg=gaze_deg[:, 0],
        y_deg=-gaze_deg[:, 1],
        rate_hz=_DGAZE_HZ,
        metadata=metadata,
    )


DGAZE = Format(
    "dgaze",
    "DGaze: windows of gaze, head velocity and objects (NumPy)",
    partial(_has_width, _DGAZE_WIDTH),
    _scan_dgaze,
    frozenset({"rows_as_people", "with_target"}),
    dataset=Dataset(
        title="DGaze",
        publisher="Hu, Li, Zhang, Yi, Wang, Manocha (Peking University), github.com/CraneHzm/DGaze",
        licence="for research; see the project page",
        citation=(
            "Hu et al. 2020, DGaze: CNN-based gaze prediction in dynamic scenes, IEEE TVCG 26(5)"
        ),
        layout="trainingX.npy, trainingY.npy, testX.npy, testY.npy",
    ),
    scrub=NUMPY,
)


def _scan_ehtask(path: Path, root: Path, rows_as_people: bool = False) -> Iterator[Handle]:
    array = _rows(path, _EHTASK_WIDTH, "EHTask", rows_as_people=rows_as_people)
    tasks = _whole_numbers(_partner(path, "Y"), len(array))
    recordings = _whole_numbers(_partner(path, "RecordingLabel"), len(array))
    for row in range(len(array)):
        task = "" if tasks is None else str(tasks[row])
        task = TASKS[int(task)] if task in ("0", "1", "2", "3") else task
        about: dict[str, object] = {} if recordings is None else {"recording": recordings[row]}
        number = str(row) if recordings is None else f"{recordings[row]}.{row}"
        names = _names(path, row, number, task, rows_as_people)
        yield names.handle(partial(_load_ehtask, path, names, row, about), path)


def _whole_numbers(path: Path | None, rows: int) -> list[int] | None:
    if path is None:
        return None
    values = np.asarray(read_npy(path))
    if len(values) != rows:
        raise FormatError(
            path,
            f"it has {len(values)} labels for {rows} rows",
            "Use the files of one download together.",
        )
    # One-hot answers are as good as numbers.
    several = values.ndim == 2 and values.shape[1] > 1
    flat = values.argmax(axis=1) if several else values.reshape(rows).round()
    return flat.astype(np.int64).tolist()


def _load_ehtask(path: Path, names: Names, row: int, about: dict[str, object]) -> Recording:
    """One row as a recording of 250 samples."""
    eye, head, world = np.array(read_npy(path)[row], dtype=np.float64).reshape(3, _EHTASK_STEPS, 2)
    finite = world[np.isfinite(world)]
    fractions = len(finite) and finite.min() >= 0 and finite.max() <= 1
    lon, lat = world.T
    x_deg, y_deg = (360.0 * lon, 180.0 * (1.0 - lat)) if fractions else (180.0 + lon, 90.0 - lat)
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(np.arange(_EHTASK_STEPS) * (1e9 / _EHTASK_HZ)).astype(np.int64),
        space=Sphere(),
        x_deg=x_deg,
        y_deg=y_deg,
        rate_hz=_EHTASK_HZ,
        eye_in_head_deg=from_fractions(eye),
        metadata={"head_velocity_deg_s": head, **about},
    )


def from_fractions(places: Floats) -> Floats:
    """Tangent angles (right, down) in degrees, shape (n, 2), of screen places in 0..1 from the
    lower left corner.
    """
    x, y = VIEW.from_px(places[:, 0] * _WIDTH_PX, (1.0 - places[:, 1]) * _HEIGHT_PX)
    return np.stack((x, y), axis=1)


EHTASK = Format(
    "ehtask",
    "EHTask: windows of eye, head and gaze with a task (NumPy)",
    partial(_has_width, _EHTASK_WIDTH),
    _scan_ehtask,
    frozenset({"rows_as_people"}),
    dataset=Dataset(
        title="EHTask",
        publisher=(
            "Hu, Bulling, Li, Wang (Peking University, University of Stuttgart),"
            " github.com/CraneHzm/EHTask"
        ),
        licence="for research; see the project page",
        citation=(
            "Hu et al. 2022, EHTask: recognizing user tasks from eye and head movements in"
            " immersive virtual reality, IEEE TVCG"
        ),
        layout="trainingX.npy, trainingY.npy, testX.npy, testY.npy, testRecordingLabel.npy",
    ),
    scrub=NUMPY,
)
