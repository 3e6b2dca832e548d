"""Tobii Pro Glasses 2 and 3 (lines of JSON), and gaze of Tobii's SDKs (CSV, TSV).

tobii-glasses2
--------------
Tobii Pro Glasses 2: `livedata.json.gz` of a segment (JSON lines, gzip or not).

Layout: the data stream in the Tobii Pro Glasses 2 API developer's guide. Every line has `ts` (us)
and `s` (status, 0 is good); lines that share a `gidx` are one sample: `gd` (unit vector of an eye's
gaze), `pd` (pupil diameter, mm), `pc` (pupil centre), each with `eye`, and `gp`, `gp3` (gaze in the
scene picture and in space, mm). Lines with `tag` are events and become messages; those of the
motion sensors and the video clock are counted.

* Tobii's axes are x to the wearer's left, y up, z forward; x is mirrored here.
* A status other than 0 is a lost value, whatever numbers stand there.
* There is no head pose, so the head is the world: `metadata["frame"] = "head"`.
* In `recordings/<id>/segments/<n>` the stimulus is the recording and the session the segment; the
  person is the name in the recording's `participant.json`, else the recording.

tobii-glasses3
--------------
Tobii Pro Glasses 3: the folder of a recording with `gazedata` (JSON lines, gzip or not), and
`eventdata`, `imudata` beside it.

A gaze line holds `timestamp` (s) and `data`: `gaze2d` (fraction of the scene picture), `gaze3d`
(mm), and for each eye `gazedirection`, `gazeorigin` and `pupildiameter` (mm). Empty data is a lost
sample, not the end. Tobii's axes are x to the wearer's left, y up, z forward (gaze3d x is negative
where gaze2d lies right of the middle); x is mirrored here.

There is no head pose, so the head is the world: a `Sphere` around it, `metadata["frame"] = "head"`.
Lines of `eventdata` become messages. `imudata` is not read; `metadata["not_read"]` says so. The
person is the name in `meta/participant` and the stimulus the name in `recording.g3` where these lie
there, else the folder above and the folder itself.

tobii-sdk
---------
Gaze of Tobii's SDKs as programs write it: one row per gaze sample.

Two families of names:

* Tobii Pro SDK (`GazeData.to_dict` of `tobii_research`, Titta): `device_time_stamp` (us; without it
  `system_time_stamp`), and for each eye `left_gaze_point_on_display_area` (a fraction of the screen
  from its top left corner; one cell `(x, y)`, or two columns `..._x`, `..._y`),
  `left_gaze_point_validity` or `left_gaze_point_valid` (1 valid), `left_pupil_diameter` (mm) with
  its validity, `left_gaze_point_in_user_coordinate_system` and
  `left_gaze_origin_in_user_coordinate_system` (mm).
* The SDK for MATLAB (TX300 recordings of I2MC): `Time` (us), `LGazePos2dx/y` (fractions),
  `LValidity` (0 certain to 4 lost; 0 and 1 are used), `LPupilDm` (mm), `LGazePos3d*`, `LEyePos3d*`
  (mm before the tracker), the same for `R`. Lost values are -1 or 0.

* The screen is `screen=`; or its millimetres and distance are those that the points in millimetres
  have, of 1920 x 1080 pixels; or a usual screen at 650 mm is assumed
  (`metadata["assumed_geometry"]`), of a TX300 its own (509.2 x 286.4 mm).
* The device's clock is read, not the computer's, because the latter is set now and then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Screen, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes, read_json, timed_lines
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.parsing.table import MOST_NS, Table, find_file, open_sheet, printable
from gazeveil.io.registry import DocumentRules, Format, Scrub, TableRules
from gazeveil.io.source import Head, stem

_SIDES = ("left", "right")


def _direction(path: Path, number: int, value: object) -> list[float]:
    """Three numbers, NaN where there are none."""
    if value is None:
        return [np.nan] * 3
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 3 or not all(_is_number(v) for v in numbers):
        raise FormatError(path, f"{value!r} is not a direction", "Mend or remove the line.", number)
    return [float(v) for v in numbers]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else np.nan


def _recording(
    path: Path,
    names: Names,
    t_s: Floats,
    eyes: Mapping[str, Floats],
    messages: Iterable[Message],
    other_lines: int,
    **metadata: object,
) -> Recording:
    """The recording of direction and pupil of each eye, shape (n, 4)."""
    left, right = (headset.unit(eyes[side][:, :3] * [-1.0, 1.0, 1.0]) for side in _SIDES)
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(t_s * 1e9).astype(np.int64),
        space=Sphere(),
        **vars(headset.gaze(left, right)),
        pupil=mean_of_eyes(eyes["left"][:, 3], eyes["right"][:, 3]),
        messages=tuple(messages),
        not_samples={"other_lines": other_lines},
        metadata={"frame": "head", "pupil_unit": "mm", **metadata},
    )


def _load_glasses2(path: Path, names: Names) -> Recording:
    """One segment as a recording on the sphere around the head."""
    lines = list(timed_lines(path, "ts", MOST_NS / 1000, "time ts"))
    gaze_lines = [(n, r) for n, r in lines if _is_number(r.get("gidx"))]
    order = {gidx: i for i, gidx in enumerate(dict.fromkeys(r["gidx"] for _, r in gaze_lines))}
    t_us = np.full(len(order), np.inf)
    eyes = {side: np.full((len(order), 4), np.nan) for side in _SIDES}
    for number, record in gaze_lines:
        i, eye = order[record["gidx"]], record.get("eye")
        t_us[i] = min(t_us[i], float(str(record["ts"])))
        if eye in _SIDES and record.get("s", 0) == 0:
            if "gd" in record:
                eyes[str(eye)][i, :3] = _direction(path, number, record["gd"])
            if "pd" in record:
                eyes[str(eye)][i, 3] = _size(record["pd"])
    messages = (
        Message(round(float(str(r["ts"])) * 1e3), f"{r.get('type', '')} {r['tag']}".strip())
        for _, r in lines
        if "tag" in r
    )
    return _recording(path, names, t_us / 1e6, eyes, messages, len(lines) - len(gaze_lines))


def _scan_glasses2(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per segment."""
    parts, place = path.resolve().parts, {"person": path.parent.name}
    if path.parent == root:
        place = {"person": stem(path)}
    person = None
    if len(parts) > 3 and parts[-3] == "segments":
        recording = path.resolve().parents[2]
        place = {"person": recording.name, "stimulus": recording.name, "session": parts[-2]}
        person = _name_in(recording / "participant.json", "pa_info")
    names = naming_options(**options).names(path, root, place, person=person)
    return [names.handle(partial(_load_glasses2, path, names), path)]


