"""From a file's columns to a Recording: the rules every reader shares.

* No row is dropped. A row whose gaze is missing or impossible becomes an invalid sample.
* Samples whose time repeats or goes back are kept and marked invalid, as few as possible;
  `metadata["time_faults"]` counts them.
* Degrees that cannot be degrees are marked invalid one by one and counted in
  `metadata["impossible"]`; if they are more than one in twenty, in the line of sight or in one eye,
  the unit is wrong, and that is an error rather than a guess.
* A time that does not fit 64 bits of nanoseconds is an error.

Channels beside gaze: words of labels, one pupil size a sample from two eyes, and tables of
intervals or channels that have a clock of their own.

Scanpaths: recordings that hold fixations with a place and a time, but no samples.

Files that say in how many pixels their gaze is: a screen of others would place it wrongly.

What readers of fixed layouts share: names in paths, columns of a header line, and units told
from the step between samples.

Files that are loaded whole and kept until they change, because files with many recordings are
asked for once per recording: JSON, arrays of NumPy, variables of MATLAB.
"""

from __future__ import annotations

import io
import json
import os
import tokenize
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, Sphere, combine_eyes, wrap_x
from gazeveil.gaze.recording import FILE, GUESSED, Fact, Message, Recording, are_plain, increasing
from gazeveil.io.parsing.table import MOST_NS
from gazeveil.io.source import Head, kept, read_bytes, read_text, stem

_WRONG_UNIT_SHARE = 0.05


