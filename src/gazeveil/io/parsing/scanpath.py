"""Scanpaths: recordings that hold fixations with a place and a time, but no samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Ints
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording


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
        metadata={"source": str(path), **(metadata or {})},
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
