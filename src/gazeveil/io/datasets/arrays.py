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

Datasets whose samples experts have labelled: lookAtPoint (irf), Lund 2013.

irf
---
lookAtPoint (irf): two people follow a jumping point, every sample labelled by an expert;
EyeLink, 1000 Hz.

`<stimulus>_<tracker>_<person>.npy[.gz]`, as `lookAtPoint_EL_S1.npy`: a structured array `t` (s),
`x`, `y` (degrees from the centre of the screen, right and down, read as tangent angles), `status`
(false is not valid), `evt` (0 undefined, 1 fixation, 2 saccade, 3 post-saccadic oscillation, 4
smooth pursuit, 5 blink), kept in `labels["expert"]`. The last part of the name is the person, the
first the stimulus. `db_config.json` beside the arrays gives the screen in mm and px; `screen=`
replaces it.

lund2013
--------
Lund 2013: people look at images, moving dots and videos, every sample labelled by two experts;
SMI Hi-Speed, 500 Hz.

`{img,dots,video}/<person>_<trial>_labelled_<coder>.mat`: a MATLAB structure `ETdata` with `pos`
(columns: time in us, pupil width and height, x and y in px, label), `screenRes` (px), `screenDim`
and `viewDist` (m), `sampFreq` (Hz). Gaze at (0, 0) is lost. The files of dots have no times: their
rows are at the nominal rate.

A trial is one recording, with one column of labels per coder (`labels["MN"]`, `labels["RA"]`). Two
coders' files of a trial may differ by some samples in length: the longer one counts, and what a
coder did not see is `undefined` in that coder's column. The folder is the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Texts
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import (
    assemble,
    folder_name,
    has_variable,
    header,
    read_json,
    read_npy,
    read_variable,
)
from gazeveil.io.parsing.naming import Names
from gazeveil.io.registry import MATLAB, NUMPY, Dataset, Format
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


#: Our words of the published codes; of Lund 2013 6 is undefined too.
CODES = ("undefined", "fixation", "saccade", "pso", "pursuit", "blink")
_FIELDS = frozenset({"t", "x", "y", "evt"})
_GEOMETRY = (
    *("display_width_pix", "display_height_pix"),
    *("screen_width", "screen_height", "eye_distance"),
)


def _words(codes: Floats) -> Texts:
    known = (codes >= 0) & (codes < len(CODES))
    return np.array(CODES)[np.where(known, codes, 0).astype(np.int64)]


def _sniff_irf(head: Head) -> bool:
    """A structured array with time, gaze and event codes."""
    found = header(head)
    return found is not None and set(found[1].names or ()) >= _FIELDS


def _scan_irf(path: Path, root: Path, screen: Screen | None = None) -> Iterable[Handle]:
    """One recording per array."""
    first, _, rest = stem(path).partition("_")
    last = rest.rpartition("_")[2]
    names = Names(last, first) if first and last else Names(stem(path), folder_name(path))
    return [names.handle(partial(_load_irf, path, names, screen), path)]


def _load_irf(path: Path, names: Names, screen: Screen | None) -> Recording:
    """One array as a recording."""
    rows = np.asarray(read_npy(path))
    fields = rows.dtype.names or ()
    if not set(fields) >= _FIELDS:
        raise FormatError(
            path, "the array has no fields t, x, y and evt", "Check that this is an irf array."
        )
    seconds = rows["t"].astype(np.float64)
    if not np.isfinite(seconds).all():
        row = int(np.flatnonzero(~np.isfinite(seconds))[0])
        raise FormatError(path, f"row {row} has no time", "Remove the row.")
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(seconds * 1e9).astype(np.int64),
        space=screen or _configured(path),
        x_deg=rows["x"].astype(np.float64),
        y_deg=rows["y"].astype(np.float64),
        valid=rows["status"].astype(np.bool_) if "status" in fields else None,
        labels={"expert": _words(rows["evt"].astype(np.float64))},
    )


def _configured(path: Path) -> Screen:
    """The screen of the file beside the arrays."""
    place = path.with_name("db_config.json")
    if not place.is_file():
        raise FormatError(
            path,
            "there is no db_config.json beside it, so the screen is not known",
            "Put it there, or give screen=Screen(...).",
        )
    geometry: Any = read_json(place).get("geom")
    try:
        return Screen(*(float(geometry[n]) for n in _GEOMETRY))
    except (KeyError, TypeError, ValueError, ParameterError) as error:
        raise FormatError(
            place,
            f"'geom' does not hold {', '.join(_GEOMETRY)}",
            "Mend the file, or give screen=Screen(...).",
        ) from error


IRF = Format(
    "irf",
    "lookAtPoint (irf): expert labels at 1000 Hz (NumPy)",
    _sniff_irf,
    _scan_irf,
    frozenset({"screen"}),
    dataset=Dataset(
        title="lookAtPoint (irf)",
        publisher="Zemblys, Niehorster, Komogortsev, Holmqvist, github.com/r-zemblys/irf",
        licence="MIT",
        citation=(
            "Zemblys et al. 2018, Using machine learning to detect events in eye-tracking data,"
            " Behavior Research Methods 50(1)"
        ),
        layout="<stimulus>_<tracker>_<person>.npy[.gz], db_config.json",
    ),
    scrub=NUMPY,
)

