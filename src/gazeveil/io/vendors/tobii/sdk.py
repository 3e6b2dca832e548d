"""Gaze of the Tobii Pro SDK (`tobii_research`) as programs write it: one row per gaze sample.

Layout: `GazeData` in the Tobii Pro SDK's Python reference; names as `GazeData.to_dict` and Titta
have them. Used: `device_time_stamp` (us; without it `system_time_stamp`), and for each eye
`left_gaze_point_on_display_area` (a fraction of the screen from its top left corner; one cell
`(x, y)`, or two columns `..._x`, `..._y`), `left_gaze_point_validity` or `left_gaze_point_valid`
(1 valid), `left_pupil_diameter` (mm) with its validity, `left_gaze_point_in_user_coordinate_system`
and `left_gaze_origin_in_user_coordinate_system` (mm).

* The screen is `screen=`; or its millimetres and distance are those that the points in user
  coordinates have, of 1920 x 1080 pixels; or a 24 inch screen at 650 mm is assumed
  (`metadata["assumed_geometry"]`).
* The device's clock is read, not the computer's, because the latter is set now and then.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, header_keys, open_sheet
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.pupil import mean_of_eyes
from gazeveil.io.parsing.table import printable
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

_POINT = "{}_gaze_point_on_display_area"
_IN_USER = "{}_gaze_point_in_user_coordinate_system"
_ORIGIN = "{}_gaze_origin_in_user_coordinate_system"
_LEAST_POINTS = 10


def sniff(head: Head) -> bool:
    """By a time stamp and a point on the display area in the header."""
    keys = header_keys(head)
    point = "leftgazepointondisplayarea"
    return not keys.isdisjoint({"devicetimestamp", "systemtimestamp"}) and not keys.isdisjoint(
        {point, point + "x"}
    )


def _tuples(sheet: KeyedTable, name: str, axes: str) -> Floats | None:
    """A column of tuples, or its columns `_x`, `_y` (and `_z`), as (n, 2 or 3)."""
    if sheet.has(*(f"{name}_{a}" for a in axes)):
        return np.stack([sheet.floats(f"{name}_{a}") for a in axes], axis=1)
    column = sheet.name(name)
    if column is None:
        return None
    cells = sheet.table.column(column).fill_null("").str.strip_chars()
    parts = cells.str.strip_chars("()[] ").str.split(",")
    whole = parts.list.len() == len(axes)
    wrong = (~whole & ~cells.str.to_lowercase().is_in(["", "nan", "none"])).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise FormatError(
            sheet.table.path,
            f"'{printable(cells[row])}' in column '{column}' is not a point of {len(axes)} numbers",
            "Mend or remove the line.",
            sheet.table.line_of(row),
        )
    numbers = [
        parts.list.get(i, null_on_oob=True)
        .str.strip_chars()
        .cast(pl.Float64, strict=False)
        .fill_null(float("nan"))
        .to_numpy()
        for i in range(len(axes))
    ]
    return np.stack(numbers, axis=1).astype(np.float64)


def _is_valid(sheet: KeyedTable, name: str) -> Floats | None:
    column = sheet.name(f"{name}_validity", f"{name}_valid")
    return None if column is None else sheet.flags(column).astype(np.float64)


def _eye(sheet: KeyedTable, side: str) -> Floats | None:
    """Gaze of one eye as fractions of the screen, NaN where it is not valid."""
    points = _tuples(sheet, _POINT.format(side), "xy")
    valid = _is_valid(sheet, f"{side}_gaze_point")
    if points is not None and valid is not None:
        points[valid == 0] = np.nan
    return points


def _measured(sheet: KeyedTable, points: dict[str, Floats | None]) -> Screen | None:
    """Millimetres of the screen and how far it was, from points in user coordinates."""
    for side, fractions in points.items():
        placed = _tuples(sheet, _IN_USER.format(side), "xyz")
        origin = _tuples(sheet, _ORIGIN.format(side), "xyz")
        if fractions is None or placed is None or origin is None:
            continue
        there = np.isfinite(np.hstack((fractions, placed, origin))).all(axis=1)
        f, p = fractions[there], placed[there]
        if len(f) < _LEAST_POINTS or (np.ptp(f, axis=0) < 0.05).any():
            continue
        width = abs(float(np.polyfit(f[:, 0], p[:, 0], 1)[0]))
        # The screen may lean, so its height is a length in y and z.
        slopes = [float(np.polyfit(f[:, 1], p[:, a], 1)[0]) for a in (1, 2)]
        height = float(np.hypot(slopes[0], slopes[1]))
        distance = float(np.median(np.abs(origin[there, 2] - np.median(p[:, 2]))))
        if 100 < width < 3000 and 50 < height < 3000 and 250 < distance < 3000:
            return Screen(1920, 1080, width, height, distance)
    return None


def _pupil_mm(sheet: KeyedTable) -> Floats | None:
    sizes = []
    for side in ("left", "right"):
        size = sheet.maybe_floats(f"{side}_pupil_diameter")
        if size is not None:
            valid = _is_valid(sheet, f"{side}_pupil")
            sizes.append(np.where((size > 0) & (valid is None or valid == 1), size, np.nan))
    return mean_of_eyes(sizes[0], sizes[1]) if len(sizes) == 2 else None


def load(path: Path, names: Names, screen: Screen | None) -> Recording:
    """One file as a recording on the screen."""
    sheet = open_sheet(path)
    points = {side: _eye(sheet, side) for side in ("left", "right")}
    if all(p is None for p in points.values()):
        sheet.need(_POINT.format("left"), _POINT.format("left") + "_x")
    measured = None if screen is not None else _measured(sheet, points)
    space = screen or measured or TYPICAL_SCREEN
    eyes = {
        side: None
        if p is None
        else np.stack(space.from_px(p[:, 0] * space.width_px, p[:, 1] * space.height_px), axis=1)
        for side, p in points.items()
    }
    source = "given" if screen is not None else "measured" if measured is not None else "assumed"
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns("device_time_stamp", "system_time_stamp", unit="us"),
        space=space,
        left_deg=eyes["left"],
        right_deg=eyes["right"],
        pupil=_pupil_mm(sheet),
        metadata={
            "geometry": source,
            "pupil_unit": "mm",
            **({"assumed_geometry": True} if source == "assumed" else {}),
        },
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterable[Handle]:
    """One recording per file."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-sdk", "screen", "a Screen", screen)
    names = naming_options(**options).names(path, root)
    return [names.handle(partial(load, path, names, screen), path)]


FORMAT = Format(
    "tobii-sdk",
    "Tobii Pro SDK gaze (tobii_research, Titta) as CSV or TSV",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
)
