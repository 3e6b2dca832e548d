"""Meta Quest Pro logs from Unity: one row per frame with each eye's rotation.

The headset writes no file of its own; what apps log is what the Meta XR SDK gives them
(`OVREyeGaze`, `OVRPlugin.EyeGazesState`): a rotation, a validity and a confidence for each eye. The
columns are those of the ReSXR template's continuous data: `timeSinceStartup` (s) or `Eyes_Time`,
`LeftEye_qx/qy/qz/qw`, `LeftEye_IsValid`, `LeftEye_Confidence`, the same for `RightEye`; a head is
read from `Head_qx/...`, `Node_Head_qx/...` or `CenterEye_qx/...` where one of them is there. Logs
with other names are read as `csv` with `unit="vector"` once their rotations are directions.

* Rotations are Unity's (x right, y up, z forward) in the world; the eye looks along z.
* A rotation that turns nothing, (0, 0, 0, 1), in every component is what the SDK gives before it
  has an eye: it is lost, not straight ahead. So are an eye that is not valid and one of a
  confidence below 0.5, the SDK's own default.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, rotate
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, header_keys, open_sheet
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

_LEAST_CONFIDENCE = 0.5
_HEADS = ("Head", "Node_Head", "CenterEye", "Node_CenterEye")
_FORWARD = np.array([0.0, 0.0, 1.0])


def sniff(head: Head) -> bool:
    """By the rotations of both eyes and one of the clocks in the header."""
    keys = header_keys(head)
    return {"lefteyeqx", "lefteyeqw", "righteyeqx", "righteyeqw"} <= keys and not keys.isdisjoint(
        {"timesincestartup", "eyestime"}
    )


def _rotation(sheet: KeyedTable, name: str) -> Floats:
    """Unit quaternions (n, 4), NaN where lost."""
    rotation = np.stack([sheet.floats(f"{name}_q{c}") for c in "xyzw"], axis=1)
    length = np.linalg.norm(rotation, axis=1, keepdims=True)
    # Logs round quaternions; one far from length 1 is none.
    with np.errstate(invalid="ignore", divide="ignore"):
        rotation = np.where(np.abs(length - 1) < 0.1, rotation / length, np.nan)
    rotation[(rotation[:, :3] == 0).all(axis=1)] = np.nan
    return rotation


def _eye(sheet: KeyedTable, name: str) -> tuple[Floats, Floats]:
    """Direction of an eye in the world, and its confidence."""
    direction = headset.unit(rotate(_rotation(sheet, name), _FORWARD))
    confidence = np.ones(len(sheet))
    if sheet.has(f"{name}_IsValid"):
        direction[~sheet.flags(f"{name}_IsValid")] = np.nan
    if sheet.has(f"{name}_Confidence"):
        confidence = np.nan_to_num(sheet.floats(f"{name}_Confidence"))
        direction[confidence < _LEAST_CONFIDENCE] = np.nan
    return direction, confidence


def load(path: Path, names: Names) -> Recording:
    """One log as a recording on the sphere."""
    sheet = open_sheet(path)
    (left, left_sure), (right, right_sure) = (_eye(sheet, f"{e}Eye") for e in ("Left", "Right"))
    gaze = headset.gaze(left, right)
    head_name = next((h for h in _HEADS if sheet.has(*(f"{h}_q{c}" for c in "xyzw"))), None)
    channels = {**vars(gaze), "head_deg": None, "eye_in_head_deg": None}
    if head_name is not None:
        head = _rotation(sheet, head_name)
        turned_back = head * np.array([-1.0, -1.0, -1.0, 1.0])
        in_head = headset.gaze(rotate(turned_back, left), rotate(turned_back, right))
        channels["head_deg"] = headset.head_degrees(head)
        channels["eye_in_head_deg"] = in_head.eye_in_head_deg
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns("timeSinceStartup", "Eyes_Time", unit="s"),
        space=Sphere(),
        **channels,
        confidence=np.clip(np.minimum(left_sure, right_sure), 0, 1),
        metadata={"frame": "world"},
    )


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file."""
    names = naming_options(**options).names(path, root)
    return [names.handle(partial(load, path, names), path)]


FORMAT = Format("quest-pro", "Meta Quest Pro log from Unity (eye rotations)", sniff, scan, OPTIONS)