_NAME = re.compile(r"(?P<person>[^_]+)_(?P<trial>.+)_labelled_(?P<coder>[^_.]+)\.mat(\.gz)?")
_COLUMNS = 6
_REMEDY = "Check that this is a labelled file of Lund 2013."


def _sniff_lund(head: Head) -> bool:
    """A MATLAB 5 file of one trial by one coder."""
    return _NAME.fullmatch(head.path.name) is not None and has_variable(head, "ETdata")


def _sniff_lund_folder(folder: Path) -> bool:
    """A folder with such files: the coders of a trial are read together."""
    return any(_sniff_lund(Head.of(path)) for path in sorted(folder.glob("*_labelled_*.mat*"))[:1])


def _scan_lund(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per trial, from a folder or from one coder's file."""
    trials: dict[Names, dict[str, Path]] = {}
    folder = path if path.is_dir() else path.parent
    for place in sorted(folder.iterdir()):
        name = _NAME.fullmatch(place.name)
        if name is not None:
            names = Names(name["person"], name["trial"], task=folder_name(place))
            trials.setdefault(names, {})[name["coder"]] = place
    return [
        names.handle(partial(_load_lund, coders, names), next(iter(coders.values())))
        for names, coders in trials.items()
        if path.is_dir() or path in coders.values()
    ]


def _other_files(folder: Path) -> Iterable[Path]:
    """Files of the folder that are no trial."""
    return [p for p in sorted(folder.iterdir()) if p.is_file() and not _NAME.fullmatch(p.name)]


def _load_lund(coders: dict[str, Path], names: Names) -> Recording:
    """One trial with the labels of all who coded it."""
    trials = {coder: read_variable(place, "ETdata", _REMEDY) for coder, place in coders.items()}
    tables = {coder: _table(coders[coder], trial) for coder, trial in trials.items()}
    longest = max(tables, key=lambda coder: len(tables[coder]))
    path, rows = coders[longest], tables[longest]
    labels = {}
    for coder, other in tables.items():
        if not np.array_equal(other[:, 3:5], rows[: len(other), 3:5], equal_nan=True):
            raise FormatError(
                coders[coder],
                f"its gaze is not that of {path.name}",
                "Put the coders' files of one trial side by side as published.",
            )
        rest = np.full(len(rows) - len(other), "undefined")
        labels[coder] = np.concatenate((_words(other[:, 5]), rest))
    screen, rate_hz = _screen(path, trials[longest])
    x_deg, y_deg = screen.from_px(rows[:, 3], rows[:, 4])
    timed = np.isfinite(rows[:, 0]).all()
    t_us = rows[:, 0] if timed else np.arange(len(rows)) * 1e6 / rate_hz
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(t_us * 1e3).astype(np.int64),
        space=screen,
        x_deg=x_deg,
        y_deg=y_deg,
        valid=(rows[:, 3] != 0) | (rows[:, 4] != 0),
        rate_hz=rate_hz,
        labels=labels,
        metadata={} if timed else {"times": "rows at the nominal rate; the file has no times"},
    )


def _table(path: Path, trial: Any) -> Floats:
    rows = np.atleast_2d(np.asarray(getattr(trial, "pos", 0), dtype=np.float64))
    if rows.size == 0:
        return np.empty((0, _COLUMNS))
    if rows.ndim != 2 or rows.shape[1] != _COLUMNS:
        raise FormatError(
            path, f"ETdata.pos has shape {rows.shape}, not (samples, {_COLUMNS})", _REMEDY
        )
    return rows


def _screen(path: Path, trial: Any) -> tuple[Screen, float]:
    try:
        sizes_mm = [1e3 * float(v) for v in (*trial.screenDim, trial.viewDist)]
        rate_hz = float(trial.sampFreq)
        if not rate_hz > 0:
            raise ValueError(rate_hz)
        return Screen(*map(float, trial.screenRes), *sizes_mm), rate_hz
    except (AttributeError, TypeError, ValueError, ParameterError) as error:
        raise FormatError(
            path, "screenRes, screenDim, viewDist and sampFreq are not all there", _REMEDY
        ) from error


LUND2013 = Format(
    "lund2013",
    "Lund 2013: two experts' labels at 500 Hz (MATLAB)",
    _sniff_lund,
    _scan_lund,
    frozenset(),
    _sniff_lund_folder,
    foreign_files=_other_files,
    dataset=Dataset(
        title="Lund 2013",
        publisher=(
            "Andersson, Larsson, Holmqvist, Stridh, Nystrom (Lund University),"
            " github.com/richardandersson/EyeMovementDetectorEvaluation"
        ),
        licence="GPL-3.0",
        citation=(
            "Andersson et al. 2017, One algorithm to rule them all? An evaluation and discussion of"
            " ten eye movement event-detection algorithms, Behavior Research Methods 49(2)"
        ),
        layout="{img,dots,video}/<person>_<trial>_labelled_<coder>.mat",
    ),
    scrub=MATLAB,
)
