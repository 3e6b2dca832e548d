"""Rows of a table as a Recording: units to degrees, lost samples marked.

Columns are taken from a parsed table block by block as a frame with one column for each role, so
that a large file is never held as text.

One pass over a long table: its rows by role, parted into recordings and set aside.

A table of many recordings is parsed once, however many there are. The rows of each recording lie in
a scratch file as Arrow data, block by block; the file has no name and is gone with the process that
made it. Another process of the same machine reads the same file; on another machine the table is
parsed again.
"""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Space, Sphere
from gazeveil.gaze.recording import GUESSED, Doubt, Fact, Recording
from gazeveil.gaze.scratch import ScratchFile, ScratchReader
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import WORDS, assemble, pupil_of
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import UNIT_NS, Table, stamp
from gazeveil.io.plain.layout import VECTOR_UNITS, Layout
from gazeveil.io.plain.roles import (
    EULER_ROLES,
    EYES,
    FLAG_ROLES,
    KEY_ROLES,
    NUMBER_ROLES,
    PUPIL_ROLES,
    QUATERNION_ROLES,
)
from gazeveil.io.plain.survey import FileSurvey, GazeSurvey, apart_doubts
from gazeveil.io.plain.text import sheets

# Rows from which those of several recordings are set aside together: a release reads recordings in
# random order, and each with all that lie beside it.
_TOGETHER = 1 << 12
# Ticks of 100 ns that clocks of Windows count before 1970: from the year 1601, and from the year 1.
_EPOCHS_100NS = (116_444_736_000_000_000, 621_355_968_000_000_000)
# Letters that stand for events in tables of labels.
_LETTERS = {"f": "fixation", "s": "saccade", "p": "pursuit", "b": "blink"}


def frame_of(sheet: Table, layout: Layout, before: int) -> pl.DataFrame:
    """The rows of a table by role: `t` in nanoseconds (or frames, or row numbers), gaze in the
    file's unit with NaN where `missing` says, flags as yes and no; `before` rows of the file come
    before the table.
    """
    columns: dict[str, Floats | Ints | Bools | pl.Series] = {"t": _times(sheet, layout, before)}
    for role, name in layout.columns:
        if role in NUMBER_ROLES:
            values = sheet.floats(name)
            lost = np.isin(values, layout.missing) if layout.missing else None
            columns[role] = values if lost is None else np.where(lost, np.nan, values)
        elif role.endswith(("valid", "lost")):
            columns[role] = _flags(sheet, name, layout.valid if role.endswith("valid") else None)
        elif role == "label":
            columns[role] = _labels(sheet, name)
    return pl.DataFrame(columns)


def _flags(sheet: Table, name: str, valid: tuple[str, ...] | None) -> Bools:
    """A column of yes and no, or of codes of which some mean valid."""
    if valid is None:
        return sheet.flags(name)
    cells = sheet.column(name).cast(pl.String).fill_null("").str.strip_chars()
    return cells.is_in(list(valid)).to_numpy()


def _times(sheet: Table, layout: Layout, before: int) -> Ints | Floats:
    """Times of all rows of a table: nanoseconds, frames, or row numbers where a rate gives them."""
    column = layout.column("t")
    if column is None:
        return np.arange(before, before + len(sheet), dtype=np.int64)
    if layout.time_unit == "frame":
        return sheet.floats(column)
    written = sheet.column(column)
    if written.dtype == pl.String:
        written = written.str.strip_chars().cast(pl.Float64, strict=False)
    found = written.abs().max()
    largest = float(found) if isinstance(found, int | float) and np.isfinite(found) else 0.0
    if largest * UNIT_NS[layout.time_unit] <= 9.2e18:
        return sheet.times_ns(column, unit=layout.time_unit)
    if layout.time_unit != "100ns":
        raise FormatError(
            sheet.path,
            f"times as large as {largest:g} {layout.time_unit} are no times",
            f"Check time_unit='{layout.time_unit}'.",
        )
    epoch = next((e for e in reversed(_EPOCHS_100NS) if largest > e), 0)
    ticks = sheet.column(column).cast(pl.Int64, strict=False)
    if ticks.null_count():
        return sheet.times_ns(column, unit="100ns")  # refuses, and says which line
    return (ticks.to_numpy() - epoch) * UNIT_NS["100ns"]


