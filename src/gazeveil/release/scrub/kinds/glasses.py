"""Tobii Pro Glasses 2 and 3: lines of JSON, the recording's own document and the participant's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.release.scrub.job import (
    ScrubJob,
    decimal,
    dump_json,
    kept,
    load_json,
    scrubbed_document,
)
from gazeveil.release.scrub.tables import Lines

#: Files of JSON lines in a recording's folder.
STREAMS = ("gazedata", "eventdata", "imudata")

_EYES = ("eyeleft", "eyeright")
_TYPES = frozenset({"gaze", "imu", "syncport", "event"})
_NUMBERS = frozenset(
    {
        "gaze2d",
        "gaze3d",
        "gazedirection",
        "pupildiameter",
        "accelerometer",
        "gyroscope",
        "magnetometer",
        "value",
    }
)
_RECORDING = {"name": "label", "version": "keep", "duration": "keep"}


def first_time(lines: Iterable[str], name: str = "timestamp") -> Decimal | None:
    """The earliest time of a stream, in its own unit: seconds or, of Glasses 2, microseconds."""
    times = (decimal(str(record.get(name, ""))) for record in _records(lines))
    return min((t for t in times if t is not None), default=None)


def scrubbed_stream(lines: Lines, job: ScrubJob, offset_s: Decimal) -> Iterator[str]:
    """The lines of a stream: numbers, directions and the types Tobii has; tags become labels."""
    for record in _records(lines()):
        kind = str(record.get("type", "gaze"))
        time = decimal(str(record.get("timestamp", "")))
        if kind not in _TYPES or time is None:
            job.done["lines left out"] += 1
            continue
        data = record.get("data")
        shown = _data(data, job) if isinstance(data, dict) else {}
        result = {"type": kind, "timestamp": float(time - offset_s), "data": shown}
        yield json.dumps(result, separators=(",", ":"))


def _data(data: dict[str, object], job: ScrubJob) -> dict[str, object]:
    result: dict[str, object] = {}
    middle = _between([data.get(eye) for eye in _EYES])
    for name, value in data.items():
        if name in _EYES and isinstance(value, dict):
            eye = _data({k: v for k, v in value.items() if k != "gazeorigin"}, job)
            result[name] = {**({"gazeorigin": middle} if eye and middle else {}), **eye}
        elif name in _NUMBERS:
            result[name] = kept(value, job) if not isinstance(value, str) else None
        elif name == "direction" and value in ("in", "out"):
            result[name] = value
        elif name == "tag":
            result[name] = job.label(str(value))
        else:
            job.done["keys left out"] += 1
    return result


def _between(eyes: list[object]) -> list[float] | None:
    """The place between both eyes; None where one was not seen."""
    origins = [eye.get("gazeorigin") if isinstance(eye, dict) else None for eye in eyes]
    if not all(isinstance(o, list) and len(o) == 3 for o in origins):
        return None
    both: Any = origins
    return [round((float(a) + float(b)) / 2, 6) for a, b in zip(*both, strict=True)]


def _records(lines: Iterable[str]) -> Iterator[dict[str, object]]:
    for line in lines:
        if line.strip():
            try:
                # Text keeps every digit of a time.
                record = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise FormatError("gazedata", "a line is not JSON", "Copy it again.") from error
            if isinstance(record, dict):
                yield record


def scrubbed_recording(path: Path, job: ScrubJob) -> list[str]:
    """`recording.g3`: its name as a label, its version and length."""
    return dump_json(scrubbed_document(load_json(path), _RECORDING, job))


def scrubbed_participant(path: Path, job: ScrubJob) -> list[str]:
    """`meta/participant`, or `participant.json` of Glasses 2: the name as a label."""
    rules = {"name": "label", "pa_info": {"Name": "label"}}
    return dump_json(scrubbed_document(load_json(path), rules, job))


#: Numbers of Glasses 2, and lists of them. Places of the pupils hold the distance between the eyes.
_LIVE = ("s", "l", "gd", "pd", "gp", "gp3", "ac", "gy")


def scrubbed_livedata(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The lines of a segment: gaze, pupils, motion and events, from time 0 and sample 0 on."""
    begin = first_time(lines(), "ts") or Decimal(0)
    order: dict[object, int] = {}
    for record in _records(lines()):
        time = decimal(str(record.get("ts", "")))
        shown: dict[str, object] = {}
        if "gidx" in record and isinstance(record["gidx"], int):
            shown["gidx"] = order.setdefault(record["gidx"], len(order))
        for name in _LIVE:
            if name in record and _is_numeric(record[name]):
                shown[name] = kept(record[name], job)
        if record.get("eye") in ("left", "right"):
            shown["eye"] = record["eye"]
        for name in ("type", "tag"):
            if name in record and "tag" in record:
                shown[name] = job.label(str(record[name]))
        if time is None or not shown.keys() - {"s", "l"}:
            job.done["lines left out"] += 1
            continue
        elapsed = time - begin
        whole = int(elapsed) if elapsed == elapsed.to_integral_value() else float(elapsed)
        yield json.dumps({"ts": whole, **shown}, separators=(",", ":"))


def _is_numeric(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= 3 and all(_is_numeric(v) and not isinstance(v, list) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
