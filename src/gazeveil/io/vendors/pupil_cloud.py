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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, nearest, pupil_of, read_json
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.parsing.table import Table, find_file, open_sheet, stamp
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import DocumentRules, Format, Scrub, TableRules
from gazeveil.io.source import Head


@dataclass(frozen=True)
class Camera:
    """Nominal scene camera: size and focal length in pixels."""

    width_px: float
    height_px: float
    focal_px: float

    def degrees(self, px: Floats) -> tuple[Floats, Floats]:
        """Directions of pixels of its picture, shape (n, 2), on the sphere around it."""
        right, up = px[:, 0] - self.width_px / 2, self.height_px / 2 - px[:, 1]
        return Sphere().degrees(np.stack((right, up, np.full(len(px), self.focal_px)), axis=1))


# The focal length that fits azimuth and elevation of an Invisible export best without its lens
# distortion.
INVISIBLE = Camera(1088, 1080, 660.0)
NEON = Camera(1600, 1200, 892.0)

_SAME_SAMPLE_NS = 5_000_000
_GAZE_X = "gaze x [px]"
#: How `worn` says that the glasses are off.
_OFF = ("0", "0.0", "false")


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
    info = _info(folder).keys()
    if info & {"module_serial_number", "frame_name"}:
        return True
    if info & {"glasses_serial_number", "scene_camera_serial_number"}:
        return False
    if find_file(folder, "3d_eye_states.csv", "saccades.csv") is not None:
        return True
    place = find_file(folder, "gaze.csv")
    rows = None if place is None else FirstRows.at(place, {})
    if rows is None or _GAZE_X not in rows.names or not rows.cells:
        return False
    return float(np.nanmedian([*rows.numbers(_GAZE_X), 0.0])) > INVISIBLE.width_px


def _info(folder: Path) -> dict[str, object]:
    place = find_file(folder, "info.json")
    return {} if place is None else read_json(place)


@lru_cache(maxsize=1)
def _open(path: Path, _stamp: tuple[int, int]) -> tuple[Table, dict[tuple[str, ...], Ints]]:
    sheet = open_sheet(path)
    return sheet, dict(sheet.groups(sheet.name("recording id")))


def load(path: Path, names: Names, part: tuple[str, ...], camera: Camera) -> Recording:
    """One recording; `path` is its gaze.csv."""
    sheet, parts = _open(path, stamp(path))
    rows, folder = parts[part], path.parent
    t_ns = sheet.times_ns("timestamp [ns]", unit="ns")[rows]
    metadata: dict[str, object] = {"frame": "head", "pupil_unit": "mm"}
    if sheet.has("azimuth [deg]", "elevation [deg]"):
        x = 180.0 + sheet.floats("azimuth [deg]")[rows]
        y = 90.0 - sheet.floats("elevation [deg]")[rows]
    else:
        px = np.stack([sheet.floats(f"gaze {axis} [px]")[rows] for axis in "xy"], axis=1)
        x, y = camera.degrees(px)
        metadata["assumed_geometry"] = True
    labels = _labels(sheet, rows, folder, part, t_ns)
    worn = np.ones(len(rows), dtype=np.bool_)
    if sheet.name("worn") is not None:
        worn = ~sheet.column("worn").cast(pl.String).str.to_lowercase().is_in(_OFF).to_numpy()[rows]
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=Sphere(),
        x_deg=x,
        y_deg=y,
        valid=worn & (labels != "blink"),
        eye_in_head_deg=headset.gaze(None, None, combined=Sphere().vectors(x, y)).eye_in_head_deg,
        pupil=_pupil(folder, part, t_ns),
        labels={"pupil-labs": labels},
        messages=_messages(folder, part),
        metadata=metadata,
    )


def _beside(folder: Path, part: tuple[str, ...], name: str) -> tuple[Table, Ints] | None:
    """Another table of the folder, and its rows of one recording."""
    place = find_file(folder, name)
    if place is None:
        return None
    sheet = open_sheet(place)
    column = sheet.name("recording id")
    rows = np.arange(len(sheet), dtype=np.int64)
    mine = column is None or not part[0]
    return sheet, rows if mine else rows[np.array(sheet.words(str(column))) == part[0]]


