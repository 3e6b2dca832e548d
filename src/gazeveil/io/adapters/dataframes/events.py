"""Events as data frames: one row per event, onset and offset as samples and as nanoseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.io.adapters.dataframes.columns import as_polars, floats, integers, need, texts


def events_frame(events: Events) -> pl.DataFrame:
    """The columns of the events, their duration in seconds and who says so."""
    return pl.DataFrame(events.columns()).with_columns(
        pl.Series("duration_s", events.duration_s), source=pl.lit(events.source)
    )


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
