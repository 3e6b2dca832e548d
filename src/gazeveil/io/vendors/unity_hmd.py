"""Headset logs of Unity experiments as the Salient360! recordings have them: eye directions with
the camera's pose.

Two layouts, columns by name:

* dynamic stimuli: `oculoTS` (ns), `unityTS` (ms), `cam_pitch`, `cam_yaw`, `cam_roll` (Unity Euler
  degrees), `leftGazeDir.*`, `rightGazeDir.*`, `meanGazeDir.*`, `Lval`, `Rval`. The program that
  wrote them forgot a comma: `binPor.y` and `Lval` stand in one cell ("666.5324True"). The cell is
  split where a number or NaN meets True or False, and `metadata["repaired"]` says so.
* static stimuli: `OcutimeStamp` (us), `UnityTimeStamp` (ms), `cameraRotation.x/y/z/w`,
  `leftEyeDirection.*`, `rightEyeDirection.*`, `valL`, `valR`. Their `meanGazeDirection` is in
  another frame (it points at the floor) and is not used.

Later versions of that program call the clock `ETtimestamp` (ms) and the eyes `leftGazeDirection.*`,
`rightGazeDirection.*`.

Directions are in the head, x right, y up, z forward, and quaternions turn head into world as they
stand: of all mirrors and inverses this choice alone keeps the gaze still while the head turns. The
unit of the tracker's clock is checked against Unity's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, open_sheet
from gazeveil.io.registry import PUBLISHED, Format
from gazeveil.io.source import Head, find_separator, key, read_text

#: Where a number and a word of validity stand in one cell.
GLUED = re.compile(r"(?<=[0-9A-Za-z])(?=(?:True|False)[,;\t])")
_LEFT = ("leftGazeDir.{}", "leftEyeDirection.{}", "leftGazeDirection.{}")
_RIGHT = ("rightGazeDir.{}", "rightEyeDirection.{}", "rightGazeDirection.{}")
_CLOCKS = {"oculoTS": "ns", "OcutimeStamp": "us", "ETtimestamp": "ms"}


def sniff(head: Head) -> bool:
    """By the tracker's clock and the eyes' directions in the header."""
    keys = head.keys
    return bool(keys & {key(c) for c in _CLOCKS}) and bool(
        keys & {key(p.format("x")) for p in _LEFT}
    )


def _open(path: Path) -> tuple[Table, bool]:
    text = read_text(path)
    header, _, body = text.partition("\n")
    separator = find_separator(header)
    first = next((line for line in body.split("\n", 8) if line.strip()), "")
    # The first row may lack a separator between a number and a word of validity.
    short = separator and first and first.count(separator) == header.count(separator) - 1
    glued = bool(short) and GLUED.search(first) is not None
    if glued:
        text = header + "\n" + GLUED.sub(separator, body)
    return open_sheet(path, text=text), glued


def load(path: Path, names: Names) -> Recording:
    """One log as a recording on the sphere."""
    sheet, repaired = _open(path)
    left, right = _eye(sheet, _LEFT, "Lval", "valL"), _eye(sheet, _RIGHT, "Rval", "valR")
    rotation = _rotation(sheet)
    clock, unit = _clock(sheet)
    metadata: dict[str, object] = {"frame": "world" if rotation is not None else "head"}
    if repaired:
        metadata["repaired"] = "binPor.y and Lval stood in one cell"
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns(clock, unit=unit),
        space=Sphere(),
        **vars(headset.gaze(left, right, rotation)),
        metadata=metadata,
    )


def _eye(sheet: Table, patterns: tuple[str, ...], *flags: str) -> Floats:
    pattern = next((p for p in patterns if sheet.has(p.format("x"))), patterns[0])
    valid: Bools | None = sheet.flags(*flags) if sheet.name(*flags) is not None else None
    return headset.unit(sheet.vectors(pattern), valid)


def _rotation(sheet: Table) -> Floats | None:
    if sheet.has("cameraRotation.x", "cameraRotation.y", "cameraRotation.z", "cameraRotation.w"):
        return np.stack([sheet.floats(f"cameraRotation.{axis}") for axis in "xyzw"], axis=1)
    if sheet.has("cam_pitch", "cam_yaw", "cam_roll"):
        return headset.unity_euler(
            sheet.floats("cam_pitch"), sheet.floats("cam_yaw"), sheet.floats("cam_roll")
        )
    return None


def _clock(sheet: Table) -> tuple[str, str]:
    """The tracker's time column and its unit, by name and by the span of Unity's milliseconds."""
    column = next((c for c in _CLOCKS if sheet.has(c)), "oculoTS")
    name, unit = sheet.need(column), _CLOCKS[column]
    unity = sheet.maybe_floats("unityTS", "UnityTimeStamp")
    ticks = sheet.floats(name)
    if unity is not None and len(sheet) > 1 and np.ptp(unity) > 500:
        per_ms = float(np.ptp(ticks) / np.ptp(unity))
        unit = min(
            {"ns": 1e6, "us": 1e3, "ms": 1.0}.items(),
            key=lambda u: abs(np.log(max(per_ms, 1e-9) / u[1])),
        )[0]
    return name, unit


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file."""
    names = naming_options(**options).names(path, root)
    return [names.handle(partial(load, path, names), path)]


FORMAT = Format(
    "unity-hmd",
    "Unity headset log with camera pose (Salient360! recordings)",
    sniff,
    scan,
    OPTIONS,
    scrub=PUBLISHED,
)
