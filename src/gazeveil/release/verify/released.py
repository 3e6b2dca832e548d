"""What the recordings of a release show, read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.publication.part import CHANNELS

#: Metadata that a reader adds by itself, about the format and not about the recording.
_OF_READERS = frozenset(
    {"assumed_geometry", "doubts", "facts", "source", "unit"}
    | {f"arff_{n}" for n in ("width_px", "height_px", "width_mm", "height_mm", "distance_mm")}
)

Progress = Callable[[Iterable[Recording]], Iterable[Recording]]


@dataclass(frozen=True)
class ReleasedRecording:
    """One recording of a release.

    Parameters
    ----------
    person, stimulus, session, task : str
        Its names.
    rate_hz : float
        Nominal.
    space : Screen or Sphere
        Where it was shown.
    start_ns : int
        Its first time.
    samples : int
        How many.
    extras : tuple of str
        Parts beside gaze that it has.
    gaze : str
        SHA-256 of its gaze; equal for equal gaze.
    """

    person: str
    stimulus: str
    session: str
    task: str
    rate_hz: float
    space: Space
    start_ns: int
    samples: int
    extras: tuple[str, ...]
    gaze: str


def look(cohort: Cohort, progress: Progress = lambda r: r) -> tuple[ReleasedRecording, ...]:
    """Read every recording of a release once."""
    return tuple(_facts(r) for r in progress(cohort))


def _facts(r: Recording) -> ReleasedRecording:
    digest = hashlib.sha256()
    for values in (r.x_deg, r.y_deg, r.valid):
        digest.update(np.ascontiguousarray(values).tobytes())
    return ReleasedRecording(
        *r.key,
        rate_hz=r.rate_hz,
        space=r.space,
        start_ns=int(r.t_ns[0]) if len(r) else 0,
        samples=len(r),
        extras=tuple(n for n in CHANNELS if _has(r, n)),
        gaze=digest.hexdigest(),
    )


def _has(recording: Recording, name: str) -> bool:
    value = getattr(recording, name)
    if name == "metadata":
        return bool(set(value) - _OF_READERS)
    if name == "labels":
        # GazeCom's layout has a column for labels; in a release it says nothing.
        return any((words != "undefined").any() for words in value.values())
    if name == "confidence" and value is not None:
        return bool((value != recording.valid).any())
    return bool(value) if name == "messages" else value is not None
