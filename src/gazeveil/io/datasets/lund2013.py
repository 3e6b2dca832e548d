"""Lund 2013: people look at images, moving dots and videos, every sample labelled by two experts;
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

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import folder_name
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.loaded import has_variable, read_variable
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

#: Our words of the published codes 0 to 6.
CODES = ("undefined", "fixation", "saccade", "pso", "pursuit", "blink", "undefined")

_NAME = re.compile(r"(?P<person>[^_]+)_(?P<trial>.+)_labelled_(?P<coder>[^_.]+)\.mat(\.gz)?")
_COLUMNS = 6
_REMEDY = "Check that this is a labelled file of Lund 2013."


def sniff(head: Head) -> bool:
    """A MATLAB 5 file of one trial by one coder."""
    return _NAME.fullmatch(head.path.name) is not None and has_variable(head, "ETdata")


def sniff_folder(folder: Path) -> bool:
    """A folder with such files: the coders of a trial are read together."""
    return any(sniff(Head.of(path)) for path in sorted(folder.glob("*_labelled_*.mat*"))[:1])


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per trial, from a folder or from one coder's file."""
    trials: dict[tuple[str, str], dict[str, Path]] = {}
    for place in sorted((path if path.is_dir() else path.parent).iterdir()):
        name = _NAME.fullmatch(place.name)
        if name is not None:
            trials.setdefault((name["person"], name["trial"]), {})[name["coder"]] = place
    return [
        Handle(
            person,
            trial,
            partial(load, coders, person, trial),
            task=folder_name(next(iter(coders.values()))),
            source=str(next(iter(coders.values()))),
        )
        for (person, trial), coders in trials.items()
        if path.is_dir() or path.name in {place.name for place in coders.values()}
    ]


def foreign_files(folder: Path) -> Iterable[Path]:
    """Files of the folder that are no trial."""
    return [p for p in sorted(folder.iterdir()) if p.is_file() and not _NAME.fullmatch(p.name)]


def load(coders: dict[str, Path], person: str, trial: str) -> Recording:
    """One trial with the labels of all who coded it."""
    trials = {coder: read_variable(place, "ETdata", _REMEDY) for coder, place in coders.items()}
    tables = {coder: _table(coders[coder], trial) for coder, trial in trials.items()}
    longest = max(tables, key=lambda coder: len(tables[coder]))
    path, rows = coders[longest], tables[longest]
    for coder, other in tables.items():
        if not np.array_equal(other[:, 3:5], rows[: len(other), 3:5], equal_nan=True):
            raise FormatError(
                coders[coder],
                f"its gaze is not that of {path.name}",
                "Put the coders' files of one trial side by side as published.",
            )
    screen, rate_hz = _screen(path, trials[longest])
    x_deg, y_deg = screen.from_px(rows[:, 3], rows[:, 4])
    t_ns, metadata = _times_ns(rows[:, 0], rate_hz)
    return assemble(
        path,
        person=person,
        stimulus=trial,
        task=folder_name(path),
        t_ns=t_ns,
        space=screen,
        x_deg=x_deg,
        y_deg=y_deg,
        valid=(rows[:, 3] != 0) | (rows[:, 4] != 0),
        rate_hz=rate_hz,
        labels={coder: _labels(other[:, 5], len(rows)) for coder, other in tables.items()},
        metadata=metadata,
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


def _times_ns(times_us: Floats, rate_hz: float) -> tuple[Ints, dict[str, object]]:
    """Times, and a note where the file has none, as the files of dots."""
    if np.isfinite(times_us).all():
        return np.round(times_us * 1e3).astype(np.int64), {}
    regular_ns = np.round(np.arange(len(times_us)) * 1e9 / rate_hz).astype(np.int64)
    return regular_ns, {"times": "rows at the nominal rate; the file has no times"}


def _labels(codes: Floats, samples: int) -> Texts:
    known = (codes >= 0) & (codes < len(CODES))
    words = np.array(CODES)[np.where(known, codes, 0).astype(np.int64)]
    return np.concatenate((words, np.full(samples - len(words), "undefined")))


def _screen(path: Path, trial: Any) -> tuple[Screen, float]:
    try:
        width_px, height_px = map(float, trial.screenRes)
        width_m, height_m = map(float, trial.screenDim)
        geometry = (width_px, height_px, 1e3 * width_m, 1e3 * height_m, 1e3 * float(trial.viewDist))
        rate_hz = float(trial.sampFreq)
        if not rate_hz > 0:
            raise ValueError(rate_hz)
        return Screen(*geometry), rate_hz
    except (AttributeError, TypeError, ValueError, ParameterError) as error:
        raise FormatError(
            path, "screenRes, screenDim, viewDist and sampFreq are not all there", _REMEDY
        ) from error


FORMAT = Format(
    "lund2013",
    "Lund 2013: two experts' labels at 500 Hz (MATLAB)",
    sniff,
    scan,
    frozenset(),
    sniff_folder,
    foreign_files=foreign_files,
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
)
