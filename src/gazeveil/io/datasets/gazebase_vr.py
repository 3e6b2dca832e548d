"""GazeBaseVR: 407 people, up to 3 rounds of 2 sessions, five tasks in a headset; SMI in an HTC
Vive, 250 Hz, both eyes.

`S_{round}{subject:03d}_S{session}_{n}_{task}.csv[.gz]`, as `S_1002_S1_1_VRG.csv`: the person is the
subject's three digits, so that the rounds of one person join; the session is "round.session";
stimulus and task are the task's code (VRG vergence, PUR pursuit, VID video, TEX reading, RAN random
saccades).

Columns: `n` (ms), `x`, `y` (both eyes as one), `lx`, `ly`, `rx`, `ry` in degrees right of and above
straight ahead of the head, `xT`, `yT`, `zT` (target). Missing is NaN. Targets move with the head
here, so this is gaze in the head: it is put on a Sphere around the head with x_deg = 180 + x and
y_deg = 90 - y, without a head channel. The target is in `metadata["target"]` as published, shape
(n, 3) or (n, 2). Eye centres (`clx` to `crz`) are not kept: the distance between the eyes names a
person by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.gazebase import file_names
from gazeveil.io.datasets.layout import columns
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head


def sniff(head: Head) -> bool:
    """A CSV file with time, the line of sight and both eyes under the published names."""
    return {"n", "x", "y", "lx", "ly", "rx", "ry"} <= columns(head)


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file."""
    names = file_names(path)
    return [names.handle(partial(load, path, names), path)]


def load(path: Path, names: Names) -> Recording:
    """One file as a recording."""
    table = read_table(path, ",")
    eyes = {
        side: np.stack((180.0 + table.floats(f"{side}x"), 90.0 - table.floats(f"{side}y")), axis=1)
        for side in "lr"
    }
    targets = [n for n in ("xT", "yT", "zT") if table.has(n)]
    return assemble(
        path,
        **vars(names),
        t_ns=table.times_ns("n", "ms"),
        space=Sphere(),
        x_deg=180.0 + table.floats("x"),
        y_deg=90.0 - table.floats("y"),
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
