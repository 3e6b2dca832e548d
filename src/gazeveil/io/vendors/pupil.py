"""Folders that Pupil Labs' programs export: of Pupil Core, Pupil Invisible and Neon.

Pupil Core: the folder Pupil Player exports (`exports/000`), with `gaze_positions.csv` and what
lies beside it.

`gaze_timestamp` (s), `confidence`, `norm_pos_x/y` (fraction of the scene picture from its
bottom-left corner), `gaze_point_3d_x/y/z` (mm from the scene camera: x right, y down, z forward),
`gaze_normal0/1_*` (eye 0 is the right eye). The 3-d point is used where it is there; a 2-d mapper's
`norm_pos` goes through the nominal focal length of the 1280 x 720 scene camera
(`metadata["assumed_geometry"]`). The scene camera is the head and the head is the world:
`metadata["frame"] = "head"`.

Samples below `min_confidence` (0.6, as Pupil Player's own plugins use) and samples in a blink of
`blinks.csv` are invalid. `fixations.csv` gives labels, `pupil_positions.csv` the 3-d pupil diameter
(mm), `annotations.csv` messages. With `surface="name"` and `screen=` the gaze on that surface is
read instead (`surfaces/gaze_positions_on_surface_<name>.csv`), on a `Screen`; what is not on the
surface is invalid.

The CSV folder that Pupil Cloud and Neon Player export, for Pupil Invisible and Neon.

`gaze.csv` holds `timestamp [ns]`, `gaze x [px]`, `gaze y [px]` on the scene picture, `azimuth
[deg]` (right) and `elevation [deg]` (up) from the scene camera's axis, `worn`, `fixation id`,
`blink id`, `recording id`. Beside it may lie `blinks.csv`, `fixations.csv`, `saccades.csv`,
`3d_eye_states.csv` (pupil diameters), `events.csv` and `info.json`.

The glasses know no head pose, so the head is the world: a `Sphere` around it, straight ahead at
(180, 90), `metadata["frame"] = "head"`. Old exports without azimuth and elevation go through the
scene camera's nominal focal length (`metadata["assumed_geometry"]`). Samples with the glasses off,
or in a blink, are invalid. A `gaze.csv` of several recordings gives one each, as sessions 1, 2,
... with the recording id in the metadata. Invisible is told from Neon by `info.json`, by the files
only Neon has (`3d_eye_states.csv`, `saccades.csv`), or by the size of the scene picture (1088 x
1080; Neon: 1600 x 1200).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, nearest, pupil_of, read_json
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.parsing.table import UNIT_NS, Table, find_file, open_sheet, stamp
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import DocumentRules, Format, LineRules, Scrub, TableRules
from gazeveil.io.source import Head

# Nominal scene camera of Pupil Core at 1280 x 720.
_PX, _FOCAL_PX = (1280.0, 720.0), 829.0
_DOWN_TO_UP = np.array([1.0, -1.0, 1.0])
_SAME_CORE_SAMPLE_NS = 20_000_000


def _is_core(head: Head) -> bool:
    """A gaze_positions.csv of Pupil Player."""
    return head.name == "gaze_positions.csv" and {"confidence", "normposx", "normposy"} <= head.keys


def _is_core_folder(folder: Path) -> bool:
    """A folder that holds such a file."""
    place = find_file(folder, "gaze_positions.csv")
    return place is not None and _is_core(Head.of(place))


def _seconds_ns(sheet: Table, *names: str) -> Ints:
    return sheet.times_ns(sheet.need(*names), unit="s")


def _load_gaze(path: Path, names: Names, min_confidence: float) -> Recording:
    """Gaze in the head of one export; `path` is its gaze_positions.csv."""
    sheet = open_sheet(path)
    px = [(sheet.floats(f"norm_pos_{a}") - 0.5) * size for a, size in zip("xy", _PX, strict=True)]
    combined = headset.unit(np.stack((*px, np.full(len(sheet), _FOCAL_PX)), axis=1))
    eyes: list[Floats | None] = [None, None]
    metadata: dict[str, object] = {"frame": "head"}
    known: Bools = np.zeros(len(sheet), dtype=np.bool_)
    if sheet.has(*(f"gaze_point_3d_{axis}" for axis in "xyz")):
        point = headset.unit(sheet.vectors("gaze_point_3d_{}") * _DOWN_TO_UP)
        known = np.asarray(np.isfinite(point).all(axis=1))
        # Rows without a 3-d point are lost, not mapped by another model.
        combined = point if known.any() else combined
        for k, side in ((1, 0), (0, 1)):
            if sheet.has(f"gaze_normal{k}_x", f"gaze_normal{k}_z"):
                eyes[side] = headset.unit(sheet.vectors(f"gaze_normal{k}_{{}}") * _DOWN_TO_UP)
    if len(sheet) and not known.any():
        metadata["assumed_geometry"] = True
    channels = vars(headset.gaze(eyes[0], eyes[1], combined=combined))
    return _recording(
        path, names, sheet, path.parent, min_confidence, Sphere(), channels, **metadata
    )


def _load_surface(path: Path, names: Names, min_confidence: float, screen: Screen) -> Recording:
    """Gaze on a surface; `path` is its gaze_positions_on_surface file."""
    sheet = open_sheet(path)
    x, y = screen.from_px(
        sheet.floats("x_norm") * screen.width_px, (1.0 - sheet.floats("y_norm")) * screen.height_px
    )
    folder, channels = path.parent.parent, {"x_deg": x, "y_deg": y}
    return _recording(path, names, sheet, folder, min_confidence, screen, channels, frame="surface")


def _recording(
    path: Path,
    names: Names,
    sheet: Table,
    folder: Path,
    min_confidence: float,
    space: Space,
    channels: Mapping[str, Any],
    **metadata: object,
) -> Recording:
    """Gaze with what lies beside it in the export's folder."""
    t_ns = _seconds_ns(sheet, "gaze_timestamp", "timestamp", "world_timestamp")
    labels = np.full(len(t_ns), "undefined", dtype=WORD)
    events = {kind: find_file(folder, f"{kind}s.csv") for kind in ("fixation", "blink")}
    for kind, place in events.items():
        if place is not None:
            table = open_sheet(place)
            onset = _seconds_ns(table, "start_timestamp")
            # Fixation durations are milliseconds in Pupil Player's export.
            unit = UNIT_NS["ms" if kind == "fixation" else "s"]
            lasting = np.round(table.floats("duration") * unit).astype(np.int64)
            mark(labels, t_ns, onset, onset + lasting, kind)
    confidence = sheet.maybe_floats("confidence")
    valid: Bools = np.asarray(labels != "blink")
    if confidence is not None:
        valid &= confidence >= min_confidence
    if sheet.name("on_surf", "on_srf") is not None:
        valid &= sheet.flags("on_surf", "on_srf")
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=space,
        **channels,
        valid=valid,
        pupil=_pupil_of_core(folder, t_ns),
        confidence=confidence,
        labels={"pupil-player": labels},
        messages=_annotations(folder),
        metadata={"pupil_unit": "mm", "min_confidence": min_confidence, **metadata},
    )


