"""Public datasets in JSON: WebQAmGaze, the Interiors scanpaths, and lengths of frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.release.scrub.documents import kept, load_json
from gazeveil.release.scrub.job import ScrubJob

_CONDITIONS = ("nr", "is")
_SCREEN = ("screen_x", "screen_y")
_ATTRIBUTES = {
    "worker_age": "age",
    "worker_lang": "language",
    "worker_fluency": "fluency",
    "vision": "vision",
}
_SCANPATH = ("target_bbox", "image_width", "image_height", "X", "Y", "T")


def scrubbed_worker(path: Path, job: ScrubJob) -> list[str]:
    """One person's file of WebQAmGaze: screen, samples from time 0, labels of texts."""
    content = _object(path, load_json(path))
    result: dict[str, object] = {
        "worker_id": job.label(str(content.get("worker_id") or "")),
        "set_name": job.label(str(content.get("set_name") or "")),
    }
    for name in _SCREEN:
        if name in content:
            result[name] = _size(path, content[name])
    for name, ours in _ATTRIBUTES.items():
        if name in content and {name, ours} & job.keep_fields:
            result[name] = kept(content[name], job)
    trials = content.get("trials")
    titles = trials if isinstance(trials, Mapping) else {}
    conditions = {
        job.label(t): {"condition": c}
        for t, entry in titles.items()
        if (c := entry.get("condition") if isinstance(entry, Mapping) else None) in _CONDITIONS
    }
    samples = content.get("samples_x_y_ms")
    if not isinstance(samples, Mapping):
        raise FormatError(path, "there are no samples in it", "Check the file.")
    result["samples_x_y_ms"] = {
        _text(text, list(titles), job): _rows(path, rows) for text, rows in samples.items()
    }
    result["trials"] = conditions
    job.done["keys left out"] += len(content.keys() - result.keys())
    return [json.dumps(result, separators=(",", ":"))]


def _text(text: str, titles: list[str], job: ScrubJob) -> str:
    """The label of a text; questions are named after their text, and stay so."""
    title = max((t for t in titles if t in text), key=len, default=None)
    if title is None or title == text:
        return job.label(text)
    return f"{job.label(title)}_{job.label(text)}"


def _rows(path: Path, rows: object) -> list[list[float | None]]:
    """Rows of x, y and ms; the first time is 0."""
    if not isinstance(rows, list) or not all(
        isinstance(r, list) and len(r) == 3 and all(_is_number(v) for v in r) for r in rows
    ):
        raise FormatError(path, "samples are not rows of x, y and ms", "Copy the file again.")
    begin = min((r[2] for r in rows if r[2] is not None), default=0)
    return [[r[0], r[1], None if r[2] is None else r[2] - begin] for r in rows]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _size(path: Path, value: object) -> float:
    try:
        size = float(str(value))
    except ValueError as error:
        raise FormatError(path, "the screen has no size in pixels", "Mend the file.") from error
    if not 0 < size < 1e5:
        raise FormatError(path, "the screen has no size in pixels", "Mend the file.")
    return size


def scrubbed_search(path: Path, job: ScrubJob) -> list[str]:
    """Scanpaths of the Interiors: places, durations and boxes, labels for images and people."""
    result: dict[str, object] = {}
    for image, value in _object(path, load_json(path)).items():
        entry = _object(path, value)
        shown = {n: _numbers(path, entry[n]) for n in _SCANPATH if n in entry}
        about: dict[str, object] = {
            "subject": job.label(str(entry.get("subject") or "")),
            "target_found": bool(entry.get("target_found", False)),
            "target_object": job.label(str(entry.get("target_object") or "")),
        }
        job.done["keys left out"] += len(entry.keys() - shown.keys() - about.keys())
        result[job.label(image)] = {**shown, **about}
    return [json.dumps(result, separators=(",", ":"))]


def _numbers(path: Path, value: object) -> object:
    values: list[Any] = value if isinstance(value, list) else [value]
    if not all(_is_number(v) and abs(v or 0) < 1e9 for v in values):
        raise FormatError(path, "a scanpath holds something that is no number", "Mend the file.")
    return value


def scrubbed_intervals(path: Path, job: ScrubJob) -> list[str]:
    """Seconds per frame of each video, by label."""
    content = _object(path, load_json(path))
    if not all(isinstance(v, int | float) and 0 < v < 10 for v in content.values()):
        raise FormatError(path, "it does not say seconds per frame", "Mend the file.")
    return [json.dumps({job.label(video_name(k)): v for k, v in content.items()}, indent=1)]


def video_name(text: str) -> str:
    """A video's name as the reader has it: numbers have three digits."""
    return text.zfill(3) if text.isdigit() else text


def _object(path: Path, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FormatError(path, "it is no JSON object", "Copy it again.")
    return value
