"""Salient360!: 85 panoramas, 63 observers, 25 s each; published as scanpaths and saliency maps.

A scanpath text has one line per fixation: index, longitude 0..1, latitude 0..1, start time in
seconds, separated by commas or blanks, with or without a header. The index falls back to 0 where
the next observer begins. The stimulus is the file name. Observers are not linked between files, so
the person is `<stimulus>/<number of the observer in the file>`: nothing here can be used to
recognise people across images.

The dataset has one file for each of three things of every image or video: `HE/Scanpaths/L` and
`HE/Scanpaths/R` hold the fixations of the left and the right eye, `H/Scanpaths` the head alone (the
centre of the view, 100 places for each observer, no fixations). They are recordings of their own:
the session is `left`, `right` or `head`, so that none is taken for another, and
`metadata["tracked"]` says it too. Files outside such folders have session 1. Samples are not
published with these; logs of the same experiment are read as `unity-hmd`.

Places are fractions of the equirectangular picture from its upper left corner. Only starts are
published: a fixation is taken to last until the next one begins, the last one has no duration, and
`metadata["times"]` says so.

Saliency maps (`.bin`, 2048 x 1024 float32, row by row) are read by :func:`saliency_map`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import numbers
from gazeveil.io.parsing.assemble import scanpath
from gazeveil.io.parsing.loaded import kept
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, read_bytes, read_text, stem

_SPLIT = re.compile(r"\s*[,;\t]\s*|\s+")
_HEADER = re.compile(r"^\W*(idx|index)\b.*lon.*lat", re.IGNORECASE)


def _cells(line: str) -> list[float] | None:
    return numbers(_SPLIT.sub(",", line.strip().rstrip(",; ")))


def sniff(head: Head) -> bool:
    """Lines of an index that counts up from 0 and places within 0 and 1."""
    if not head.name.endswith((".txt", ".csv")):
        return False
    lines = head.lines
    if lines and _HEADER.match(lines[0]):
        return True
    # The last line of a head may be cut.
    rows = [_cells(line) for line in lines[:50] if line.strip()]
    rows = rows[:-1] if len(rows) > 2 else rows
    if not rows or any(r is None or len(r) != 4 for r in rows):
        return False
    table = np.array(rows, dtype=np.float64)
    counts = bool(
        table[0, 0] == 0
        and all(b in (a + 1, 0) for a, b in zip(table[:-1, 0], table[1:, 0], strict=True))
    )
    places = table[:, 1:3]
    return counts and bool(((places >= 0) & (places <= 1)).all() and (table[:, 3] >= 0).all())


def scan(path: Path, root: Path) -> Iterator[Handle]:
    """One recording per observer; the file is read once to see how many there are."""
    stimulus, tracked = stem(path), _tracked(path)
    for k in range(1, len(_observers(path)) + 1):
        person = f"{stimulus}/{k}"
        yield Handle(
            person,
            stimulus,
            partial(load, path, person, stimulus, k),
            tracked or "1",
            "free-viewing",
            source=str(path),
        )


def _tracked(path: Path) -> str:
    """What a file holds by its folders: the head, or an eye; empty where they do not say."""
    folder, above = path.parent.name, path.parent.parent.name
    if folder == "Scanpaths" and above == "H":
        return "head"
    return {"L": "left", "R": "right"}.get(folder, "") if above == "Scanpaths" else ""


def load(path: Path, person: str, stimulus: str, observer: int) -> Recording:
    """The fixations of one observer, counted from 1."""
    rows = _observers(path)[observer - 1]
    onset = np.round(rows[:, 3] * 1e9).astype(np.int64)
    offset = np.maximum(np.concatenate((onset[1:], onset[-1:])), onset)
    tracked = _tracked(path)
    times = "start times as published; each fixation is taken to last until the next begins"
    if rows.shape[1] > 4:
        offset = onset + np.round(np.maximum(np.nan_to_num(rows[:, 4]), 0.0) * 1e9).astype(np.int64)
        times = "start times and durations as published"
    return scanpath(
        path,
        person=person,
        stimulus=stimulus,
        session=tracked or "1",
        task="free-viewing",
        space=Sphere(),
        x_deg=wrap_x(360.0 * rows[:, 1]),
        y_deg=np.minimum(180.0 * rows[:, 2], np.nextafter(180.0, 0.0)),
        onset_ns=onset,
        offset_ns=offset,
        source="salient360",
        metadata={
            "times": times,
            "observer": observer,
            **({"tracked": tracked} if tracked else {}),
        },
    )


@kept(4)
def _observers(path: Path) -> list[Floats]:
    rows: list[list[float]] = []
    has_duration = False
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        if number == 1 and _HEADER.match(line):
            # Video scanpaths add the duration as their fifth column.
            names = [c.strip().lower() for c in line.split(",")]
            has_duration = len(names) > 4 and "duration" in names[4]
            continue
        cells = _cells(line)
        if (
            cells is None
            or len(cells) < 4
            or not np.isfinite(cells[0])
            or not np.isfinite(cells[3])
        ):
            raise FormatError(
                path,
                "the line does not hold index, longitude, latitude and start time",
                "The file was cut; copy it again or remove the line.",
                number,
            )
        if not (0 <= cells[1] <= 1 and 0 <= cells[2] <= 1):
            raise FormatError(
                path,
                f"the place ({cells[1]:g}, {cells[2]:g}) is not within 0 and 1",
                "Longitude and latitude must be fractions.",
                number,
            )
        rows.append([*cells[:5], float("nan")][:5] if has_duration else cells[:4])
    if not rows:
        raise FormatError(path, "there is no fixation in it", "Copy the file again.")
    table = np.array(rows, dtype=np.float64)
    index = table[:, 0]
    begins = np.flatnonzero(np.concatenate(([True], index[1:] <= index[:-1])))
    return np.split(table, begins[1:])


def saliency_map(path: str | Path) -> NDArray[np.float32]:
    """A saliency map, shape (1024, 2048), rows from the top.

    Raises
    ------
    FormatError
        If the file does not hold 2048 x 1024 numbers of 4 bytes.
    """
    place = Path(path)
    data = read_bytes(place)
    if len(data) != 2048 * 1024 * 4:
        raise FormatError(
            place,
            f"it holds {len(data)} bytes, a map needs {2048 * 1024 * 4}",
            "Copy it again; it was cut, or it is not a saliency map.",
        )
    return np.frombuffer(data, dtype="<f4").reshape(1024, 2048).copy()


FORMAT = Format(
    "salient360",
    "Salient360! scanpaths (text, fixations only)",
    sniff,
    scan,
    dataset=Dataset(
        title="Salient360!",
        publisher="Rai, Gutierrez, David, Le Callet (University of Nantes), salient360.ls2n.fr",
        licence="for research; see the publisher's page",
        citation=(
            "Rai, Gutierrez, Le Callet 2017, A dataset of head and eye movements for 360 degree"
            " images, ACM MMSys"
        ),
        layout=(
            "HE/Scanpaths/{L,R}/<image>.txt, H/Scanpaths/<image>.txt: index, longitude, latitude,"
            " start time; maps as <image>.bin"
        ),
    ),
)
