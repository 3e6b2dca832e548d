"""DGaze: 43 people, 5 dynamic scenes in an HTC Vive, 100 Hz; published as windows ready for a
network.

`trainingX.npy`, `trainingY.npy`, `testX.npy`, `testY.npy`. A row of X is 50 steps of 13 numbers
(gaze 2, head velocity 2, three nearest objects 3 each; this order is read from the released code)
and a 24 x 24 x 2 saliency map: 1802 numbers. Y is the gaze to predict. Gaze is in degrees right of
and above the centre of the screen.

Rows overlap in time and do not say who looked: each row becomes a recording of half a second of
person "unknown", the stimulus is the file ("train" or "test"), the session the row number from 0.
That is enough for gaze prediction and for nothing about persons. The rest of the row is in
`metadata`: `head_velocity_deg_s` (50, 2), `objects` (50, 9) and `saliency` (1152,) as published,
`target_deg` (2,) in our degrees. `every=n` takes each n-th row. `rows_as_people=True` calls the
person of row 7 "train row 7" and so on, in one session, so that figures have an interval over rows;
`with_target=True` puts the gaze to predict behind the 50 samples, 100 ms after the last, which is
what a prediction is held against.
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
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.loaded import header, read_npy
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

STEPS, FEATURES, WIDTH, RATE_HZ = 50, 13, 1802, 100.0

#: Samples from the last of a row to the gaze to predict.
AHEAD = 10


def sniff(head: Head) -> bool:
    """An array of numbers with 1802 columns."""
    return has_width(head, WIDTH)


def has_width(head: Head, width: int) -> bool:
    """Whether a file is an array of numbers with so many columns."""
    npy_header = header(head)
    return npy_header is not None and npy_header[0][1:] == (width,) and npy_header[1].kind == "f"


def read_rows(path: Path, width: int, title: str) -> NDArray[np.generic]:
    """The array of a file, which must have so many columns."""
    array = read_npy(path)
    if array.ndim != 2 or array.shape[1] != width:
        raise FormatError(
            path,
            f"the array has shape {array.shape}, {title} needs (rows, {width})",
            "Check that this is trainingX.npy or testX.npy.",
        )
    return array


def split_of(path: Path) -> str:
    """`train` or `test` for the published file names, else the file name without X."""
    name = stem(path)
    return {"trainingx": "train", "trainx": "train", "testx": "test"}.get(
        name.lower(), name.removesuffix("X") or name
    )


def partner(path: Path, letter: str) -> Path | None:
    """The file beside `...X.npy` that has another last part, or None."""
    name = path.name
    at = name.lower().rfind("x.npy")
    sibling = path.with_name(name[:at] + letter + name[at + 1 :]) if at >= 0 else path
    return sibling if sibling != path and sibling.is_file() else None


def row_person(split: str, row: int, session: str, rows_as_people: bool) -> tuple[str, str]:
    """Who a row is said to be of, and in which session."""
    return (f"{split} row {row}", "1") if rows_as_people else ("unknown", session)


def scan(
    path: Path, root: Path, every: int = 1, rows_as_people: bool = False, with_target: bool = False
) -> Iterator[Handle]:
    """One recording per row."""
    step = checks.count("Format dgaze", "every", every)
    for name, value in (("rows_as_people", rows_as_people), ("with_target", with_target)):
        if not isinstance(value, bool):
            checks.refuse("Format dgaze", name, "True or False", value)
    array = read_rows(path, WIDTH, "DGaze")
    split = split_of(path)
    if with_target and partner(path, "Y") is None:
        raise FormatError(
            path, "the file with the gaze to predict is not beside it", "Put Y beside X."
        )
    for row in range(0, len(array), step):
        person, session = row_person(split, row, str(row), rows_as_people)
        load_row = partial(load, path, split, row, person, with_target)
        yield Handle(person, split, load_row, session, "free-viewing", str(path))


def load(
    path: Path, split: str, row: int, person: str = "unknown", with_target: bool = False
) -> Recording:
    """One row as a recording of 50 samples, and of one more with the target."""
    numbers = np.array(read_npy(path)[row], dtype=np.float64)
    steps = numbers[: STEPS * FEATURES].reshape(STEPS, FEATURES)
    metadata: dict[str, object] = {
        "head_velocity_deg_s": steps[:, 2:4],
        "objects": steps[:, 4:],
        "saliency": numbers[STEPS * FEATURES :],
    }
    answers = partner(path, "Y")
    ticks, gaze_deg = np.arange(STEPS), steps[:, :2]
    if answers is not None:
        target = np.array(read_npy(answers)[row], dtype=np.float64).ravel()[:2]
        metadata["target_deg"] = target * np.array([1.0, -1.0])
        if with_target:
            ticks = np.append(ticks, STEPS - 1 + AHEAD)
            gaze_deg = np.vstack([gaze_deg, target])
    return assemble(
        path,
        person=person,
        stimulus=split,
        session=str(row) if person == "unknown" else "1",
        task="free-viewing",
        t_ns=np.round(ticks * (1e9 / RATE_HZ)).astype(np.int64),
        space=VIEW,
        x_deg=gaze_deg[:, 0],
        y_deg=-gaze_deg[:, 1],
        rate_hz=RATE_HZ,
        metadata=metadata,
    )


FORMAT = Format(
    "dgaze",
    "DGaze: windows of gaze, head velocity and objects (NumPy)",
    sniff,
    scan,
    frozenset({"every", "rows_as_people", "with_target"}),
    dataset=Dataset(
        title="DGaze",
        publisher="Hu, Li, Zhang, Yi, Wang, Manocha (Peking University), github.com/CraneHzm/DGaze",
        licence="for research; see the project page",
        citation=(
            "Hu et al. 2020, DGaze: CNN-based gaze prediction in dynamic scenes, IEEE TVCG 26(5)"
        ),
        layout="trainingX.npy, trainingY.npy, testX.npy, testY.npy",
    ),
)


_WIDTH_PX, _HEIGHT_PX = 1080.0, 1200.0
_DISTANCE_PX = 0.5 * _HEIGHT_PX / float(np.tan(np.radians(55.0)))

#: One pixel stands for one millimetre: only the ratio to the distance matters.
VIEW = Screen(_WIDTH_PX, _HEIGHT_PX, _WIDTH_PX, _HEIGHT_PX, _DISTANCE_PX)


def from_fractions(places: Floats) -> Floats:
    """Tangent angles (right, down) in degrees, shape (n, 2), of screen places in 0..1 from the
    lower left corner.
    """
    x, y = VIEW.from_px(places[:, 0] * _WIDTH_PX, (1.0 - places[:, 1]) * _HEIGHT_PX)
    return np.stack((x, y), axis=1)
