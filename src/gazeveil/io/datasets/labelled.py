"""Datasets whose samples experts have labelled: lookAtPoint (irf), Lund 2013.

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
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil.arrays import Floats, Texts
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.layout import folder_name
from gazeveil.io.parsing.loaded import has_variable, header, read_json, read_npy, read_variable
from gazeveil.io.parsing.naming import Names
from gazeveil.io.registry import MATLAB, NUMPY, Dataset, Format
from gazeveil.io.source import Head, stem

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
