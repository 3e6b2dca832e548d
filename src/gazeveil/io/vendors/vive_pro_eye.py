"""HTC Vive Pro Eye (SRanipal) logs: one row per eye sample with the helmet's pose, usually `;`
separated.

Columns: `time(100ns)` (.NET ticks), `eye_valid_L/R` (bit mask: 1 origin, 2 direction, 4 pupil, 8
openness, 16 position in the sensor; 31 is all), `gaze_direct_L/R.x/y/z` (unit vector in the head),
`pupil_diameter_L/R(mm)`, `helmet_pos_*`, `helmet_rot_x/y/z` (Unity Euler degrees).

* SRanipal counts x to the wearer's left (the left eye's origin is at +35 mm), y up, z forward; x is
  mirrored here. With the mirror the gaze in the world is steadier while the head turns, as the
  vestibulo-ocular reflex makes it; without it, it is not.
* A row whose pose is zero in all six numbers has lost its head: its gaze in the world is not known,
  so the sample is invalid; the eye in the head is kept.
* A file with a header and no rows gives a recording without samples.
* `<person>_<stimulus>.csv`: the person stands before the first underscore, unless the options say
  otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, open_sheet
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, stem

_DIRECTION = 2
_PUPIL = 4
_MIRROR_X = np.array([-1.0, 1.0, 1.0])


def sniff(head: Head) -> bool:
    """By the validity masks and the gaze directions in the header."""
    return {"eyevalidl", "gazedirectlx", "time100ns"} <= head.keys


def load(path: Path, names: Names) -> Recording:
    """One log as a recording on the sphere."""
    sheet = open_sheet(path)
    time = sheet.need("time(100ns)")
    mask = {eye: np.nan_to_num(sheet.floats(f"eye_valid_{eye}")).astype(np.int64) for eye in "LR"}
    eyes = {
        eye: headset.unit(
            sheet.vectors(f"gaze_direct_{eye}.{{}}") * _MIRROR_X, (mask[eye] & _DIRECTION) > 0
        )
        for eye in "LR"
    }
    rotation = _rotation(sheet)
    pupil = None
    if sheet.has("pupil_diameter_L(mm)", "pupil_diameter_R(mm)"):
        sizes = [
            np.where((mask[eye] & _PUPIL) > 0, sheet.floats(f"pupil_diameter_{eye}(mm)"), np.nan)
            for eye in "LR"
        ]
        pupil = mean_of_eyes(*(np.where(s > 0, s, np.nan) for s in sizes))
    # Ticks since the year 1 do not fit 64 bits as nanoseconds.
    t_ns = sheet.times_ns(time, unit="100ns", relative=True)
    metadata: dict[str, object] = {
        "frame": "world" if rotation is not None else "head",
        "pupil_unit": "mm",
    }
    if len(sheet):
        metadata["date"] = (
            datetime(1, 1, 1) + timedelta(microseconds=int(float(sheet.column(time)[0])) // 10)
        ).isoformat()
    if rotation is not None and len(sheet):
        metadata["head_lost"] = int(np.count_nonzero(~np.isfinite(rotation).all(axis=1)))
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=Sphere(),
        **vars(headset.gaze(eyes["L"], eyes["R"], rotation)),
        pupil=pupil,
        metadata=metadata,
    )


def _rotation(sheet: Table) -> Floats | None:
    if not sheet.has("helmet_rot_x", "helmet_rot_y", "helmet_rot_z"):
        return None
    angles = [sheet.floats(f"helmet_rot_{axis}") for axis in "xyz"]
    pose = [
        *angles,
        *(sheet.floats(f"helmet_pos_{axis}") for axis in "xyz" if sheet.has(f"helmet_pos_{axis}")),
    ]
    rotation = headset.unity_euler(*angles)
    rotation[np.all([p == 0 for p in pose], axis=0)] = np.nan
    return rotation


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file."""
    person, _, stimulus = stem(path).partition("_")
    place = {"person": person, "stimulus": stimulus} if stimulus else None
    names = naming_options(**options).names(path, root, place)
    return [names.handle(partial(load, path, names), path)]


FORMAT = Format(
    "vive-pro-eye", "HTC Vive Pro Eye log (SRanipal, with the helmet's pose)", sniff, scan, OPTIONS
)