def _labels(sheet: Table, column: str) -> pl.Series:
    return (
        sheet.column(column)
        .fill_null("undefined")
        .str.strip_chars()
        .str.to_lowercase()
        .replace({"": "undefined", **_LETTERS, **WORDS})
    )


def survey_of(frames: Iterable[pl.DataFrame], layout: Layout) -> GazeSurvey:
    """The survey of a recording that comes in frames."""
    survey = GazeSurvey(layout)
    for frame in frames:
        survey.add(frame)
    return survey


def recording_of(
    path: Path,
    names: Names,
    layout: Layout,
    frame: pl.DataFrame,
    survey: GazeSurvey,
    doubts: tuple[Doubt, ...] = (),
    not_samples: int = 0,
) -> Recording:
    """The recording, or a piece of it, that rows of a file hold.

    Parameters
    ----------
    frame : polars.DataFrame
        The rows, as :func:`frame_of` gives them.
    survey : GazeSurvey
        Of the whole recording.
    doubts : tuple of Doubt
        What is known already to be in doubt.
    not_samples : int
        Rows that the option `rows` leaves out.
    """
    space, space_assumed = _space(path, layout, survey)
    corner = layout.unit in ("px", "fraction", "equirect")
    facts = {**names.facts, **dict(layout.facts)}
    found = list(survey.doubts(path.name, layout, corner))
    if found:
        taken = [f"{c:g}" for e in survey.counts for c in survey.lost_codes(e, corner)]
        value = f"{facts['validity'].value}; {', '.join(dict.fromkeys(taken)) or 'an eye'} lost"
        facts["validity"] = Fact(value, GUESSED, "its values")
    seen = {
        eye: _seen(frame, layout, eye, survey, corner)
        for eye in EYES
        if f"{eye}x" in frame.columns and f"{eye}y" in frame.columns
    }
    for eye in ("left_", "right_"):
        if eye in seen:
            seen[eye][~_passed(frame, eye, survey)] = np.nan
    channels = _channels(layout, space, seen, frame)
    left, right = channels.get("left_deg"), channels.get("right_deg")
    if left is not None and right is not None:
        found += apart_doubts(path.name, left, right)
    metadata: dict[str, object] = {"unit": layout.unit, **dict(layout.metadata)}
    if channels.get("head_deg") is not None:
        metadata["frame"] = "world"
    if layout.assumed or space_assumed:
        metadata["assumed_geometry"] = True
    if found or doubts:
        metadata["doubts"] = tuple(dict.fromkeys([*doubts, *found]))
    t_ns, rate_hz = _nanoseconds(path, names, layout, frame["t"].to_numpy())
    return assemble(
        path,
        **{**vars(names), "facts": facts},
        t_ns=t_ns,
        rate_hz=rate_hz,
        space=space,
        **channels,
        valid=_passed(frame, "", survey),
        pupil=_pupil(frame, survey),
        confidence=frame["confidence"].to_numpy() if "confidence" in frame.columns else None,
        labels={n: frame[n].to_numpy().astype(np.str_) for n in {"label"} & {*frame.columns}},
        not_samples={"other_rows": not_samples},
        metadata=metadata,
    )


def _seen(
    frame: pl.DataFrame, layout: Layout, eye: str, survey: GazeSurvey, corner: bool
) -> Floats:
    """Gaze of an eye in the file's unit, shape (n, 2 or 3), NaN where a number means lost."""
    gaze = np.stack([frame[n].to_numpy() for a in "xyz" if (n := eye + a) in frame.columns], axis=1)
    if layout.missing is None:
        x, codes = gaze[:, 0], survey.lost_codes(eye, corner)
        lost = (x == gaze[:, 1]) & np.isin(x, codes) if codes else np.zeros(len(x), dtype=np.bool_)
        gaze[lost | (eye in survey.dead())] = np.nan
    return gaze


