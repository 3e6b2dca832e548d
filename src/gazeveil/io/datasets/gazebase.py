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
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
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
        t_ns=table.times_ns("n", "ms"),
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