def _labels(sheet: Table, rows: Ints, folder: Path, part: tuple[str, ...], t_ns: Ints) -> Texts:
    """One word per sample; a blink covers all else."""
    labels = np.full(len(rows), "undefined", dtype=WORD)
    for kind in ("saccade", "fixation", "blink"):
        name = sheet.name(f"{kind} id")
        table = _beside(folder, part, f"{kind}s.csv")
        if table is not None and (kind != "fixation" or name is None):
            events, mine = table
            columns = (events.need(f"{end} timestamp [ns]") for end in ("start", "end"))
            onset, offset = (events.times_ns(column, unit="ns")[mine] for column in columns)
            mark(labels, t_ns, onset, offset, kind)
        if name is not None:
            labels[np.isfinite(sheet.floats(name))[rows]] = kind
    return labels


def _pupil(folder: Path, part: tuple[str, ...], t_ns: Ints) -> Floats | None:
    table = _beside(folder, part, "3d_eye_states.csv")
    if table is None:
        return None
    states, mine = table
    sizes = [states.maybe_floats(f"pupil diameter {side} [mm]") for side in ("left", "right")]
    size = pupil_of([s for s in sizes if s is not None])
    if size is None:
        return None
    times = states.times_ns(states.need("timestamp [ns]"), unit="ns")
    return nearest(t_ns, times[mine], np.where(size > 0, size, np.nan)[mine], _SAME_SAMPLE_NS)


def _messages(folder: Path, part: tuple[str, ...]) -> tuple[Message, ...]:
    table = _beside(folder, part, "events.csv")
    if table is None:
        return ()
    events, mine = table
    times = events.times_ns(events.need("timestamp [ns]"), unit="ns")
    texts = events.words(events.need("name"))
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
    parts = _open(place, stamp(place))[1]
    for part in parts:
        names = naming_options(**options).names(
            folder,
            root,
            by_folders(folder, root),
            person=wearer if isinstance(wearer, str) else None,
            session=part[0] if len(parts) > 1 else None,
        )
        yield names.handle(partial(load, place, names, part, camera), place)


#: Tables share one clock. Places of the eyeballs become the place between them.
_TABLE = TableRules(
    keep=(
        r"gaze[xy]|worn|fixation(?:id|[xy])|blinkid|saccadeid|azimuth|elevation|duration|amplitude"
        r"|(?:gyro|acceleration|quaternion)[wxyz]|roll|pitch|yaw|(?:mean|peak)velocity|type"
        r"|pupildiameter(?:left|right)|opticalaxis(?:left|right)[xyz]"
        r"|eyelid(?:angle(?:top|bottom)|aperture)(?:left|right)"
    ),
    shift=r"(?:start|end)?timestamp",
    label=r"(?:section|recording)id",
    event="name",
    midpoint=r"eyeballcenter(?:left|right)[xyz]",
    group="recordingid",
    words=frozenset({"recording.begin", "recording.end", "recording", "user", "cloud"}),
    one_clock=True,
)
SCRUB = Scrub(
    files={
        r"(?:gaze|imu|blinks|fixations|saccades|3d_eye_states|events|world_timestamps)\.csv": _TABLE
    },
    anywhere={
        "info.json": DocumentRules(
            {
                **dict.fromkeys(("wearer_name", "wearer_id", "recording_id"), "label"),
                **dict.fromkeys(("data_format_version", "duration", "gaze_frequency"), "keep"),
                **dict.fromkeys(("module_serial_number", "frame_name"), "removed"),
                "glasses_serial_number": "removed",
                "scene_camera_serial_number": "removed",
                "start_time": "zero",
            }
        )
    },
)


def _format(name: str, title: str, neon: bool) -> Format:
    return Format(
        name,
        title,
        lambda head: is_gaze_file(head) and is_neon(head.path.parent) == neon,
        scan,
        OPTIONS,
        lambda folder: is_folder(folder) and is_neon(folder) == neon,
        scrub=SCRUB,
    )


NEON_FORMAT = _format(
    "pupil-neon", "Pupil Labs Neon export folder (Pupil Cloud, Neon Player)", True
)
INVISIBLE_FORMAT = _format("pupil-invisible", "Pupil Invisible export folder (Pupil Cloud)", False)