def _name_in(path: Path, within: str = "") -> str | None:
    """The name that a JSON file of the recording unit says; None where it says none."""
    content: Mapping[str, object] = read_json(path) if path.is_file() else {}
    about = content.get(within) if within else content
    name = about.get("Name" if within else "name") if isinstance(about, Mapping) else None
    return name.strip() or None if isinstance(name, str) else None


GLASSES2 = Format(
    "tobii-glasses2",
    "Tobii Pro Glasses 2 segment (livedata.json)",
    lambda head: head.name == "livedata.json" and '"gidx"' in head.text,
    _scan_glasses2,
    OPTIONS,
    companion=lambda path: path.name == "participant.json",
    # Places of the pupils hold the distance between the eyes.
    scrub=Scrub(
        anywhere={
            "livedata.json": DocumentRules(
                {
                    **dict.fromkeys(("ts", "gidx"), "shift"),
                    **dict.fromkeys(("s", "l", "gd", "pd", "gp", "gp3", "ac", "gy"), "numbers"),
                    "eye": frozenset(_SIDES),
                    **dict.fromkeys(("type", "tag"), "label"),
                },
                lines=True,
                need=("ts",),
            ),
            "participant.json": DocumentRules({"name": "label", "pa_info": {"Name": "label"}}),
        }
    ),
)