def _channels(
    layout: Layout, space: Space, seen: Mapping[str, Floats], frame: pl.DataFrame
) -> dict[str, Any]:
    """Channels of a recording from gaze and eyes in the file's unit."""
    if layout.unit in VECTOR_UNITS:
        axes = [-1.0 if layout.x_axis == "left" else 1.0, 1.0 if layout.y_axis == "up" else -1.0]
        axes.append(1.0 if layout.unit == "vector" else -1.0)
        ahead = {eye: headset.unit(values * axes) for eye, values in seen.items()}
        left, right, both = (ahead.get(eye) for eye in ("left_", "right_", ""))
        return vars(headset.gaze(left, right, _rotation(frame), both))
    placed = {eye: np.stack(_place(layout, space, *seen[eye].T), axis=1) for eye in seen}
    channels: dict[str, Any] = {f"{eye}deg": placed[eye] for eye in placed if eye}
    return channels | ({"x_deg": placed[""][:, 0], "y_deg": placed[""][:, 1]} if "" in seen else {})


def _rotation(frame: pl.DataFrame) -> Floats | None:
    """Quaternions of the head; one whose angles are all zero was not measured."""
    for roles in (EULER_ROLES, QUATERNION_ROLES):
        if set(roles) <= set(frame.columns):
            values = np.stack([frame[r].to_numpy() for r in roles], axis=1)
            turned = values if len(roles) == 4 else headset.unity_euler(*values.T)
            turned[(values[:, :3] == 0).all(axis=1)] = np.nan
            return turned
    return None


def _passed(frame: pl.DataFrame, eye: str, survey: GazeSurvey) -> Bools:
    """Samples of an eye (or of both) that validity, pupil and confidence let pass."""
    passed = np.ones(frame.height, dtype=np.bool_)
    if f"{eye}valid" in frame.columns:
        passed &= frame[f"{eye}valid"].to_numpy()
    if f"{eye}lost" in frame.columns:
        passed &= ~frame[f"{eye}lost"].to_numpy()
    for role in survey.measured & {f"{eye}pupil", f"{eye}confidence"}:
        passed &= ~(frame[role].to_numpy() <= 0)
    told = {*FLAG_ROLES, *survey.measured} & set(frame.columns)
    flagged = [side for side in EYES[1:] if any(r.startswith(side) for r in told)]
    if not eye and "x" in frame.columns and flagged:
        # One place for both eyes is lost where both are.
        passed &= np.logical_or.reduce([_passed(frame, side, survey) for side in flagged])
    return passed


def _nanoseconds(
    path: Path, names: Names, layout: Layout, t: Ints | Floats
) -> tuple[Ints, float | None]:
    """Times of a recording, and its rate where it was said."""
    if layout.column("t") is None and layout.rate_hz is not None:
        first = t[0] if len(t) else 0
        return np.round((t - first) * (1e9 / layout.rate_hz)).astype(np.int64), layout.rate_hz
    if layout.time_unit != "frame":
        return _spread(np.asarray(t, dtype=np.int64), layout.rate_hz), layout.rate_hz
    interval = layout.frame_interval_s
    seconds = dict(interval).get(names.stimulus) if isinstance(interval, tuple) else interval
    if seconds is None:
        raise FormatError(
            path,
            f"nobody says how long a frame of stimulus '{names.stimulus}' is",
            "Add it to frame_interval_s.",
        )
    if not np.isfinite(t).all():
        row = int(np.flatnonzero(~np.isfinite(t))[0])
        raise FormatError(path, f"row {row + 1} has no frame number", "Mend or remove the line.")
    return np.round(t * (seconds * 1e9)).astype(np.int64), layout.rate_hz or 1 / seconds


def _spread(t_ns: Ints, rate_hz: float | None) -> Ints:
    """Times of a clock too coarse for its rate: of two samples at one time, the second is a step
    later.
    """
    if rate_hz is None or len(t_ns) < 2:
        return t_ns
    again = np.append(False, t_ns[1:] == t_ns[:-1])
    few = np.count_nonzero(again) < 0.4 * len(t_ns)
    return t_ns if few else t_ns + np.where(again, round(1e9 / rate_hz), 0)


def _pupil(frame: pl.DataFrame, survey: GazeSurvey) -> Floats | None:
    roles = [r for r in PUPIL_ROLES if r in frame.columns and r not in survey.relative]
    sizes = [np.where(v <= 0, np.nan, v) for v in (frame[r].to_numpy() for r in roles)]
    for size, valid in zip(sizes, (f"{r}_valid" for r in roles), strict=True):
        if valid in frame.columns:
            size[~frame[valid].to_numpy()] = np.nan
    return sizes[0] if "pupil" in roles else pupil_of(sizes)


