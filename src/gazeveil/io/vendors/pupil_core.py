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

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, nearest, pupil_of
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import UNIT_NS, Table, find_file, open_sheet
from gazeveil.io.registry import Format
from gazeveil.io.source import Head

# Nominal scene camera of Pupil Core at 1280 x 720.
_WIDTH_PX, _HEIGHT_PX, _FOCAL_PX = 1280.0, 720.0, 829.0
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
    t_ns = _times(sheet, "gaze_timestamp", "timestamp")
    metadata: dict[str, object] = {"frame": "head"}
    flat = [sheet.floats(f"norm_pos_{axis}") for axis in "xy"]
    camera = np.stack(
        ((flat[0] - 0.5) * _WIDTH_PX, (flat[1] - 0.5) * _HEIGHT_PX, np.full(len(sheet), _FOCAL_PX)),
        axis=1,
    )
    combined = headset.unit(camera)
    eyes: list[Floats | None] = [None, None]
    if sheet.has("gaze_point_3d_x", "gaze_point_3d_y", "gaze_point_3d_z"):
        point = headset.unit(sheet.vectors("gaze_point_3d_{}") * _DOWN_TO_UP)
        known = np.isfinite(point).all(axis=1)
        if known.any():
            # Rows without a 3-d point are lost, not mapped by another model.
            combined = point
        for k, side in ((1, 0), (0, 1)):
            if sheet.has(f"gaze_normal{k}_x", f"gaze_normal{k}_z"):
                eyes[side] = headset.unit(sheet.vectors(f"gaze_normal{k}_{{}}") * _DOWN_TO_UP)
    else:
        known = np.zeros(len(sheet), dtype=np.bool_)
    if len(sheet) and not known.any():
        metadata["assumed_geometry"] = True
    confidence = sheet.floats("confidence")
    folder = path.parent
    labels = _labels(folder, t_ns)
    pupil = _pupil(folder, t_ns)
    if pupil is not None:
        metadata["pupil_unit"] = "mm"
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=Sphere(),
        **vars(headset.gaze(eyes[0], eyes[1], combined=combined)),
        valid=(confidence >= min_confidence) & (labels != "blink"),
        pupil=pupil,
        confidence=confidence,
        labels={"pupil-player": labels},
        messages=_messages(folder),
        metadata={**metadata, "min_confidence": min_confidence},
    )


def load_surface(path: Path, names: Names, min_confidence: float, screen: Screen) -> Recording:
    """Gaze on a surface; `path` is its gaze_positions_on_surface file."""
    sheet = open_sheet(path)
    t_ns = _times(sheet, "gaze_timestamp", "world_timestamp")
    x, y = screen.from_px(
        sheet.floats("x_norm") * screen.width_px, (1.0 - sheet.floats("y_norm")) * screen.height_px
    )
    confidence = sheet.floats("confidence") if sheet.has("confidence") else np.ones(len(sheet))
    labels = _labels(path.parent.parent, t_ns)
    on = (
        sheet.flags("on_surf", "on_srf")
        if sheet.name("on_surf", "on_srf") is not None
        else np.ones(len(sheet), dtype=np.bool_)
    )
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=screen,
        x_deg=x,
        y_deg=y,
        valid=on & (confidence >= min_confidence) & (labels != "blink"),
        confidence=confidence,
        labels={"pupil-player": labels},
        messages=_messages(path.parent.parent),
        metadata={"frame": "surface", "min_confidence": min_confidence},
    )


def _labels(folder: Path, t_ns: Ints) -> Texts:
    labels = np.full(len(t_ns), "undefined", dtype=WORD)
    place = find_file(folder, "fixations.csv")
    if place is not None:
        sheet = open_sheet(place)
        onset = _times(sheet, "start_timestamp")
        # Fixation durations are milliseconds in Pupil Player's export.
        mark(
            labels,
            t_ns,
            onset,
            onset + np.round(sheet.floats("duration") * UNIT_NS["ms"]).astype(np.int64),
            "fixation",
        )
    place = find_file(folder, "blinks.csv")
    if place is not None:
        sheet = open_sheet(place)
        onset, offset = _times(sheet, "start_timestamp"), _times(sheet, "end_timestamp")
        mark(labels, t_ns, onset, offset, "blink")
    return labels


def _pupil(folder: Path, t_ns: Ints) -> Floats | None:
    place = find_file(folder, "pupil_positions.csv")
    if place is None:
        return None
    sheet = open_sheet(place)
    size = sheet.maybe_floats("diameter_3d")
    if size is None:
        return None
    times, eye = _times(sheet, "pupil_timestamp", "timestamp"), sheet.floats("eye_id", "id")
    eyes = [
        nearest(t_ns, times[mine], size[mine], _SAME_SAMPLE_NS)
        for k in (0, 1)
        if (mine := (eye == k) & (size > 0)).any()
    ]
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
    above = (
        recording.parent.name
        if recording != root and recording.parent != root and root not in (folder, folder.parent)
        else ""
    )
    parts = {"person": above or recording.name, "stimulus": recording.name}
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


FORMAT = Format(
    "pupil-core",
    "Pupil Core export folder (Pupil Player)",
    sniff,
    scan,
    frozenset({"surface", "screen", "min_confidence"}) | OPTIONS,
    sniff_folder,
)
