"""Varjo Base gaze logs (`varjo_gaze_output_<date>.csv`): one row per eye sample, up to 200 Hz.

Layout: "Gaze data logging" in Varjo's developer documentation. Used: `raw_timestamp` (ns; without
it `relative_to_video_first_frame_timestamp` or `relative_to_unix_epoch_timestamp`), `status` (0
invalid, 1 adjusting, 2 valid) with `gaze_forward_x/y/z`, `left_status`, `right_status` (0 invalid,
1 visible, 2 compensated, 3 tracked) with `left_forward_x/y/z`, `right_forward_x/y/z`, and
`left_pupil_diameter_in_mm`, `right_pupil_diameter_in_mm` (some versions of Varjo Base write the
radius there). Directions are unit vectors in the headset: x right, y up, z forward.

* Adjusting is not valid; an eye that is only visible has no direction.
* `-nan(ind)`, as Windows writes it, is a lost value; so is a vector without length.
* The log has no head pose, so the head is the world: `metadata["frame"] = "head"`.
* Video logs begin before the first frame: negative times are times like others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, header_keys, open_sheet
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.pupil import mean_of_eyes
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

_TIMES = (
    "raw_timestamp",
    "relative_to_video_first_frame_timestamp",
    "relative_to_unix_epoch_timestamp",
)
_VALID, _EYE_SEEN = 2, 2


def sniff(head: Head) -> bool:
    """By the gaze vector, its status and one of Varjo's clocks in the header."""
    keys = header_keys(head)
    return {"gazeforwardx", "gazeforwardz", "status"} <= keys and not keys.isdisjoint(
        {"rawtimestamp", "relativetounixepochtimestamp"}
    )


def _direction(sheet: KeyedTable, name: str, status: str, least: int) -> Floats:
    state = np.nan_to_num(sheet.floats(status))
    return headset.unit(sheet.vectors(f"{name}_{{}}"), state >= least)


def load(path: Path, names: Names) -> Recording:
    """One log as a recording on the sphere around the head."""
    sheet = open_sheet(path)
    combined = _direction(sheet, "gaze_forward", "status", _VALID)
    eyes: dict[str, Floats | None] = {}
    sizes = []
    for eye in ("left", "right"):
        there = sheet.has(f"{eye}_forward_x", f"{eye}_forward_z", f"{eye}_status")
        eyes[eye] = (
            _direction(sheet, f"{eye}_forward", f"{eye}_status", _EYE_SEEN) if there else None
        )
        size = sheet.maybe_floats(f"{eye}_pupil_diameter_in_mm")
        if size is not None:
            sizes.append(np.where(size > 0, size, np.nan))
    pupil = mean_of_eyes(sizes[0], sizes[1]) if len(sizes) == 2 else None
    gaze = headset.gaze(eyes["left"], eyes["right"], combined=combined)
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns(*_TIMES, unit="ns"),
        space=Sphere(),
        **vars(gaze),
        pupil=pupil,
        metadata={"frame": "head", **({} if pupil is None else {"pupil_unit": "mm"})},
    )


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file."""
    names = naming_options(**options).names(path, root)
    return [names.handle(partial(load, path, names), path)]


FORMAT = Format("varjo", "Varjo Base gaze log (CSV)", sniff, scan, OPTIONS)
