"""lookAtPoint (irf): two people follow a jumping point, every sample labelled by an expert;
EyeLink, 1000 Hz.

`<stimulus>_<tracker>_<person>.npy[.gz]`, as `lookAtPoint_EL_S1.npy`: a structured array `t` (s),
`x`, `y` (degrees from the centre of the screen, right and down, read as tangent angles), `status`
(false is not valid), `evt` (0 undefined, 1 fixation, 2 saccade, 3 post-saccadic oscillation, 4
smooth pursuit, 5 blink), kept in `labels["expert"]`. The last part of the name is the person, the
first the stimulus. `db_config.json` beside the arrays gives the screen in mm and px; `screen=`
replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import folder_name
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.loaded import header, read_json, read_npy
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

#: Our words of the published codes.
CODES = ("undefined", "fixation", "saccade", "pso", "pursuit", "blink")

_GEOMETRY = (
    "display_width_pix",
    "display_height_pix",
    "screen_width",
    "screen_height",
    "eye_distance",
)


def sniff(head: Head) -> bool:
    """A structured array with time, gaze and event codes."""
    npy_header = header(head)
    return (
        npy_header is not None
        and npy_header[1].names is not None
        and {"t", "x", "y", "evt"} <= set(npy_header[1].names)
    )


def scan(path: Path, root: Path, screen: Screen | None = None) -> Iterable[Handle]:
    """One recording per array."""
    parts = stem(path).split("_")
    person, stimulus = (
        (parts[-1], parts[0])
        if len(parts) > 1 and parts[0] and parts[-1]
        else (stem(path), folder_name(path))
    )
    return [
        Handle(person, stimulus, partial(load, path, person, stimulus, screen), source=str(path))
    ]


def load(path: Path, person: str, stimulus: str, screen: Screen | None = None) -> Recording:
    """One array as a recording."""
    rows = np.asarray(read_npy(path))
    if rows.dtype.names is None or not {"t", "x", "y", "evt"} <= set(rows.dtype.names):
        raise FormatError(
            path, "the array has no fields t, x, y and evt", "Check that this is an irf array."
        )
    seconds = rows["t"].astype(np.float64)
    if not np.isfinite(seconds).all():
        raise FormatError(
            path,
            f"row {int(np.flatnonzero(~np.isfinite(seconds))[0])} has no time",
            "Remove the row.",
        )
    codes = rows["evt"].astype(np.int64)
    known = (codes >= 0) & (codes < len(CODES))
    return assemble(
        path,
        person=person,
        stimulus=stimulus,
        t_ns=np.round(seconds * 1e9).astype(np.int64),
        space=screen or _screen(path),
        x_deg=rows["x"].astype(np.float64),
        y_deg=rows["y"].astype(np.float64),
        valid=rows["status"].astype(np.bool_) if "status" in rows.dtype.names else None,
        labels={"expert": np.array(CODES)[np.where(known, codes, 0)]},
    )


def _screen(path: Path) -> Screen:
    place = path.with_name("db_config.json")
    if not place.is_file():
        raise FormatError(
            path,
            "there is no db_config.json beside it, so the screen is not known",
            "Put it there, or give screen=Screen(...).",
        )
    geometry = read_json(place).get("geom")
    try:
        assert isinstance(geometry, dict)
        return Screen(*(float(geometry[n]) for n in _GEOMETRY))
    except (AssertionError, KeyError, TypeError, ValueError, ParameterError) as error:
        raise FormatError(
            place,
            f"'geom' does not hold {', '.join(_GEOMETRY)}",
            "Mend the file, or give screen=Screen(...).",
        ) from error


FORMAT = Format(
    "irf",
    "lookAtPoint (irf): expert labels at 1000 Hz (NumPy)",
    sniff,
    scan,
    frozenset({"screen"}),
    dataset=Dataset(
        title="lookAtPoint (irf)",
        publisher="Zemblys, Niehorster, Komogortsev, Holmqvist, github.com/r-zemblys/irf",
        licence="MIT",
        citation=(
            "Zemblys et al. 2018, Using machine learning to detect events in eye-tracking data,"
            " Behavior Research Methods 50(1)"
        ),
        layout="<stimulus>_<tracker>_<person>.npy[.gz], db_config.json",
    ),
)
