"""Tobii TX300 recordings as the Tobii SDK for MATLAB saved them (I2MC's example data):
`<person>/<stimulus>.tsv`, 300 Hz.

Columns `LGazePos2dx/y`, `RGazePos2dx/y` (fractions of the screen from its top-left corner),
`LValidity`, `RValidity` (0 certain to 4 lost; 0 and 1 are used), `LPupilDm`, `RPupilDm` (mm),
`LEyePos3d*`, `LGazePos3d*` (mm before the tracker), `Time` (us). Lost values are -1 or 0.

The screen's size and its distance come from the file: the same gaze points stand in it as fractions
and in millimetres, and the eyes in the same millimetres. Where too few samples say so, the TX300's
own screen (23 inch, 1920 x 1080, 509.2 x 286.4 mm) at 650 mm is assumed and
`metadata["assumed_geometry"]` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, header_keys, open_sheet
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.pupil import mean_of_eyes
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

#: The TX300's screen and the distance it is made for.
SCREEN = Screen(1920, 1080, 509.2, 286.4, 650.0)

_FEWEST = 30
_USABLE = 1


def sniff(head: Head) -> bool:
    """By the SDK's column names."""
    return {"time", "lgazepos2dx", "rgazepos2dx", "lvalidity", "rvalidity"} <= header_keys(head)


def _eye(sheet: KeyedTable, side: str) -> Floats:
    """Fractions of the screen, NaN where the tracker found no eye."""
    fractions = np.stack([sheet.floats(f"{side}GazePos2d{axis}") for axis in "xy"], axis=1)
    lost = ~(sheet.floats(f"{side}Validity") <= _USABLE) | (fractions == -1).all(axis=1)
    fractions[lost] = np.nan
    return fractions


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
    whole = (
        np.isfinite(fractions).all(axis=1)
        & np.isfinite(points_mm).all(axis=1)
        & np.isfinite(eyes_mm).all(axis=1)
    )
    if np.count_nonzero(whole) < _FEWEST or min(np.ptp(fractions[whole], axis=0)) < 0.05:
        return None
    plane = np.column_stack((fractions[whole], np.ones(np.count_nonzero(whole))))
    fit, *_ = np.linalg.lstsq(plane, points_mm[whole], rcond=None)
    width, height = float(np.linalg.norm(fit[0])), float(np.linalg.norm(fit[1]))
    centre = np.array([0.5, 0.5, 1.0]) @ fit
    distance = float(np.median(np.linalg.norm(eyes_mm[whole] - centre, axis=1)))
    fits = 200 < width < 1500 and 100 < height < 1000 and 250 < distance < 2000
    return Screen(SCREEN.width_px, SCREEN.height_px, width, height, distance) if fits else None


def load(path: Path, names: Names, screen: Screen | None = None) -> Recording:
    """One file as a recording on its screen."""
    sheet = open_sheet(path)
    fractions = {side: _eye(sheet, side) for side in "LR"}
    metadata: dict[str, object] = {"pupil_unit": "mm"}
    if screen is None:
        pairs = [
            (fractions[s], sheet.vectors(f"{s}GazePos3d{{}}"), sheet.vectors(f"{s}EyePos3d{{}}"))
            for s in "LR"
            if sheet.has(f"{s}GazePos3dx", f"{s}EyePos3dx")
        ]
        screen = (
            measured_screen(*(np.concatenate(part) for part in zip(*pairs, strict=True)))
            if pairs
            else None
        )
        metadata["geometry"] = "measured" if screen is not None else "assumed"
        if screen is None:
            screen, metadata["assumed_geometry"] = SCREEN, True
    eyes = {
        s: np.stack(screen.from_px(f[:, 0] * screen.width_px, f[:, 1] * screen.height_px), axis=1)
        for s, f in fractions.items()
    }
    pupil = None
    if sheet.has("LPupilDm", "RPupilDm"):
        sizes = [sheet.floats(f"{s}PupilDm") for s in "LR"]
        pupil = mean_of_eyes(*(np.where(p > 0, p, np.nan) for p in sizes))
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.table.times_ns(sheet.need("Time"), "us"),
        space=screen,
        left_deg=eyes["L"],
        right_deg=eyes["R"],
        pupil=pupil,
        metadata=metadata,
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterable[Handle]:
    """One recording per file; the folder is the person also where it is the one
    that was asked for.
    """
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-tx300", "screen", "a Screen", screen)
    names = naming_options(**options).names(path, path.parent.parent)
    return [names.handle(partial(load, path, names, screen), path)]


FORMAT = Format(
    "tobii-tx300",
    "Tobii TX300 text of the SDK (I2MC's example data)",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
)
