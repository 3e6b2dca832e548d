"""Tobii Pro Glasses 3: the folder of a recording with `gazedata` (JSON lines, gzip or not), and
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
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mean_of_eyes
from gazeveil.io.parsing.loaded import timed_lines
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS, find_file
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_text

_EYES = (("eyeleft", "left"), ("eyeright", "right"))
_LOST = (float("nan"),) * 3
# Seconds that still fit 64 bits of nanoseconds.
_MOST_S = MOST_NS / 1e9


def sniff(head: Head) -> bool:
    """A gazedata file with gaze lines."""
    return head.name in ("gazedata", "gazedata.json") and '"type":"gaze"' in head.text[
        :4096
    ].replace(" ", "")


def sniff_folder(folder: Path) -> bool:
    """A folder that holds such a file."""
    place = find_file(folder, "gazedata", "gazedata.json")
    return place is not None and sniff(Head.of(place))


def _lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    return timed_lines(path, "timestamp", _MOST_S, "timestamp")


def _triple(path: Path, number: int, value: object) -> tuple[float, ...]:
    if value is None:
        return _LOST
    if (
        not isinstance(value, list)
        or len(value) != 3
        or not all(isinstance(v, int | float) for v in value)
    ):
        raise FormatError(path, f"{value!r} is not a direction", "Mend or remove the line.", number)
    return tuple(float(v) for v in value)


def load(path: Path, names: Names) -> Recording:
    """One recording; `path` is its gazedata file."""
    lines = list(_lines(path))
    gaze = [(number, line) for number, line in lines if line.get("type", "gaze") == "gaze"]
    n = len(gaze)
    directions = {side: np.full((n, 3), np.nan) for _, side in _EYES}
    sizes = {side: np.full(n, np.nan) for _, side in _EYES}
    for i, (number, line) in enumerate(gaze):
        data = line.get("data")
        for eye_key, side in _EYES:
            eye = data.get(eye_key) if isinstance(data, dict) else None
            if isinstance(eye, dict):
                directions[side][i] = _triple(path, number, eye.get("gazedirection"))
                size = eye.get("pupildiameter")
                sizes[side][i] = size if isinstance(size, int | float) and size > 0 else np.nan
    left, right = (headset.unit(directions[side] * [-1.0, 1.0, 1.0]) for side in ("left", "right"))
    metadata: dict[str, object] = {"frame": "head", "pupil_unit": "mm"}
    if find_file(path.parent, "imudata", "imudata.json") is not None:
        metadata["not_read"] = "imudata"
    return assemble(
        path,
        **vars(names),
        t_ns=np.array([_ns(line) for _, line in gaze], dtype=np.int64),
        space=Sphere(),
        **vars(headset.gaze(left, right)),
        pupil=mean_of_eyes(sizes["left"], sizes["right"]),
        messages=_messages(path.parent),
        not_samples={"other_lines": len(lines) - n},
        metadata=metadata,
    )


def _ns(line: dict[str, object]) -> int:
    return round(float(line["timestamp"]) * 1e9)  # type: ignore[arg-type]


def _messages(folder: Path) -> tuple[Message, ...]:
    place = find_file(folder, "eventdata", "eventdata.json")
    if place is None:
        return ()
    return tuple(
        Message(_ns(line), f"{line.get('type', 'event')} {json.dumps(line.get('data', {}))}")
        for _, line in _lines(place)
    )


def _name_in(path: Path) -> str | None:
    """The `name` of a JSON file of the recording unit, None where it says none."""
    if not path.is_file():
        return None
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise FormatError(
            path,
            f"it is not JSON ({error.msg})",
            "Copy the recording again, or remove this file.",
            error.lineno,
        ) from error
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) and name.strip() else None


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per folder: its name is the stimulus, the folder above it the person."""
    place = path if path.is_file() else find_file(path, "gazedata", "gazedata.json")
    if place is None:
        raise FormatError(
            path,
            "there is no gazedata file in this folder",
            "Point to the folder of one Glasses 3 recording.",
        )
    folder = place.parent
    above = folder.parent.name if folder != root and folder.parent != root else ""
    file_says = {
        "person": _name_in(folder / "meta" / "participant"),
        "stimulus": _name_in(folder / "recording.g3"),
    }
    names = naming_options(**options).names(
        folder, root, {"person": above or folder.name, "stimulus": folder.name}, **file_says
    )
    return [names.handle(partial(load, place, names), place)]


FORMAT = Format(
    "tobii-glasses3", "Tobii Pro Glasses 3 recording folder", sniff, scan, OPTIONS, sniff_folder
)