def _pupil_of_core(folder: Path, t_ns: Ints) -> Floats | None:
    place = find_file(folder, "pupil_positions.csv")
    sheet = None if place is None else open_sheet(place)
    size = None if sheet is None else sheet.maybe_floats("diameter_3d")
    if sheet is None or size is None:
        return None
    times, eye = _seconds_ns(sheet, "pupil_timestamp", "timestamp"), sheet.floats("eye_id", "id")
    seen = [(eye == k) & (size > 0) for k in (0, 1)]
    eyes = [
        nearest(t_ns, times[mine], size[mine], _SAME_CORE_SAMPLE_NS) for mine in seen if mine.any()
    ]
    return pupil_of(eyes)


def _annotations(folder: Path) -> tuple[Message, ...]:
    place = find_file(folder, "annotations.csv")
    if place is None:
        return ()
    sheet = open_sheet(place)
    times, texts = _seconds_ns(sheet, "timestamp"), sheet.words(sheet.need("label"))
    return tuple(Message(int(t), text) for t, text in zip(times, texts, strict=True))


def _scan_core(
    path: Path,
    root: Path,
    surface: str | None = None,
    screen: Screen | None = None,
    min_confidence: float = 0.6,
    **options: object,
) -> Iterable[Handle]:
    """One recording per export: the person is the folder above the recording, the stimulus the
    recording's folder.

    Both are found above the parts `exports/000` that Pupil Player adds; further exports of one
    recording are further sessions.
    """
    least = checks.not_negative("Format pupil-core", "min_confidence", min_confidence)
    place = path if path.is_file() else find_file(path, "gaze_positions.csv")
    if place is None:
        raise FormatError(
            path,
            "there is no gaze_positions.csv in this folder",
            "Point to the export folder of Pupil Player (exports/000).",
        )
    folder = place.parent
    inside = folder.parent.name == "exports"
    recording = folder.parent.parent if inside else folder
    parts = by_folders(recording, recording if root in (folder, folder.parent) else root)
    if inside and folder.name not in ("000", "0"):
        parts["session"] = folder.name
    names = naming_options(**options).names(folder, root, parts)
    if surface is None:
        run = partial(_load_gaze, place, names, least)
    else:
        surface_file = find_file(folder / "surfaces", f"gaze_positions_on_surface_{surface}.csv")
        if surface_file is None:
            raise FormatError(
                folder / "surfaces",
                f"there is no gaze on a surface '{surface}'",
                "Check the name, or export the surface in Pupil Player.",
            )
        if not isinstance(screen, Screen):
            checks.refuse("Format pupil-core", "screen", "the Screen that the surface is", screen)
        run = partial(_load_surface, surface_file, names, least, screen)
    return [names.handle(run, place)]


