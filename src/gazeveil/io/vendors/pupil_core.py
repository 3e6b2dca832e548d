"""Pupil Core: the folder Pupil Player exports (`exports/000`), with `gaze_positions.csv` and what
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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, nearest, pupil_of
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.parsing.table import UNIT_NS, Table, find_file, open_sheet
from gazeveil.io.registry import DocumentRules, Format, LineRules, Scrub, TableRules
from gazeveil.io.source import Head

# Nominal scene camera of Pupil Core at 1280 x 720.
_PX, _FOCAL_PX = (1280.0, 720.0), 829.0
_DOWN_TO_UP = np.array([1.0, -1.0, 1.0])
_SAME_SAMPLE_NS = 20_000_000


def sniff(head: Head) -> bool:
    """A gaze_positions.csv of Pupil Player."""
    return head.name == "gaze_positions.csv" and {"confidence", "normposx", "normposy"} <= head.keys


def sniff_folder(folder: Path) -> bool:
    """A folder that holds such a file."""
    place = find_file(folder, "gaze_positions.csv")
    return place is not None and sniff(Head.of(place))


def _times(sheet: Table, *names: str) -> Ints:
    return sheet.times_ns(sheet.need(*names), unit="s")


def load(path: Path, names: Names, min_confidence: float) -> Recording:
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


def load_surface(path: Path, names: Names, min_confidence: float, screen: Screen) -> Recording:
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
    t_ns = _times(sheet, "gaze_timestamp", "timestamp", "world_timestamp")
    labels = np.full(len(t_ns), "undefined", dtype=WORD)
    events = {kind: find_file(folder, f"{kind}s.csv") for kind in ("fixation", "blink")}
    for kind, place in events.items():
        if place is not None:
            table = open_sheet(place)
            onset = _times(table, "start_timestamp")
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
        pupil=_pupil(folder, t_ns),
        confidence=confidence,
        labels={"pupil-player": labels},
        messages=_messages(folder),
        metadata={"pupil_unit": "mm", "min_confidence": min_confidence, **metadata},
    )


def _pupil(folder: Path, t_ns: Ints) -> Floats | None:
    place = find_file(folder, "pupil_positions.csv")
    sheet = None if place is None else open_sheet(place)
    size = None if sheet is None else sheet.maybe_floats("diameter_3d")
    if sheet is None or size is None:
        return None
    times, eye = _times(sheet, "pupil_timestamp", "timestamp"), sheet.floats("eye_id", "id")
    seen = [(eye == k) & (size > 0) for k in (0, 1)]
    eyes = [nearest(t_ns, times[mine], size[mine], _SAME_SAMPLE_NS) for mine in seen if mine.any()]
    return pupil_of(eyes)


def _messages(folder: Path) -> tuple[Message, ...]:
    place = find_file(folder, "annotations.csv")
    if place is None:
        return ()
    sheet = open_sheet(place)
    times, texts = _times(sheet, "timestamp"), sheet.words(sheet.need("label"))
    return tuple(Message(int(t), text) for t, text in zip(times, texts, strict=True))


def scan(
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
        run = partial(load, place, names, least)
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
        run = partial(load_surface, surface_file, names, least, screen)
    return [names.handle(run, place)]


#: Tables share one clock. `base_data` names samples by their times.
_TABLE = TableRules(
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
FORMAT = Format(
    "pupil-core",
    "Pupil Core export folder (Pupil Player)",
    sniff,
    scan,
    frozenset({"surface", "screen", "min_confidence"}) | OPTIONS,
    sniff_folder,
    scrub=Scrub(
        files={
            r"(?:gaze_positions|pupil_positions|blinks|fixations|annotations)\.csv": _TABLE,
            r"world_timestamps\.csv": _TABLE,
            r"(?:gaze_positions|fixations)_on_surface_(.+)\.csv": _TABLE,
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
