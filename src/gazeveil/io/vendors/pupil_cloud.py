"""The CSV folder that Pupil Cloud and Neon Player export, for Pupil Invisible and Neon.

`gaze.csv` holds `timestamp [ns]`, `gaze x [px]`, `gaze y [px]` on the scene picture, `azimuth
[deg]` (right) and `elevation [deg]` (up) from the scene camera's axis, `worn`, `fixation id`,
`blink id`, `recording id`. Beside it may lie `blinks.csv`, `fixations.csv`, `saccades.csv`,
`3d_eye_states.csv` (pupil diameters), `events.csv` and `info.json`.

The glasses know no head pose, so the head is the world: a `Sphere` around it, straight ahead at
(180, 90), `metadata["frame"] = "head"`. Old exports without azimuth and elevation go through the
scene camera's nominal focal length (`metadata["assumed_geometry"]`). Samples with the glasses off,
or in a blink, are invalid. A `gaze.csv` of several recordings gives one each, with the recording id
as session. Invisible is told from Neon by `info.json`, by the files only Neon has
(`3d_eye_states.csv`, `saccades.csv`), or by the size of the scene picture (1088 x 1080; Neon: 1600
x 1200).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, nearest, pupil_of
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, find_file, open_sheet, stamp
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_text


@dataclass(frozen=True)
class Camera:
    """Nominal scene camera: size and focal length in pixels."""

    width_px: float
    height_px: float
    focal_px: float


# The focal length that fits azimuth and elevation of an Invisible export best without its lens
# distortion.
INVISIBLE = Camera(1088, 1080, 660.0)
NEON = Camera(1600, 1200, 892.0)

_SAME_SAMPLE_NS = 5_000_000


def is_gaze_file(head: Head) -> bool:
    """A gaze.csv of Pupil Cloud, by name and columns."""
    return head.name == "gaze.csv" and {"timestampns", "gazexpx", "gazeypx"} <= head.keys


def is_folder(folder: Path) -> bool:
    """A folder with such a file."""
    place = find_file(folder, "gaze.csv")
    return place is not None and is_gaze_file(Head.of(place))


def is_neon(folder: Path) -> bool:
    """Whether an export is Neon's: by info.json, by the files only Neon has, or by gaze outside
    Invisible's picture.
    """
    info = _info(folder)
    if any(k in info for k in ("module_serial_number", "frame_name")):
        return True
    if "glasses_serial_number" in info or "scene_camera_serial_number" in info:
        return False
    if find_file(folder, "3d_eye_states.csv", "saccades.csv") is not None:
        return True
    place = find_file(folder, "gaze.csv")
    if place is None:
        return False
    rows = [line.split(",") for line in Head.of(place).lines[:-1]]
    at = next(
        (
            i
            for i, c in enumerate(rows[0] if rows else [])
            if c.strip().strip('"').lower() == "gaze x [px]"
        ),
        None,
    )
    if at is None:
        return False
    values = [float(r[at]) for r in rows[1:] if len(r) > at and r[at].replace(".", "", 1).isdigit()]
    return bool(values) and float(np.median(values)) > INVISIBLE.width_px


def _info(folder: Path) -> dict[str, object]:
    place = find_file(folder, "info.json")
    if place is None:
        return {}
    try:
        info = json.loads(read_text(place))
    except json.JSONDecodeError as error:
        raise FormatError(
            place, f"it is not JSON ({error.msg})", "Export the recording again.", error.lineno
        ) from error
    return info if isinstance(info, dict) else {}


@lru_cache(maxsize=1)
def _open(path: Path, _stamp: tuple[int, int]) -> tuple[Table, dict[tuple[str, ...], Ints]]:
    sheet = open_sheet(path)
    return sheet, dict(sheet.groups(sheet.name("recording id")))


def load(path: Path, names: Names, part: tuple[str, ...], camera: Camera) -> Recording:
    """One recording; `path` is its gaze.csv."""
    sheet, parts = _open(path, stamp(path))
    rows, folder = parts[part], path.parent
    t_ns = sheet.times_ns("timestamp [ns]", unit="ns")[rows]
    metadata: dict[str, object] = {"frame": "head"}
    if sheet.has("azimuth [deg]", "elevation [deg]"):
        x, y = (
            180.0 + sheet.floats("azimuth [deg]")[rows],
            90.0 - sheet.floats("elevation [deg]")[rows],
        )
    else:
        px = [sheet.floats(f"gaze {axis} [px]")[rows] for axis in "xy"]
        ahead = np.stack(
            (
                px[0] - camera.width_px / 2,
                camera.height_px / 2 - px[1],
                np.full(len(rows), camera.focal_px),
            ),
            axis=1,
        )
        x, y = Sphere().degrees(ahead)
        metadata["assumed_geometry"] = True
    labels = _labels(sheet, rows, folder, part, t_ns)
    valid = labels != "blink"
    worn = sheet.maybe_floats("worn", missing=("true", "false"))
    if worn is not None:
        words = np.array([w.lower() for w in sheet.words(sheet.need("worn"))], dtype=np.str_)
        valid &= ~((worn == 0) | (words == "false"))[rows]
    pupil = _pupil(folder, part, t_ns)
    if pupil is not None:
        metadata["pupil_unit"] = "mm"
    metadata |= {
        f"info_{k}": v for k, v in _info(folder).items() if isinstance(v, str | int | float)
    }
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=Sphere(),
        x_deg=x,
        y_deg=y,
        valid=valid,
        eye_in_head_deg=headset.gaze(None, None, combined=Sphere().vectors(x, y)).eye_in_head_deg,
        pupil=pupil,
        labels={"pupil-labs": labels},
        messages=_messages(folder, part),
        metadata=metadata,
    )


def _beside(folder: Path, part: tuple[str, ...], *names: str) -> tuple[Table, Ints] | None:
    """Another table of the folder, and its rows of one recording."""
    place = find_file(folder, *names)
    if place is None:
        return None
    sheet = open_sheet(place)
    column = sheet.name("recording id")
    if column is None or not part[0]:
        return sheet, np.arange(len(sheet), dtype=np.int64)
    return sheet, np.flatnonzero(
        np.array([w == part[0] for w in sheet.words(column)], dtype=np.bool_)
    )


def _labels(sheet: Table, rows: Ints, folder: Path, part: tuple[str, ...], t_ns: Ints) -> Texts:
    """One word per sample; a blink covers all else."""
    labels = np.full(len(rows), "undefined", dtype=WORD)
    tables: dict[str, tuple[Table, Ints] | None] = {
        "saccade": _beside(folder, part, "saccades.csv"),
        "fixation": None if sheet.has("fixation id") else _beside(folder, part, "fixations.csv"),
        "blink": _beside(folder, part, "blinks.csv"),
    }
    for kind, table in tables.items():
        if table is not None:
            events, mine = table
            ends = [
                events.times_ns(events.need(f"{end} timestamp [ns]"), unit="ns")[mine]
                for end in ("start", "end")
            ]
            mark(labels, t_ns, ends[0], ends[1], kind)
        name = sheet.name(f"{kind} id")
        if name is not None:
            labels[np.isfinite(sheet.floats(name))[rows]] = kind
    return labels


def _pupil(folder: Path, part: tuple[str, ...], t_ns: Ints) -> Floats | None:
    table = _beside(folder, part, "3d_eye_states.csv")
    if table is None:
        return None
    states, mine = table
    sizes = [
        v
        for v in (states.maybe_floats(f"pupil diameter {side} [mm]") for side in ("left", "right"))
        if v is not None
    ]
    size = pupil_of(sizes)
    if size is None:
        return None
    return nearest(
        t_ns,
        states.times_ns(states.need("timestamp [ns]"), unit="ns")[mine],
        np.where(size > 0, size, np.nan)[mine],
        _SAME_SAMPLE_NS,
    )


def _messages(folder: Path, part: tuple[str, ...]) -> tuple[Message, ...]:
    table = _beside(folder, part, "events.csv")
    if table is None:
        return ()
    events, mine = table
    times, texts = (
        events.times_ns(events.need("timestamp [ns]"), unit="ns"),
        events.words(events.need("name")),
    )
    return tuple(Message(int(times[i]), texts[i]) for i in mine)


def scan(path: Path, root: Path, **options: object) -> Iterator[Handle]:
    """One recording per folder, Neon's or Invisible's as it is: the person is the wearer of
    info.json or the folder above, the stimulus the folder.
    """
    place = path if path.is_file() else find_file(path, "gaze.csv")
    if place is None:
        raise FormatError(
            path,
            "there is no gaze.csv in this folder",
            "Point to the folder of one exported recording.",
        )
    folder = place.parent
    camera = NEON if is_neon(folder) else INVISIBLE
    wearer = _info(folder).get("wearer_name")
    above = folder.parent.name if folder != root and folder.parent != root else ""
    parts = _open(place, stamp(place))[1]
    for part in parts:
        file_says = {
            "person": wearer if isinstance(wearer, str) else None,
            "session": part[0] if len(parts) > 1 else None,
        }
        names = naming_options(**options).names(
            folder, root, {"person": above or folder.name, "stimulus": folder.name}, **file_says
        )
        yield names.handle(partial(load, place, names, part, camera), place)


def _format(name: str, title: str, neon: bool) -> Format:
    return Format(
        name,
        title,
        lambda head: is_gaze_file(head) and is_neon(head.path.parent) == neon,
        scan,
        OPTIONS,
        lambda folder: is_folder(folder) and is_neon(folder) == neon,
    )


NEON_FORMAT = _format(
    "pupil-neon", "Pupil Labs Neon export folder (Pupil Cloud, Neon Player)", True
)
INVISIBLE_FORMAT = _format("pupil-invisible", "Pupil Invisible export folder (Pupil Cloud)", False)