def _sniff_glasses3(head: Head) -> bool:
    """A gazedata file with gaze lines."""
    named = head.name in ("gazedata", "gazedata.json")
    return named and '"type":"gaze"' in head.text[:4096].replace(" ", "")


def _sniff_folder(folder: Path) -> bool:
    """A folder that holds such a file."""
    place = find_file(folder, "gazedata", "gazedata.json")
    return place is not None and _sniff_glasses3(Head.of(place))


def _lines(path: Path) -> list[tuple[int, dict[str, object]]]:
    return list(timed_lines(path, "timestamp", MOST_NS / 1e9, "timestamp"))


def _load_glasses3(path: Path, names: Names) -> Recording:
    """One recording; `path` is its gazedata file."""
    lines = _lines(path)
    gaze = [(number, line) for number, line in lines if line.get("type", "gaze") == "gaze"]
    eyes = {side: np.full((len(gaze), 4), np.nan) for side in _SIDES}
    for i, (number, line) in enumerate(gaze):
        data = line.get("data")
        for side in _SIDES:
            eye = data.get(f"eye{side}") if isinstance(data, dict) else None
            if isinstance(eye, dict):
                eyes[side][i, :3] = _direction(path, number, eye.get("gazedirection"))
                eyes[side][i, 3] = _size(eye.get("pupildiameter"))
    place = find_file(path.parent, "eventdata", "eventdata.json")
    messages = (
        Message(
            round(float(str(line["timestamp"])) * 1e9),
            f"{line.get('type', 'event')} {json.dumps(line.get('data', {}))}",
        )
        for _, line in (_lines(place) if place is not None else ())
    )
    motion = find_file(path.parent, "imudata", "imudata.json")
    t_s = np.array([float(str(line["timestamp"])) for _, line in gaze])
    left_out = {} if motion is None else {"not_read": "imudata"}
    return _recording(path, names, t_s, eyes, messages, len(lines) - len(gaze), **left_out)


