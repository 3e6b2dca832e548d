"""Sessions: samples are pushed in, and what is released comes out.

A session validates every sample before a stage sees it and marks as lost what is not plain gaze: a
sample that the tracker calls invalid, NaN or infinity, a place outside the space, a time that does
not come after the last good one. A lost sample leaves the session as NaN and not valid, whatever it
held. After a clock that was set back call `reset()`.

Times. `published` passes the tracker's times on, as the paper does. Otherwise the released times
lie on the regular grid of the nominal rate, beginning at the time of the first sample: the n-th
sample is at n / rate. Where good samples come more than two steps later than that, the grid skips
to the nearest step, so that pauses of a tracker do not shift everything after them. Where they come
more than two steps earlier, because the tracker is faster than its nominal rate for a while, the
grid goes on by half steps until it has caught up. A mechanism that hides which samples are lost
has the grid follow the times of all samples instead, so that released times do not tell it; a
time is then lost if it does not come after that of the sample before, good or not.

One code runs a single sample, a block and many streams, so that all of them give the same bits.
Every sample uses up its noise, lost or not, so the noise of a sample depends on its number alone.

The working state of one mechanism: what a session runs.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Bounds
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.losses.public_clock import LOST, NEVER_COVERED, TOLD_BY_FILL

if TYPE_CHECKING:
    from gazeveil.privacy.stream.mechanism import StreamMechanism

#: What the module of a stream mechanism needs, in one place.
__all__ = ["Bits", "Bools", "Floats", "Ints", "Samples", "Session", "Space", "Sphere", "Stage"]


#: Samples that are looked at together.
PIECE = 512


@compiled
def _plain(x_deg: Floats, y_deg: Floats, valid: Bools, bounds: Bounds) -> bool:
    """Whether all of these samples are plain gaze; without branches, so that several are looked at
    a time.
    """
    inside = 0
    for i in range(len(x_deg)):
        inside += is_plain(x_deg[i], y_deg[i], bounds)
    for i in range(len(x_deg)):
        inside += valid[i]
    return inside == 2 * len(x_deg)


@compiled
def _regular(
    t_ns: Ints,
    grid_ns: Ints,
    last: int,
    origin: int,
    step: int,
    half_ns: float,
    two_periods_ns: int,
) -> bool:
    """Whether times go up from `last` and are at most two periods from the grid after `step`, which
    is written.
    """
    for i in range(len(t_ns)):
        grid_ns[i] = origin + np.int64(np.rint(np.float64(step + 2 * (i + 1)) * half_ns))
    good = t_ns[0] > last
    for i in range(len(t_ns)):
        good += abs(t_ns[i] - grid_ns[i]) <= two_periods_ns
    for i in range(1, len(t_ns)):
        good += t_ns[i] > t_ns[i - 1]
    return good == 2 * len(t_ns)


@compiled
def validate_samples(
    t_ns: Ints,
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    sphere: bool,
    keeps_tracker_times: bool,
    hides_losses: bool,
    period_ns: float,
    clock: Ints,
) -> None:
    """Validate in place: what is not plain gaze becomes lost, and times become those that are
    released.

    `clock` has per stream: bits (1 begun, 2 a good sample was seen), time of the first sample, time
    of the last good one (with `hides_losses` of the last one), place on the grid in half steps,
    latest time of any sample.

    With `hides_losses` the grid follows the times of all samples, good or not: if it waited for a
    good one after a pause, released times would tell which samples were lost. A time must then come
    after that of the sample before, good or not: if it were compared with the last good one, a
    sample with a time far ahead, lost or not, would decide whether all later ones are looked at.
    """
    # Long: one compiled loop over samples; calls would hand all of its state on.
    bounds = bounds_deg(sphere)
    two_periods_ns, half_ns = int(2.0 * period_ns), 0.5 * period_ns
    n = x_deg.shape[1]
    grids_ns = np.empty(PIECE if n >= PIECE else 0, dtype=np.int64)
    for s in range(x_deg.shape[0]):
        begun, origin, last, step = clock[s, 0], clock[s, 1], clock[s, 2], clock[s, 3]
        latest = clock[s, 4]
        i = 0
        while i < n:
            # Nearly always whole pieces are plain gaze at regular times, and looked at together.
            end = min(i + PIECE, n)
            if (
                begun == 3
                and end - i == PIECE
                and _plain(x_deg[s, i:end], y_deg[s, i:end], valid[s, i:end], bounds)
                and _regular(
                    t_ns[s, i:end],
                    grids_ns,
                    latest if hides_losses else last,
                    origin,
                    step,
                    half_ns,
                    two_periods_ns,
                )
            ):
                last, step = t_ns[s, end - 1], step + 2 * PIECE
                latest = max(latest, last)
                if not keeps_tracker_times:
                    t_ns[s, i:end] = grids_ns
                i = end
                continue
            while i < end:
                t, x, y = t_ns[s, i], x_deg[s, i], y_deg[s, i]
                first = begun == 0 if hides_losses else begun < 2
                ok = valid[s, i] and is_plain(x, y, bounds) and (first or t > last)
                if begun == 0:
                    # a clock near the end of 64 bits could not be counted on from
                    begun, origin, step = 1, (t if -4.0e18 < t < 4.0e18 else np.int64(0)), 0
                    latest = origin
                else:
                    step += 2
                believed = t > latest if hides_losses else ok
                latest = max(latest, t)
                grid = origin + np.int64(np.rint(step * half_ns))
                if believed and t - grid > two_periods_ns:
                    due = (float(t) - float(origin)) / period_ns
                    if due * period_ns + abs(float(origin)) < 4.0e18:
                        step = 2 * np.int64(np.rint(due))
                        grid = origin + np.int64(np.rint(step * half_ns))
                elif believed and grid - t > two_periods_ns and step > 1:
                    # a tracker that is faster than it says: half a step at a time, until its
                    # samples are no longer ahead of the grid
                    step -= 1
                    grid = origin + np.int64(np.rint(step * half_ns))
                if ok:
                    begun, last = 3, t
                else:
                    x_deg[s, i], y_deg[s, i] = np.nan, np.nan
                    last = t if hides_losses else last
                valid[s, i] = ok
                if not keeps_tracker_times:
                    t_ns[s, i] = grid
                i += 1
        clock[s, 0], clock[s, 1], clock[s, 2], clock[s, 3] = begun, origin, last, step
        clock[s, 4] = latest


#: t_ns, x_deg, y_deg, valid.
Samples: TypeAlias = tuple[Ints, Floats, Floats, Bools]


class Stage(ABC):
    """The working state of one mechanism for all streams of a session."""

    @abstractmethod
    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """What is released now.

        Parameters
        ----------
        t_ns, x_deg, y_deg, valid : arrays of shape (streams, n)
            Validated samples: where `valid` is False, x and y are NaN. They are lent
            for this call: they may be changed in place and returned, but not kept.
        """

    def reset(self) -> None:  # noqa: B027 - a stage without a past has nothing to forget
        """Forget the past; noise goes on and never repeats."""


_NUMBERS = (float, int, np.floating, np.integer)
_WHOLE = (int, np.integer)
_TRUTH = (bool, np.bool_)
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
        self._hides_losses = mechanism.hides_losses
        self._clock = np.zeros((rows, 5), dtype=np.int64)
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
        told: tuple[str, ...] = NEVER_COVERED
        if self._keeps_tracker_times:
            told = ("the tracker's own times",)
        elif self.mechanism.losses == "fill":
            told = (*(c for c in told if c != LOST), *TOLD_BY_FILL[self.mechanism.fills])
        promise = promise.with_not_covered(*told)
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
                    self._hides_losses,
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
                *own,
                self._sphere,
                self._keeps_tracker_times,
                self._hides_losses,
                self._period_ns,
                self._clock,
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
            # Not what came: a message goes to logs, and gaze must not.
            kinds_given = tuple(type(a).__name__ for a in (t_ns, x_deg, y_deg, valid))
            checks.refuse(owner, "samples", "numbers or arrays of equal shape", kinds_given)
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
            fits = len(shape) in (1, 2) and shape[0] == self.streams
            wanted = f"of shape ({self.streams},) or ({self.streams}, n)"
        if not fits:
            checks.refuse(owner, "samples", wanted, shape)
        rows = (self.streams or 1, -1) if x.size else (self.streams or 1, 0)
        return tuple(a.reshape(rows) for a in (t, x, y, v))
