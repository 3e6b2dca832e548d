"""Which function makes the data frame of which value, and which one reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.io.adapters.dataframes.events import events_frame, events_from
from gazeveil.io.adapters.dataframes.recordings import (
    cohort_frame,
    cohort_from,
    recording_frame,
    recording_from,
)

_READS: Mapping[str, Callable[..., Any]] = {
    "Recording": recording_from,
    "Cohort": cohort_from,
    "Events": events_from,
}


def frame_of(value: Recording | Cohort | Events) -> pl.DataFrame:
    """A polars frame of a value."""
    if isinstance(value, Recording):
        return recording_frame(value)
    return cohort_frame(value) if isinstance(value, Cohort) else events_frame(value)


def value_of(kind: str, frame: Any, given: Mapping[str, Any]) -> Any:
    """A value of a class from a frame and what is given beside it."""
    return _READS[kind](frame, **given)
