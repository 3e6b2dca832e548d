"""Tobii Pro Glasses 3: lines of JSON, the recording's own document and the participant's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.release.scrub.cells import decimal
from gazeveil.release.scrub.documents import dump_json, kept, load_json, scrubbed_document
from gazeveil.release.scrub.job import ScrubJob
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


def first_time_s(lines: Iterable[str]) -> Decimal | None:
    """The earliest time of a stream, in seconds."""
    times = (decimal(str(record.get("timestamp", ""))) for record in _records(lines))
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
    """`meta/participant`: the name as a label."""
    return dump_json(scrubbed_document(load_json(path), {"name": "label"}, job))
