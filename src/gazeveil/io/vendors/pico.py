"""Pico Neo 3 Pro logs from Unity: TAB separated, one row per frame with head, hands and eyes.

Columns used: `User Name`, `Video Name`, `Timeline` (seconds), `Head Rotation. x/y/z` (Unity Euler
degrees), `Combine Eye Gaze Vector. x/y/z` (in the head: x right, y up, z forward), `Eye Left/Right
Blinking`, `Left/Right Eye Pose Status`. A gaze vector of length zero is a lost sample, not straight
ahead; so is one with both eyes blinking, or with a pose status of 0 for both. Every user and video
of a file is one recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, open_sheet, stamp
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

_GAZE = "Combine Eye Gaze Vector. {}"


def sniff(head: Head) -> bool:
    """By the combined gaze vector and the time line in the header."""
    return {"timeline", "combineeyegazevectorx", "combineeyegazevectorz"} <= head.keys


@lru_cache(maxsize=1)
def _open(path: Path, _stamp: tuple[int, int]) -> tuple[Table, dict[tuple[str, ...], Ints]]:
    """The file and its rows by user and video; kept until the next file, so that its recordings do
    not parse it again.
    """
    sheet = open_sheet(path)
    return sheet, dict(sheet.groups(sheet.name("User Name"), sheet.name("Video Name")))


def load(path: Path, names: Names, part: tuple[str, ...]) -> Recording:
    """The rows of one user and one video as a recording on the sphere."""
    sheet, parts = _open(path, stamp(path))
    rows = parts[part]
    direction = headset.unit(sheet.vectors(_GAZE))[rows]
    labels = {}
    if sheet.has("Eye Left Blinking", "Eye Right Blinking"):
        shut = (sheet.flags("Eye Left Blinking") & sheet.flags("Eye Right Blinking"))[rows]
        direction[shut] = np.nan
        labels["pico"] = np.where(shut, "blink", "undefined").astype(WORD)
    if sheet.has("Left Eye Pose Status", "Right Eye Pose Status"):
        direction[
            (sheet.floats("Left Eye Pose Status")[rows] == 0)
            & (sheet.floats("Right Eye Pose Status")[rows] == 0)
        ] = np.nan
    rotation = None
    if sheet.has("Head Rotation. x", "Head Rotation. y", "Head Rotation. z"):
        rotation = headset.unity_euler(
            *(sheet.floats(f"Head Rotation. {axis}")[rows] for axis in "xyz")
        )
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns("Timeline", unit="s")[rows],
        space=Sphere(),
        **vars(headset.gaze(None, None, rotation, combined=direction)),
        labels=labels,
        metadata={"frame": "world" if rotation is not None else "head"},
    )


def scan(path: Path, root: Path, **options: object) -> Iterator[Handle]:
    """One recording per user and video, in the order they appear."""
    naming = naming_options(**options)
    for part in _open(path, stamp(path))[1]:
        names = naming.names(path, root, person=part[0], stimulus=part[1])
        yield names.handle(partial(load, path, names, part), path)


FORMAT = Format("pico", "Pico Neo 3 Pro log from Unity", sniff, scan, OPTIONS)
