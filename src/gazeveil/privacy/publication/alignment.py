"""Times from zero, one public rate, public lengths and one public screen: what a recording's clock
and geometry would tell is taken away before gaze is protected.

Step k of the public clock is at k / rate seconds. Samples take steps one after the other, as
:mod:`gazeveil.privacy.stream.losses.public_clock` says: jitter moves nothing, a pause becomes lost
samples, and where the tracker is faster than the clock samples are left out. Where it is slower,
the steps until the next sample repeat the last one, if there is no pause and no loss between them.
So a regular recording of the public rate passes bit for bit, and one sample of the tracker reaches
only the steps before the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.privacy.stream.losses.public_clock import MOST_STEPS, take_steps

#: Width and height in pixels and in millimetres: what makes screens the same, wherever heads are.
ScreenSize: TypeAlias = tuple[float, float, float, float]

#: Longest step between two samples of the tracker that is no pause, in its own periods.
LONGEST_STEP = 1.5

_CHANNELS = ("left_deg", "right_deg", "head_deg", "eye_in_head_deg", "pupil", "confidence")

#: The word of a sample that nobody labelled.
UNLABELLED = "undefined"

_DISTANCE_MM = 100.0  # an unknown screen's distance is rounded to this


@dataclass(frozen=True)
class Alignment:
    """What every recording of a release has in common.

    Parameters
    ----------
    rate_hz : Fraction, optional
        The public rate; None where each recording keeps its own.
    times_kept : bool
        Whether the tracker's own times pass as they are; then nothing else is aligned but screens.
    lengths_s : mapping of stimulus to seconds
        Public lengths; recordings of other stimuli keep their own.
    distances_mm : mapping of screen size to millimetres
        The public viewing distance of each screen; the eyes' own distance tells people apart.
    slowest_hz : float
        The lowest rate of a recording that was looked at, in Hz; NaN where that is not known.
    """

    rate_hz: Fraction | None = None
    times_kept: bool = False
    lengths_s: Mapping[str, Fraction] = field(default_factory=dict)
    distances_mm: Mapping[ScreenSize, float] = field(default_factory=dict)
    slowest_hz: float = math.nan

    def applied(self, recording: Recording) -> Recording:
        """A recording on the public clock, with every channel it has.

        Raises
        ------
        DataError
            Where its rate is not known, or its times need more steps than a recording may have.
        """
        space = self.public_space(recording.space)
        if self.times_kept or not len(recording):
            return recording.with_(space=space)
        if math.isnan(recording.rate_hz):
            raise DataError(
                f"The rate of {recording.title} is not known, so it cannot be put on a public"
                " clock. Say it: recording.with_(rate_hz=...), or keep its times."
            )
        rate_hz = recording.rate_hz if self.rate_hz is None else float(self.rate_hz)
        sources = sources_of_steps(recording, rate_hz)
        length = self.lengths_s.get(recording.stimulus)
        if length is not None:
            sources = _of_length(sources, math.ceil(length * Fraction(repr(rate_hz))))
        return _gathered(recording, sources, rate_hz).with_(space=space)

    def public_space(self, space: Space) -> Space:
        """The space with the public viewing distance."""
        if isinstance(space, Sphere):
            return space
        distance = self.distances_mm.get(screen_size(space))
        if distance is None:
            distance = max(_DISTANCE_MM, _DISTANCE_MM * round(space.distance_mm / _DISTANCE_MM))
        return replace(space, distance_mm=distance)

    @property
    def most_steps(self) -> int:
        """How many steps one sample of the tracker reaches at most."""
        if self.rate_hz is None or math.isnan(self.slowest_hz):
            return 1
        # A step within a period of the next sample's may already be taken by it.
        return max(1, math.ceil(LONGEST_STEP * float(self.rate_hz) / self.slowest_hz - 0.5))

    def to_dict(self) -> dict[str, object]:
        """The alignment as a certificate has it."""
        durations = "kept" if not self.lengths_s else "public"
        return {
            "time_zero": not self.times_kept,
            "rate_hz": None if self.rate_hz is None else str(self.rate_hz),
            "durations": durations,
        }


def aligned(cohort: Cohort, alignment: Alignment) -> Cohort:
    """Every recording of a cohort on the public clock; files are aligned when they are loaded."""
    items: list[Recording | Handle] = []
    for item in cohort.items:
        if isinstance(item, Recording):
            items.append(alignment.applied(item))
        else:
            load = partial(_load, item.load, alignment)
            items.append(replace(item, load=load, chunks=None))
    return Cohort(items, cohort.people, cohort.skipped, cohort.name)


def _load(load: Any, alignment: Alignment) -> Recording:
    return alignment.applied(load())


def screen_size(screen: Screen) -> ScreenSize:
    """What makes two screens the same."""
    return screen.width_px, screen.height_px, screen.width_mm, screen.height_mm


def sources_of_steps(recording: Recording, rate_hz: float) -> Ints:
    """The sample that each step of the public clock takes, -1 where there is no gaze."""
    steps = np.empty(len(recording), dtype=np.int64)
    sphere = isinstance(recording.space, Sphere)
    count = take_steps(
        recording.t_ns,
        recording.x_deg,
        recording.y_deg,
        recording.valid,
        sphere,
        1e9 / rate_hz,
        MOST_STEPS,
        steps,
    )
    if count < 0:
        raise DataError(
            f"The times of {recording.title} take more than {MOST_STEPS} samples at"
            f" {rate_hz:g} Hz, because of a pause or of a wrong time. Cut it, or keep its times."
        )
    taken = np.flatnonzero(steps >= 0)
    if not len(taken):
        return np.full(max(1, round(count * rate_hz / recording.rate_hz)), -1, dtype=np.int64)
    sources = np.full(count, -1, dtype=np.int64)
    sources[steps[taken]] = taken
    longest_ns = LONGEST_STEP * 1e9 / recording.rate_hz
    # Neighbours without a pause, whose steps are apart: the earlier one is repeated.
    near = (np.diff(taken) == 1) & (np.diff(recording.t_ns[taken]) <= longest_ns)
    apart = np.diff(steps[taken]) > 1
    for i in np.flatnonzero(near & apart):
        sources[steps[taken[i]] + 1 : steps[taken[i + 1]]] = taken[i]
    return sources


def _of_length(sources: Ints, steps: int) -> Ints:
    """Cut, or filled up with lost samples."""
    lost = np.full(max(0, steps - len(sources)), -1, dtype=np.int64)
    return np.concatenate((sources[:steps], lost))


def _gathered(recording: Recording, sources: Ints, rate_hz: float) -> Recording:
    """A recording whose samples are those of the steps."""
    lost = sources < 0
    at = np.where(lost, 0, sources)

    def floats(values: NDArray[np.float64]) -> NDArray[np.float64]:
        taken: NDArray[np.float64] = values[at].astype(np.float64)
        taken[lost] = np.nan
        return taken

    channels: dict[str, Any] = {
        n: floats(getattr(recording, n)) for n in _CHANNELS if getattr(recording, n) is not None
    }
    same = len(sources) == len(recording) and bool((lost | (sources == np.arange(len(at)))).all())
    events = recording.events
    origin_ns = int(recording.t_ns[0])
    if events is not None and same:
        moved = {n: getattr(events, n) - origin_ns for n in ("onset_ns", "offset_ns")}
        events = replace(events, **moved)
    elif events is not None:
        events = None
    return recording.with_(
        t_ns=np.rint(np.arange(len(sources)) * (1e9 / rate_hz)).astype(np.int64),
        x_deg=floats(recording.x_deg),
        y_deg=floats(recording.y_deg),
        valid=~lost & recording.valid[at],
        rate_hz=rate_hz,
        labels={k: np.where(lost, UNLABELLED, v[at]) for k, v in recording.labels.items()},
        events=events,
        messages=tuple(Message(m.t_ns - origin_ns, m.text) for m in recording.messages),
        metadata=_metadata(recording, at),
        counts={},
        truth=None,
        **channels,
    )


def _metadata(recording: Recording, at: Ints) -> dict[str, object]:
    """The metadata; what has a value for each sample goes with the samples."""
    return {
        k: v[at] if isinstance(v, np.ndarray) and len(v) == len(recording) else v
        for k, v in recording.metadata.items()
        if not isinstance(v, np.ndarray) or v.ndim
    }
