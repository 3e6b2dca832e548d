"""VR-EyeTracking: 208 videos, at least 31 viewers each; head and gaze per frame of the video.

`Gaze_txt_files/<person>/<video>._<date>_ori_<n>.txt[.gz]`, as
`p001/179._2017-10-13-10-27_ori_0.txt`: the folder is the person, the number before the dot, with
zeros to three digits, the stimulus. The date is when that person saw that video, minute by minute,
and no session of the experiment: all recordings of a person are session 1, a second viewing of the
same video session 2.

Every line is `frame,<index from 1>,forward,<head x>,<head y>,eye,<gaze x>,<gaze y>`; places are
fractions of the panorama from its lower left corner, so x_deg = 360 fx and y_deg = 180 (1 - fy).
Files have no times: `frame_interval_s` gives the seconds per frame, as one number, as a mapping of
video to seconds, or as the path of a JSON file with such a mapping; else a file called
`frame_interval_s.json` or `vr_eyetracking_frame_interval_s.json` in the folder or beside it is
taken; else 1/30 with one warning for the folder.
Frame numbers that are skipped are gaps in time. A pair of exact zeros is a place that was not
measured. The head's roll is not published and stands as 0.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, eye_in_head, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, folder_name, read_json
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import parse_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, read_text, stem

_LINE = re.compile(r"^\s*frame\s*,\s*\d+\s*,\s*forward\s*,[^,]+,[^,]+,\s*eye\s*,[^,]+,[^,]+$")
_NAME = re.compile(r"^(?P<video>[^.]+)\._?(?P<date>.*?)(?:_ori_(?P<n>\d+))?$")
_COLUMNS = (
    "frame_word",
    "frame",
    "forward_word",
    "head_x",
    "head_y",
    "eye_word",
    "gaze_x",
    "gaze_y",
)
_DEFAULT_S = 1 / 30
_INTERVALS = ("frame_interval_s.json", "vr_eyetracking_frame_interval_s.json")


def sniff(head: Head) -> bool:
    """A text whose first line is one frame."""
    return bool(_LINE.match(head.first))


@lru_cache(maxsize=64)
def _viewings(folder: Path, _changed_ns: int) -> Mapping[str, tuple[str, int]]:
    """Video of each file of a person's folder, and its number among those of the video."""
    matches = ((p.name, _NAME.match(stem(p))) for p in folder.iterdir())
    found = [(m["date"], int(m["n"] or 0), _padded(m["video"]), name) for name, m in matches if m]
    seen = Counter[str]()
    viewings = {}
    for _, _, video, name in sorted(found):
        seen[video] += 1
        viewings[name] = video, seen[video]
    return viewings


def _padded(video: str) -> str:
    return video.zfill(3) if video.isdigit() else video


def scan(path: Path, root: Path, frame_interval_s: object = None) -> Iterable[Handle]:
    """One recording per file."""
    viewings = _viewings(path.parent, path.parent.stat().st_mtime_ns)
    video, repeat = viewings.get(path.name, (stem(path), 1))
    names = Names(folder_name(path), video, str(repeat), "free-viewing")
    interval = _interval_s(frame_interval_s, video, path, root)
    return [names.handle(partial(load, path, names, interval), path)]


def _interval_s(option: object, video: str, path: Path, root: Path) -> float:
    if option is None:
        option = _beside(root)
    if isinstance(option, str | os.PathLike):
        option = read_json(Path(option))
    known = isinstance(option, Mapping)
    if isinstance(option, Mapping):
        by_video = {_padded(str(k)): v for k, v in option.items()}
        if video in by_video:
            return checks.positive("Format vr-eyetracking", "frame_interval_s", by_video[video])
        option = None
    if option is not None:
        return checks.positive("Format vr-eyetracking", "frame_interval_s", option)
    # Where nothing is known the first file speaks for all: 208 videos need no 208 notes.
    if known or path == _first(root):
        where = f"video '{video}'" if known else "every video"
        warnings.warn(
            f"VR-EyeTracking files carry frame numbers only; 1/30 s per frame is assumed for"
            f" {where}. Give frame_interval_s=, or put frame_interval_s.json beside the files.",
            UserWarning,
            stacklevel=3,
        )
    return _DEFAULT_S


def _beside(root: Path) -> Path | None:
    """A file of intervals in the folder that is read, or in the one above it."""
    places = (folder / name for folder in (root, root.parent) for name in _INTERVALS)
    return next((place for place in places if place.is_file()), None)


@lru_cache(maxsize=4)
def _first(root: Path) -> Path | None:
    """The first recording below a folder."""
    return min(root.rglob("*_ori_*.txt*"), default=None)


def load(path: Path, names: Names, interval_s: float) -> Recording:
    """One file as a recording, one sample per line.

    Raises
    ------
    FormatError
        For a line of another kind.
    """
    table = parse_table(path, read_text(path), ",", header=_COLUMNS)
    for column, word in (("frame_word", "frame"), ("forward_word", "forward"), ("eye_word", "eye")):
        wrong = [i for i, w in enumerate(table.words(column)) if w != word]
        if wrong:
            raise FormatError(
                path,
                f"the line does not read 'frame,<n>,forward,<x>,<y>,eye,<x>,<y>' ('{word}' is"
                " missing)",
                "The file was cut or edited; copy it again or remove the line.",
                table.line_of(wrong[0]),
            )
    frame = table.floats("frame")
    if not np.isfinite(frame).all():
        row = int(np.flatnonzero(~np.isfinite(frame))[0])
        raise FormatError(
            path, "the line has no frame number", "Mend or remove the line.", table.line_of(row)
        )
    space = Sphere()
    head_x, head_y = _degrees(table.floats("head_x"), table.floats("head_y"))
    x_deg, y_deg = _degrees(table.floats("gaze_x"), table.floats("gaze_y"))
    head = np.stack((wrap_x(head_x), head_y, np.where(np.isfinite(head_x), 0.0, np.nan)), axis=1)
    return assemble(
        path,
        **vars(names),
        t_ns=np.round((frame - 1) * (interval_s * 1e9)).astype(np.int64),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        rate_hz=1 / interval_s,
        head_deg=head,
        eye_in_head_deg=np.stack(eye_in_head(space.vectors(x_deg, y_deg), head), axis=1),
        metadata={"frame_interval_s": interval_s, "head_roll": "not published"},
    )


def _degrees(fx: Floats, fy: Floats) -> tuple[Floats, Floats]:
    lost = (fx == 0) & (fy == 0)
    return np.where(lost, np.nan, 360.0 * fx), np.where(lost, np.nan, 180.0 * (1.0 - fy))


FORMAT = Format(
    "vr-eyetracking",
    "VR-EyeTracking: head and gaze per video frame (text)",
    sniff,
    scan,
    frozenset({"frame_interval_s"}),
    dataset=Dataset(
        title="VR-EyeTracking",
        publisher=(
            "Xu, Dong, Wu et al. (ShanghaiTech University), github.com/xuyanyu-shh/VR-EyeTracking"
        ),
        licence="for research; the authors ask for citation",
        citation="Xu et al. 2018, Gaze prediction in dynamic 360-degree immersive videos, CVPR",
        layout="Gaze_txt_files/<person>/<video>._<date>_ori_<n>.txt[.gz]",
    ),
    companion=lambda path: path.name in _INTERVALS,
    scrub=PUBLISHED,
)
