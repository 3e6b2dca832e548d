"""VR-Saliency (Sitzmann): 169 people look at 22 panoramas for 30 s, in a headset standing or
seated, or at a desk; 120 Hz.

`{vr,seated_vr,browser}/<scene>.pck[.gz]`: pickles written by Python 2, one per scene, with one
entry (run) per viewer. They are read without running anything in them
(:mod:`gazeveil.io.parsing.unpickle`), as data frames or as plain lists and dicts. The file name is
the stimulus, the folder the task. A run that says who looked (`user_id`, `subject`, `participant`
or `person`) names the person; otherwise runs are not linked between scenes and the person is
`<task>/<scene>/<number of the run>`. `part="seated_vr"` takes the files of that folder alone, the
condition the papers use; without it all folders are read.

Of each run: `timestamp` (the unit that comes nearest to 120 Hz), `gaze_lat_lon` (latitude 0..180
from the top, longitude 0..360), `headLatLon` and `headTilt` (roll, degrees as published). What else
a run holds, such as `gaze_fixations`, is in `metadata["published"]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, eye_in_head, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import TICK_S, folder_name, guess_unit
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.kept import kept
from gazeveil.io.parsing.unpickle import read_pickle, walk
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

#: Conditions: standing and seated in a headset, and at a desk.
PARTS = ("vr", "seated_vr", "browser")

_PERSON = ("user_id", "subject", "participant", "person")
_USED = frozenset({"timestamp", "gaze_lat_lon", "headLatLon", "headTilt"})
_FIELDS = (
    b"gaze_lat_lon",
    b"headLatLon",
    b"headTilt",
    b"gaze_fixations",
    b"ang_head_velo",
    b"ang_gaze",
    b"viewpoint_idx",
)
_RATE_HZ = 120.0


def sniff(head: Head) -> bool:
    """A pickle that names a field of a run near its start; long arrays may push the others out of
    sight.
    """
    return head.name.endswith((".pck", ".pkl", ".pickle")) and any(f in head.data for f in _FIELDS)


def scan(path: Path, root: Path, part: str | None = None) -> Iterable[Handle]:
    """One recording per run; the file is read once to see how many there are."""
    scene, task = stem(path), folder_name(path)
    if (
        part is not None
        and task in PARTS
        and task != checks.one_of("Format vr-saliency", "part", part, PARTS)
    ):
        return []
    handles = []
    for number, run in enumerate(_runs(path), start=1):
        person = next((_word(run[n]) for n in _PERSON if n in run), f"{task}/{scene}/{number}")
        handles.append(
            Handle(
                person,
                scene,
                partial(load, path, person, scene, task, number),
                task=task,
                source=str(path),
            )
        )
    return handles


def load(path: Path, person: str, scene: str, task: str, number: int) -> Recording:
    """One run, counted from 1."""
    run = _runs(path)[number - 1]
    gaze = _numbers(path, run, "gaze_lat_lon", 2)
    ticks = _numbers(path, run, "timestamp", 1)[:, 0]
    if len(ticks) != len(gaze):
        raise FormatError(
            path,
            f"run {number} has {len(ticks)} times for {len(gaze)} gaze samples",
            "Copy the file again from the publisher.",
        )
    if not np.isfinite(ticks).all():
        raise FormatError(
            path,
            f"run {number} has a sample without time",
            "Copy the file again from the publisher.",
        )
    unit_s = TICK_S[guess_unit(ticks, _RATE_HZ)]
    space = Sphere()
    head = eye = None
    if "headLatLon" in run:
        latlon = _numbers(path, run, "headLatLon", 2)
        roll = (
            _numbers(path, run, "headTilt", 1)[:, 0] if "headTilt" in run else np.zeros(len(latlon))
        )
        if len(latlon) == len(roll) == len(gaze):
            head = np.stack((wrap_x(latlon[:, 1]), latlon[:, 0], roll), axis=1)
            eye = np.stack(eye_in_head(space.vectors(gaze[:, 1], gaze[:, 0]), head), axis=1)
    return assemble(
        path,
        person=person,
        stimulus=scene,
        task=task,
        # Clocks since 1970 in nanoseconds do not fit a double: the first sample is the origin.
        t_ns=np.round((ticks - (ticks[0] if len(ticks) else 0.0)) * unit_s * 1e9).astype(np.int64),
        space=space,
        x_deg=gaze[:, 1],
        y_deg=gaze[:, 0],
        head_deg=head,
        eye_in_head_deg=eye,
        metadata={"run": number, "published": {k: v for k, v in run.items() if k not in _USED}},
    )


@kept(2)
def _runs(path: Path) -> list[dict[str, object]]:
    runs = list(walk(read_pickle(path), lambda d: "gaze_lat_lon" in d and "timestamp" in d))
    if not runs:
        raise FormatError(
            path,
            "no run in it has 'timestamp' and 'gaze_lat_lon'",
            "Check that this is a VR-Saliency log.",
        )
    return runs


def _numbers(path: Path, run: dict[str, object], name: str, width: int) -> Floats:
    try:
        return np.array(run[name], dtype=np.float64).reshape(-1, width)
    except (TypeError, ValueError) as error:
        raise FormatError(
            path,
            f"'{name}' of a run does not hold rows of {width} numbers",
            "Copy the file again from the publisher.",
        ) from error


def _word(value: object) -> str:
    return (
        str(int(value))
        if isinstance(value, float | np.floating) and float(value).is_integer()
        else str(value)
    )


FORMAT = Format(
    "vr-saliency",
    "VR-Saliency: panoramas in a headset (Python 2 pickles)",
    sniff,
    scan,
    frozenset({"part"}),
    dataset=Dataset(
        title="VR-Saliency",
        publisher=(
            "Sitzmann, Serrano, Pavel et al. (Stanford University, University of Zaragoza),"
            " github.com/vsitzmann/vr-saliency"
        ),
        licence="for research; see the project page",
        citation=(
            "Sitzmann et al. 2018, Saliency in VR: how do people explore virtual environments?,"
            " IEEE TVCG 24(4)"
        ),
        layout="{vr,seated_vr,browser}/<scene>.pck",
    ),
)
