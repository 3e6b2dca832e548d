"""Tobii Pro Glasses 2: `livedata.json` line by line, and the participant's document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.release.scrub.cells import decimal
from gazeveil.release.scrub.documents import dump_json, kept, load_json, scrubbed_document
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines

#: Numbers, and lists of them. Places of the pupils hold the distance between the eyes.
_NUMBERS = ("s", "l", "gd", "pd", "gp", "gp3", "ac", "gy")
_EYES = ("left", "right")


def scrubbed_livedata(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The lines of a segment: gaze, pupils, motion and events, from time 0 and sample 0 on."""
    times = [t for record in _records(lines) if (t := _time(record)) is not None]
    begin = min(times, default=Decimal(0))
    order: dict[object, int] = {}
    for record in _records(lines):
        time = _time(record)
        shown: dict[str, object] = {}
        if "gidx" in record and isinstance(record["gidx"], int):
            shown["gidx"] = order.setdefault(record["gidx"], len(order))
        for name in _NUMBERS:
            if name in record and _is_numeric(record[name]):
                shown[name] = kept(record[name], job)
        if record.get("eye") in _EYES:
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


def scrubbed_participant(path: Path, job: ScrubJob) -> list[str]:
    """`participant.json`: the name as a label."""
    return dump_json(scrubbed_document(load_json(path), {"pa_info": {"Name": "label"}}, job))


def _time(record: dict[str, object]) -> Decimal | None:
    return decimal(str(record.get("ts", "")))


def _is_numeric(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= 3 and all(_is_numeric(v) and not isinstance(v, list) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _records(lines: Lines) -> Iterator[dict[str, object]]:
    for line in lines():
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise FormatError("livedata", "a line is not JSON", "Copy it again.") from error
        if isinstance(record, dict):
            yield record
