"""GazeBaseVR: 407 people, up to 3 rounds of 2 sessions, five tasks in a headset; SMI in an HTC
Vive, 250 Hz, both eyes.

`S_{round}{subject:03d}_S{session}_{n}_{task}.csv[.gz]`, as `S_1002_S1_1_VRG.csv`: the person is the
subject's three digits, so that the rounds of one person join; the session is "round.session";
stimulus and task are the task's code (VRG vergence, PUR pursuit, VID video, TEX reading, RAN random
saccades).

Columns: `n` (ms), `x`, `y` (both eyes as one), `lx`, `ly`, `rx`, `ry` in degrees right of and above
straight ahead of the head, `xT`, `yT`, `zT` (target). Missing is NaN. Targets move with the head
here, so this is gaze in the head: it is put on a Sphere around the head with x_deg = 180 + x and
y_deg = 90 - y, without a head channel. `space="screen"` puts it on the screen of the study
instead, :data:`SCREEN`, 47 x 30 degrees, with x_deg = x and y_deg = -y: mechanisms whose
reach is a part of the space, such as Ren et al.'s (2024), then have the screen for it and not the
whole sphere. The target is in `metadata["target"]` as published, shape
(n, 3) or (n, 2). Eye centres (`clx` to `crz`) are not kept: the distance between the eyes names a
person by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.gazebase import file_names
from gazeveil.io.datasets.layout import columns
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

_WIDTH_MM, _HEIGHT_MM = (2000.0 * float(np.tan(np.radians(half))) for half in (23.5, 15.0))

#: 47 x 30 degrees, seen from 1 m; its pixels are millimetres.
SCREEN = Screen(_WIDTH_MM, _HEIGHT_MM, _WIDTH_MM, _HEIGHT_MM, 1000.0)

SPACES = ("sphere", "screen")


def sniff(head: Head) -> bool:
    """A CSV file with time, the line of sight and both eyes under the published names."""
    return {"n", "x", "y", "lx", "ly", "rx", "ry"} <= columns(head)


def scan(path: Path, root: Path, space: str = "sphere") -> Iterable[Handle]:
    """One recording per file."""
    names = file_names(path)
    checks.one_of("Format gazebase-vr", "space", space, SPACES)
    return [names.handle(partial(load, path, names, space == "screen"), path)]


def load(path: Path, names: Names, on_screen: bool = False) -> Recording:
    """One file as a recording, on the sphere around the head or on the screen."""
    table = read_table(path, ",")
    centre_x, centre_y = (0.0, 0.0) if on_screen else (180.0, 90.0)
    eyes = {
        side: np.stack(
            (centre_x + table.floats(f"{side}x"), centre_y - table.floats(f"{side}y")), axis=1
        )
        for side in "lr"
    }
    targets = [n for n in ("xT", "yT", "zT") if table.has(n)]
    return assemble(
        path,
        **vars(names),
        t_ns=table.times_ns("n", "ms"),
        space=SCREEN if on_screen else Sphere(),
        x_deg=centre_x + table.floats("x"),
        y_deg=centre_y - table.floats("y"),
        left_deg=eyes["l"],
        right_deg=eyes["r"],
        metadata=(
            {"target": np.stack([table.floats(n) for n in targets], axis=1)} if targets else None
        ),
    )


FORMAT = Format(
    "gazebase-vr",
    "GazeBaseVR: five tasks in a headset (CSV, 250 Hz)",
    sniff,
    scan,
    frozenset({"space"}),
    dataset=Dataset(
        title="GazeBaseVR",
        publisher="Lohr, Aziz, Friedman, Komogortsev (Texas State University), figshare 21308391",
        licence="CC BY 4.0",
        citation=(
            "Lohr et al. 2023, GazeBaseVR, a large-scale, longitudinal, binocular eye-tracking"
            " dataset collected in virtual reality, Scientific Data 10:177"
        ),
        layout="S_{round}{subject:03d}_S{session}_{n}_{task}.csv[.gz], in any folders",
    ),
)
