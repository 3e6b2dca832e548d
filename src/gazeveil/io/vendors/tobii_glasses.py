"""Tobii Pro Glasses 2 and 3: lines of JSON.

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
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes
from gazeveil.io.parsing.loaded import read_json, timed_lines
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.parsing.table import MOST_NS, find_file
from gazeveil.io.registry import DocumentRules, Format, Scrub
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