def _scan_glasses3(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per folder: its name is the stimulus, the folder above it the person."""
    place = path if path.is_file() else find_file(path, "gazedata", "gazedata.json")
    if place is None:
        raise FormatError(
            path,
            "there is no gazedata file in this folder",
            "Point to the folder of one Glasses 3 recording.",
        )
    folder = place.parent
    names = naming_options(**options).names(
        folder,
        root,
        by_folders(folder, root),
        person=_name_in(folder / "meta" / "participant"),
        stimulus=_name_in(folder / "recording.g3"),
    )
    return [names.handle(partial(_load_glasses3, place, names), place)]


_EYE_RULES = {"gazedirection": "numbers", "pupildiameter": "numbers"}
_STREAM = DocumentRules(
    {
        "type": frozenset({"gaze", "imu", "syncport", "event"}),
        "timestamp": "shift",
        "data": {
            **dict.fromkeys(("eyeleft", "eyeright"), _EYE_RULES),
            **dict.fromkeys(("gaze2d", "gaze3d", "value"), "numbers"),
            **dict.fromkeys(("accelerometer", "gyroscope", "magnetometer"), "numbers"),
            "direction": frozenset({"in", "out"}),
            "tag": "label",
        },
    },
    lines=True,
    need=("type", "timestamp"),
)
GLASSES3 = Format(
    "tobii-glasses3",
    "Tobii Pro Glasses 3 recording folder",
    _sniff_glasses3,
    _scan_glasses3,
    OPTIONS,
    _sniff_folder,
    # Origins of gaze hold the distance between the eyes.
    scrub=Scrub(
        files={
            r"(?:gazedata|eventdata|imudata)(?:\.json)?": _STREAM,
            r"recording\.g3": DocumentRules(
                {"name": "label", "version": "keep", "duration": "keep"}
            ),
            "participant": DocumentRules({"name": "label"}),
        }
    ),
)


_FEWEST = 30
_USABLE = 1


@dataclass(frozen=True)
class _Family:
    """Names of columns: `{}` stands for the eye; points have `_x`, `_y` or `x`, `y` behind them."""

    eyes: tuple[str, str]
    clocks: tuple[str, ...]
    point: str
    placed: str
    origin: str
    pupil: str
    joint: str
    screen: Screen


_PRO = _Family(
    ("left", "right"),
    ("device_time_stamp", "system_time_stamp"),
    "{}_gaze_point_on_display_area",
    "{}_gaze_point_in_user_coordinate_system",
    "{}_gaze_origin_in_user_coordinate_system",
    "{}_pupil_diameter",
    "_",
    TYPICAL_SCREEN,
)
_MATLAB = _Family(
    ("L", "R"),
    ("Time",),
    "{}GazePos2d",
    "{}GazePos3d",
    "{}EyePos3d",
    "{}PupilDm",
    "",
    Screen(1920, 1080, 509.2, 286.4, 650.0),
)


def sniff(head: Head) -> bool:
    """By a time stamp and a point on the screen in the header."""
    keys = head.keys
    return _is_matlab(keys) or (
        not keys.isdisjoint({"devicetimestamp", "systemtimestamp"})
        and not keys.isdisjoint({"leftgazepointondisplayarea", "leftgazepointondisplayareax"})
    )


def _is_matlab(keys: frozenset[str]) -> bool:
    return {"time", "lgazepos2dx", "rgazepos2dx", "lvalidity", "rvalidity"} <= keys


def _tuples(sheet: Table, name: str, joint: str, axes: str) -> Floats | None:
    """The columns of a point, or one column of tuples, as (n, 2 or 3)."""
    if sheet.has(*(f"{name}{joint}{a}" for a in axes)):
        return np.stack([sheet.floats(f"{name}{joint}{a}") for a in axes], axis=1)
    column = sheet.name(name)
    if column is None:
        return None
    cells = sheet.column(column).fill_null("").str.strip_chars()
    parts = cells.str.strip_chars("()[] ").str.split(",")
    whole = parts.list.len() == len(axes)
    wrong = (~whole & ~cells.str.to_lowercase().is_in(["", "nan", "none"])).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise FormatError(
            sheet.path,
            f"'{printable(cells[row])}' in column '{column}' is not a point of {len(axes)} numbers",
            "Mend or remove the line.",
            sheet.line_of(row),
        )
    numbers = [
        parts.list.get(i, null_on_oob=True)
        .str.strip_chars()
        .cast(pl.Float64, strict=False)
        .fill_null(float("nan"))
        .to_numpy()
        for i in range(len(axes))
    ]
    return np.stack(numbers, axis=1).astype(np.float64)


def _is_valid(sheet: Table, name: str) -> Bools | None:
    column = sheet.name(f"{name}_validity", f"{name}_valid")
    return None if column is None else sheet.flags(column)


def _eye(sheet: Table, family: _Family, side: str) -> Floats | None:
    """Gaze of one eye as fractions of the screen, NaN where it is not valid."""
    points = _tuples(sheet, family.point.format(side), family.joint, "xy")
    if points is None:
        return None
    if family is _MATLAB:
        points[~(sheet.floats(f"{side}Validity") <= _USABLE) | (points == -1).all(axis=1)] = np.nan
    elif (valid := _is_valid(sheet, f"{side}_gaze_point")) is not None:
        points[~valid] = np.nan
    return points


def measured_screen(fractions: Floats, points_mm: Floats, eyes_mm: Floats) -> Screen | None:
    """Screen size and distance from gaze points given twice, as fractions and in millimetres.

    Parameters
    ----------
    fractions : array, shape (n, 2)
        Gaze as fractions of the screen.
    points_mm, eyes_mm : array, shape (n, 3)
        The same gaze points and the eye they belong to, in one frame.

    Returns
    -------
    Screen or None
        None where fewer than 30 samples, or samples on a line, leave it open.
    """
    whole = np.isfinite(np.hstack((fractions, points_mm, eyes_mm))).all(axis=1)
    if np.count_nonzero(whole) < _FEWEST or min(np.ptp(fractions[whole], axis=0)) < 0.05:
        return None
    plane = np.column_stack((fractions[whole], np.ones(np.count_nonzero(whole))))
    fit, _, rank, _ = np.linalg.lstsq(plane, points_mm[whole], rcond=None)
    width, height = float(np.linalg.norm(fit[0])), float(np.linalg.norm(fit[1]))
    centre = np.array([0.5, 0.5, 1.0]) @ fit
    distance = float(np.median(np.linalg.norm(eyes_mm[whole] - centre, axis=1)))
    fits = rank == 3 and 200 < width < 1500 and 100 < height < 1000 and 250 < distance < 2000
    return Screen(1920, 1080, width, height, distance) if fits else None


def _measured(sheet: Table, family: _Family, points: dict[str, Floats | None]) -> Screen | None:
    """The screen by all points of both eyes that are there in millimetres too."""
    found = []
    for side, fractions in points.items():
        in_space = [
            _tuples(sheet, name.format(side), family.joint, "xyz")
            for name in (family.placed, family.origin)
        ]
        if fractions is not None and in_space[0] is not None and in_space[1] is not None:
            found.append((fractions, in_space[0], in_space[1]))
    parts = (np.concatenate(part) for part in zip(*found, strict=True))
    return measured_screen(*parts) if found else None


def _pupil_mm(sheet: Table, family: _Family) -> Floats | None:
    sizes = []
    for side in family.eyes:
        size = sheet.maybe_floats(family.pupil.format(side))
        if size is not None:
            valid = _is_valid(sheet, f"{side}_pupil")
            sizes.append(np.where((size > 0) & (valid is None or valid), size, np.nan))
    return mean_of_eyes(sizes[0], sizes[1]) if len(sizes) == 2 else None


def load(path: Path, names: Names, screen: Screen | None) -> Recording:
    """One file as a recording on the screen."""
    sheet = open_sheet(path)
    family = _MATLAB if sheet.has("LGazePos2dx", "LValidity") else _PRO
    points = {side: _eye(sheet, family, side) for side in family.eyes}
    if all(p is None for p in points.values()):
        name = family.point.format(family.eyes[0])
        sheet.need(name, f"{name}{family.joint}x")
    measured = None if screen is not None else _measured(sheet, family, points)
    space = screen or measured or family.screen
    left, right = (
        None
        if p is None
        else np.stack(space.from_px(p[:, 0] * space.width_px, p[:, 1] * space.height_px), axis=1)
        for p in points.values()
    )
    source = "given" if screen is not None else "measured" if measured is not None else "assumed"
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns(*family.clocks, unit="us"),
        space=space,
        left_deg=left,
        right_deg=right,
        pupil=_pupil_mm(sheet, family),
        metadata={
            "geometry": source,
            "pupil_unit": "mm",
            **({"assumed_geometry": True} if source == "assumed" else {}),
        },
    )


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterable[Handle]:
    """One recording per file; of the SDK for MATLAB the folder is the person also where it is the
    one that was asked for.
    """
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-sdk", "screen", "a Screen", screen)
    of_matlab = _is_matlab(Head.of(path).keys)
    names = naming_options(**options).names(path, path.parent.parent if of_matlab else root)
    return [names.handle(partial(load, path, names, screen), path)]


FORMAT = Format(
    "tobii-sdk",
    "Tobii SDK gaze (tobii_research, Titta, MATLAB) as CSV or TSV",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
    # Both eyes get the place between them.
    scrub=Scrub(
        TableRules(
            keep=(
                r"(?:left|right)gazepoint(?:ondisplayarea[xy]?|inusercoordinatesystem[xyz]?"
                r"|valid(?:ity)?)|(?:left|right)pupil(?:diameter|valid(?:ity)?)|reltimestamp"
                r"|(?:left|right)gazeoriginvalid(?:ity)?|[lr](?:gazepos[23]d[xyz]|pupildm|validity)"
            ),
            shift=r"(?:device|system)timestamp|time",
            midpoint=r"(?:left|right)gazeorigininusercoordinatesystem[xyz]?|[lr]eyepos3d[xyz]",
            quoted=True,
        )
    ),
)
