"""Datasets of headsets, one row per frame: ET-DK2, VR-EyeTracking and EyeNavGS.

ET-DK2: 18 people look at 50 panoramas for 25 s each; SMI in an Oculus DK2, 60 Hz.

`S####.csv[.gz]`, one file per person with all images: the person is the file name, each `IMG_INDEX`
is one recording, and its name is taken from `img_index.csv` where that lies beside the files or one
folder above (a column of numbers and a column of names). Rows with `IS_GRAY` true show a grey
screen between images: they are no samples and are counted in `counts["gray"]` of their image, or of
the next one where their own has no other rows.

Gaze is the direction `GIW_X/Y/Z` (Unity axes, the same as ours) where these are points of a sphere
around the viewer, which means lengths that differ by less than a fifth; else the texture place
`GIW_TEXTURE_X/Y`: fractions from the lower left corner where they stay within 0 and 1, else
longitude -180 to 180 and latitude -90 to 90. Where both are there but lie more than 5 degrees apart
in the median and the texture is in degrees, the texture counts, since areas of interest are given
on the image. `metadata["gaze_from"]` says which it was. A miss is (-1, -1) in the texture or a zero
vector. The head comes from `HEAD_EUL_X/Y/Z` (pitch down, yaw right, roll left). Head positions are
not kept. `metadata["aoi_file"]` names the file with two rectangles per image where there is one.

Time is `UNITY_TIMESTAMP`, or `SMI_TIMESTAMP` where that does not advance; the unit is the one that
comes nearest to 60 Hz.

VR-EyeTracking: 208 videos, at least 31 viewers each; head and gaze per frame of the video.

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

EyeNavGS: 46 people walk through 12 Gaussian-splat scenes with a Quest Pro, 60 s each; head and
both eyes.

`<scene>/<person>_<scene>.csv[.gz]` with two rows per frame, `ViewIndex` 0 (left eye) and 1 (right
eye). A frame's time is that of its left row; the column is `timestep` in one half of the dataset,
`Timestamp` in the other, in milliseconds. A frame with one row is kept, and the other eye is lost.

Quaternions (x, y, z, w) are rotations in OpenXR axes (x right, y up, -z forward): the head looks
along head * (0, 0, -1), an eye along gaze * (0, 0, -1), both in the scene. Ours is the same with z
turned round. A gaze quaternion without rotation means that there was no gaze, not that the eye
looked straight ahead. The scenes are tilted against gravity (by up to 90 degrees in `drjohnson`),
and so are these coordinates: angles between directions and the eye in its head do not depend on
that, but y is the scene's vertical.

Positions (`Position*`, `GazePos*`) are not kept in any channel: they hold standing height and the
distance between the eyes, which name a person by themselves. The field of view (`FOV1` to `FOV4`)
is the headset's and is not kept either.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, angle_deg, combine_eyes, eye_in_head, rotate, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import (
    TICK_S,
    assemble,
    columns,
    folder_name,
    guess_unit,
    person_in_folder,
    read_json,
)
from gazeveil.io.parsing.headset import head_degrees
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import Table, open_sheet, parse_table, read_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, kept, read_text, stem

_TRUE = frozenset({"true", "1", "1.0", "yes", "t"})
_RATE_HZ = 60.0


def _sniff_et_dk2(head: Head) -> bool:
    """A CSV file with an image index, the grey flag and gaze in the world."""
    return {"img_index", "is_gray", "giw_x", "giw_y", "giw_z"} <= columns(head)


def _scan_et_dk2(path: Path, root: Path) -> Iterator[Handle]:
    """One recording per image; the file is read once to see which images it has."""
    folders = list(dict.fromkeys((path.parent, root, path.parent.parent)))
    named = (folder / "img_index.csv" for folder in folders)
    titles = _image_names(next((place for place in named if place.is_file()), None))
    files = (p for folder in folders for p in sorted(folder.glob("*")) if p.is_file())
    aoi = next((str(p) for p in files if "aoi" in p.name.lower()), "")
    groups, gray = _groups(path)
    for index in dict.fromkeys(groups[~gray].tolist()):
        names = Names(stem(path), titles.get(index, str(index)), task="free-viewing")
        yield names.handle(partial(_load_et_dk2, path, names, index, aoi), path)


def _load_et_dk2(path: Path, names: Names, index: int, aoi_file: str) -> Recording:
    """The rows of one image as a recording."""
    table = _table(path)
    groups, gray = _groups(path)
    mine = groups == index
    rows = mine & ~gray
    space = Sphere()
    vectors, source = _in_world(table, rows)
    x_deg, y_deg = space.degrees(vectors)
    head = eye = None
    if table.has("HEAD_EUL_X", "HEAD_EUL_Y", "HEAD_EUL_Z"):
        angles = (table.floats(f"HEAD_EUL_{axis}")[rows] for axis in "XYZ")
        pitch, yaw, roll = (np.mod(angle + 180.0, 360.0) - 180.0 for angle in angles)
        head = np.stack((wrap_x(180.0 + yaw), 90.0 + pitch, -roll), axis=1)
        eye = np.stack(eye_in_head(vectors, head), axis=1)
    return assemble(
        path,
        **vars(names),
        t_ns=_times_ns(table, rows),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        head_deg=head,
        eye_in_head_deg=eye,
        not_samples={"gray": int(np.count_nonzero(mine & gray))},
        metadata={"image_index": index, "gaze_from": source, "aoi_file": aoi_file},
    )


# One file holds fifty recordings.
@kept(2)
def _table(path: Path) -> Table:
    return read_table(path, ",")


def _groups(path: Path) -> tuple[Ints, Bools]:
    """(image of each row, whether it is grey)."""
    table = _table(path)
    index = table.floats("IMG_INDEX")
    if not np.isfinite(index).all():
        row = int(np.flatnonzero(~np.isfinite(index))[0])
        raise FormatError(
            path, "the row has no IMG_INDEX", "Mend or remove the line.", table.line_of(row)
        )
    groups = index.astype(np.int64)
    gray = np.array([w.lower() in _TRUE for w in table.words("IS_GRAY")], dtype=np.bool_)
    shown = np.flatnonzero(~gray)
    homeless = np.flatnonzero(gray & ~np.isin(groups, groups[shown]))
    if len(shown) and len(homeless):
        after = np.minimum(np.searchsorted(shown, homeless), len(shown) - 1)
        groups[homeless] = groups[shown[after]]
    return groups, gray


def _times_ns(table: Table, rows: Bools) -> Ints:
    ticks = table.maybe_floats("UNITY_TIMESTAMP")
    stands = ticks is None or (np.count_nonzero(rows) > 1 and not np.ptp(ticks[rows]))
    name = "SMI_TIMESTAMP" if stands else "UNITY_TIMESTAMP"
    # Nanosecond clocks do not fit a double, so the table reads the digits; the guess needs no such
    # care.
    return table.times_ns(name, unit=guess_unit(table.floats(name), _RATE_HZ, TICK_S))[rows]


def _in_world(table: Table, rows: Bools) -> tuple[Floats, str]:
    """Directions, and the columns that they are from."""
    vectors = np.stack([table.floats(f"GIW_{axis}")[rows] for axis in "XYZ"], axis=1).reshape(-1, 3)
    length = np.linalg.norm(vectors, axis=1)
    valid = np.isfinite(length) & (length > 0)
    vectors[~valid] = np.nan
    if not table.has("GIW_TEXTURE_X", "GIW_TEXTURE_Y"):
        return vectors, "GIW"
    place, unit = _texture(*(table.floats(f"GIW_TEXTURE_{axis}")[rows] for axis in "XY"))
    middle = float(np.median(length[valid])) if valid.any() else 0.0
    spread = np.percentile(np.abs(length[valid] - middle), 95) if valid.any() else np.inf
    # A column filled with one value is a placeholder, not a gaze.
    filled = np.count_nonzero(valid) > 2 and not np.ptp(vectors[valid], axis=0).any()
    both = valid & np.isfinite(place).all(axis=1)
    apart = unit == "degrees" and both.any() and np.median(angle_deg(vectors[both], place[both]))
    if np.isfinite(place).any() and (spread >= 0.2 * middle or filled or apart > 5.0):
        return place, f"GIW_TEXTURE ({unit})"
    return vectors, "GIW"


def _texture(u: Floats, v: Floats) -> tuple[Floats, str]:
    missed = ~(np.isfinite(u) & np.isfinite(v)) | ((u == -1) & (v == -1))
    seen = np.stack((u, v))[:, ~missed]
    fractions = bool(((seen >= 0) & (seen <= 1)).all())
    x, y = (360.0 * u, 180.0 * (1.0 - v)) if fractions else (180.0 + u, 90.0 - v)
    vectors = Sphere().vectors(x, y)
    vectors[missed] = np.nan
    return vectors, "fractions" if fractions else "degrees"


def _image_names(place: Path | None) -> Mapping[int, str]:
    """Names by number, from a table with a column of numbers and one of names."""
    table = None if place is None else open_sheet(place)
    if table is None:
        return {}
    columns = [table.words(n) for n in table.names]
    whole = [words for words in columns if words and all(w.isdigit() for w in words)]
    texts = [words for words in columns if words not in whole]
    pairs = zip(whole[0], texts[0], strict=True) if whole and texts else ()
    return {int(i): name for i, name in pairs if name}


ET_DK2 = Format(
    "et-dk2",
    "ET-DK2: panoramas in an Oculus DK2 (CSV, 60 Hz)",
    _sniff_et_dk2,
    _scan_et_dk2,
    dataset=Dataset(
        title="ET-DK2",
        publisher="David-John, Jain et al. (University of Florida), Zenodo 4642612",
        licence="see the Zenodo record",
        citation=(
            "David-John et al. 2021, A privacy-preserving approach to streaming eye-tracking data,"
            " IEEE TVCG 27(5)"
        ),
        layout="S####.csv[.gz], img_index.csv, an AOI file",
    ),
    companion=lambda path: path.name == "img_index.csv" or "aoi" in path.name.lower(),
    scrub=PUBLISHED,
)


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


def _sniff_vr_eyetracking(head: Head) -> bool:
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


def _scan_vr_eyetracking(
    path: Path, root: Path, frame_interval_s: object = None
) -> Iterable[Handle]:
    """One recording per file."""
    viewings = _viewings(path.parent, path.parent.stat().st_mtime_ns)
    video, repeat = viewings.get(path.name, (stem(path), 1))
    names = Names(folder_name(path), video, str(repeat), "free-viewing")
    interval = _interval_s(frame_interval_s, video, path, root)
    return [names.handle(partial(_load_vr_eyetracking, path, names, interval), path)]


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
    if known or path == _first_warned(root):
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
def _first_warned(root: Path) -> Path | None:
    """The first recording below a folder."""
    return min(root.rglob("*_ori_*.txt*"), default=None)


def _load_vr_eyetracking(path: Path, names: Names, interval_s: float) -> Recording:
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


VR_EYETRACKING = Format(
    "vr-eyetracking",
    "VR-EyeTracking: head and gaze per video frame (text)",
    _sniff_vr_eyetracking,
    _scan_vr_eyetracking,
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


_HEAD = ("QuaternionX", "QuaternionY", "QuaternionZ", "QuaternionW")
_GAZE = ("GazeQX", "GazeQY", "GazeQZ", "GazeQW")
_TIMES = ("timestep", "Timestamp")

# OpenXR looks along -z, we look along +z.
_TO_OURS = np.array([1.0, 1.0, -1.0])


def _sniff_eyenavgs(head: Head) -> bool:
    """A CSV file with a view index, a head and a gaze quaternion and a time."""
    names = columns(head)
    return {"viewindex", *(n.lower() for n in _HEAD + _GAZE)} <= names and any(
        t.lower() in names for t in _TIMES
    )


def _scan_eyenavgs(path: Path, root: Path) -> Iterable[Handle]:
    """Person and scene from `<person>_<scene>` inside folder `<scene>`."""
    names = Names(*person_in_folder(path), task="free-viewing")
    return [names.handle(partial(_load_eyenavgs, path, names), path)]


def _load_eyenavgs(path: Path, names: Names) -> Recording:
    """One file as a recording, one sample per frame.

    Raises
    ------
    FormatError
        For a view index other than 0 and 1, and for missing columns.
    """
    table = read_table(path, ",")
    eye = table.floats("ViewIndex")
    known = (eye == 0) | (eye == 1)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise FormatError(
            path,
            f"ViewIndex is {eye[row]:g}, neither 0 (left) nor 1 (right)",
            "Mend or remove the line.",
            table.line_of(row),
        )
    left = eye == 0
    # A frame begins with every left row, and with a right row that has no left row before it.
    begins = left.copy()
    begins[:1] = True
    begins[1:] |= ~left[:-1]
    frame, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    # Numbers before times: a row that was cut is better named by its missing cells.
    head, gaze = (np.stack([table.floats(n) for n in q], axis=1) for q in (_HEAD, _GAZE))
    t_ns = table.times_ns(next((t for t in _TIMES if table.has(t)), _TIMES[0]), unit="ms")[first]
    direction = rotate(gaze, np.array([0.0, 0.0, -1.0])) * _TO_OURS
    direction[(gaze[:, :3] == 0).all(axis=1)] = np.nan
    space, eyes = Sphere(), []
    for side in (left, ~left):
        vectors = np.full((len(first), 3), np.nan)
        vectors[frame[side]] = direction[side]
        eyes.append(np.stack(space.degrees(vectors), axis=1))
    x_deg, y_deg, _ = combine_eyes(eyes[0], eyes[1], space)
    # A mirror of one axis turns rotations about the other two round.
    head_deg = head_degrees(head[first] * [-1.0, -1.0, 1.0, 1.0])
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        left_deg=eyes[0],
        right_deg=eyes[1],
        head_deg=head_deg,
        eye_in_head_deg=np.stack(eye_in_head(space.vectors(x_deg, y_deg), head_deg), axis=1),
        rows=len(table),
        not_samples={"second eye": len(table) - len(first)},
    )


EYENAVGS = Format(
    "eyenavgs",
    "EyeNavGS: head and gaze quaternions in Gaussian-splat scenes (CSV)",
    _sniff_eyenavgs,
    _scan_eyenavgs,
    dataset=Dataset(
        title="EyeNavGS",
        publisher=(
            "Ding, Lee, Zhu et al. (Rutgers University, National Tsing Hua University),"
            " github.com/symmru/EyeNavGS_Rutgers_Dataset and"
            " github.com/sawalee0811/EyeNavGS_NTHU_Dataset"
        ),
        licence="Apache-2.0",
        citation=(
            "Ding et al. 2025, EyeNavGS: a 6-DoF navigation dataset and record-n-replay software"
            " for real-world 3DGS scenes in VR, arXiv:2506.02380"
        ),
        layout="<scene>/<person>_<scene>.csv[.gz]",
    ),
    scrub=PUBLISHED,
)
