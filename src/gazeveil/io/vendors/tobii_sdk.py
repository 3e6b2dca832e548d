"""Gaze of Tobii's SDKs as programs write it: one row per gaze sample.

Two families of names:

* Tobii Pro SDK (`GazeData.to_dict` of `tobii_research`, Titta): `device_time_stamp` (us; without it
  `system_time_stamp`), and for each eye `left_gaze_point_on_display_area` (a fraction of the screen
  from its top left corner; one cell `(x, y)`, or two columns `..._x`, `..._y`),
  `left_gaze_point_validity` or `left_gaze_point_valid` (1 valid), `left_pupil_diameter` (mm) with
  its validity, `left_gaze_point_in_user_coordinate_system` and
  `left_gaze_origin_in_user_coordinate_system` (mm).
* The SDK for MATLAB (TX300 recordings of I2MC): `Time` (us), `LGazePos2dx/y` (fractions),
  `LValidity` (0 certain to 4 lost; 0 and 1 are used), `LPupilDm` (mm), `LGazePos3d*`, `LEyePos3d*`
  (mm before the tracker), the same for `R`. Lost values are -1 or 0.

* The screen is `screen=`; or its millimetres and distance are those that the points in millimetres
  have, of 1920 x 1080 pixels; or a usual screen at 650 mm is assumed
  (`metadata["assumed_geometry"]`), of a TX300 its own (509.2 x 286.4 mm).
* The device's clock is read, not the computer's, because the latter is set now and then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, open_sheet, printable
from gazeveil.io.registry import Format, Scrub, TableRules
from gazeveil.io.source import Head

_FEWEST = 30
_USABLE = 1


@dataclass(frozen=True)
class _Family:
    """Names of columns: `{}` stands for the eye; points have `_x`, `_y` or `x`, `y` behind them."""

    eyes: tuple[str, str]
    clocks: tuple[str, ...]
    point: str
    placed: str
    origin: str
    pupil: str
    joint: str
    screen: Screen


_PRO = _Family(
    ("left", "right"),
    ("device_time_stamp", "system_time_stamp"),
    "{}_gaze_point_on_display_area",
    "{}_gaze_point_in_user_coordinate_system",
    "{}_gaze_origin_in_user_coordinate_system",
    "{}_pupil_diameter",
    "_",
    TYPICAL_SCREEN,
)
_MATLAB = _Family(
    ("L", "R"),
    ("Time",),
    "{}GazePos2d",
    "{}GazePos3d",
    "{}EyePos3d",
    "{}PupilDm",
    "",
    Screen(1920, 1080, 509.2, 286.4, 650.0),
)


def sniff(head: Head) -> bool:
    """By a time stamp and a point on the screen in the header."""
    keys = head.keys
    return _is_matlab(keys) or (
        not keys.isdisjoint({"devicetimestamp", "systemtimestamp"})
        and not keys.isdisjoint({"leftgazepointondisplayarea", "leftgazepointondisplayareax"})
    )


def _is_matlab(keys: frozenset[str]) -> bool:
    return {"time", "lgazepos2dx", "rgazepos2dx", "lvalidity", "rvalidity"} <= keys


def _tuples(sheet: Table, name: str, joint: str, axes: str) -> Floats | None:
    """The columns of a point, or one column of tuples, as (n, 2 or 3)."""
    if sheet.has(*(f"{name}{joint}{a}" for a in axes)):
        return np.stack([sheet.floats(f"{name}{joint}{a}") for a in axes], axis=1)
    column = sheet.name(name)
    if column is None:
        return None
    cells = sheet.column(column).fill_null("").str.strip_chars()
    parts = cells.str.strip_chars("()[] ").str.split(",")
    whole = parts.list.len() == len(axes)
    wrong = (~whole & ~cells.str.to_lowercase().is_in(["", "nan", "none"])).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise FormatError(
            sheet.path,
            f"'{printable(cells[row])}' in column '{column}' is not a point of {len(axes)} numbers",
            "Mend or remove the line.",
            sheet.line_of(row),
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


def _is_valid(sheet: Table, name: str) -> Bools | None:
    column = sheet.name(f"{name}_validity", f"{name}_valid")
    return None if column is None else sheet.flags(column)


def _eye(sheet: Table, family: _Family, side: str) -> Floats | None:
    """Gaze of one eye as fractions of the screen, NaN where it is not valid."""
    points = _tuples(sheet, family.point.format(side), family.joint, "xy")
    if points is None:
        return None
    if family is _MATLAB:
        points[~(sheet.floats(f"{side}Validity") <= _USABLE) | (points == -1).all(axis=1)] = np.nan
    elif (valid := _is_valid(sheet, f"{side}_gaze_point")) is not None:
        points[~valid] = np.nan
    return points


def measured_screen(fractions: Floats, points_mm: Floats, eyes_mm: Floats) -> Screen | None:
    """Screen size and distance from gaze points given twice, as fractions and in millimetres.

    Parameters
    ----------
    fractions : array, shape (n, 2)
        Gaze as fractions of the screen.
    points_mm, eyes_mm : array, shape (n, 3)
        The same gaze points and the eye they belong to, in one frame.

    Returns
    -------
    Screen or None
        None where fewer than 30 samples, or samples on a line, leave it open.
    """
    whole = np.isfinite(np.hstack((fractions, points_mm, eyes_mm))).all(axis=1)
    if np.count_nonzero(whole) < _FEWEST or min(np.ptp(fractions[whole], axis=0)) < 0.05:
        return None
    plane = np.column_stack((fractions[whole], np.ones(np.count_nonzero(whole))))
    fit, _, rank, _ = np.linalg.lstsq(plane, points_mm[whole], rcond=None)
    width, height = float(np.linalg.norm(fit[0])), float(np.linalg.norm(fit[1]))
    centre = np.array([0.5, 0.5, 1.0]) @ fit
    distance = float(np.median(np.linalg.norm(eyes_mm[whole] - centre, axis=1)))
    fits = rank == 3 and 200 < width < 1500 and 100 < height < 1000 and 250 < distance < 2000
    return Screen(1920, 1080, width, height, distance) if fits else None


def _measured(sheet: Table, family: _Family, points: dict[str, Floats | None]) -> Screen | None:
    """The screen by all points of both eyes that are there in millimetres too."""
    found = []
    for side, fractions in points.items():
        in_space = [
            _tuples(sheet, name.format(side), family.joint, "xyz")
            for name in (family.placed, family.origin)
        ]
        if fractions is not None and in_space[0] is not None and in_space[1] is not None:
            found.append((fractions, in_space[0], in_space[1]))
    parts = (np.concatenate(part) for part in zip(*found, strict=True))
    return measured_screen(*parts) if found else None


def _pupil_mm(sheet: Table, family: _Family) -> Floats | None:
    sizes = []
    for side in family.eyes:
        size = sheet.maybe_floats(family.pupil.format(side))
        if size is not None:
            valid = _is_valid(sheet, f"{side}_pupil")
            sizes.append(np.where((size > 0) & (valid is None or valid), size, np.nan))
    return mean_of_eyes(sizes[0], sizes[1]) if len(sizes) == 2 else None


def load(path: Path, names: Names, screen: Screen | None) -> Recording:
    """One file as a recording on the screen."""
    sheet = open_sheet(path)
    family = _MATLAB if sheet.has("LGazePos2dx", "LValidity") else _PRO
    points = {side: _eye(sheet, family, side) for side in family.eyes}
    if all(p is None for p in points.values()):
        name = family.point.format(family.eyes[0])
        sheet.need(name, f"{name}{family.joint}x")
    measured = None if screen is not None else _measured(sheet, family, points)
    space = screen or measured or family.screen
    left, right = (
        None
        if p is None
        else np.stack(space.from_px(p[:, 0] * space.width_px, p[:, 1] * space.height_px), axis=1)
        for p in points.values()
    )
    source = "given" if screen is not None else "measured" if measured is not None else "assumed"
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns(*family.clocks, unit="us"),
        space=space,
        left_deg=left,
        right_deg=right,
        pupil=_pupil_mm(sheet, family),
        metadata={
            "geometry": source,
            "pupil_unit": "mm",
            **({"assumed_geometry": True} if source == "assumed" else {}),
        },
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterable[Handle]:
    """One recording per file; of the SDK for MATLAB the folder is the person also where it is the
    one that was asked for.
    """
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-sdk", "screen", "a Screen", screen)
    of_matlab = _is_matlab(Head.of(path).keys)
    names = naming_options(**options).names(path, path.parent.parent if of_matlab else root)
    return [names.handle(partial(load, path, names, screen), path)]


FORMAT = Format(
    "tobii-sdk",
    "Tobii SDK gaze (tobii_research, Titta, MATLAB) as CSV or TSV",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
    # Both eyes get the place between them.
    scrub=Scrub(
        TableRules(
            keep=(
                r"(?:left|right)gazepoint(?:ondisplayarea[xy]?|inusercoordinatesystem[xyz]?"
                r"|valid(?:ity)?)|(?:left|right)pupil(?:diameter|valid(?:ity)?)|reltimestamp"
                r"|(?:left|right)gazeoriginvalid(?:ity)?|[lr](?:gazepos[23]d[xyz]|pupildm|validity)"
            ),
            shift=r"(?:device|system)timestamp|time",
            midpoint=r"(?:left|right)gazeorigininusercoordinatesystem[xyz]?|[lr]eyepos3d[xyz]",
            quoted=True,
        )
    ),
)
