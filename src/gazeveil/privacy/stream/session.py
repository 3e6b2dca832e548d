"""What every stream mechanism shares: opening a session, pushing samples, and releasing whole
recordings through the same session.

A session has a front and one or more stages. The front looks at every sample before a mechanism
sees it and marks as lost what is not plain gaze: a sample that the tracker calls invalid, NaN or
infinity, a place outside the space, a time that does not come after the last good one. A lost
sample leaves the session as NaN and not valid, whatever it held. After a clock that was set back
call `reset()`.

Times. `published` passes the tracker's times on, as the paper does. Otherwise the released times
lie on the regular grid of the nominal rate, beginning at the time of the first sample: the n-th
sample is at n / rate. Where good samples come more than two steps later than that, the grid skips
to the nearest step, so that pauses of a tracker do not shift everything after them. Where they come
more than two steps earlier, because the tracker is faster than its nominal rate for a while, the
grid goes on by half steps until it has caught up.

One code runs a single sample, a block and many streams, so that all of them give the same bits.
Every sample uses up its noise, lost or not, so the noise of a sample depends on its number alone.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.algebra import RecordingsMap
from gazeveil.privacy.promise.stream_map import StreamMap
from gazeveil.privacy.randomness.supply import Bits, derived_seed
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.cohorts import protect_cohort
from gazeveil.privacy.stream.validate import validate_samples

#: t_ns, x_deg, y_deg, valid.
Samples: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]
]

_INT64, _FLOAT64, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)


def as_samples(
    t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike
) -> Samples | None:
    """These very arrays, where they are samples as sessions take them, or None; asking costs a
    tenth of making them so.
    """
    if not (
        isinstance(t_ns, np.ndarray)
        and isinstance(x_deg, np.ndarray)
        and isinstance(y_deg, np.ndarray)
        and isinstance(valid, np.ndarray)
    ):
        return None
    if (
        t_ns.dtype is not _INT64
        or x_deg.dtype is not _FLOAT64
        or y_deg.dtype is not _FLOAT64
        or valid.dtype is not _BOOL
    ):
        return None
    if t_ns.ndim != 1 or not t_ns.shape == x_deg.shape == y_deg.shape == valid.shape:
        return None
    return t_ns, x_deg, y_deg, valid


DAVIDJOHN2021 = (
    'David-John et al., "A privacy-preserving approach to streaming eye-tracking data", IEEE'
    " TVCG 2021"
)

#: Parts of a recording that a release leaves out unless `keep` names them, in words.
KEEPABLE = {
    "t_ns": "the tracker's own times",
    "labels": "the labels of samples",
    "events": "the events that came with the recording",
    "head_deg": "the head's direction",
    "eye_in_head_deg": "the eye's direction in the head",
    "left_deg": "the left eye's gaze",
    "right_deg": "the right eye's gaze",
    "pupil": "the pupil size",
    "confidence": "the tracker's confidence",
    "messages": "the experiment's messages",
    "metadata": "the metadata",
}

#: What no stream mechanism hides.
NEVER_COVERED = (
    "how long the stream is and when it begins",
    "which samples are lost",
    "pauses of the tracker of more than two samples, and when it is faster than its rate",
)

_NUMBERS = (float, int, np.floating, np.integer)
_WHOLE = (int, np.integer)
_TRUTH = (bool, np.bool_)


class Stage(ABC):
    """The working state of one mechanism for all streams of a session."""

    @abstractmethod
    def run(
        self,
        t_ns: NDArray[np.int64],
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
    ) -> Samples:
        """What is released now.

        Parameters
        ----------
        t_ns, x_deg, y_deg, valid : arrays of shape (streams, n)
            Samples that passed the front: where `valid` is False, x and y are NaN. They are lent
            for this call: they may be changed in place and returned, but not kept.
        """

    def reset(self) -> None:  # noqa: B027 - a stage without a past has nothing to forget
        """Forget the past; noise goes on and never repeats."""


@dataclass(frozen=True)
class StreamMechanism(Mechanism[Any]):
    """Base of the mechanisms on streams: subclasses say what they promise (:meth:`promise`) and how
    they work (:meth:`stage`).
    """

    @abstractmethod
    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The working state for `streams` streams; noise comes from `bits`."""

    @abstractmethod
    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """What a stream of that rate in that space is promised, known before any sample is seen.

        Its map, where it promises anything, is a
        :class:`~gazeveil.privacy.promise.stream_map.StreamMap`; what recordings and people add up
        to follows from it.
        """

    @property
    def stride(self) -> int:
        """Every how many samples one is released; 1 where each is."""
        return 1

    @property
    def causal(self) -> bool:
        """Whether it can run as samples come; if not, it has no sessions and is no stage of a
        chain.
        """
        return True

    @property
    def keeps_tracker_times(self) -> bool:
        """Whether the tracker's own times and labels pass through."""
        return self.reading.startswith("published")

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction] | None:
        """How a change travels through a stage that comes before the noise.

        If any of `w` samples in a row move by at most `r_deg`, then at most so many released
        samples in a row move by at most so much; None where there is no such bound.
        """
        return None

    def open(self, rate_hz: float, space: Space | None = None, seed: int | None = None) -> Session:
        """A session for one stream.

        Parameters
        ----------
        rate_hz : float
            Nominal samples per second.
        space : Sphere or Screen
            What the degrees mean; a Sphere by default.
        seed : int, optional
            A test stream instead of the operating system's randomness: repeatable, and only
            `claimed`.

        Raises
        ------
        ParameterError
            For a rate that is not a positive finite number, or another space.
        """
        return Session(
            self, rate_hz, Sphere() if space is None else space, None if seed is None else (seed,)
        )

    def open_many(
        self, count: int, rate_hz: float, space: Space | None = None, seed: int | None = None
    ) -> Session:
        """A session for many streams that go in step: each push takes one sample (or one block) of
        every stream.

        Stream i gives what `open(rate_hz, space, seed=derived_seed(seed, "stream", i))` gives.
        Without a seed all streams draw from the operating system.
        """
        n = checks.count(f"{self.name}.open_many", "count", count)
        seeds = None if seed is None else tuple(derived_seed(seed, "stream", i) for i in range(n))
        return Session(self, rate_hz, Sphere() if space is None else space, seeds, streams=n)

    def release(self, data: Any, seed: int | None = None, keep: Iterable[str] = ()) -> Release[Any]:
        """Protect a recording, or every recording of a cohort as a stream of its own.

        Parameters
        ----------
        data : Recording or Cohort
            A cohort gives a cohort; recordings that are not loaded yet are protected when they are
            loaded, with the same noise each time.
        seed : int, optional
            A test stream. A recording of a cohort gets `derived_seed(seed, person, stimulus,
            session, task)`.
        keep : names of :data:`KEEPABLE`
            Parts of the recording to pass on as they are; the guarantee then says that it does not
            cover them.

        Raises
        ------
        ParameterError
            For data of another kind or an unknown name in `keep`.
        DataError
            For a recording whose rate is not known.
        """
        kept = _keep(self.name, keep)
        if isinstance(data, Recording):
            out = self.protected(data, Bits(None if seed is None else (seed,)), kept)
            return Release(
                out,
                self._released([(data.person, data.rate_hz, data.space, len(data))], kept, seed),
                self.provenance(seed),
            )
        if not isinstance(data, Cohort):
            checks.refuse(self.name, "data", "a Recording or a Cohort", data)
        result, known = protect_cohort(partial(self.protected, kept=kept), data, seed)

        def promised() -> Guarantee:
            return self._released(known.all(), kept, seed).with_not_covered(
                "the attributes of people", "who saw what"
            )

        loaded = all(isinstance(item, Recording) for item in data.items)
        return Release(result, promised() if loaded else promised, self.provenance(seed))

    def _released(
        self,
        recordings: Iterable[tuple[str, float, Space, int]],
        kept: tuple[str, ...],
        seed: int | None,
    ) -> Guarantee:
        """What recordings of those people, rates, spaces and lengths are promised together: their
        maps merged, each with noise of its own.
        """
        promises: dict[tuple[float, Space], Guarantee] = {}
        merged: list[tuple[str, StreamMap, int]] = []
        for person, rate_hz, space, samples in recordings:
            if (rate_hz, space) not in promises:
                promises[rate_hz, space] = self.promise(rate_hz, space)
            losses = promises[rate_hz, space].losses
            if isinstance(losses, StreamMap):
                merged.append((person, losses, samples))
        # Where one of them promises nothing, so does the release.
        found = next((g for g in promises.values() if not isinstance(g.losses, StreamMap)), None)
        if found is None:
            found = replace(next(iter(promises.values())), losses=RecordingsMap.of(merged))
        found = found.with_not_covered(*(c for g in promises.values() for c in g.not_covered))
        found = found.with_not_covered(
            *(
                ("the tracker's own times", "the labels of samples")
                if self.keeps_tracker_times
                else NEVER_COVERED
            )
        )
        found = found.with_not_covered(*(f"{KEEPABLE[k]}, kept as they were" for k in kept))
        return found if seed is None else found.tested()

    def protected(self, recording: Recording, bits: Bits, kept: tuple[str, ...]) -> Recording:
        """A protected copy of one recording."""
        if np.isnan(recording.rate_hz):
            raise DataError(
                f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            )
        session = Session(self, recording.rate_hz, recording.space, bits=bits)
        t, x, y, valid = session.push(
            recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
        )
        keep = {*kept, *(("t_ns", "labels") if self.keeps_tracker_times else ())}
        every = slice(None, None, self.stride)
        parts: dict[str, Any] = {
            n: getattr(recording, n)[every]
            for n in keep
            if n not in ("labels", "events", "messages", "metadata")
            and getattr(recording, n) is not None
        }
        if "labels" in keep:
            parts["labels"] = {k: v[every] for k, v in recording.labels.items()}
        parts |= {n: getattr(recording, n) for n in ("events", "messages", "metadata") if n in keep}
        if "events" in keep and self.stride != 1:
            raise DataError(
                f"{self.name} leaves samples out, so events that count samples cannot be kept."
                " Detect them again in the release."
            )
        return Recording(
            recording.person,
            recording.stimulus,
            **{"t_ns": t, **parts},
            x_deg=x,
            y_deg=y,
            valid=valid,
            space=recording.space,
            rate_hz=recording.rate_hz / self.stride,
            session=recording.session,
            task=recording.task,
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.audit_samples import samplewise

        return samplewise(self, unit)


def _keep(owner: str, keep: Iterable[str]) -> tuple[str, ...]:
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        checks.one_of(owner, "keep", name, KEEPABLE)
    return tuple(dict.fromkeys(names))


class Session:
    """A stream, or many in step, under protection; made by :meth:`StreamMechanism.open`.

    Push from one thread or from several: a lock makes pushes follow one another. A session can be
    pickled, copied and forked; the copy has the same past and draws noise of its own.
    """

    def __init__(
        self,
        mechanism: StreamMechanism,
        rate_hz: float,
        space: Space,
        seeds: tuple[int, ...] | None = None,
        streams: int | None = None,
        bits: Bits | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.rate_hz = checks.positive(mechanism.name, "rate_hz", rate_hz)
        if not isinstance(space, Sphere | Screen):
            checks.refuse(mechanism.name, "space", "a Sphere or a Screen", space)
        self.space = space
        self.streams = streams
        bits = Bits(seeds) if bits is None else bits
        self.seeded = bits.seeded
        rows = streams or 1
        self._stage = mechanism.stage(self.rate_hz, space, rows, bits)
        self._period_ns = 1e9 / self.rate_hz
        self._sphere = isinstance(space, Sphere)
        self._keeps_tracker_times = mechanism.keeps_tracker_times
        self._clock = np.zeros((rows, 4), dtype=np.int64)
        self._scratch()

    def _scratch(self) -> None:
        self._lock = threading.Lock()
        self._flat = (
            np.zeros(1, dtype=np.int64),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1, dtype=np.bool_),
        )
        self._one = cast("Samples", tuple(a.reshape(1, 1) for a in self._flat))

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_one", "_flat")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._scratch()

    def __copy__(self) -> Session:
        # A shallow copy would share the noise drawn ahead and not the lock: two threads could be
        # handed the same values.
        return copy.deepcopy(self)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream promises, whatever is pushed."""
        promise = self.mechanism.promise(self.rate_hz, self.space)
        promise = promise.with_not_covered(
            *(("the tracker's own times",) if self._keeps_tracker_times else NEVER_COVERED)
        )
        return promise.tested() if self.seeded else promise

    def reset(self) -> None:
        """Begin a new stream: the past and the clock are forgotten, the noise goes on and never
        repeats.
        """
        with self._lock:
            self._clock[...] = 0
            self._stage.reset()

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> Samples:
        """Protect what the tracker just gave.

        Parameters
        ----------
        t_ns : int or array of int64
            Time in nanoseconds, from any origin.
        x_deg, y_deg : float or array of float64
            Degrees of the session's space.
        valid : bool or array of bool
            False where there is no gaze.

        Returns
        -------
        t_ns, x_deg, y_deg, valid : arrays
            What is released now: of shape (n,), maybe fewer than went in or none; for many streams
            of shape (streams, n).

        Raises
        ------
        ParameterError
            For arrays of another type or of unequal shape; nothing is released then.
        """
        if (
            self.streams is None
            and isinstance(t_ns, _WHOLE)
            and isinstance(x_deg, _NUMBERS)
            and isinstance(y_deg, _NUMBERS)
            and isinstance(valid, _TRUTH)
            and -(2**63) <= t_ns < 2**63
        ):
            with self._lock:
                t, x, y, ok = self._one
                t[0, 0], x[0, 0], y[0, 0], ok[0, 0] = t_ns, x_deg, y_deg, valid
                validate_samples(
                    t,
                    x,
                    y,
                    ok,
                    self._sphere,
                    self._keeps_tracker_times,
                    self._period_ns,
                    self._clock,
                )
                result = self._stage.run(t, x, y, ok)
                # The arrays of the session itself never leave it; copies of their flat twins do.
                a, b, c, d = self._flat
                return (
                    a.copy() if result[0] is t else result[0][0].copy(),
                    b.copy() if result[1] is x else result[1][0].copy(),
                    c.copy() if result[2] is y else result[2][0].copy(),
                    d.copy() if result[3] is ok else result[3][0].copy(),
                )
        t, x, y, v = self._arrays(t_ns, x_deg, y_deg, valid)
        # The kinds were checked. Copies: what is released never shares memory with what was given.
        own = (
            t.astype(np.int64, order="C"),
            x.astype(np.float64, order="C"),
            y.astype(np.float64, order="C"),
            v.astype(np.bool_, order="C"),
        )

        with self._lock:
            validate_samples(
                *own, self._sphere, self._keeps_tracker_times, self._period_ns, self._clock
            )
            result = self._stage.run(*own)
        return result if self.streams is not None else cast("Samples", tuple(a[0] for a in result))

    def _arrays(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike
    ) -> tuple[NDArray[Any], ...]:
        """The samples as (streams, n) arrays, not copied yet."""
        if self.streams is None and (ready := as_samples(t_ns, x_deg, y_deg, valid)) is not None:
            return tuple(a[np.newaxis] for a in ready)
        owner = f"{self.mechanism.name}.push"
        try:
            t, x, y, v = np.asarray(t_ns), np.asarray(x_deg), np.asarray(y_deg), np.asarray(valid)
        except (TypeError, ValueError):
            checks.refuse(
                owner, "samples", "numbers or arrays of equal shape", (t_ns, x_deg, y_deg, valid)
            )
        for name, array, kinds, allowed in (
            ("t_ns", t, "iu", "whole nanoseconds"),
            ("x_deg", x, "fiu", "degrees"),
            ("y_deg", y, "fiu", "degrees"),
            ("valid", v, "b", "truth values"),
        ):
            if array.dtype.kind not in kinds and not (array.size == 0 and array.dtype.kind == "f"):
                checks.refuse(owner, name, allowed, array.dtype.name)
        if t.dtype == np.uint64 and t.size and t.max() >= 2**63:
            checks.refuse(owner, "t_ns", "below 2**63", int(t.max()))
        shape = x.shape
        if v.ndim == 0:
            v = np.broadcast_to(v, shape)
        if t.ndim == 0 and self.streams is not None:
            t = np.broadcast_to(t, shape)
        if not t.shape == y.shape == v.shape == shape:
            checks.refuse(
                owner,
                "samples",
                "numbers or arrays of equal shape",
                (t.shape, x.shape, y.shape, v.shape),
            )
        if self.streams is None:
            fits, wanted = len(shape) <= 1, "numbers, or arrays of one dimension"
        else:
            fits, wanted = (
                len(shape) in (1, 2) and shape[0] == self.streams,
                f"of shape ({self.streams},) or ({self.streams}, n)",
            )
        if not fits:
            checks.refuse(owner, "samples", wanted, shape)
        rows = (self.streams or 1, -1) if x.size else (self.streams or 1, 0)
        return tuple(a.reshape(rows) for a in (t, x, y, v))
