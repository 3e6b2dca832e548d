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

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, combine_eyes, eye_in_head, rotate
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, columns, person_in_folder
from gazeveil.io.parsing.headset import head_degrees
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format
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
    names = Names(*person_in_folder(path), task="free-viewing")
    return [names.handle(partial(load, path, names), path)]


def load(path: Path, names: Names) -> Recording:
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
    frame, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    # Numbers before times: a row that was cut is better named by its missing cells.
    head, gaze = (np.stack([table.floats(n) for n in q], axis=1) for q in (_HEAD, _GAZE))
    t_ns = table.times_ns(next((t for t in _TIMES if table.has(t)), _TIMES[0]), unit="ms")[first]
    direction = rotate(gaze, np.array([0.0, 0.0, -1.0])) * _TO_OURS
    direction[(gaze[:, :3] == 0).all(axis=1)] = np.nan
    space, eyes = Sphere(), []
    for side in (left, ~left):
        vectors = np.full((len(first), 3), np.nan)
        vectors[frame[side]] = direction[side]
        eyes.append(np.stack(space.degrees(vectors), axis=1))
    x_deg, y_deg, _ = combine_eyes(eyes[0], eyes[1], space)
    # A mirror of one axis turns rotations about the other two round.
    head_deg = head_degrees(head[first] * [-1.0, -1.0, 1.0, 1.0])
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        left_deg=eyes[0],
        right_deg=eyes[1],
        head_deg=head_deg,
        eye_in_head_deg=np.stack(eye_in_head(space.vectors(x_deg, y_deg), head_deg), axis=1),
        rows=len(table),
        not_samples={"second eye": len(table) - len(first)},
    )


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
    scrub=PUBLISHED,
)