#: Tables share one clock. `base_data` names samples by their times.
_TABLE_OF_CORE = TableRules(
    keep=(
        r"confidence|normpos[xy]|(?:world)?index|gaze(?:point3d|normal[01])[xyz]|eyeid|id|method"
        r"|ellipse(?:center[xy]|axis[ab]|angle)|diameter(?:3d)?|modelconfidence|modelid|dispersion"
        r"|sphere(?:center[xyz]|radius)|circle3d(?:center|normal)[xyz]|circle3dradius|theta|phi"
        r"|projectedsphere(?:center[xy]|axis[ab]|angle)|duration|(?:start|end)(?:frame)?index"
        r"|filterresponse|[xy](?:norm|scaled)|onsu?rf|pts|avgpupilsize"
    ),
    shift=r"(?:(?:gaze|pupil|world|start|end|surface|avg)?timestamps?)(?:seconds)?",
    label="label",
    midpoint=r"eyecenter[01]3d[xyz]",
    words=frozenset(
        {"3d", "2d", "2d c++", "3d c++", "pye3d", "pye3d 0.3.0 real-time", "pye3d 0.3.0 post-hoc"}
    ),
    one_clock=True,
)
_PAIRS = LineRules(
    (
        ("key,value", ""),
        (r"Recording (?:Name|UUID),(?P<label>.*)", ""),
        (r"(?:Capture Software|Data Format) Version,[v\d.]+|Duration Time,[\d:.]+", ""),
        (r"World Camera (?:Frames,\d+|Resolution,\d+x\d+)", ""),
    )
)
CORE_FORMAT = Format(
    "pupil-core",
    "Pupil Core export folder (Pupil Player)",
    _is_core,
    _scan_core,
    frozenset({"surface", "screen", "min_confidence"}) | OPTIONS,
    _is_core_folder,
    scrub=Scrub(
        files={
            r"(?:gaze_positions|pupil_positions|blinks|fixations|annotations)\.csv": _TABLE_OF_CORE,
            r"world_timestamps\.csv": _TABLE_OF_CORE,
            r"(?:gaze_positions|fixations)_on_surface_(.+)\.csv": _TABLE_OF_CORE,
        },
        anywhere={
            "info.player.json": DocumentRules(
                {
                    **dict.fromkeys(("recording_name", "recording_uuid"), "label"),
                    **dict.fromkeys(("start_time_system_s", "start_time_synced_s"), "zero"),
                    **dict.fromkeys(("meta_version", "min_player_version", "duration_s"), "keep"),
                    "recording_software_name": "keep",
                    "recording_software_version": "keep",
                }
            ),
            **dict.fromkeys(("info.csv", "export_info.csv"), _PAIRS),
        },
    ),
)


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


def _load_cloud(path: Path, names: Names, part: tuple[str, ...], camera: Camera) -> Recording:
    """One recording; `path` is its gaze.csv."""
    sheet, parts = _open(path, stamp(path))
    rows, folder = parts[part], path.parent
    t_ns = sheet.times_ns("timestamp [ns]", unit="ns")[rows]
    metadata: dict[str, object] = {
        "frame": "head",
        "pupil_unit": "mm",
        **({"recording": part[0]} if len(parts) > 1 else {}),
    }
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
        pupil=_pupil_of_cloud(folder, part, t_ns),
        labels={"pupil-labs": labels},
        messages=_events(folder, part),
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


def _pupil_of_cloud(folder: Path, part: tuple[str, ...], t_ns: Ints) -> Floats | None:
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


def _events(folder: Path, part: tuple[str, ...]) -> tuple[Message, ...]:
    table = _beside(folder, part, "events.csv")
    if table is None:
        return ()
    events, mine = table
    times = events.times_ns(events.need("timestamp [ns]"), unit="ns")
    texts = events.words(events.need("name"))
    return tuple(Message(int(times[i]), texts[i]) for i in mine)


def _scan_cloud(path: Path, root: Path, **options: object) -> Iterator[Handle]:
    """One recording per folder, Neon's or Invisible's as it is: the person is the wearer of
    info.json or the folder above, the stimulus the folder. Several recordings in one file are
    sessions 1, 2, ...; their ids are in the metadata.
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
    for number, part in enumerate(parts, 1):
        names = naming_options(**options).names(
            folder,
            root,
            by_folders(folder, root),
            person=wearer if isinstance(wearer, str) else None,
            session=str(number) if number > 1 else None,
        )
        yield names.handle(partial(_load_cloud, place, names, part, camera), place)


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
        _scan_cloud,
        OPTIONS,
        lambda folder: is_folder(folder) and is_neon(folder) == neon,
        scrub=SCRUB,
    )


NEON_FORMAT = _format(
    "pupil-neon", "Pupil Labs Neon export folder (Pupil Cloud, Neon Player)", True
)
INVISIBLE_FORMAT = _format("pupil-invisible", "Pupil Invisible export folder (Pupil Cloud)", False)
