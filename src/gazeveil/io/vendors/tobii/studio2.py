"""Tobii Studio 1 and 2 (and ClearView) text exports: lines about the recording, then a table.

Layout: the data export of the Tobii Studio 2 user manual. Used: `Timestamp` (ms),
`GazePointXLeft`, `GazePointYLeft`, `ValidityLeft`, `PupilLeft` (mm), `DistanceLeft` (mm), the same
for `Right`; `Event` with `EventKey`, `Data1`, `Data2`, `Descriptor`; `StimuliName` or `MediaName`.
Before the table: `Recording resolution`, `Participant` and `Recording name`, where they were
exported. Exports of Studio 3 name their columns the other way round (`GazePointLeftX`): they are
`tobii-tsv`.

* Validity 0 (certain) and 1 are used, 2 to 4 are lost; so is a point of -1, -1.
* Rows with an event and no validity are not samples: they are counted and become messages.
* Pixels are those of `Recording resolution`; a `screen=` of others is refused.
* Millimetres come from `screen=`; else the distance is the median of the distance columns and the
  screen a 24 inch one, or all of it is assumed (`metadata["assumed_geometry"]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, find_separator, key, open_sheet, stamp
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.pupil import mean_of_eyes
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_text
from gazeveil.io.vendors.stated_pixels import refuse_other_pixels

_ASSUMED_WIDTH_MM, _ASSUMED_DISTANCE_MM = 531.0, 650.0
_HEADER = frozenset({"timestamp", "gazepointxleft", "gazepointyleft", "validityleft"})
_RESOLUTION = re.compile(r"^Recording resolution\s*:?\s*(\d+)\s*x\s*(\d+)", re.IGNORECASE | re.M)
_SAID = {
    "person": re.compile(r"^Participant(?: name)?\s*:?\s*[\t,;]\s*(.+?)\s*$", re.IGNORECASE | re.M),
    "session": re.compile(r"^Recording name\s*:?\s*[\t,;]\s*(.+?)\s*$", re.IGNORECASE | re.M),
}


def header_line(lines: list[str]) -> int | None:
    """The line with the names of the columns, None where there is none."""
    for number, line in enumerate(lines[:200]):
        separator = find_separator(line)
        if separator and {key(c) for c in line.split(separator)} >= _HEADER:
            return number
    return None


def sniff(head: Head) -> bool:
    """By a table whose gaze columns name the axis before the eye."""
    return header_line(head.lines) is not None


@dataclass(frozen=True)
class StudioExport:
    """The table, its rows by stimulus, and the lines before it."""

    sheet: KeyedTable
    parts: dict[tuple[str, ...], Ints]
    preamble: str

    @property
    def is_sample(self) -> Bools:
        """Rows of the eye tracker; others only say an event."""
        cells = [self.sheet.need(f"Validity{s}") for s in ("Left", "Right")]
        seen = [
            self.sheet.table.column(c).fill_null("").str.strip_chars().ne("").to_numpy()
            for c in cells
        ]
        return seen[0] | seen[1]


@lru_cache(maxsize=1)
def _open(path: Path, _stamp: tuple[int, int]) -> StudioExport:
    text = read_text(path)
    lines = text.split("\n")
    number = header_line(lines)
    if number is None:
        raise FormatError(
            path,
            "no line names the columns Timestamp, GazePointXLeft, GazePointYLeft, ValidityLeft",
            "Export them from Tobii Studio.",
        )
    sheet = open_sheet(path, text="\n".join(lines[number:]), first_line=number + 1)
    parts = dict(sheet.groups(sheet.name("StimuliName", "MediaName")))
    return StudioExport(sheet, parts, "\n".join(lines[:number]))


def _screen(export: StudioExport) -> tuple[Screen, bool]:
    """The screen, and whether it is assumed as a whole."""
    said = _RESOLUTION.search(export.preamble)
    width, height = (float(said[1]), float(said[2])) if said is not None else (1920.0, 1080.0)
    if min(width, height) <= 0:
        width, height = 1920.0, 1080.0
    distances = [
        d[np.isfinite(d) & (d > 250) & (d < 2000)]
        for s in ("Left", "Right")
        if (d := export.sheet.maybe_floats(f"Distance{s}")) is not None
    ]
    known = np.concatenate(distances) if distances else np.empty(0)
    distance_mm = float(np.median(known)) if len(known) else _ASSUMED_DISTANCE_MM
    height_mm = height * _ASSUMED_WIDTH_MM / width
    return Screen(width, height, _ASSUMED_WIDTH_MM, height_mm, distance_mm), len(known) == 0


def _eye(export: StudioExport, side: str, screen: Screen) -> tuple[Floats, Floats]:
    """Gaze in degrees and pupil in mm of one eye, NaN where lost."""
    sheet = export.sheet
    x, y = (sheet.floats(f"GazePoint{a}{side}") for a in "XY")
    validity = sheet.floats(f"Validity{side}")
    degrees = np.stack(screen.from_px(x, y), axis=1)
    lost = ~(validity <= 1) | ((x == -1) & (y == -1))
    degrees[lost] = np.nan
    size = sheet.maybe_floats(f"Pupil{side}")
    pupil = np.full(len(sheet), np.nan) if size is None else np.where(size > 0, size, np.nan)
    pupil[lost] = np.nan
    return degrees, pupil


def _messages(export: StudioExport, rows: Ints, t_ns: Ints) -> tuple[Message, ...]:
    if not export.sheet.has("Event"):
        return ()
    words = [
        export.sheet.table.words(name)
        for n in ("Event", "Data1", "Data2", "Descriptor")
        if (name := export.sheet.name(n)) is not None
    ]
    return tuple(
        Message(int(t_ns[i]), " ".join(w[i] for w in words if w[i])) for i in rows if words[0][i]
    )


def load(path: Path, names: Names, part: tuple[str, ...], screen: Screen | None) -> Recording:
    """The rows of one stimulus as a recording on the screen."""
    export = _open(path, stamp(path))
    rows = export.parts[part]
    estimated, assumed = _screen(export)
    if screen is not None and _RESOLUTION.search(export.preamble) is not None:
        stated = (estimated.width_px, estimated.height_px)
        refuse_other_pixels(path, screen, [stated], "Recording resolution")
    space = screen or estimated
    t_ns = export.sheet.times_ns("Timestamp", unit="ms")
    kept = rows[export.is_sample[rows]]
    (left, left_mm), (right, right_mm) = (_eye(export, s, space) for s in ("Left", "Right"))
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns[kept],
        space=space,
        left_deg=left[kept],
        right_deg=right[kept],
        pupil=mean_of_eyes(left_mm[kept], right_mm[kept]),
        messages=_messages(export, rows, t_ns),
        not_samples={"event_rows": len(rows) - len(kept)},
        metadata={
            "pupil_unit": "mm",
            **({"assumed_geometry": True} if screen is None and assumed else {}),
            **({"geometry": "distance"} if screen is None and not assumed else {}),
        },
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterable[Handle]:
    """One recording per stimulus, in the order they appear."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-studio2", "screen", "a Screen", screen)
    export = _open(path, stamp(path))
    said = {n: m[1] for n, p in _SAID.items() if (m := p.search(export.preamble)) is not None}
    naming = naming_options(**options)
    handles = []
    for part in export.parts:
        names = naming.names(path, root, **said, stimulus=part[0])
        handles.append(names.handle(partial(load, path, names, part, screen), path))
    return handles


FORMAT = Format(
    "tobii-studio2",
    "Tobii Studio 1 and 2 text export",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
)
