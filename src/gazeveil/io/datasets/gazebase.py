"""GazeBase: 322 people, 9 rounds over 37 months, seven tasks on a screen; EyeLink, left eye, 1000
Hz.

`S_{round}{subject:03d}_S{session}_{task}.csv[.gz]`: the person is the subject's three digits, so
that the rounds of one person join; the session is "round.session"; stimulus and task are the task's
code (FXS fixation, HSS horizontal saccades, RAN random saccades, TEX reading, VD1 and VD2 video,
BLG a game).

Columns: `n` (ms), `x`, `y` (degrees right of and above the centre of the screen, read as the two
tangent angles; ours grows downwards, so y is turned round), `val` (0 is valid), `dP` (pupil,
arbitrary units), `lab` (event code of the publisher's classifier), `xT`, `yT` (target). The codes
of `lab` are kept as text in `labels["lab"]`, because their meaning is not part of the files; the
target is in `metadata["target_deg"]`, shape (n, 2), in our degrees. Screen: 1680 x 1050 px, 474 x
297 mm at 550 mm.

GazeBaseVR: 407 people, up to 3 rounds of 2 sessions, five tasks in a headset; SMI in an HTC
Vive, 250 Hz, both eyes.

`S_{round}{subject:03d}_S{session}_{n}_{task}.csv[.gz]`, as `S_1002_S1_1_VRG.csv`: the person is the
subject's three digits, so that the rounds of one person join; the session is "round.session";
stimulus and task are the task's code (VRG vergence, PUR pursuit, VID video, TEX reading, RAN random
saccades).

Columns: `n` (ms), `x`, `y` (both eyes as one), `lx`, `ly`, `rx`, `ry` in degrees right of and above
straight ahead of the head, `xT`, `yT`, `zT` (target). Missing is NaN. Targets move with the head
here, so this is gaze in the head: it is put on a Sphere around the head with x_deg = 180 + x and
y_deg = 90 - y, without a head channel. `space="screen"` puts it on the screen of the study
instead, :data:`VR_SCREEN`, 47 x 30 degrees, with x_deg = x and y_deg = -y: mechanisms whose
reach is a part of the space, such as Ren et al.'s (2024), then have the screen for it and not the
whole sphere. The target is in `metadata["target"]` as published, shape
(n, 3) or (n, 2). Eye centres (`clx` to `crz`) are not kept: the distance between the eyes names a
person by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import columns, folder_name
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

SCREEN = Screen(1680, 1050, 474.0, 297.0, 550.0)

_NAME = re.compile(
    r"^S_(?P<round>\d)(?P<subject>\d{3,})_S(?P<session>\d+)_(?:\d+_)?(?P<task>[^_].*)$",
    re.IGNORECASE,
)


def file_names(path: Path) -> Names:
    """What a file name says; one of another kind is the person, its folder the task."""
    match = _NAME.match(stem(path))
    if match is None:
        return Names(stem(path), folder_name(path), "1", folder_name(path))
    session = f"{match['round']}.{match['session']}"
    return Names(match["subject"], match["task"], session, match["task"])


def sniff(head: Head) -> bool:
    """A CSV file with the columns n, x, y, val and dP or lab, and none of single eyes."""
    names = columns(head)
    return {"n", "x", "y", "val"} <= names and bool({"dp", "lab"} & names) and "lx" not in names


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file."""
    names = file_names(path)
    return [names.handle(partial(load, path, names), path)]


def load(path: Path, names: Names) -> Recording:
    """One file as a recording."""
    table = read_table(path, ",")
    metadata: dict[str, object] = {"pupil_unit": "arbitrary"}
    if table.has("xT", "yT"):
        metadata["target_deg"] = np.stack((table.floats("xT"), -table.floats("yT")), axis=1)
    return assemble(
        path,
        **vars(names),
        t_ns=table.times_ns("n", unit="ms"),
        space=SCREEN,
        x_deg=table.floats("x"),
        y_deg=-table.floats("y"),
        valid=table.floats("val") == 0,
        pupil=table.floats("dP") if table.has("dP") else None,
        labels=(
            {"lab": [w or "undefined" for w in table.words("lab")]} if table.has("lab") else None
        ),
        metadata=metadata,
    )


FORMAT = Format(
    "gazebase",
    "GazeBase: seven tasks on a screen (CSV, 1000 Hz)",
    sniff,
    scan,
    dataset=Dataset(
        title="GazeBase",
        publisher=(
            "Griffith, Lohr, Abdulin, Komogortsev (Texas State University), figshare 12912257"
        ),
        licence="CC BY 4.0",
        citation=(
            "Griffith et al. 2021, GazeBase, a large-scale, multi-stimulus, longitudinal eye"
            " movement dataset, Scientific Data 8:184"
        ),
        layout="S_{round}{subject:03d}_S{session}_{task}.csv[.gz], in any folders",
    ),
)

_WIDTH_MM, _HEIGHT_MM = (2000.0 * float(np.tan(np.radians(half))) for half in (23.5, 15.0))

#: 47 x 30 degrees, seen from 1 m; its pixels are millimetres.
VR_SCREEN = Screen(_WIDTH_MM, _HEIGHT_MM, _WIDTH_MM, _HEIGHT_MM, 1000.0)

SPACES = ("sphere", "screen")


def _sniff_vr(head: Head) -> bool:
    """A CSV file with time, the line of sight and both eyes under the published names."""
    return {"n", "x", "y", "lx", "ly", "rx", "ry"} <= columns(head)


def _scan_vr(path: Path, root: Path, space: str = "sphere") -> Iterable[Handle]:
    """One recording per file."""
    names = file_names(path)
    checks.one_of("Format gazebase-vr", "space", space, SPACES)
    return [names.handle(partial(_load_vr, path, names, space == "screen"), path)]


def _load_vr(path: Path, names: Names, on_screen: bool = False) -> Recording:
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
        t_ns=table.times_ns("n", unit="ms"),
        space=VR_SCREEN if on_screen else Sphere(),
        x_deg=centre_x + table.floats("x"),
        y_deg=centre_y - table.floats("y"),
        left_deg=eyes["l"],
        right_deg=eyes["r"],
        metadata=(
            {"target": np.stack([table.floats(n) for n in targets], axis=1)} if targets else None
        ),
    )


VR_FORMAT = Format(
    "gazebase-vr",
    "GazeBaseVR: five tasks in a headset (CSV, 250 Hz)",
    _sniff_vr,
    _scan_vr,
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
