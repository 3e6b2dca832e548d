"""Tables of public datasets, by their documented columns; positions in space are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from gazeveil.errors import FormatError
from gazeveil.io.datasets.mpiidpeye import COLUMNS, column_order
from gazeveil.release.scrub.cells import checked, decimal, shifted
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

EYENAVGS = TableRules(
    keep=r"viewindex$|quaternion[xyzw]$|gazeq[xyzw]$", shift=r"timestep$|timestamp$", quoted=True
)
GAZEBASE = TableRules(keep=r"[xy]$|val$|dp$|lab$|[xy]t$", shift=r"n$", quoted=True)
GAZEBASE_VR = TableRules(keep=r"[lr]?[xy]$|[xyz]t$", shift=r"n$", quoted=True)
ET_DK2 = TableRules(
    keep=r"imgindex$|isgray$|giw[xyz]$|giwtexture[xy]$|headeul[xyz]$",
    shift=r"(unity|smi)timestamp$",
    quoted=True,
)
_PUPILS = TableRules(keep=r"x$|y$|confidence$|diameter$", shift=r"time$")

_FRAME = re.compile(
    r"^\s*frame\s*,\s*(\d{1,9})\s*,\s*forward\s*,([^,]+),([^,]+),\s*eye\s*,([^,]+),([^,]+)$"
)
_SPLIT = re.compile(r"\s*[,;\t]\s*|\s+")
_SCANPATH = ("idx", "longitude", "latitude", "start timestamp", "duration")


def scrubbed_pupils(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """Pupil places of MPIIDPEye, with or without a header."""
    first = next((line for line in lines() if line.strip()), "")
    order = column_order(first)
    if order is None:
        yield from scrubbed_table(lines, _PUPILS, job, names=COLUMNS)
        return
    known = [n if n and n not in order[:i] else f"other_{i}" for i, n in enumerate(order)]

    def rows() -> Iterator[str]:
        source = (line for line in lines() if line.strip())
        next(source, None)
        yield ";".join(known)
        yield from source

    yield from scrubbed_table(rows, _PUPILS, job)


def scrubbed_matrix(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """Features of windows: rows of numbers without a header."""
    for line in lines():
        if line.strip():
            cells = [_number(cell, job) for cell in line.split(",")]
            yield ",".join(cells)


def _number(cell: str, job: ScrubJob) -> str:
    plain = cell.strip()
    if plain.lower() == "nan" or (decimal(plain) is not None and checked(plain) is not None):
        return plain
    job.done["cells emptied"] += 1
    return "nan"


def scrubbed_frames(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """Lines of VR-EyeTracking: one frame each; what is none is left out."""
    for line in lines():
        frame = _FRAME.match(line)
        if frame is None:
            job.done["lines left out"] += bool(line.strip())
            continue
        head_x, head_y, gaze_x, gaze_y = (_number(c, job) for c in frame.groups()[1:])
        yield f"frame,{frame[1]},forward,{head_x},{head_y},eye,{gaze_x},{gaze_y}"


def scrubbed_scanpaths(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """Fixations of Salient360!; the earliest start of the file becomes 0."""
    rows = [_SPLIT.split(line.strip().rstrip(",; ")) for line in lines() if line.strip()]
    named = bool(rows) and decimal(rows[0][0]) is None
    lasts = named and "duration" in " ".join(rows[0]).lower()
    body = rows[1:] if named else rows
    width = 5 if lasts else 4
    if named:
        yield ",".join(_SCANPATH[:width])
    starts = [t for row in body if len(row) > 3 and (t := decimal(row[3])) is not None]
    begin = min(starts, default=Decimal(0))
    for row in body:
        if len(row) < 4 or any(decimal(cell) is None for cell in row[:width]):
            raise FormatError("scanpaths", "a line is no fixation", "Copy it again.")
        yield ",".join(_fixation(row[:width], begin, job))


def _fixation(row: Sequence[str], begin: Decimal, job: ScrubJob) -> list[str]:
    return [
        (shifted(cell, begin) or "") if i == 3 else _number(cell, job) for i, cell in enumerate(row)
    ]


def scrubbed_image_names(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """`img_index.csv` of ET-DK2: the number and the label of each image."""
    yield "index,image"
    for line in lines():
        cells = [c.strip().strip('"') for c in re.split(r"[,;\t]", line)]
        number = next((c for c in cells if c.isdigit() and len(c) < 6), None)
        name = next((c for c in cells if c and not c.isdigit()), None)
        if number is not None and name is not None:
            yield f"{number},{job.label(name)}"
