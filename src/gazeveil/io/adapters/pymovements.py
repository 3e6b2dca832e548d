"""To and from pymovements' `Gaze` and `Dataset` (extra `pymovements`).

What goes to pymovements and comes back: times (also as whole nanoseconds in the column `t_ns`),
gaze of valid samples, the eyes where both are there, pupil, labels, events, messages, screen, rate
and the recording's names (in `metadata`). The values trackers give for lost samples, head, eye in
head and confidence stay behind.

Conventions of pymovements 0.28 that matter here: times are milliseconds; `position` is a list
column in degrees from the screen's centre, x to the right and y downwards (as a Recording on a
Screen has it), of 2 components (one eye or a mean), 4 (left, right) or 6 (left, right, cyclopean);
`pixel` counts pixel centres, so that the middle of an `upper left` screen is at (resolution - 1) /
2, half a pixel off :class:`~gazeveil.gaze.geometry.Screen`, which counts from the corner; sizes are
centimetres; event onsets and offsets are the times of the first and the last sample. A lost sample
is NaN.

Recordings from what pymovements holds.

What pymovements holds, from recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, Message, Recording, RecordingKey
from gazeveil.io.parsing.assemble import assemble, pupil_of

__all__ = ["from_pymovements", "to_pymovements"]


#: How columns of labels begin.
LABEL = "label:"


def load_pymovements() -> Any:
    """The package `pymovements`.

    Raises
    ------
    MissingExtraError
        Where it is missing.
    """
    try:
        return import_module("pymovements")
    except ImportError as error:
        raise MissingExtraError("pymovements", "pymovements") from error


# Fields of file names that pymovements' own datasets use, by what they are here.
_FIELDS = {
    "person": ("person", "participant_id", "participant", "subject_id", "subject", "reader_id"),
    "stimulus": (
        "stimulus",
        "stimulus_id",
        "stimulus_name",
        "text_id",
        "item_id",
        "trial_id",
        "page_id",
    ),
    "session": ("session", "session_id", "round_id"),
    "task": ("task", "task_name", "task_id"),
}


def from_pymovements(
    source: object,
    person: str | None = None,
    stimulus: str | None = None,
    session: str | None = None,
    task: str | None = None,
    space: Space | None = None,
) -> Recording | Cohort:
    """A pymovements `Gaze` as a Recording, or a loaded `Dataset` (or a list of `Gaze`) as a Cohort.

    Parameters
    ----------
    source : pymovements.Gaze, pymovements.Dataset, or iterable of Gaze
        With a `position` column, or a `pixel` column and a whole screen geometry.
    person, stimulus, session, task : str, optional
        Names; by default what the gaze's metadata say (`subject_id`, `text_id`, `session_id`,
        `task` and the like).
    space : Sphere or Screen, optional
        What the degrees mean, for a gaze without screen geometry.

    Raises
    ------
    MissingExtraError
        Without pymovements.
    DataError
        For a dataset that is not loaded, or a gaze without positions, times or geometry.
    """
    pm = load_pymovements()
    caller_names = {"person": person, "stimulus": stimulus, "session": session, "task": task}
    if isinstance(source, pm.Gaze):
        return _recording(source, caller_names, space, 0)
    several = source.gaze if isinstance(source, pm.Dataset) else source
    if not isinstance(several, Iterable) or isinstance(several, str | bytes | Mapping):
        checks.refuse(
            "from_pymovements", "source", "a pymovements Gaze, a Dataset or a list of Gaze", source
        )
    parts = list(several)
    if isinstance(source, pm.Dataset) and not parts:
        raise DataError("This pymovements Dataset has no gaze. Load it first with dataset.load().")
    for part in parts:
        if not isinstance(part, pm.Gaze):
            checks.refuse(
                "from_pymovements",
                "source",
                "a pymovements Gaze, a Dataset or a list of Gaze",
                part,
            )
    recordings = [_recording(g, caller_names, space, i) for i, g in enumerate(parts)]
    used: dict[RecordingKey, int] = {}
    for i, recording in enumerate(recordings):
        # File names often tell more apart than the fields known here: such recordings are numbered
        # sessions.
        used[recording.key] = used.get(recording.key, 0) + 1
        if used[recording.key] > 1:
            recordings[i] = recording.with_(session=f"{recording.session}.{used[recording.key]}")
    name = source.definition.name if isinstance(source, pm.Dataset) else ""
    return Cohort(recordings, name=str(name))


def _recording(
    gaze: Any, caller_names: Mapping[str, str | None], space: Space | None, number: int
) -> Recording:
    frame: pl.DataFrame = gaze.samples
    metadata: dict[str, object] = dict(gaze.metadata or {})
    names = {k: caller_names[k] or _name(k, metadata, frame) for k in KEY_NAMES}
    gaze_space, half = _space(gaze, metadata, space)
    if "position" in frame.columns:
        parts = _components(frame["position"])
    elif "pixel" in frame.columns and isinstance(gaze_space, Screen):
        raw = _components(frame["pixel"])
        shift = np.array([half[i % 2] for i in range(raw.shape[1])])
        parts = np.empty_like(raw)
        for i in range(0, raw.shape[1], 2):
            parts[:, i], parts[:, i + 1] = gaze_space.from_px(
                raw[:, i] + shift[i], raw[:, i + 1] + shift[i + 1]
            )
    else:
        raise DataError(
            "A pymovements Gaze needs a 'position' column in degrees, or a 'pixel' column and a"
            " screen. Name the columns when you make it."
        )
    left, right, line = _eyes(gaze, parts)
    t_ns = _times(frame, gaze)
    pupil = next(
        (_pupil(frame[c]) for c in ("pupil", "pupil_size", "pupil_diameter") if c in frame.columns),
        None,
    )
    label_columns = {
        c[len(LABEL) :]: np.array(frame[c].fill_null("undefined").to_list(), dtype=WORD)
        for c in frame.columns
        if c.startswith(LABEL)
    }
    rate = None if gaze.experiment is None else gaze.experiment.sampling_rate
    extra: dict[str, object] = (
        {} if "pupil_unit" not in metadata else {"pupil_unit": metadata["pupil_unit"]}
    )
    return assemble(
        Path(f"pymovements gaze {number + 1}"),
        person=names["person"] or f"person {number + 1}",
        stimulus=names["stimulus"] or names["task"] or "gaze",
        session=names["session"] or "1",
        task=names["task"] or "",
        t_ns=t_ns,
        space=gaze_space,
        x_deg=None if line is None else line[:, 0],
        y_deg=None if line is None else line[:, 1],
        left_deg=left,
        right_deg=right,
        rate_hz=None if rate is None else float(rate),
        pupil=pupil,
        labels=label_columns,
        events=_events(gaze, t_ns),
        messages=_messages(gaze),
        metadata={**extra, "source": ""},
    )


def _name(key: str, metadata: Mapping[str, object], frame: pl.DataFrame) -> str | None:
    column = f"recording_{key}"
    if column in frame.columns and frame.height:
        return str(frame[column][0] or "")
    return next((str(metadata[f]) for f in _FIELDS[key] if metadata.get(f) not in (None, "")), None)


def _space(
    gaze: Any, metadata: Mapping[str, object], space: Space | None
) -> tuple[Space, tuple[float, float]]:
    """The space, and what to add to pixels so that they count from the top-left corner."""
    if space is not None:
        if not isinstance(space, Sphere | Screen):
            checks.refuse("from_pymovements", "space", "a Sphere or a Screen", space)
        return space, (0.5, 0.5)
    if metadata.get("space") == "sphere":
        return Sphere(), (0.0, 0.0)
    screen = None if gaze.experiment is None else gaze.experiment.screen
    sides = (
        []
        if screen is None
        else [
            screen.width_px,
            screen.height_px,
            screen.width_cm,
            screen.height_cm,
            screen.distance_cm,
        ]
    )
    if len(sides) != 5 or any(s is None for s in sides):
        raise DataError(
            "This pymovements Gaze has no whole screen geometry. Give its Experiment one, or say"
            " space=Screen(...) or space=Sphere()."
        )
    assert screen is not None
    origin = screen.origin or "upper left"
    if origin not in ("upper left", "center"):
        raise DataError(
            f"The screen's origin is '{origin}'. pymovements knows 'upper left' and 'center'."
        )
    converted = Screen(
        float(sides[0]),
        float(sides[1]),
        10 * float(sides[2]),
        10 * float(sides[3]),
        10 * float(sides[4]),
    )
    return converted, (
        (0.5, 0.5) if origin == "upper left" else (converted.width_px / 2, converted.height_px / 2)
    )


def _components(column: pl.Series) -> Floats:
    """A list column as an array, NaN where there is nothing."""
    lengths = column.list.len().drop_nulls().unique()
    if len(lengths) > 1 or (len(lengths) == 1 and lengths[0] not in (2, 4, 6)):
        raise DataError(
            f"Column '{column.name}' of a pymovements Gaze needs 2, 4 or 6 components. Got"
            f" {sorted(lengths.to_list())}."
        )
    return np.stack(
        [
            column.list.get(i).cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for i in range(int(lengths[0]) if len(lengths) else 2)
        ],
        axis=1,
    )


def _pupil(column: pl.Series) -> Floats:
    """One pupil size per sample: the mean of the eyes where the column has one for each."""
    if not isinstance(column.dtype, pl.List | pl.Array):
        sizes = column.cast(pl.Float64, strict=False).fill_null(float("nan"))
        return sizes.to_numpy().astype(np.float64)
    width = int(column.list.len().max() or 0) if len(column) else 0  # type: ignore[arg-type]
    eyes = [
        column.list.get(i, null_on_oob=True).cast(pl.Float64).fill_null(float("nan")).to_numpy()
        for i in range(min(width, 2))
    ]
    size = pupil_of(eyes)
    return np.full(len(column), np.nan) if size is None else size.astype(np.float64)


def _eyes(gaze: Any, parts: Floats) -> tuple[Floats | None, Floats | None, Floats | None]:
    if parts.shape[1] == 2:
        tracker = None if gaze.experiment is None else gaze.experiment.eyetracker
        left, right = (
            (False, False) if tracker is None else (bool(tracker.left), bool(tracker.right))
        )
        return (
            (parts if left and not right else None),
            (parts if right and not left else None),
            parts,
        )
    eyes = [p if np.isfinite(p).any() else None for p in (parts[:, :2], parts[:, 2:4])]
    return (
        eyes[0],
        eyes[1],
        (
            parts[:, 4:]
            if parts.shape[1] == 6
            else None
            if any(e is not None for e in eyes)
            else parts[:, :2]
        ),
    )


def _times(frame: pl.DataFrame, gaze: Any) -> Ints:
    if "time" not in frame.columns:
        rate = None if gaze.experiment is None else gaze.experiment.sampling_rate
        if not rate:
            raise DataError(
                "This pymovements Gaze has neither a time column nor a sampling rate. Give its"
                " Experiment one."
            )
        return np.round(np.arange(frame.height) * (1e9 / rate)).astype(np.int64)
    time = frame["time"]
    if time.null_count():
        raise DataError(
            "The time column of this pymovements Gaze has empty cells. Remove those rows."
        )
    ms = time.to_numpy()
    t_ns = (
        ms.astype(np.int64) * 1_000_000
        if ms.dtype.kind in "iu"
        else np.round(ms.astype(np.float64) * 1e6).astype(np.int64)
    )
    if "t_ns" in frame.columns and not frame["t_ns"].null_count():
        exact = frame["t_ns"].cast(pl.Int64).to_numpy()
        # Milliseconds as doubles round; the exact column counts unless the clock was shifted.
        if np.abs(exact - t_ns).max(initial=0) <= 1000:
            return exact
    return t_ns


def _events(gaze: Any, t_ns: Ints) -> Events | None:
    frame: pl.DataFrame | None = None if gaze.events is None else gaze.events.frame
    if frame is None or frame.height == 0:
        return None
    frame = frame.sort("onset", maintain_order=True)
    # `fixation_eyelink` and `fixation.ivt` are fixations.
    names = [str(n or "").replace(".", "_").split("_")[0].lower() for n in frame["name"].to_list()]
    onset, offset = (
        np.round(frame[c].cast(pl.Float64).to_numpy() * 1e6).astype(np.int64)
        for c in ("onset", "offset")
    )
    clock = np.maximum.accumulate(t_ns)
    slack = 1000  # nanoseconds: the times went through doubles of milliseconds
    first = np.clip(np.searchsorted(clock, onset - slack, side="left"), 0, max(len(clock) - 1, 0))
    last = np.clip(
        np.searchsorted(clock, offset + slack, side="right") - 1, first, max(len(clock) - 1, 0)
    )
    return Events(
        np.array([w if w in KINDS else "undefined" for w in names], dtype=WORD),
        first,
        last,
        t_ns[first],
        np.maximum(t_ns[last], t_ns[first]),
        source="pymovements",
    )


def _messages(gaze: Any) -> tuple[Message, ...]:
    frame: pl.DataFrame | None = gaze.messages
    if frame is None or not {"time", "content"} <= set(frame.columns):
        return ()
    return tuple(
        Message(round(float(t) * 1e6), str(c))
        for t, c in zip(frame["time"].to_list(), frame["content"].to_list(), strict=True)
    )


def to_pymovements(data: Recording | Cohort) -> object:
    """A Recording as a pymovements `Gaze`; a Cohort as a list of them, in order.

    Raises
    ------
    MissingExtraError
        Without pymovements.
    DataError
        For a recording without samples.
    """
    pm = load_pymovements()
    if isinstance(data, Cohort):
        return [_gaze(pm, r) for r in data]
    if not isinstance(data, Recording):
        checks.refuse("to_pymovements", "data", "a Recording or a Cohort", data)
    return _gaze(pm, data)


def _gaze(pm: Any, recording: Recording) -> object:
    both = recording.left_deg is not None and recording.right_deg is not None
    columns = [
        f"{eye}_{axis}"
        for eye in (("left", "right", "line") if both else ("line",))
        for axis in "xy"
    ]
    metadata: dict[str, object] = dict(zip(KEY_NAMES, recording.key, strict=True))
    if isinstance(recording.space, Sphere):
        metadata["space"] = "sphere"
    if "pupil_unit" in recording.metadata:
        metadata["pupil_unit"] = recording.metadata["pupil_unit"]
    return pm.Gaze(
        _flat(recording, eyes=both),
        _experiment(pm, recording),
        _events_out(pm, recording),
        metadata=metadata,
        messages=_messages_out(recording),
        time_column="time",
        time_unit="ms",
        position_columns=columns,
    )


def _flat(recording: Recording, eyes: bool) -> pl.DataFrame:
    if len(recording) == 0:
        raise DataError(
            f"{recording.title} has no samples, and a pymovements Gaze is made of them. Leave it"
            " out with cohort.select."
        )
    line = np.stack((recording.x_deg, recording.y_deg), axis=1)
    line[~recording.valid] = np.nan
    whole = bool((recording.t_ns % 1_000_000 == 0).all())
    columns: dict[str, NDArray[np.generic]] = {
        "time": recording.t_ns // 1_000_000 if whole else recording.t_ns / 1e6,
        "t_ns": recording.t_ns,
    }
    nothing = np.full((len(recording), 2), np.nan)
    sides = (
        {"left": recording.left_deg, "right": recording.right_deg, "line": line}
        if eyes
        else {"line": line}
    )
    for eye, values in sides.items():
        places = nothing if values is None else values
        columns |= {f"{eye}_x": places[:, 0], f"{eye}_y": places[:, 1]}
    if recording.pupil is not None:
        columns["pupil"] = recording.pupil
    columns |= {f"{LABEL}{k}": v for k, v in recording.labels.items()}
    return pl.DataFrame(columns, nan_to_null=True)


def _experiment(pm: Any, recording: Recording) -> object:
    rate = recording.rate_hz if recording.rate_hz > 0 else None
    space = recording.space
    monocular = (recording.left_deg is not None) != (recording.right_deg is not None)
    eyes = (
        {"left": recording.left_deg is not None, "right": recording.right_deg is not None}
        if monocular
        else {}
    )
    tracker = pm.EyeTracker(sampling_rate=rate, **eyes)
    if isinstance(space, Sphere):
        return pm.Experiment(eyetracker=tracker)
    pixels = [int(v) if float(v).is_integer() else v for v in (space.width_px, space.height_px)]
    screen = pm.Screen(
        pixels[0],
        pixels[1],
        space.width_mm / 10,
        space.height_mm / 10,
        space.distance_mm / 10,
        "upper left",
    )
    return pm.Experiment(screen=screen, eyetracker=tracker)


def _events_out(pm: Any, recording: Recording) -> object:
    events = recording.events
    if events is None:
        return None
    whole = bool((recording.t_ns % 1_000_000 == 0).all())
    onset, offset = (
        (t // 1_000_000 if whole else t / 1e6) for t in (events.onset_ns, events.offset_ns)
    )
    return pm.Events(name=[str(k) for k in events.kind], onsets=onset, offsets=offset)


def _messages_out(recording: Recording) -> pl.DataFrame | None:
    if not recording.messages:
        return None
    return pl.DataFrame(
        {
            "time": [m.t_ns / 1e6 for m in recording.messages],
            "content": [m.text for m in recording.messages],
        }
    )
