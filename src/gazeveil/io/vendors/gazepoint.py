"""Gazepoint Analysis exports: `User 1_all_gaze.csv`, one row per sample.

Layout: the Gazepoint API manual, records of `ENABLE_SEND_*`; the exports have them as columns.
Used: `TIME(<date>)` (s) or `TIMETICK(f=<per second>)`, `BPOGX/Y/V` (the best point of gaze, a
fraction of the screen from its top left corner, and whether it is valid), `LPOGX/Y/V`,
`RPOGX/Y/V` (the eyes, where they were exported), `LPMM`, `LPMMV`, `RPMM`, `RPMMV` (pupil in mm),
`MEDIA_NAME` or `MEDIA_ID`. Every medium of a file is one recording.

* `FPOGX/Y` is the tracker's fixation filter, which holds still during a fixation: it is not read as
  gaze. Files of fixations (`User 1_fixations.csv`) have the same columns and one row for each
  fixation; they are not read.
* A point of (0, 0) with validity 0 is a lost sample; points beyond the screen are kept.
* The file says no size: `screen=`, or an assumed 24 inch screen at 650 mm
  (`metadata["assumed_geometry"]`).
* The person is the file name up to `_all_gaze`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, pupil_of
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS, Table, open_sheet, stamp
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, stem

_TICKS = re.compile(r"TIMETICK\s*\(\s*f\s*=\s*(\d+)\s*\)", re.IGNORECASE)


def _holds_fixations(path: Path) -> bool:
    return stem(path).lower().endswith("fixations")


def sniff(head: Head) -> bool:
    """By the best point of gaze in the header, in a file that does not say it holds fixations."""
    return {"bpogx", "bpogy", "bpogv"} <= head.keys and not _holds_fixations(head.path)


@lru_cache(maxsize=1)
def _open(path: Path, _stamp: tuple[int, int]) -> tuple[Table, dict[tuple[str, ...], Ints]]:
    """The file and its rows by medium; kept until the next file."""
    sheet = open_sheet(path)
    return sheet, dict(sheet.groups(sheet.name("MEDIA_NAME", "MEDIA_ID")))


def _times_ns(sheet: Table) -> Ints:
    names = sheet.names
    seconds = next((n for n in names if re.match(r"TIME\s*(\(.*\))?\s*$", n, re.IGNORECASE)), None)
    if seconds is not None:
        return sheet.times_ns(seconds, unit="s")
    ticks = next((n for n in names if _TICKS.match(n)), None)
    if ticks is None:
        raise FormatError(sheet.path, "there is no column TIME or TIMETICK", "Export the time.", 1)
    match = _TICKS.match(ticks)
    assert match is not None
    values = sheet.floats(ticks)
    t_ns = (values - np.nanmin(values, initial=np.inf)) * (1e9 / max(int(match[1]), 1))
    if not (np.abs(t_ns) < MOST_NS).all():
        raise FormatError(sheet.path, f"column '{ticks}' holds no times", "Mend the file.")
    return np.round(t_ns).astype(np.int64)


def _points(sheet: Table, eye: str, screen: Screen) -> Floats | None:
    """Gaze of `B` (both), `L` or `R` in degrees, NaN where it is not valid."""
    columns = (f"{eye}POGX", f"{eye}POGY", f"{eye}POGV")
    if not sheet.has(*columns):
        return None
    x, y = (sheet.floats(c) for c in columns[:2])
    degrees = np.stack(screen.from_px(x * screen.width_px, y * screen.height_px), axis=1)
    degrees[~(sheet.floats(columns[2]) > 0)] = np.nan
    return degrees


def _pupil_mm(sheet: Table) -> Floats | None:
    sizes = []
    for eye in "LR":
        if sheet.has(f"{eye}PMM"):
            size = sheet.floats(f"{eye}PMM")
            seen = sheet.floats(f"{eye}PMMV" if sheet.has(f"{eye}PMMV") else f"{eye}PMM") > 0
            sizes.append(np.where(seen & (size > 0), size, np.nan))
    return pupil_of(sizes)


def load(path: Path, names: Names, part: tuple[str, ...], screen: Screen | None) -> Recording:
    """The rows of one medium as a recording on the screen."""
    sheet, parts = _open(path, stamp(path))
    rows, space = parts[part], screen or TYPICAL_SCREEN
    sheet.need("BPOGX")
    gaze = {eye: _points(sheet, eye, space) for eye in "BLR"}
    both, pupil = gaze["B"], _pupil_mm(sheet)
    if both is None:
        raise FormatError(path, "there is no column BPOGY or BPOGV", "Export the best gaze point.")
    left, right = (None if gaze[e] is None else gaze[e][rows] for e in "LR")  # type: ignore[index]
    return assemble(
        path,
        **vars(names),
        t_ns=_times_ns(sheet)[rows],
        space=space,
        x_deg=both[rows, 0],
        y_deg=both[rows, 1],
        left_deg=left,
        right_deg=right,
        pupil=None if pupil is None else pupil[rows],
        metadata={
            **({"pupil_unit": "mm"} if pupil is not None else {}),
            **({"assumed_geometry": True} if screen is None else {}),
        },
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterator[Handle]:
    """One recording per medium, in the order they appear."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format gazepoint", "screen", "a Screen", screen)
    if _holds_fixations(path):
        raise FormatError(
            path, "it holds fixations, not samples", "Read the file that ends in _all_gaze."
        )
    naming = naming_options(**options)
    person = re.sub(r"_?all_gaze$", "", stem(path), flags=re.IGNORECASE)
    for part in _open(path, stamp(path))[1]:
        names = naming.names(
            path, root, {"person": person or stem(path), "stimulus": stem(path)}, stimulus=part[0]
        )
        yield names.handle(partial(load, path, names, part, screen), path)


FORMAT = Format(
    "gazepoint",
    "Gazepoint Analysis export (all_gaze CSV)",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
)
