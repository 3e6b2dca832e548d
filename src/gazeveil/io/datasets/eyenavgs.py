"""EyeNavGS: 46 people walk through 12 Gaussian-splat scenes with a Quest Pro, 60 s each; head and
both eyes.

`<scene>/<person>_<scene>.csv[.gz]` with two rows per frame, `ViewIndex` 0 (left eye) and 1 (right
eye). A frame's time is that of its left row; the column is `timestep` in one half of the dataset,
`Timestamp` in the other, in milliseconds. A frame with one row is kept, and the other eye is lost.

Quaternions (x, y, z, w) are rotations in OpenXR axes (x right, y up, -z forward): the head looks
along head * (0, 0, -1), an eye along gaze * (0, 0, -1), both in the scene. Ours is the same with z
turned round. A gaze quaternion without rotation means that there was no gaze, not that the eye
looked straight ahead. The scenes are tilted against gravity (by up to 90 degrees in `drjohnson`),
and so are these coordinates: angles between directions and the eye in its head do not depend on
that, but y is the scene's vertical.

Positions (`Position*`, `GazePos*`) are not kept in any channel: they hold standing height and the
distance between the eyes, which name a person by themselves. The field of view (`FOV1` to `FOV4`)
is the headset's and is not kept either.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, combine_eyes, rotate, to_tangents
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import columns, person_in_folder
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.table import Table, read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

_HEAD = ("QuaternionX", "QuaternionY", "QuaternionZ", "QuaternionW")
_GAZE = ("GazeQX", "GazeQY", "GazeQZ", "GazeQW")
_TIMES = ("timestep", "Timestamp")

# OpenXR looks along -z, we look along +z.
_TO_OURS = np.array([1.0, 1.0, -1.0])


def sniff(head: Head) -> bool:
    """A CSV file with a view index, a head and a gaze quaternion and a time."""
    names = columns(head)
    return {"viewindex", *(n.lower() for n in _HEAD + _GAZE)} <= names and any(
        t.lower() in names for t in _TIMES
    )


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """Person and scene from `<person>_<scene>` inside folder `<scene>`."""
    person, scene = person_in_folder(path)
    return [
        Handle(
            person, scene, partial(load, path, person, scene), task="free-viewing", source=str(path)
        )
    ]


def load(path: Path, person: str, scene: str) -> Recording:
    """One file as a recording, one sample per frame.

    Raises
    ------
    FormatError
        For a view index other than 0 and 1, and for missing columns.
    """
    table = read_table(path, ",")
    eye = table.floats("ViewIndex")
    known = (eye == 0) | (eye == 1)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise FormatError(
            path,
            f"ViewIndex is {eye[row]:g}, neither 0 (left) nor 1 (right)",
            "Mend or remove the line.",
            table.line_of(row),
        )
    left = eye == 0
    # A frame begins with every left row, and with a right row that has no left row before it.
    begins = left.copy()
    begins[:1] = True
    begins[1:] |= ~left[:-1]
    frame = np.cumsum(begins) - 1
    frames = int(frame[-1]) + 1 if len(frame) else 0
    first = np.flatnonzero(begins)
    space = Sphere()
    # Numbers before times: a row that was cut is better named by its missing cells.
    head, gaze = _quaternions(table, _HEAD), _quaternions(table, _GAZE)
    t_ns = table.times_ns(next((t for t in _TIMES if table.has(t)), _TIMES[0]), unit="ms")[first]

    tracked = (gaze[:, :3] != 0).any(axis=1)
    direction = rotate(gaze, np.array([0.0, 0.0, -1.0])) * _TO_OURS
    direction[~tracked] = np.nan
    eyes = []
    for side in (left, ~left):
        vectors = np.full((frames, 3), np.nan)
        vectors[frame[side]] = direction[side]
        eyes.append(np.stack(space.degrees(vectors), axis=1))
    x_deg, y_deg, _ = combine_eyes(eyes[0], eyes[1], space)

    turned = head[first]
    right, up, forward = (
        rotate(turned, axis) * _TO_OURS
        for axis in (np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.array([0, 0, -1.0]))
    )
    line = space.vectors(x_deg, y_deg)
    inside = np.stack([np.sum(line * axis, axis=1) for axis in (right, up, forward)], axis=1)
    return assemble(
        path,
        person=person,
        stimulus=scene,
        task="free-viewing",
        t_ns=t_ns,
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        left_deg=eyes[0],
        right_deg=eyes[1],
        head_deg=_head_deg(up, forward),
        eye_in_head_deg=np.stack(to_tangents(inside), axis=1),
        rows=len(table),
        not_samples={"second eye": len(table) - frames},
    )


def _quaternions(table: Table, names: tuple[str, ...]) -> Floats:
    return np.stack([table.floats(n) for n in names], axis=1).reshape(-1, 4)


def _head_deg(up: Floats, forward: Floats) -> Floats:
    """(x, y, roll) of a head with these axes; roll is positive to the right."""
    x, y = Sphere().degrees(forward)
    lon = np.radians(x - 180.0)
    level = np.stack((np.cos(lon), np.zeros_like(lon), -np.sin(lon)), axis=1)
    roll = np.degrees(
        np.arctan2(np.sum(up * level, axis=1), np.sum(up * np.cross(forward, level), axis=1))
    )
    return np.stack((x, y, roll), axis=1)


FORMAT = Format(
    "eyenavgs",
    "EyeNavGS: head and gaze quaternions in Gaussian-splat scenes (CSV)",
    sniff,
    scan,
    dataset=Dataset(
        title="EyeNavGS",
        publisher=(
            "Ding, Lee, Zhu et al. (Rutgers University, National Tsing Hua University),"
            " github.com/symmru/EyeNavGS_Rutgers_Dataset and"
            " github.com/sawalee0811/EyeNavGS_NTHU_Dataset"
        ),
        licence="Apache-2.0",
        citation=(
            "Ding et al. 2025, EyeNavGS: a 6-DoF navigation dataset and record-n-replay software"
            " for real-world 3DGS scenes in VR, arXiv:2506.02380"
        ),
        layout="<scene>/<person>_<scene>.csv[.gz]",
    ),
)
