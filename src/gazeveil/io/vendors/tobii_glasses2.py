"""Tobii Pro Glasses 2: `livedata.json.gz` of a segment (JSON lines, gzip or not).

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
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes
from gazeveil.io.parsing.loaded import read_json, timed_lines
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, stem

_EYES = ("left", "right")


def sniff(head: Head) -> bool:
    """A livedata file with samples."""
    return head.name == "livedata.json" and '"gidx"' in head.text


def _ts_us(record: dict[str, object]) -> float:
    """The time of a line, which was looked at when it was read."""
    return float(record["ts"])  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _direction(path: Path, number: int, value: object) -> list[float]:
    if not isinstance(value, list) or len(value) != 3 or not all(_is_number(v) for v in value):
        raise FormatError(path, f"{value!r} is not a direction", "Mend or remove the line.", number)
    return [float(v) for v in value]


def load(path: Path, names: Names) -> Recording:
    """One segment as a recording on the sphere around the head."""
    lines = list(timed_lines(path, "ts", MOST_NS / 1000, "time ts"))
    order: dict[object, int] = {}
    gaze_lines = [(n, r) for n, r in lines if _is_number(r.get("gidx"))]
    for _, record in gaze_lines:
        order.setdefault(record["gidx"], len(order))
    n = len(order)
    t_us = np.full(n, np.inf)
    directions = {eye: np.full((n, 3), np.nan) for eye in _EYES}
    sizes = {eye: np.full(n, np.nan) for eye in _EYES}
    for number, record in gaze_lines:
        i = order[record["gidx"]]
        t_us[i] = min(t_us[i], _ts_us(record))
        eye = record.get("eye")
        if eye not in _EYES or record.get("s", 0) != 0:
            continue
        if "gd" in record:
            directions[eye][i] = _direction(path, number, record["gd"])
        size = record.get("pd")
        if isinstance(size, int | float) and size > 0:
            sizes[eye][i] = size
    left, right = (headset.unit(directions[eye] * [-1.0, 1.0, 1.0]) for eye in _EYES)
    messages = tuple(
        Message(round(_ts_us(r) * 1e3), f"{r.get('type', '')} {r['tag']}".strip())
        for _, r in lines
        if "tag" in r
    )
    return assemble(
        path,
        **vars(names),
        t_ns=np.round(t_us * 1e3).astype(np.int64),
        space=Sphere(),
        **vars(headset.gaze(left, right)),
        pupil=mean_of_eyes(sizes["left"], sizes["right"]),
        messages=messages,
        not_samples={"other_lines": len(lines) - len(gaze_lines)},
        metadata={"frame": "head", "pupil_unit": "mm"},
    )


def _participant(folder: Path) -> str:
    """The name in a recording's participant.json, or an empty text."""
    place = folder / "participant.json"
    info = read_json(place).get("pa_info") if place.is_file() else None
    name = info.get("Name") if isinstance(info, dict) else None
    return name.strip() if isinstance(name, str) else ""


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per segment."""
    parts = path.resolve().parts
    place = {"person": path.parent.name if path.parent != root else stem(path)}
    file_says: dict[str, str] = {}
    if len(parts) > 3 and parts[-3] == "segments":
        recording = path.resolve().parents[2]
        place = {"person": recording.name, "stimulus": recording.name, "session": parts[-2]}
        file_says["person"] = _participant(recording)
    names = naming_options(**options).names(path, root, place, **file_says)
    return [names.handle(partial(load, path, names), path)]


def _is_companion(path: Path) -> bool:
    """The file that names a recording's participant."""
    return path.name == "participant.json"


FORMAT = Format(
    "tobii-glasses2",
    "Tobii Pro Glasses 2 segment (livedata.json)",
    sniff,
    scan,
    OPTIONS,
    companion=_is_companion,
)