def assemble(
    path: Path,
    *,
    person: str,
    stimulus: str,
    t_ns: Ints,
    space: Space,
    x_deg: ArrayLike | None = None,
    y_deg: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    left_deg: Floats | None = None,
    right_deg: Floats | None = None,
    session: str = "1",
    task: str = "",
    rate_hz: float | None = None,
    head_deg: ArrayLike | None = None,
    eye_in_head_deg: ArrayLike | None = None,
    pupil: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    labels: Mapping[str, ArrayLike] | None = None,
    events: Events | None = None,
    messages: tuple[Message, ...] = (),
    rows: int | None = None,
    not_samples: Mapping[str, int] | None = None,
    metadata: Mapping[str, object] | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> Recording:
    """Make the recording of one file, or of one trial in it.

    Parameters
    ----------
    path : Path
        The file, for messages and `metadata["source"]`.
    x_deg, y_deg : array, optional
        Line of sight; made from the eyes where not given.
    valid : array of bool, optional
        What the tracker says is valid; missing and impossible values are invalid whatever it says.
    rows : int, optional
        Rows read; default the number of samples.
    not_samples : mapping of str to int, optional
        Rows that are not samples, by reason; the sum of these and the samples is `rows`.
    facts : mapping of str to Fact, optional
        What is known and where it comes from; the screen is added from `metadata`.
    """
    left_deg, right_deg = _own(left_deg), _own(right_deg)
    # A float beyond 64 bits is cut to their last value when it is made an integer.
    if len(t_ns) and max(abs(int(t_ns.min())), abs(int(t_ns.max()))) > MOST_NS:
        raise FormatError(
            path, "a time is too large to be one", "Check the unit of the time column."
        )
    flags = (
        np.ones(len(t_ns), dtype=np.bool_) if valid is None else np.asarray(valid, dtype=np.bool_)
    )
    # Samples whose line of sight is made without an eye that was impossible, or is impossible
    # itself.
    doubtful = np.zeros(len(t_ns), dtype=np.bool_)
    for eye in (left_deg, right_deg):
        if eye is not None:
            eye[:, 0], eye[:, 1] = _closed(space, eye[:, 0], eye[:, 1])
            wrong = _impossible(path, space, eye[:, 0], eye[:, 1], flags)
            doubtful |= wrong
            eye[~are_plain(space, eye[:, 0], eye[:, 1])] = np.nan
    if x_deg is None or y_deg is None:
        x, y, finite = combine_eyes(left_deg, right_deg, space)
    else:
        x, y = _closed(space, np.array(x_deg, dtype=np.float64), np.array(y_deg, dtype=np.float64))
        finite = np.isfinite(x) & np.isfinite(y)
    doubtful |= _impossible(path, space, x, y, flags)
    impossible = int(np.count_nonzero(doubtful))
    mask = finite & flags & are_plain(space, x, y)
    kept = increasing(t_ns, mask)
    faults = int(np.count_nonzero(mask & ~kept))
    extra: dict[str, object] = {"source": str(path)}
    found = _facts(space, facts, metadata)
    if found:
        extra["facts"] = found
    if faults:
        extra["time_faults"] = faults
    if impossible:
        extra["impossible"] = impossible
    others = {k: v for k, v in (not_samples or {}).items() if v}
    return Recording(
        person=person,
        stimulus=stimulus,
        t_ns=t_ns,
        x_deg=x,
        y_deg=y,
        valid=kept,
        space=space,
        rate_hz=rate_hz,  # type: ignore[arg-type]
        session=session,
        task=task,
        left_deg=left_deg,
        right_deg=right_deg,
        head_deg=head_deg,  # type: ignore[arg-type]
        eye_in_head_deg=eye_in_head_deg,  # type: ignore[arg-type]
        pupil=pupil,  # type: ignore[arg-type]
        confidence=confidence,  # type: ignore[arg-type]
        labels=labels or {},  # type: ignore[arg-type]
        events=events,
        messages=messages,
        counts={"rows": len(t_ns) + sum(others.values()) if rows is None else rows, **others},
        metadata={**extra, **(metadata or {})},
    )


def _facts(
    space: Space, facts: Mapping[str, Fact] | None, metadata: Mapping[str, object] | None
) -> dict[str, Fact]:
    """The facts with that of the screen, which a reader assumes where its file says none."""
    if isinstance(space, Sphere):
        return dict(facts or {})
    assumed = bool((metadata or {}).get("assumed_geometry"))
    basis = str((metadata or {}).get("geometry", "a usual screen" if assumed else ""))
    return {
        "screen": Fact(screen_in_words(space), GUESSED if assumed else FILE, basis),
        **(facts or {}),
    }


def screen_in_words(screen: Screen) -> str:
    """Pixels, millimetres and distance of a screen."""
    return (
        f"{screen.width_px:g} x {screen.height_px:g} px, {screen.width_mm:g} x"
        f" {screen.height_mm:g} mm, {screen.distance_mm:g} mm away"
    )


def _closed(space: Space, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Longitudes up to one turn off brought into [0, 360), and the lower pole, which lies on the
    open end of [0, 180), into it.
    """
    if not isinstance(space, Sphere):
        return x, y
    return np.where((x >= -360) & (x <= 720), wrap_x(x), x), np.where(
        y == 180.0, np.nextafter(180.0, 0.0), y
    )


def _impossible(path: Path, space: Space, x: Floats, y: Floats, flags: Bools) -> Bools:
    """Where there is a value that cannot be degrees; more than one in twenty of
    them is an error.
    """
    present = flags & np.isfinite(x) & np.isfinite(y)
    impossible = present & ~are_plain(space, x, y)
    if np.count_nonzero(impossible) > _WRONG_UNIT_SHARE * np.count_nonzero(present):
        x_low, x_high = float(np.min(x[present])), float(np.max(x[present]))
        y_low, y_high = float(np.min(y[present])), float(np.max(y[present]))
        raise FormatError(
            path,
            f"gaze runs from {x_low:g} to {x_high:g} (x) and from {y_low:g} to {y_high:g} (y),"
            " which cannot be degrees",
            "Pixels in a table are read with format='csv', unit='px' and screen=Screen(...); a"
            " number that means lost is named by missing=.",
        )
    return impossible


def _own(eye: Floats | None) -> Floats | None:
    return None if eye is None else np.array(eye, dtype=np.float64)


#: Words of the label sets in use, in our vocabulary.
WORDS = {
    "unassigned": "undefined",
    "unknown": "undefined",
    "fix": "fixation",
    "sp": "pursuit",
    "noise_cluster": "noise",
    "vor": "vor",
    "okn": "okn",
    "okn+vor": "okn+vor",
    "head_pursuit": "head_pursuit",
}


def mean_of_eyes(left: Floats, right: Floats) -> Floats:
    """The mean of two sizes, or the one that is there."""
    return np.where(
        np.isfinite(left) & np.isfinite(right),
        (left + right) / 2,
        np.where(np.isfinite(left), left, right),
    )


def pupil_of(sizes: Sequence[Floats]) -> Floats | None:
    """The pupil of a recording from the sizes of none, one or both of its eyes."""
    if len(sizes) == 2:
        return mean_of_eyes(*sizes)
    return sizes[0] if sizes else None


def mark(words: Texts, t_ns: Ints, onset_ns: ArrayLike, offset_ns: ArrayLike, word: str) -> None:
    """Write `word` over the samples inside each interval, ends included; times
    need not be sorted.
    """
    order = np.argsort(t_ns, kind="stable")
    times = t_ns[order]
    low = np.searchsorted(times, np.asarray(onset_ns, dtype=np.int64), side="left")
    high = np.searchsorted(times, np.asarray(offset_ns, dtype=np.int64), side="right")
    for a, b in zip(low, high, strict=True):
        words[order[a:b]] = word


def nearest(t_ns: Ints, other_ns: Ints, values: Floats, farthest_ns: int) -> Floats:
    """The other channel's value nearest in time to each sample, NaN where none is near enough."""
    if not len(other_ns) or not len(t_ns):
        return np.full(len(t_ns), np.nan)
    order = np.argsort(other_ns, kind="stable")
    times = other_ns[order]
    after = np.clip(np.searchsorted(times, t_ns), 0, len(times) - 1)
    before = np.maximum(after - 1, 0)
    best = np.where(np.abs(times[before] - t_ns) <= np.abs(times[after] - t_ns), before, after)
    return np.where(np.abs(times[best] - t_ns) <= farthest_ns, values[order[best]], np.nan)


def scanpath(
    path: Path,
    *,
    person: str,
    stimulus: str,
    space: Space,
    x_deg: ArrayLike,
    y_deg: ArrayLike,
    onset_ns: Ints,
    offset_ns: Ints,
    source: str,
    session: str = "1",
    task: str = "",
    not_events: Mapping[str, int] | None = None,
    metadata: Mapping[str, object] | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> Recording:
    """A recording of fixations without samples.

    Parameters
    ----------
    path : Path
        The file, for `metadata["source"]`.
    x_deg, y_deg : array of float64, shape (n,)
        Places in degrees of `space`; NaN where the file has none. A place off the screen stays as
        it is.
    onset_ns, offset_ns : array of int64, shape (n,)
        Times.
    source : str
        Who says that these are fixations.
    not_events : mapping of str to int, optional
        Rows that are not fixations, by reason.
    facts : mapping of str to Fact, optional
        What is known and where it comes from.

    Returns
    -------
    Recording
        `counts` has `rows`, the `fixations` among them, and the rest by reason.
    """
    n = len(onset_ns)
    none = np.full(n, -1, dtype=np.int64)
    others = {k: v for k, v in (not_events or {}).items() if v}
    events = Events(
        kind=np.full(n, "fixation"),
        onset=none,
        offset=none.copy(),
        onset_ns=onset_ns,
        offset_ns=offset_ns,
        x_deg=np.array(x_deg, dtype=np.float64),
        y_deg=np.array(y_deg, dtype=np.float64),
        source=source,
    )
    empty = np.empty(0)
    return Recording(
        person=person,
        stimulus=stimulus,
        session=session,
        task=task,
        space=space,
        t_ns=np.empty(0, dtype=np.int64),
        x_deg=empty,
        y_deg=empty.copy(),
        events=events,
        counts={"rows": n + sum(others.values()), "fixations": n, **others},
        metadata={"source": str(path), **(metadata or {}), "facts": facts or {}},
    )


def cumulated_ns(durations_ms: ArrayLike) -> tuple[Ints, Ints]:
    """(onset, offset) in nanoseconds of fixations of which only the durations in ms are known: each
    begins where the last ended.

    A missing or negative duration counts as 0.
    """
    durations = np.nan_to_num(
        np.array(durations_ms, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0
    )
    ends = np.cumsum(np.round(np.maximum(durations, 0.0) * 1e6)).astype(np.int64)
    return np.concatenate((np.zeros(min(1, len(ends)), dtype=np.int64), ends[:-1])), ends


# Files count the last pixel (1919) or the size (1920).
_SLACK_PX = 1.0


def has_pixels(screen: Screen, size_px: tuple[float, float]) -> bool:
    """Whether a screen has this width and height in pixels, give or take one."""
    width_px, height_px = size_px
    return (
        abs(screen.width_px - width_px) <= _SLACK_PX
        and abs(screen.height_px - height_px) <= _SLACK_PX
    )


def refuse_other_pixels(
    path: Path, screen: Screen, stated: Sequence[tuple[float, float]], where: str
) -> None:
    """Refuse a screen whose pixels are none of those that a file states.

    Parameters
    ----------
    path : Path
        The file.
    screen : Screen
        What the user says.
    stated : sequence of (width, height)
        Pixels; empty where the file says nothing.
    where : str
        What of the file states them, for the message.

    Raises
    ------
    FormatError
        Which names both.
    """
    if not stated or any(has_pixels(screen, size_px) for size_px in stated):
        return
    width_px, height_px = stated[0]
    raise FormatError(
        path,
        f"its {where} says {width_px:g} x {height_px:g} px, and screen= says"
        f" {screen.width_px:g} x {screen.height_px:g} px",
        f"Say the pixels of the file, with the millimetres they took up: Screen({width_px:g},"
        f" {height_px:g}, width_mm, height_mm, distance_mm).",
    )


#: Seconds in one tick of the clocks that datasets write.
TICK_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def folder_name(path: Path) -> str:
    """Name of the folder a file is in, also for paths like `file.csv` and `../file.csv`."""
    return Path(os.path.abspath(path)).parent.name


def person_in_folder(path: Path) -> tuple[str, str]:
    """(person, stimulus) of `<stimulus>/<person>_<stimulus>.<suffix>`.

    A file name that does not end in its folder's name is split at the first underscore; without one
    the whole name is the person and the folder the stimulus.
    """
    name, folder = stem(path), folder_name(path)
    if folder and name.endswith(f"_{folder}") and len(name) > len(folder) + 1:
        return name[: -len(folder) - 1], folder
    person, _, stimulus = name.partition("_")
    return (person, stimulus) if person and stimulus else (name, folder)


def columns(head: Head, separator: str = ",") -> frozenset[str]:
    """Lower-case column names of a file's first line."""
    return frozenset(c.strip().strip('"').lower() for c in head.first.split(separator))


def numbers(line: str, separator: str | None = ",") -> list[float] | None:
    """The cells of a line as numbers, or None if one is not."""
    try:
        return [float(c) for c in line.split(separator)]
    except ValueError:
        return None


def guess_unit(ticks: Floats, rate_hz: float, units: Iterable[str] = TICK_S) -> str:
    """The unit in which the median step between samples is nearest to one over `rate_hz`; seconds
    where there is no step.
    """
    steps = np.diff(ticks)
    steps = steps[steps > 0]
    if len(steps) == 0:
        return "s"
    median = float(np.median(steps))
    return min(units, key=lambda u: abs(np.log(median * TICK_S[u] * rate_hz)))


@kept(4)
def read_json(path: Path) -> dict[str, object]:
    """The object a JSON file holds.

    Raises
    ------
    FormatError
        For a file that is cut, is not JSON, or holds something other than an object.
    """
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise FormatError(
            path,
            f"it is not whole JSON ({error.msg})",
            "Copy it again; it was cut or edited.",
            error.lineno,
        ) from error
    except RecursionError as error:
        raise FormatError(
            path, "its objects are nested too deeply", "Check that this is the file you meant."
        ) from error
    if not isinstance(content, dict):
        raise FormatError(
            path,
            "it holds a list or a value where an object was expected",
            "Check that this is the file you meant.",
        )
    return content


def timed_lines(
    path: Path, time: str, most: float, missing: str
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line number and object of each line, which has a number below `most` under `time`.

    Raises
    ------
    FormatError
        For a line that is not JSON or has no such time, which the message calls `missing`.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise FormatError(
                path,
                f"the line is not JSON ({reason})",
                "The file was cut; copy it again or remove the line.",
                number,
            ) from error
        stamp = record.get(time) if isinstance(record, dict) else None
        # JSON as Python reads it has NaN and infinity, and integers of any length.
        if not isinstance(stamp, int | float) or not abs(stamp) < most:
            raise FormatError(
                path, f"the line has no {missing}", "Mend or remove the line.", number
            )
        yield number, record


_MAGIC = b"\x93NUMPY"

# What NumPy raises on a header or a body that was cut or overwritten.
_BROKEN = (
    ValueError,
    SyntaxError,
    TypeError,
    OSError,
    EOFError,
    OverflowError,
    MemoryError,
    KeyError,
    tokenize.TokenError,
)


def header(head: Head) -> tuple[tuple[int, ...], np.dtype[np.generic]] | None:
    """(shape, dtype) of an array file, or None for any other file."""
    if not head.data.startswith(_MAGIC):
        return None
    file = io.BytesIO(head.data)
    try:
        read = (
            np.lib.format.read_array_header_1_0
            if np.lib.format.read_magic(file) == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    except _BROKEN:
        return None
    return shape, dtype


@kept(4)
def read_npy(path: Path) -> NDArray[np.generic]:
    """The array of a file: mapped from disk where it is not compressed, so that one row costs one
    row.

    Raises
    ------
    FormatError
        For a file that is not an array, was cut, or holds pickled objects.
    """
    if not Head.of(path).data.startswith(_MAGIC):
        raise FormatError(
            path,
            "it is not a whole NumPy array file",
            "Copy it again; it was cut, or it is of another kind.",
        )
    try:
        if path.suffix.lower() == ".gz":
            array = np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
        else:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _BROKEN as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise FormatError(
                path,
                "it holds pickled objects, which could run code when read",
                "Save plain numbers with numpy.save.",
            ) from error
        raise FormatError(
            path, "it is not a whole NumPy array file", "Copy it again; it was cut in transfer."
        ) from error
    assert isinstance(array, np.ndarray)
    return array


# What SciPy raises on a file that ends early or holds other bytes, apart from its own error.
_CUT = (
    ValueError,
    TypeError,
    IndexError,
    EOFError,
    OSError,
    MemoryError,
    NotImplementedError,
    zlib.error,
)


def has_variable(head: Head, name: str) -> bool:
    """Whether a file is a MATLAB 5 file that holds a variable."""
    if not head.name.endswith(".mat") or not head.data.startswith(b"MATLAB 5.0"):
        return False
    from scipy.io import whosmat
    from scipy.io.matlab import MatReadError

    try:
        file: Any = io.BytesIO(read_bytes(head.path))
        return any(variable == name for variable, *_ in whosmat(file))
    except (MatReadError, FormatError, *_CUT):
        return False


def read_variable(path: Path, name: str, remedy: str) -> Any:
    """One variable, without the cells of size one that MATLAB puts around everything; a structure
    has its fields as attributes. `remedy` is what to do where the file has no such variable.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        file: Any = io.BytesIO(read_bytes(path))
        return loadmat(file, squeeze_me=True, struct_as_record=False, variable_names=[name])[name]
    except KeyError as error:
        raise FormatError(path, f"there is no variable '{name}' in it", remedy) from error
    except (MatReadError, *_CUT) as error:
        raise FormatError(
            path, "it is not a whole MATLAB 5 file", "Copy it again; it was cut in transfer."
        ) from error
