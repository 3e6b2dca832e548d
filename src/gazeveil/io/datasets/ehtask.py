"""EHTask: 30 people, 15 panoramic videos, four tasks in an HTC Vive; published as windows of 10 s
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
`every=n` takes each n-th row, `rows_as_people=True` calls the person of row 7 "train row 7" and so
on, in one session, so that figures have an interval over rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.dgaze import (
    from_fractions,
    has_width,
    partner,
    read_rows,
    row_person,
    split_of,
)
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.loaded import read_npy
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

STEPS, WIDTH, RATE_HZ = 250, 1500, 25.0

#: Tasks by label.
TASKS = ("free-viewing", "search", "saliency", "tracking")


def sniff(head: Head) -> bool:
    """An array of numbers with 1500 columns."""
    return has_width(head, WIDTH)


def scan(path: Path, root: Path, every: int = 1, rows_as_people: bool = False) -> Iterator[Handle]:
    """One recording per row."""
    step = checks.count("Format ehtask", "every", every)
    if not isinstance(rows_as_people, bool):
        checks.refuse("Format ehtask", "rows_as_people", "True or False", rows_as_people)
    array = read_rows(path, WIDTH, "EHTask")
    split = split_of(path)
    tasks = _whole_numbers(partner(path, "Y"), len(array))
    recordings = _whole_numbers(partner(path, "RecordingLabel"), len(array))
    for row in range(0, len(array), step):
        task = "" if tasks is None else _task(tasks[row])
        recording = None if recordings is None else recordings[row]
        number = str(row) if recording is None else f"{recording}.{row}"
        person, session = row_person(split, row, number, rows_as_people)
        yield Handle(
            person,
            split,
            partial(load, path, split, row, session, task, recording, person),
            session,
            task,
            str(path),
        )


def _task(label: int) -> str:
    return TASKS[label] if 0 <= label < len(TASKS) else str(label)


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
    flat = (
        values.argmax(axis=1)
        if values.ndim == 2 and values.shape[1] > 1
        else values.reshape(rows).round()
    )
    return [int(v) for v in flat]


def load(
    path: Path,
    split: str,
    row: int,
    session: str,
    task: str,
    recording: int | None = None,
    person: str = "unknown",
) -> Recording:
    """One row as a recording of 250 samples."""
    eye, head, world = np.array(read_npy(path)[row], dtype=np.float64).reshape(3, STEPS, 2)
    finite = world[np.isfinite(world)]
    fractions = len(finite) and finite.min() >= 0 and finite.max() <= 1
    lon, lat = world.T
    x_deg, y_deg = (360.0 * lon, 180.0 * (1.0 - lat)) if fractions else (180.0 + lon, 90.0 - lat)
    return assemble(
        path,
        person=person,
        stimulus=split,
        session=session,
        task=task,
        t_ns=np.round(np.arange(STEPS) * (1e9 / RATE_HZ)).astype(np.int64),
        space=Sphere(),
        x_deg=x_deg,
        y_deg=y_deg,
        rate_hz=RATE_HZ,
        eye_in_head_deg=from_fractions(eye),
        metadata={
            "head_velocity_deg_s": head,
            **({} if recording is None else {"recording": recording}),
        },
    )


FORMAT = Format(
    "ehtask",
    "EHTask: windows of eye, head and gaze with a task (NumPy)",
    sniff,
    scan,
    frozenset({"every", "rows_as_people"}),
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
)