def _space(path: Path, layout: Layout, survey: GazeSurvey) -> tuple[Space, bool]:
    """The space, and whether its screen is assumed."""
    if layout.space == "sphere":
        return Sphere(), False
    if layout.space == "screen":
        return layout.screen or TYPICAL_SCREEN, layout.screen is None
    # Degrees without a word about their space: only values that rule one of the two out decide.
    scale = 180 / np.pi if layout.unit == "rad" else 1.0
    low = [scale * min([0.0, *(v for r, v in survey.low.items() if r[-1] == a)]) for a in "xy"]
    high = [scale * max([0.0, *(v for r, v in survey.high.items() if r[-1] == a)]) for a in "xy"]
    if min(low) < 0 and max(high) < 90 and min(low) > -90:
        return TYPICAL_SCREEN, True
    if min(low) >= 0 and max(high) >= 90 and high[0] < 360 and high[1] < 180:
        return Sphere(), False
    if min(low) < -90 or high[0] >= 360 or high[1] >= 180:
        raise FormatError(
            path,
            f"gaze runs from {low[0]:g} to {high[0]:g} (x) and from {low[1]:g} to {high[1]:g} (y),"
            " which cannot be degrees",
            "If these are pixels, say unit='px' and give the screen; for longitude and latitude say"
            " unit='lonlat'.",
        )
    raise FormatError(
        path,
        "these degrees may be a screen's or a sphere's",
        "Say space='sphere', or space='screen' (with screen=Screen(...) if you know it).",
    )


