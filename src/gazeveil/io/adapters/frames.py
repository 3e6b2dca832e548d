"""Recordings and cohorts as data frames, one row per sample, and back without loss.

Columns: `person stimulus session task space rate_hz` (the same in every row of a recording), then
`t_ns x_deg y_deg valid` and the channels there are: `left_x_deg left_y_deg right_x_deg right_y_deg
head_x_deg head_y_deg head_roll_deg eye_x_deg eye_y_deg`, `pupil` with its unit (`pupil_mm`),
`confidence`, and `label_NAME` for each labeller. `space` is `sphere`, or a screen as the command
line writes it: `1280x720px,400x225mm,450mm`. Events, messages, counts and metadata are no columns.

Events as data frames: one row per event, onset and offset as samples and as nanoseconds.

The parts of a feature table from a data frame.

Which function makes the data frame of which value, and which one reads it.

Columns of a stranger's data frame, each as a plain array or refused in one sentence.

A frame of polars, of pandas, or of any package with Arrow's stream interface becomes a polars frame
first. Named levels of a pandas index are columns; an index without a name plays no part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Attributes, Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.parquet import CHANNEL_COLUMNS
from gazeveil.io.parsing.naming import spelling_doubts
from gazeveil.io.parsing.table import MOST_NS, UNIT_NS
from gazeveil.io.reading import ReadingWarning
from gazeveil.io.tables_file import KEYS, TableParts

# Above this, doubles skip whole numbers.
_MOST_EXACT = float(1 << 53)


def as_polars(owner: str, frame: Any) -> pl.DataFrame:
    """A polars frame of a data frame.

    Raises
    ------
    ParameterError
        For what is no data frame.
    DataError
        For a column of pandas that holds values of several kinds.
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(owner, frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        checks.refuse(
            owner, "frame", "a data frame of polars or pandas, or a table of Arrow", frame
        )
    return pl.DataFrame(frame)


def _from_pandas(owner: str, frame: Any) -> pl.DataFrame:
    names = [str(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{owner} needs one column '{twice}'. The frame has several. Rename them.")
    columns = {n: _series(owner, n, frame.iloc[:, i]) for i, n in enumerate(names)}
    for level in frame.index.names:
        if level is not None and str(level) not in columns:
            held = frame.index.get_level_values(level).to_series()
            columns[str(level)] = _series(owner, str(level), held)
    return pl.DataFrame(columns)


def _series(owner: str, name: str, column: Any) -> pl.Series:
    """A column of pandas, missing values as null. Types of numpy are taken as they are; the others
    (text, categories, values that may be missing) go value by value.
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM":
        return pl.Series(name, np.array(column.to_numpy()), nan_to_null=True)
    values = [
        None if lost else value
        for value, lost in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]
    kinds = sorted({type(v).__name__ for v in values if v is not None})
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"Column '{name}' of the frame given to {owner} holds values of several kinds"
            f" ({', '.join(kinds[:3])}). Give it one type."
        ) from error


def need(owner: str, frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Refuse a frame that lacks a column."""
    for name in (n for n in names if n not in frame.columns):
        near = get_close_matches(name, frame.columns, n=1, cutoff=0.85)
        found = ", ".join(frame.columns[:12]) or "none"
        more = f", and {len(frame.columns) - 12} more" if len(frame.columns) > 12 else ""
        hint = f"Is it '{near[0]}'? " if near else ""
        raise DataError(
            f"{owner} needs a column '{name}'. {hint}The frame has the columns {found}{more}."
        )


def integers(owner: str, frame: pl.DataFrame, name: str) -> Ints:
    """Whole numbers; floats only where they are whole and exact."""
    column = _filled(owner, frame[name])
    if column.dtype.is_integer():
        if column.dtype == pl.UInt64 and column.len() and int(str(column.max())) >= 1 << 63:
            _refuse(owner, name, "whole numbers of 64 bits", "larger ones")
        return np.array(column.cast(pl.Int64).to_numpy())
    if not column.dtype.is_float():
        _refuse(owner, name, "whole numbers", _kind(column))
    values = column.cast(pl.Float64).to_numpy()
    if not (np.isfinite(values).all() and (np.abs(values) < _MOST_EXACT).all()):
        _refuse(owner, name, "whole numbers", "floats that are missing or too large to be exact")
    if (values != np.round(values)).any():
        _refuse(owner, name, "whole numbers", "fractions")
    return values.astype(np.int64)


def floats(owner: str, frame: pl.DataFrame, name: str) -> Floats:
    """Numbers; NaN where missing."""
    column = frame[name]
    if column.dtype == pl.Null:
        return np.full(column.len(), np.nan)
    if not column.dtype.is_numeric():
        _refuse(owner, name, "numbers", _kind(column))
    return np.array(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())


def flags(owner: str, frame: pl.DataFrame, name: str) -> Bools:
    """True and false, also as 1 and 0."""
    column = _filled(owner, frame[name])
    if column.dtype == pl.Boolean:
        return np.array(column.to_numpy())
    if not column.dtype.is_numeric():
        _refuse(owner, name, "true and false", _kind(column))
    values = column.cast(pl.Float64).to_numpy()
    if not np.isin(values, (0.0, 1.0)).all():
        _refuse(owner, name, "true and false, or 1 and 0", "other numbers")
    return values.astype(np.bool_)


def texts(owner: str, frame: pl.DataFrame, name: str) -> pl.Series:
    """Text without missing values; whole numbers are written as text."""
    column = _filled(owner, frame[name])
    # A column without rows may have no type.
    allowed = column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    if not (allowed or column.dtype.is_integer()):
        _refuse(owner, name, "text or whole numbers", _kind(column))
    return column.cast(pl.String)


def _filled(owner: str, column: pl.Series) -> pl.Series:
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        raise DataError(
            f"Column '{column.name}' of the frame given to {owner} is empty in row {row}. Fill it,"
            " or leave the row out."
        )
    return column


def _kind(column: pl.Series) -> str:
    if column.dtype == pl.String:
        return f"text such as {column.drop_nulls().head(1).to_list()[:1] or ['']}"
    return f"values of type {column.dtype}"


def _refuse(owner: str, name: str, allowed: str, got: str) -> NoReturn:
    raise DataError(
        f"Column '{name}' of the frame given to {owner} must hold {allowed}. Got {got} instead."
    )


_LABEL = "label_"


def recording_frame(recording: Recording) -> pl.DataFrame:
    """A recording, one row per sample.

    Raises
    ------
    DataError
        For a recording of events without samples.
    """
    if len(recording) == 0 and recording.events is not None and len(recording.events):
        raise DataError(
            f"{recording.title} holds events without samples, and a frame of samples would be"
            " empty. Take recording.events.to_polars()."
        )
    columns: dict[str, NDArray[np.generic]] = {
        n: getattr(recording, n) for n in ("t_ns", "x_deg", "y_deg", "valid")
    }
    for channel, names in CHANNEL_COLUMNS.items():
        values = getattr(recording, channel)
        if values is None:
            continue
        if channel == "pupil":
            unit = str(recording.metadata.get("pupil_unit", ""))
            names = (f"pupil_{unit}" if unit else "pupil",)
        columns |= {n: values if len(names) == 1 else values[:, i] for i, n in enumerate(names)}
    columns |= {f"{_LABEL}{k}": v for k, v in recording.labels.items()}
    same = {
        **dict(zip(KEY_NAMES, recording.key, strict=True)),
        "space": space_text(recording.space),
        "rate_hz": float(recording.rate_hz),
    }
    # Constants stay one value for polars, however many rows they are shown in.
    return pl.DataFrame(columns).select(*(pl.lit(v).alias(k) for k, v in same.items()), pl.all())


def cohort_frame(cohort: Cohort) -> pl.DataFrame:
    """The recordings of a cohort one under the other; channels that a recording lacks are null.

    Warns
    -----
    ReadingWarning
        Where recordings have no samples: they have no row.
    """
    frames = [recording_frame(recording) for recording in cohort if len(recording)]
    without = len(cohort) - len(frames)
    if without:
        warnings.warn(
            f"{without} of {len(cohort)} recordings have no samples, so the frame has no row of"
            " them.",
            ReadingWarning,
            stacklevel=4,
        )
    if frames:
        return pl.concat(frames, how="diagonal")
    empty = Recording("", "", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    return recording_frame(empty).clear()


def recording_from(
    frame: Any,
    space: Space | None = None,
    events: Events | None = None,
    metadata: Mapping[str, object] | None = None,
    **given: object,
) -> Recording:
    """A recording from a frame of its samples; arguments as :meth:`Recording.from_frame`."""
    owner = "Recording.from_frame"
    table = _keyed(owner, as_polars(owner, frame), given)
    parts = table.select(KEY_NAMES).unique(maintain_order=True).rows()
    if len(parts) > 1:
        raise DataError(
            f"{owner} needs the samples of one recording. The frame has those of {len(parts)}. Use"
            " Cohort.from_frame, or choose one first."
        )
    if not parts:
        if given.get("person") is None or given.get("stimulus") is None:
            raise DataError(f"{owner} needs rows, or person= and stimulus=. The frame is empty.")
        parts = [tuple(str(given.get(k) or "") for k in KEY_NAMES)]
    return _recording(owner, table, parts[0], space, given.get("rate_hz"), events, metadata or {})


def cohort_from(
    frame: Any,
    space: Space | None = None,
    people: Mapping[str, Attributes] | Any | None = None,
    name: str = "",
    **given: object,
) -> Cohort:
    """A cohort from a frame of samples; arguments as :meth:`Cohort.from_frame`."""
    owner = "Cohort.from_frame"
    table = _keyed(owner, as_polars(owner, frame), given)
    if table.height == 0:
        raise DataError(f"{owner} needs at least one row. The frame is empty.")
    rate = given.get("rate_hz")
    recordings = [
        _recording(owner, rows, tuple(str(part) for part in key), space, rate, None, {})
        for key, rows in table.group_by(KEY_NAMES, maintain_order=True)
    ]
    for doubt in spelling_doubts(r.person for r in recordings):
        warnings.warn(doubt.sentence, ReadingWarning, stacklevel=4)
    known = people if isinstance(people, Mapping) or people is None else _people(owner, people)
    return Cohort(recordings, known, name=name)


def space_text(space: Space) -> str:
    """A space as one text.

    Examples
    --------
    >>> space_text(Screen(1280, 720, 400, 225.5, 450))
    '1280x720px,400x225.5mm,450mm'
    """
    if isinstance(space, Sphere):
        return "sphere"
    sides = [
        str(int(v)) if v.is_integer() else repr(v)
        for v in (getattr(space, n) for n in SCREEN_SIZES)
    ]
    return f"{sides[0]}x{sides[1]}px,{sides[2]}x{sides[3]}mm,{sides[4]}mm"


def space_of(owner: str, text: str) -> Space:
    """The space that :func:`space_text` wrote."""
    if text == "sphere":
        return Sphere()
    try:
        pixels, size, distance = text.split(",")
        sides = [
            *pixels.removesuffix("px").split("x"),
            *size.removesuffix("mm").split("x"),
            distance.removesuffix("mm"),
        ]
        return Screen(*(float(side) for side in sides))
    except (ValueError, TypeError) as error:
        raise DataError(
            f"Column 'space' of the frame given to {owner} must be 'sphere' or look like"
            f" 1280x720px,400x225mm,450mm. Got '{text}' instead."
        ) from error


def _keyed(owner: str, frame: pl.DataFrame, given: Mapping[str, object]) -> pl.DataFrame:
    """The frame with its four key columns as text: the frame's own, else what was given."""
    columns = {}
    for key, default in zip(KEY_NAMES, (None, None, "1", ""), strict=True):
        chosen = given.get(key)
        if chosen is not None:
            if not isinstance(chosen, str):
                checks.refuse(owner, key, "text", chosen)
            columns[key] = pl.lit(chosen)
        elif key in frame.columns:
            columns[key] = pl.lit(texts(owner, frame, key))
        elif default is None:
            raise DataError(
                f"{owner} needs a column '{key}', or {key}= for all rows. The frame has the columns"
                f" {', '.join(frame.columns[:12]) or 'none'}."
            )
        else:
            columns[key] = pl.lit(default)
    return frame.with_columns(**columns)


def _recording(
    owner: str,
    frame: pl.DataFrame,
    key: tuple[str, ...],
    space: Space | None,
    rate_hz: object,
    events: Events | None,
    metadata: Mapping[str, object],
) -> Recording:
    """One recording from its own rows."""
    place = _space(owner, frame, space)
    x_deg, y_deg = _gaze(owner, frame, place)
    pupil_column, unit = _pupil(owner, frame)
    channels: dict[str, Any] = {}
    for channel, names in CHANNEL_COLUMNS.items():
        own = (pupil_column,) if channel == "pupil" and pupil_column else names
        if any(n in frame.columns and frame[n].null_count() < frame.height for n in own):
            need(owner, frame, own)
            values = [floats(owner, frame, n) for n in own]
            channels[channel] = values[0] if len(values) == 1 else np.stack(values, axis=1)
    labels = {
        n.removeprefix(_LABEL): texts(owner, frame, n).to_numpy()
        for n in frame.columns
        if n.startswith(_LABEL) and frame[n].null_count() < frame.height
    }
    valid: Any = flags(owner, frame, "valid") if "valid" in frame.columns else None
    rate: Any = rate_hz
    if rate is None and "rate_hz" in frame.columns and frame.height:
        unknown = frame["rate_hz"].null_count() == frame.height
        rate = float("nan") if unknown else _one(owner, frame, "rate_hz")
    return Recording(
        key[0],
        key[1],
        t_ns=_times(owner, frame),
        x_deg=x_deg,
        y_deg=y_deg,
        valid=valid,
        space=place,
        rate_hz=rate,
        session=key[2],
        task=key[3],
        labels={k: v.astype(np.str_) for k, v in labels.items()},
        events=events,
        metadata={**({"pupil_unit": unit} if unit else {}), **metadata},
        **channels,
    )


def _times(owner: str, frame: pl.DataFrame) -> Ints:
    """Nanoseconds from `t_ns`, or from `t_us`, `t_ms` or `t_s`, rounded."""
    others = [f"t_{unit}" for unit in ("us", "ms", "s") if f"t_{unit}" in frame.columns]
    if "t_ns" in frame.columns or not others:
        need(owner, frame, ("t_ns",))
        return integers(owner, frame, "t_ns")
    name = others[0]
    scale = UNIT_NS[name.removeprefix("t_")]
    if frame[name].dtype.is_integer():
        whole = integers(owner, frame, name)
        _check_size(owner, name, float(np.abs(whole.astype(np.float64)).max(initial=0.0)) * scale)
        return whole * int(scale)
    values = floats(owner, frame, name)
    if not np.isfinite(values).all():
        raise DataError(
            f"Column '{name}' of the frame given to {owner} is empty in row"
            f" {int(np.flatnonzero(~np.isfinite(values))[0])}. Fill it, or leave the row out."
        )
    _check_size(owner, name, float(np.abs(values).max(initial=0.0)) * scale)
    return np.round(values * scale).astype(np.int64)


def _check_size(owner: str, name: str, largest_ns: float) -> None:
    if largest_ns > MOST_NS:
        raise DataError(
            f"Column '{name}' of the frame given to {owner} holds a time too large for 64 bits of"
            " nanoseconds. Check its unit."
        )


def _gaze(owner: str, frame: pl.DataFrame, space: Space) -> tuple[Floats, Floats]:
    """Degrees from `x_deg`, `y_deg`, or from pixels of the screen in `x_px`, `y_px`."""
    if "x_deg" in frame.columns or "x_px" not in frame.columns:
        need(owner, frame, ("x_deg", "y_deg"))
        return floats(owner, frame, "x_deg"), floats(owner, frame, "y_deg")
    need(owner, frame, ("x_px", "y_px"))
    if not isinstance(space, Screen):
        raise DataError(
            f"{owner} got gaze in pixels ('x_px') and a sphere, and pixels need a screen. Give"
            " space=Screen(...)."
        )
    return space.from_px(floats(owner, frame, "x_px"), floats(owner, frame, "y_px"))


def _space(owner: str, frame: pl.DataFrame, space: Space | None) -> Space:
    if space is not None:
        if not isinstance(space, Sphere | Screen):
            checks.refuse(owner, "space", "a Sphere or a Screen", space)
        return space
    if "space" not in frame.columns or not frame.height:
        raise DataError(
            f"{owner} needs to know what the degrees mean: give space=Sphere() for a headset or"
            " space=Screen(width_px, height_px, width_mm, height_mm, distance_mm), or a column"
            " 'space'."
        )
    return space_of(owner, str(_one(owner, frame, "space")))


def _pupil(owner: str, frame: pl.DataFrame) -> tuple[str, str]:
    """The column of the pupil and its unit; empty where there is none."""
    found = [
        n
        for n in frame.columns
        if (n == "pupil" or n.startswith("pupil_")) and frame[n].null_count() < frame.height
    ]
    if len(found) > 1:
        raise DataError(
            f"{owner} takes one size of the pupil. The frame has {', '.join(found)}. Keep one."
        )
    return (found[0], found[0].removeprefix("pupil").removeprefix("_")) if found else ("", "")


def _one(owner: str, frame: pl.DataFrame, name: str) -> Any:
    """The value a column has in every row of a recording."""
    several = frame[name].unique()
    if len(several) != 1 or several[0] is None:
        raise DataError(
            f"Column '{name}' of the frame given to {owner} must be one value for all samples of a"
            f" recording. Got {len(several)}, or none."
        )
    return several[0]


def _people(owner: str, people: Any) -> dict[str, Attributes]:
    """Attributes by person, from a frame with a column `person`."""
    table = as_polars(owner, people)
    need(owner, table, ("person",))
    names = texts(owner, table, "person").to_list()
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"The people given to {owner} have '{twice}' more than once. Keep one row.")
    return {
        name: {k: v for k, v in row.items() if v is not None}
        for name, row in zip(names, table.drop("person").to_dicts(), strict=True)
    }


def events_from(frame: Any, recording: Recording | None = None) -> Events:
    """Events from a frame; arguments as :meth:`Events.from_frame`."""
    owner = "Events.from_frame"
    table = as_polars(owner, frame)
    need(owner, table, ("kind", "onset_ns", "offset_ns"))
    times = [integers(owner, table, n) for n in ("onset_ns", "offset_ns")]
    if {"onset", "offset"} <= set(table.columns):
        onset, offset = (integers(owner, table, n) for n in ("onset", "offset"))
        if recording is not None:
            _check_samples(owner, recording, onset, offset, times[0])
    elif recording is not None:
        onset, offset = _samples(owner, recording, times[0], times[1])
    else:
        onset = offset = np.full(table.height, -1, dtype=np.int64)
    places = {n: floats(owner, table, n) for n in ("x_deg", "y_deg") if n in table.columns}
    second = texts(owner, table, "secondary") if "secondary" in table.columns else None
    sources = table["source"].drop_nulls().unique().to_list() if "source" in table.columns else []
    return Events(
        texts(owner, table, "kind").to_numpy().astype(np.str_),
        onset,
        offset,
        times[0],
        times[1],
        **places,
        secondary=None if second is None else second.to_numpy().astype(np.str_),
        source=str(sources[0]) if len(sources) == 1 else "",
    )


def _check_samples(
    owner: str, recording: Recording, onset: Ints, offset: Ints, onset_ns: Ints
) -> None:
    """Refuse indices that are not those of the recording, such as times in a column `onset`."""
    inside = (onset >= 0) & (offset < len(recording)) & (onset < len(recording))
    if not inside.all() or (recording.t_ns[onset] != onset_ns).any():
        raise DataError(
            f"{owner} got events whose 'onset' is not the sample of {recording.title} at"
            " 'onset_ns'. Leave 'onset' and 'offset' out to find the samples by time."
        )


def _samples(
    owner: str, recording: Recording, onset_ns: Ints, offset_ns: Ints
) -> tuple[Ints, Ints]:
    """First and last sample within each event's times."""
    if len(onset_ns) == 0:
        return onset_ns, offset_ns
    clock = np.maximum.accumulate(recording.t_ns)
    first = np.searchsorted(clock, onset_ns, side="left")
    last = np.searchsorted(clock, offset_ns, side="right") - 1
    without = np.flatnonzero(last < first)
    if len(without):
        raise DataError(
            f"{owner} got event {int(without[0])} at {int(onset_ns[without[0]])} ns, where"
            f" {recording.title} has no sample. Check the unit and the origin of the times."
        )
    return first.astype(np.int64), last.astype(np.int64)


def table_parts(frame: Any) -> TableParts:
    """Key columns and features of a frame; every column that is no key must be a number.

    Raises
    ------
    DataError
        For a frame without the key columns, or with a feature that is no number.
    """
    owner = "FeatureTable.from_frame"
    table = as_polars(owner, frame)
    need(owner, table, KEYS)
    names = tuple(n for n in table.columns if n not in KEYS)
    keys: dict[str, NDArray[np.generic]] = {
        n: texts(owner, table, n).to_numpy().astype(np.str_) for n in KEYS[:4]
    }
    keys["index"] = integers(owner, table, "index")
    columns = [floats(owner, table, n) for n in names]
    values = np.stack(columns, axis=1) if columns else np.empty((table.height, 0))
    return TableParts(values, names, keys, None, {})


_READS: Mapping[str, Callable[..., Any]] = {
    "Recording": recording_from,
    "Cohort": cohort_from,
    "Events": events_from,
}


def frame_of(value: Recording | Cohort | Events) -> pl.DataFrame:
    """A polars frame of a value."""
    if isinstance(value, Recording):
        return recording_frame(value)
    if isinstance(value, Cohort):
        return cohort_frame(value)
    # The columns of events, their duration in seconds and who says so.
    return pl.DataFrame(value.columns()).with_columns(
        pl.Series("duration_s", value.duration_s), source=pl.lit(value.source)
    )


def value_of(kind: str, frame: Any, given: Mapping[str, Any]) -> Any:
    """A value of a class from a frame and what is given beside it."""
    return _READS[kind](frame, **given)
