"""A Recording: one person, one stimulus, one session, one task, and the samples of gaze.

Missing samples stay, marked invalid; nothing is invented or silently dropped. Times of valid
samples strictly increase: a tracker that sends a time twice or goes back has those samples kept
with their time and marked invalid (:func:`~gazeveil.gaze.recording.increasing`), so that everything
after may difference times without a second look.

Facts that reading rests on, with their origin, and the questions that it leaves open.

A fact is *said by the file*, *said by the user* (an option or a `dataset.toml`) or *guessed* (from
a path, a name or values). A doubt is a question for the user: what reading took, why that may be
wrong, and the lines of a `dataset.toml` that answer it.

Which samples are plain gaze, and when a clock counts as set back.

A sample is plain gaze if both angles are numbers inside the space: longitude in [0, 360) and
colatitude in [0, 180) degrees on a sphere, both in (-90, 90) degrees on a screen. NaN and infinity
are outside.

A sample whose time does not come after the last good one is lost. The clock was set back, and its
new times are believed, after :data:`SET_BACK_S` of such samples. They are counted at the nominal
rate, because the clock in doubt cannot measure. A relay sees whole blocks of times and believes a
single step back of more than :data:`SET_BACK_S` at once.

Times of samples: the rate they show, and which of them go forward.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.gaze import exchange
from gazeveil.gaze.cards import recording_html
from gazeveil.gaze.events import WORD, Events, read_only
from gazeveil.gaze.exchange import Tabular
from gazeveil.gaze.geometry import Screen, Space, Sphere

#: Lowest x, first x above, lowest y, first y above, in degrees.
Bounds: TypeAlias = tuple[float, float, float, float]

#: How long, or how far, times go back until the clock counts as set back, in seconds.
SET_BACK_S = 0.5

# Half-open as on the sphere: the smallest number above -90 makes the lower end open.
_SCREEN_LOW_DEG = math.nextafter(-90.0, 0.0)
#: Bounds of plain gaze.
SPHERE_DEG: Bounds = (0.0, 360.0, 0.0, 180.0)
SCREEN_DEG: Bounds = (_SCREEN_LOW_DEG, 90.0, _SCREEN_LOW_DEG, 90.0)


def are_plain(space: Space, x_deg: Floats, y_deg: Floats) -> Bools:
    """Which samples are plain gaze in a space."""
    low_x, high_x, low_y, high_y = SPHERE_DEG if isinstance(space, Sphere) else SCREEN_DEG
    return (x_deg >= low_x) & (x_deg < high_x) & (y_deg >= low_y) & (y_deg < high_y)


def set_back_samples(rate_hz: float) -> int:
    """Samples in :data:`SET_BACK_S` at a nominal rate in Hz, at least one."""
    return max(1, round(SET_BACK_S * rate_hz))


_KNOWN_RATES_HZ = (
    *(25, 30, 50, 60, 72, 75, 90, 100, 120, 125, 150, 200),
    *(240, 250, 300, 500, 600, 1000, 1200, 1250, 2000),
)

# Double steps are the tracker's own where at least one step in ten is one, and the distance between
# them varies by less than half of itself (by 0.9 where one in five samples is lost at random).
_DOUBLE_STEPS, _FEWEST_DOUBLE_STEPS, _REGULAR = 0.1, 10, 0.5


def estimate_rate_hz(t_ns: ArrayLike, valid: ArrayLike | None = None) -> float:
    """Samples per second from the steps between neighbouring samples, NaN for fewer than two.

    The mean over steps without gaps is used where it lies near the median, because stamps rounded
    to milliseconds put the median off (120 Hz would read as 125). A tracker that leaves out every
    fifth stamp of a faster clock (Pupil Invisible: 4, 4, 4, 8 ms) has the rate of its mean step;
    double steps that come irregularly are losses and change nothing. Rates that trackers really
    have are recognised within 1.5 %, since real clocks jitter.
    """
    t = np.asarray(t_ns, dtype=np.int64)
    if valid is not None and np.count_nonzero(valid) >= 2:
        t = t[np.asarray(valid)]
    steps = np.diff(t)
    steps = steps[steps > 0]
    if len(steps) == 0:
        return float("nan")
    median = float(np.median(steps))
    rate, near = 1e9 / median, steps[np.abs(steps - median) <= 0.4 * median]
    if len(near) and abs(1e9 / near.mean() / rate - 1) < 0.15:
        rate = 1e9 / float(near.mean())
    double = np.flatnonzero((steps > 1.5 * median) & (steps < 2.5 * median))
    if len(double) > max(_FEWEST_DOUBLE_STEPS, _DOUBLE_STEPS * len(steps)):
        apart = np.diff(double)
        if apart.std() < _REGULAR * apart.mean():
            rate = 1e9 / float(steps[steps < 2.5 * median].mean())
    nearest = min(_KNOWN_RATES_HZ, key=lambda known: abs(rate / known - 1))
    return float(nearest) if abs(rate / nearest - 1) < 0.015 else rate


def increasing(t_ns: ArrayLike, valid: ArrayLike) -> Bools:
    """`valid` with as few samples as possible unmarked so that the times of the rest strictly
    increase.

    This is a longest increasing subsequence: one wild time stamp costs one sample, wherever it
    stands.
    """
    t = np.ascontiguousarray(t_ns, dtype=np.int64)
    mask = np.array(valid, dtype=np.bool_)
    index = np.flatnonzero(mask)
    times = t[index]
    if len(times) < 2 or (np.diff(times) > 0).all():
        return mask
    mask[index[~_longest_increasing(times)]] = False
    return mask


def _longest_increasing(t: Ints) -> Bools:
    """Members of one longest increasing subsequence."""
    # ends[k]: the smallest end of an increasing run of length k + 1, at index tails[k].
    ends: list[int] = []
    tails: list[int] = []
    before = []
    for i, time in enumerate(t.tolist()):
        at = bisect_left(ends, time)
        before.append(tails[at - 1] if at else -1)
        if at == len(ends):
            ends.append(time)
            tails.append(i)
        else:
            ends[at], tails[at] = time, i
    members = np.zeros(len(t), dtype=np.bool_)
    last = tails[-1]
    while last >= 0:
        members[last] = True
        last = before[last]
    return members


#: Said by the file; said by an option or a dataset.toml; guessed.
FILE, SAID, GUESSED = "file", "said", "guessed"

#: Topics of facts, in the order in which they are shown.
TOPICS = (
    *("person", "stimulus", "session", "task"),
    *("clock", "unit", "y_axis", "screen", "validity"),
)


#: Value or basis of a fact that stands in a path.
PATH = "its path"


class Fact(NamedTuple):
    """One answer that reading needs: its value, its origin and what the origin is in detail."""

    value: str
    origin: str
    basis: str = ""

    @property
    def from_path(self) -> bool:
        """Whether a part of a path is the answer, by whatever rule."""
        return PATH in (self.value, self.basis)


class Doubt(NamedTuple):
    """A question that reading leaves open: its topic, one sentence, and the lines of a
    `dataset.toml` that answer it.
    """

    topic: str
    sentence: str
    remedy: str = ""


def merged(facts: Iterable[Mapping[str, Fact]]) -> dict[str, dict[Fact, int]]:
    """Topic -> facts of several recordings with the number of recordings each holds for."""
    found: dict[str, dict[Fact, int]] = {}
    for of_one in facts:
        for topic, fact in of_one.items():
            counts = found.setdefault(topic, {})
            counts[fact] = counts.get(fact, 0) + 1
    return {t: found[t] for t in (*TOPICS, *sorted(found.keys() - set(TOPICS))) if t in found}


#: (person, stimulus, session, task): what tells recordings apart.
RecordingKey: TypeAlias = tuple[str, str, str, str]

#: The names of its parts.
KEY_NAMES = ("person", "stimulus", "session", "task")

_SHAPES = {
    "left_deg": 2,
    "right_deg": 2,
    "head_deg": 3,
    "eye_in_head_deg": 2,
    "pupil": 0,
    "confidence": 0,
}


@dataclass(frozen=True)
class Message:
    """A line of text the experiment sent to the tracker, with its time in nanoseconds."""

    t_ns: int
    text: str


@dataclass(frozen=True, eq=False)
class Recording(Tabular):
    """Gaze samples of one person looking at one stimulus.

    Parameters
    ----------
    person, stimulus : str
        Who looked at what; any text.
    t_ns : array of int64, shape (n,)
        Time in nanoseconds, from any origin.
    x_deg, y_deg : array of float64, shape (n,)
        One line of sight in degrees of `space`: the mean of both eyes where both are valid, else
        the valid one.
    valid : array of bool, shape (n,), optional
        False where there is no gaze. Default: where x and y are finite. Invalid samples may hold
        NaN or the tracker's own value.
    space : Sphere or Screen
        What the degrees mean.
    rate_hz : float, optional
        Nominal samples per second; default one over the median time step, NaN where that is not
        known.
    session, task : str
        Free text; `session` "1" and no task by default.
    left_deg, right_deg : array of float64, shape (n, 2), optional
        The single eyes, NaN where lost.
    head_deg : array of float64, shape (n, 3), optional
        Head direction in equirectangular degrees (x, y) and roll (positive to the right).
    eye_in_head_deg : array of float64, shape (n, 2), optional
        Gaze in the head as tangent angles (right, down).
    pupil : array of float64, shape (n,), optional
        Pupil size in the tracker's unit (`metadata["pupil_unit"]`), NaN where lost.
    confidence : array of float64, shape (n,), optional
        The tracker's confidence in [0, 1].
    labels : mapping of str to array of str
        One word per sample from each labeller.
    events : Events, optional
        Events that came with the recording; the only content of fixation-only datasets.
    messages : tuple of Message
        What the experiment wrote into the file.
    counts : mapping of str to int
        `rows` read from the file and, by reason, those that are not samples: rows = samples + the
        rest.
    metadata : mapping of str to object
        Everything else the file says.
    truth : object, optional
        What a simulator knows about the recording; never written to disk.
    """

    person: str
    stimulus: str
    t_ns: Ints = field(repr=False)
    x_deg: Floats = field(repr=False)
    y_deg: Floats = field(repr=False)
    valid: Bools = field(default=None, repr=False)  # type: ignore[arg-type]
    space: Space = field(default_factory=Sphere)
    rate_hz: float = None  # type: ignore[assignment]
    session: str = "1"
    task: str = ""
    left_deg: Floats | None = field(default=None, repr=False)
    right_deg: Floats | None = field(default=None, repr=False)
    head_deg: Floats | None = field(default=None, repr=False)
    eye_in_head_deg: Floats | None = field(default=None, repr=False)
    pupil: Floats | None = field(default=None, repr=False)
    confidence: Floats | None = field(default=None, repr=False)
    labels: Mapping[str, Texts] = field(default_factory=dict, repr=False)
    events: Events | None = field(default=None, repr=False)
    messages: tuple[Message, ...] = field(default=(), repr=False)
    counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, object] = field(default_factory=dict, repr=False)
    truth: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        store = object.__setattr__
        for name in KEY_NAMES:
            if not isinstance(getattr(self, name), str):
                checks.refuse("Recording", name, "text", getattr(self, name))
        if not isinstance(self.space, Sphere | Screen):
            checks.refuse("Recording", "space", "a Sphere or a Screen", self.space)
        t = np.asarray(self.t_ns)
        if t.size and t.dtype.kind not in "iu":
            checks.refuse(
                "Recording",
                "t_ns",
                "whole nanoseconds (an integer array)",
                t.dtype,
                "Multiply seconds by 1e9 and round.",
            )
        store(self, "t_ns", np.ascontiguousarray(t, dtype=np.int64))
        n = len(self.t_ns)
        store(self, "x_deg", np.ascontiguousarray(self.x_deg, dtype=np.float64))
        store(self, "y_deg", np.ascontiguousarray(self.y_deg, dtype=np.float64))
        finite = (
            np.isfinite(self.x_deg) & np.isfinite(self.y_deg)
            if len(self.x_deg) == len(self.y_deg)
            else np.ones(0, dtype=np.bool_)
        )
        store(
            self,
            "valid",
            np.ascontiguousarray(finite if self.valid is None else self.valid, dtype=np.bool_),
        )
        self._check_shapes(n)
        if (self.valid & ~finite).any():
            raise DataError(
                f"Sample {np.flatnonzero(self.valid & ~finite)[0]} of {self.title} is marked valid"
                " but holds NaN or infinity. Mark it invalid."
            )
        self._check_valid()
        if self.rate_hz is None:
            store(self, "rate_hz", estimate_rate_hz(self.t_ns, self.valid))
        elif not np.isnan(self.rate_hz):
            store(self, "rate_hz", checks.positive("Recording", "rate_hz", self.rate_hz))
        labels = {str(k): np.ascontiguousarray(v, dtype=WORD) for k, v in self.labels.items()}
        for k, v in labels.items():
            if v.shape != (n,):
                raise DataError(
                    f"Label column '{k}' of {self.title} has {len(v)} words for {n} samples."
                )
        for name in ("t_ns", "x_deg", "y_deg", "valid"):
            store(self, name, read_only(getattr(self, name)))
        store(self, "labels", MappingProxyType({k: read_only(v) for k, v in labels.items()}))
        store(self, "counts", MappingProxyType(dict(self.counts)))
        store(self, "metadata", MappingProxyType(dict(self.metadata)))

    def _check_shapes(self, n: int) -> None:
        for name in ("t_ns", "x_deg", "y_deg", "valid"):
            if getattr(self, name).shape != (n,):
                raise DataError(
                    f"{name} of {self.title} has shape {getattr(self, name).shape}; all samples"
                    f" need shape ({n},)."
                )
        for name, width in _SHAPES.items():
            if getattr(self, name) is None:
                continue
            value = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            shape = (n, width) if width else (n,)
            if value.shape != shape:
                raise DataError(
                    f"{name} of {self.title} has shape {value.shape}; it needs {shape}."
                )
            object.__setattr__(self, name, read_only(value))

    def _check_valid(self) -> None:
        # Mostly all are valid, and a slice copies nothing.
        seen = slice(None) if self.valid.all() else self.valid
        x, y, times = self.x_deg[seen], self.y_deg[seen], self.t_ns[seen]
        if not are_plain(self.space, x, y).all():
            allowed = (
                "x in [0, 360) and y in [0, 180) on a Sphere"
                if isinstance(self.space, Sphere)
                else "x and y between -90 and 90 on a Screen"
            )
            extent = f"x {x.min():g} to {x.max():g}, y {y.min():g} to {y.max():g}"
            raise DataError(
                f"{self.title} has valid samples outside {allowed}. Got {extent}. If these are"
                " pixels, convert them with Screen.from_px."
            )
        if (times[1:] <= times[:-1]).any():
            first = int(np.flatnonzero(times[1:] <= times[:-1])[0]) + 1
            raise DataError(
                f"Times of valid samples must increase. In {self.title} valid sample {first} does"
                " not come after the one before it. Mark such samples invalid with"
                " gazeveil.gaze.recording.increasing(t_ns, valid)."
            )

    # Pickling: mapping proxies cannot be pickled, and worker processes get recordings.
    def __getstate__(self) -> dict[str, object]:
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("labels", "counts", "metadata"):
            state[name] = dict(state[name])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in ("labels", "counts", "metadata"):
            state[name] = MappingProxyType(state[name])
        # Arrays come back writable, and machine code is for one of both kinds.
        for array in (*state.values(), *state["labels"].values()):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
        # At once: workers of a study read tens of thousands of recordings back.
        self.__dict__.update(state)

    def __len__(self) -> int:
        return len(self.t_ns)

    def _repr_html_(self) -> str:
        return recording_html(self)

    @property
    def key(self) -> RecordingKey:
        """(person, stimulus, session, task): what tells recordings of a cohort apart."""
        return self.person, self.stimulus, self.session, self.task

    @property
    def source(self) -> str:
        """The file it came from, or an empty text."""
        return str(self.metadata.get("source", ""))

    @property
    def facts(self) -> dict[str, Fact]:
        """Origin of person, stimulus, clock, unit, y axis, screen and validity, as far as the
        reader says it.
        """
        return {k: Fact(*v) for k, v in self._noted("facts", {}).items()}

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Questions that reading this recording left open."""
        return tuple(Doubt(*d) for d in self._noted("doubts", ()))

    def _noted(self, name: str, default: Any) -> Any:
        return self.metadata.get(name, default)

    @property
    def title(self) -> str:
        """Words for messages."""
        return (
            f"recording (person '{self.person}', stimulus '{self.stimulus}', session"
            f" '{self.session}')"
        )

    @property
    def duration_s(self) -> float:
        """Seconds from the first to the last valid-or-not sample, at least 0."""
        if len(self):
            return max(0.0, float(self.t_ns.max() - self.t_ns.min()) / 1e9)
        if self.events is not None and len(self.events):
            return float(self.events.offset_ns.max() - self.events.onset_ns.min()) / 1e9
        return 0.0

    @property
    def vectors(self) -> Floats:
        """Unit gaze vectors, shape (n, 3); NaN where not valid."""
        v = self.space.vectors(self.x_deg, self.y_deg)
        v[~self.valid] = np.nan
        return v

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        space: Space | None = None,
        person: str | None = None,
        stimulus: str | None = None,
        session: str | None = None,
        task: str | None = None,
        rate_hz: float | None = None,
        events: Events | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Recording:
        """A recording from a data frame of its samples, as :meth:`to_polars` makes one.

        Parameters
        ----------
        frame : polars, pandas or Arrow data frame
            One row per sample: `t_ns` (whole nanoseconds; or `t_us`, `t_ms`, `t_s`), `x_deg` and
            `y_deg` (or `x_px` and `y_px` on a Screen), `valid` where known, and the channels of
            :mod:`gazeveil.io.adapters.frames`. Rows stay in their order.
        space : Sphere or Screen, optional
            What the degrees mean; needed where no column `space` says it.
        person, stimulus, session, task : str, optional
            Instead of the columns of these names.
        rate_hz : float, optional
            Instead of the column `rate_hz`; without both it is estimated from the times.
        events : Events, optional
            Events that go with the recording.
        metadata : mapping, optional
            Everything else that is known.

        Raises
        ------
        DataError
            In one sentence, for a frame that is not the samples of one recording.

        Examples
        --------
        >>> import polars as pl
        >>> frame = pl.DataFrame({"t_ms": [0, 4, 8], "x_deg": [1.0, 1.1, None], "y_deg": 2.0})
        >>> gaze = Recording.from_frame(frame, space=Sphere(), person="p1", stimulus="clip")
        >>> gaze.t_ns.tolist(), gaze.valid.tolist(), gaze.rate_hz
        ([0, 4000000, 8000000], [True, True, False], 250.0)
        """
        given = {
            "space": space,
            "person": person,
            "stimulus": stimulus,
            "session": session,
            "task": task,
            "rate_hz": rate_hz,
            "events": events,
            "metadata": metadata,
        }
        return exchange.value_of("Recording", frame, given)

    def with_(self, **changes: object) -> Recording:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def slice(self, start: int, stop: int) -> Recording:
        """Samples start to stop (exclusive), all channels; events that came with the recording are
        left out.
        """
        changes: dict[str, Any] = {
            n: getattr(self, n)[start:stop] for n in ("t_ns", "x_deg", "y_deg", "valid")
        }
        changes |= {
            n: getattr(self, n)[start:stop] for n in _SHAPES if getattr(self, n) is not None
        }
        changes["labels"] = {k: v[start:stop] for k, v in self.labels.items()}
        return replace(self, **changes, events=None, counts={}, truth=None)

    def resample(self, rate_hz: float, longest_gap_s: float = 0.075) -> Recording:
        """The same gaze on a regular grid of times.

        Positions are interpolated along the great circle between the two valid samples around each
        new time; the new sample is valid only if these are at most `longest_gap_s` apart and no
        invalid sample lies between them. Labels, confidence and pupil are taken from the nearest
        sample.

        Parameters
        ----------
        rate_hz : float
            New rate.
        longest_gap_s : float
            Longest gap that is bridged; never less than 1.5 of the recording's own steps.
        """
        rate = checks.positive("resample", "rate_hz", rate_hz)
        order = np.flatnonzero(self.valid)
        if len(order) == 0:
            if len(self) < 2:
                return self.with_(rate_hz=rate)
            times = (
                np.arange(self.t_ns.min(), self.t_ns.max() + 1, 1e9 / rate).round().astype(np.int64)
            )
            lost = np.full(len(times), np.nan)
            near = np.clip(
                np.searchsorted(np.maximum.accumulate(self.t_ns), times), 0, len(self) - 1
            )
            return self._regridded(
                times, lost, lost.copy(), np.zeros(len(times), dtype=np.bool_), near, rate
            )
        t = self.t_ns[order]
        first, last = int(min(self.t_ns.min(), t[0])), int(max(self.t_ns.max(), t[-1]))
        times = first + np.round(
            np.arange(int((last - first) * rate / 1e9 + 1e-6) + 1) * (1e9 / rate)
        ).astype(np.int64)
        after = np.searchsorted(t, times, side="left")
        lo, hi = np.clip(after - 1, 0, len(t) - 1), np.clip(after, 0, len(t) - 1)
        exact = t[hi] == times
        lo = np.where(exact, hi, lo)
        step = np.maximum(t[hi] - t[lo], 1)
        share = np.where(hi == lo, 0.0, (times - t[lo]) / step)[:, None]
        longest_ns = 1e9 * max(longest_gap_s, 1.5 / self.rate_hz if self.rate_hz > 0 else 0.0)
        whole = (order[hi] - order[lo] <= 1) & (t[hi] - t[lo] <= longest_ns)
        inside = (times >= t[0]) & (times <= t[-1])
        v = self.space.vectors(self.x_deg[order], self.y_deg[order])
        x, y = self.space.degrees(v[lo] * (1 - share) + v[hi] * share)
        # A sample that falls on a new time passes through untouched, bit for bit.
        x, y = np.where(exact, self.x_deg[order][hi], x), np.where(exact, self.y_deg[order][hi], y)
        valid = inside & whole & np.isfinite(x) & np.isfinite(y)
        near = order[np.where(share[:, 0] > 0.5, hi, lo)]
        return self._regridded(
            times, np.where(valid, x, np.nan), np.where(valid, y, np.nan), valid, near, rate
        )

    def _regridded(
        self, times: Ints, x: Floats, y: Floats, valid: Bools, near: Ints, rate: float
    ) -> Recording:
        changes: dict[str, object] = {
            n: getattr(self, n)[near] for n in _SHAPES if getattr(self, n) is not None
        }
        changes["labels"] = {k: v[near] for k, v in self.labels.items()}
        return replace(
            self,
            t_ns=times,
            x_deg=x,
            y_deg=y,
            valid=valid,
            rate_hz=rate,
            events=None,
            counts={},
            truth=None,
            **changes,  # type: ignore[arg-type]
        )