def _place(layout: Layout, space: Space, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """File units to degrees of the space."""
    up = layout.y_axis == "up"
    if layout.unit in ("rad", "lonlat-rad"):
        x, y = np.degrees(x), np.degrees(y)
    if layout.unit in ("deg", "rad"):
        if up:
            y = 180.0 - y if isinstance(space, Sphere) else -y
    elif layout.unit.startswith("lonlat"):
        # Latitude grows upwards by definition; `y_axis="up"` says no more than that.
        x, y = (x + 180.0, 90.0 - y) if isinstance(space, Sphere) else (x, -y)
    elif isinstance(space, Sphere):
        width, height = (
            layout.panorama
            if layout.unit == "equirect" and layout.panorama is not None
            else (1.0, 1.0)
        )
        x, y = 360.0 * x / width, 180.0 * (height - y if up else y) / height
    elif layout.unit == "px-centred":
        x, y = space.from_px(x + space.width_px / 2, (-y if up else y) + space.height_px / 2)
    else:
        if layout.unit == "fraction":
            x, y = x * space.width_px, y * space.height_px
        x, y = space.from_px(x, space.height_px - y if up else y)
    return x, y


#: Words of a recording in the columns of :data:`~gazeveil.io.plain.roles.KEY_ROLES`.
Part: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class OnePass:
    """Rows of a file by role, block by block, with what a look at all of them finds."""

    path: Path
    layout: Layout
    survey: FileSurvey

    def blocks(self) -> Iterator[tuple[pl.DataFrame, list[tuple[Part, Ints]], dict[Part, int]]]:
        """Rows by role, the rows of each recording among them, and how many rows of each the
        option `rows` leaves out.
        """
        layout = self.layout
        types: dict[str, type[pl.DataType]]
        types = {n: pl.Float64 for r, n in layout.columns if r in NUMBER_ROLES}
        clock = layout.column("t")
        if clock is not None:
            types |= {clock: pl.Int64 if layout.whole_times else pl.Float64}
        before = 0
        form = (layout.separator, layout.decimal, layout.comment if layout.comment_said else None)
        for sheet in sheets(self.path, *form, types, layout.table):
            frame = frame_of(sheet, layout, before)
            groups = sheet.groups(*(layout.column(r) for r in KEY_ROLES))
            kept = _kept(sheet, layout)
            left: dict[Part, int] = {}
            if kept is not None:
                left = {part: int(np.count_nonzero(~kept[rows])) for part, rows in groups}
                groups = [(part, rows[kept[rows]]) for part, rows in groups]
            if frame["t"].dtype == pl.Int64 and layout.column("t") is not None:
                self.survey.add(sheet.frame, frame["t"].to_numpy(), groups)
            before += len(sheet)
            yield frame, groups, left


def _kept(sheet: Table, layout: Layout) -> Bools | None:
    """The rows that the option `rows` asks for; None for all."""
    if not layout.rows:
        return None
    kept = np.ones(len(sheet), dtype=np.bool_)
    for column, word in layout.rows:
        cells = sheet.column(column).cast(pl.String).fill_null("").str.strip_chars()
        kept &= (cells == word).to_numpy()
    return kept


def whole(path: Path, layout: Layout) -> tuple[pl.DataFrame, int, list[Doubt]]:
    """All rows of a file that is one recording, how many rows are left out, and doubts."""
    table = OnePass(path, layout, FileSurvey(layout))
    frames, left_out = [], 0
    for frame, groups, left in table.blocks():
        frames.append(frame if not left else frame[groups[0][1]])
        left_out += sum(left.values())
    return pl.concat(frames), left_out, table.survey.doubts(path.name)


@dataclass(frozen=True)
class _Piece:
    """Rows of a recording in one block of a spool: the block's bytes, and which of its rows."""

    begin: int
    length: int
    first: int
    rows: int


@dataclass(frozen=True)
class Spooled:
    """One recording of a spool: the pieces of its rows, and how many rows were left out."""

    path: Path
    layout: Layout
    part: Part
    file: ScratchFile | ScratchReader
    name: str
    pieces: tuple[_Piece, ...]
    left_out: int = 0

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(piece.rows for piece in self.pieces)

    def frames(self) -> Iterator[pl.DataFrame]:
        """The rows, block by block."""
        here = self
        if isinstance(self.file, ScratchReader) and not Path(self.file.path).exists():
            # The process that made the spool is out of reach, on another machine say.
            here = spool(self.path, self.layout)[0][self.part]
        for piece in here.pieces:
            yield here._block(piece).slice(piece.first, piece.rows)

    def _block(self, piece: _Piece) -> pl.DataFrame:
        """A block; the last one is kept, because recordings of one block are asked for in turn."""
        global _held
        if _held is None or _held[:2] != (self.name, piece.begin):
            content = self.file.read(piece.begin, piece.length)
            _held = self.name, piece.begin, pl.read_ipc_stream(content)
        return _held[2]


_held: tuple[str, int, pl.DataFrame] | None = None


def spool(path: Path, layout: Layout) -> tuple[Mapping[Part, Spooled], tuple[Doubt, ...]]:
    """The recordings of a table in order of their first rows, set aside, and doubts about all rows;
    kept until the next few tables, so that a table is parsed once.
    """
    return _spool(path, stamp(path), layout)


@lru_cache(maxsize=4)
def _spool(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> tuple[Mapping[Part, Spooled], tuple[Doubt, ...]]:
    file, name = _scratch(), uuid4().hex
    table = OnePass(path, layout, FileSurvey(layout))
    pieces: dict[Part, list[_Piece]] = {}
    left_out: dict[Part, int] = {}
    for frame, groups, left in table.blocks():
        order = np.concatenate([rows for _, rows in groups])
        if len(order) != frame.height or (np.diff(order) != 1).any():
            frame = frame[order]
        done = first = 0
        waiting: list[tuple[Part, int, int]] = []
        for part, rows in groups:
            waiting.append((part, first - done, len(rows)))
            first += len(rows)
            left_out[part] = left_out.get(part, 0) + left.get(part, 0)
            if first - done >= _TOGETHER or first == frame.height:
                content = io.BytesIO()
                frame.slice(done, first - done).write_ipc_stream(content)
                begin, length = file.put(content.getbuffer()), content.getbuffer().nbytes
                for of_part, *where in waiting:
                    pieces.setdefault(of_part, []).append(_Piece(begin, length, *where))
                done, waiting = first, []
    parts = {
        part: Spooled(path, layout, part, file, name, tuple(found), left_out[part])
        for part, found in pieces.items()
    }
    return parts, tuple(table.survey.doubts(path.name))


_last: weakref.ref[ScratchFile] | None = None


def _scratch() -> ScratchFile:
    """The scratch file in use, or a new one where the last is gone: tables that are read together
    share one, since open files are few.
    """
    global _last
    file = None if _last is None else _last()
    if file is None:
        file = ScratchFile()
        _last = weakref.ref(file)
    return file
