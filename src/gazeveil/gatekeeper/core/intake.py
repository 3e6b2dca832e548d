"""The tracker's side of a Gatekeeper: samples come in, events of past ticks are published."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gatekeeper.blocks import OneSample
from gazeveil.gatekeeper.core.device_state import DeviceState
from gazeveil.gatekeeper.core.quantise import EventQuantiser, QuantisedEvent
from gazeveil.gatekeeper.core.selection import Hover
from gazeveil.gatekeeper.policy.policy import OWNER
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.privacy.stream.session import Samples, as_samples

_INTEGERS = (int, np.integer)
_NUMBERS = (float, int, np.floating, np.integer)
_BOOLEANS = (bool, np.bool_)

#: Samples that are worked off between two looks at whether a grant has ended: streams of a longer
#: block may wait for the ledger for seconds.
_PIECE = 1024

#: Eyes that are lost for so long are closed: blinks, which tell people apart, are shorter.
CLOSED_NS = 300_000_000

#: Raw blocks, for the owner's own view alone.
Watcher: TypeAlias = Callable[[Ints, Floats, Floats, Bools], None]


class GazeIntake:
    """Takes the gaze of one wearer into the state's events and streams."""

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self._watchers: dict[Subscription, Watcher] = {}
        self._lost_since_ns: int | None = None
        self._blocks_seen = False  # the detector is compiled when the first block has passed
        self.begin_quantising()

    def begin_quantising(self) -> None:
        """Begin the events of another wearer."""
        state = self._state
        self._quantiser = EventQuantiser(
            state.rate_hz, state.space, state.grid, state.level.tick_ms
        )
        self._pending: deque[QuantisedEvent] = deque()

    def forget_gaze(self) -> None:
        """Forget samples and events that are not published yet."""
        self._quantiser.reset()
        self._pending.clear()

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> None:
        """Take what the tracker just gave; callbacks run before this returns.

        Parameters
        ----------
        t_ns : int or array of int64
            Time in nanoseconds, from any origin.
        x_deg, y_deg : float or array
            Degrees of the space.
        valid : bool or array of bool
            False where there is no gaze. What is no place of the space, or comes with a time that
            does not go on, is a lost sample too.

        Raises
        ------
        ParameterError
            For arrays of unequal length or of another type; never for what the gaze is.
        """
        samples = _samples(t_ns, x_deg, y_deg, valid)
        with self._state.lock:
            self._push_block(samples)

    def push_now(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> bool:
        """Take what the tracker just gave, if nothing has to be waited for: a lock, the ledger, a
        compiler.

        For an event loop, which must not wait, and to which two changes of threads cost more than
        the work. Who gets False pushes the same samples on another thread.

        Returns
        -------
        bool
            Whether they were taken.
        """
        if not self._blocks_seen:
            return False
        samples = _samples(t_ns, x_deg, y_deg, valid)
        if not self._state.lock.acquire(blocking=False):
            return False
        try:
            if not self._state.pool.ready(1 if isinstance(samples, OneSample) else len(samples[0])):
                return False
            self._push_block(samples)
            return True
        finally:
            self._state.lock.release()

    def _push_block(self, samples: Samples | OneSample) -> None:
        if isinstance(samples, OneSample):
            self._push_one(samples)
            return
        for begin in range(0, max(len(samples[0]), 1), _PIECE):
            t, x, y, valid = samples
            piece = slice(begin, begin + _PIECE)
            self._push_piece((t[piece], x[piece], y[piece], valid[piece]))

    def _push_one(self, sample: OneSample) -> None:
        if self._idle():
            if self._watched():
                self._watch(sample.arrays())
            return
        due = self._quantiser.one(*sample)
        if not sample.valid or self._lost_since_ns is not None:
            self._see_eyes(sample.arrays())
        if self._watchers:
            self._watch(sample.arrays())
        if self._state.pool.active:
            self._state.pool.push(sample)
        if due:  # nothing can be decided before the tick is over
            self._take(self._quantiser.look())
            self._blocks_seen = True

    def _push_piece(self, samples: Samples) -> None:
        if self._idle():
            if self._watched():
                self._watch(samples)
            return
        self._see_eyes(samples)
        if self._watchers:
            self._watch(samples)
        self._state.pool.push(samples)
        self._take(self._quantiser.block(*samples))
        self._blocks_seen = True

    def _see_eyes(self, samples: Samples) -> None:
        """Notice eyes that close for longer than a blink, and that open again."""
        t_ns, valid = samples[0], samples[3]
        if not len(t_ns):
            return
        if valid[-1]:
            if self._lost_since_ns is not None:  # if only for a blink
                self._state.regions.open(self._state.t_ms)
            self._lost_since_ns = None
            return
        good = np.flatnonzero(valid)
        if len(good) or self._lost_since_ns is None:
            self._lost_since_ns = int(t_ns[good[-1]] if len(good) else t_ns[0])
        if int(t_ns[-1]) - self._lost_since_ns >= CLOSED_NS:
            self._state.regions.close(self._state.t_ms)

    def _idle(self) -> bool:
        """Whether samples are not to be looked at; also ends what has expired."""
        self._state.end_expired()
        return self._state.closed or not self._state.policy.consent

    def _watched(self) -> bool:
        """Whether the owner's page may show gaze that apps do not get.

        It shows the owner's own gaze alone, never that of another wearer.
        """
        return (
            bool(self._watchers) and not self._state.closed and self._state.policy.wearer == OWNER
        )

    def _watch(self, samples: Samples) -> None:
        for subscription, watcher in tuple(self._watchers.items()):
            try:
                watcher(samples[0].copy(), samples[1].copy(), samples[2].copy(), samples[3].copy())
            except Exception:
                subscription.end("Its callback failed.", "closed")

    def _take(self, decided: list[QuantisedEvent]) -> None:
        """Publish what was decided in ticks that are over."""
        self._state.end_expired()  # streams may have waited for the ledger since the samples came
        self._pending.extend(decided)
        tick, fixations = self._quantiser.tick, self._quantiser.ongoing_fixations()
        if tick > self._state.tick:
            self._state.tick = tick
            for fixation in fixations:
                self._publish(fixation.end_ns // self._quantiser.tick_ns + 1)
                self._state.rests(fixation)
            self._publish(tick)
            if self._state.indicator.waiting:
                self._state.in_use()
            for observation in tuple(self._state.observations.values()):
                observation.push(self._state.t_ms)
        if fixations:
            self._state.selections.judge(fixations, self._state.clock_ns())

    def _publish(self, tick: int) -> None:
        """Publish what was decided before a tick."""
        while self._pending and self._pending[0].decided_tick < tick:
            self._state.publish(self._pending.popleft())

    def lost(self) -> None:
        """The tracker vanished: open events end here, what was decided is told, and the tile is not
        known.
        """
        state = self._state
        with state.lock:
            if state.closed:
                return
            # The last sample may be long ago, and a grant may have ended since.
            state.end_expired()
            decided = self._quantiser.close()
            self._pending.extend(decided if state.policy.consent else ())
            while self._pending:
                state.publish(self._pending.popleft())
            state.pool.pause()
            state.forget_look()

    def gap(self) -> None:
        """Handle samples that came too late or were lost on the way.

        Unfinished events are dropped without notice, and the tile is unknown.
        """
        state = self._state
        with state.lock:
            self.forget_gaze()
            state.pool.pause()
            state.forget_look()

    def end_expired(self) -> None:
        """End what has expired. Samples do that as they come; this is for the time when none do.

        It never waits: while another thread holds the lock, as samples that wait for the ledger do,
        what has expired is only stopped, and leaves the lists when they have passed.
        """
        state = self._state
        if not state.has_expired():
            return
        state.stop_denied()
        if state.lock.acquire(blocking=False):
            try:
                state.end_expired()
            finally:
                state.lock.release()

    def confirm(self, app: str | None = None) -> None:
        """The wearer made the platform's gesture for "this one" (a pinch, a press): selections by
        `confirm` are judged by where the eye rests.

        For the platform alone; no app may call it. It says nothing and gives nothing back, whether
        something was chosen or not.

        Parameters
        ----------
        app : str, optional
            Whose gesture it is, where the platform knows which app is in front. Without it a place
            that targets of several apps hold belongs to none.
        """
        state = self._state
        with state.lock:
            if not self._idle():
                state.selections.confirmed(app, state.tick, state.clock_ns())

    def hover(self, callback: Hover) -> Subscription:
        """Have `callback(app, name)` called with the target of an open choice that the eye rests
        on, and with None twice when it leaves: for the platform alone, which may highlight it.
        Never hand it to an app, which learns of its choice and of nothing before.
        """
        with self._state.lock:
            subscription = Subscription(next(self._state.numbers), "", self._unwatch)
            self._state.selections.hovers[subscription] = callback
            return subscription

    def watch(self, callback: Watcher) -> Subscription:
        """Have `callback(t_ns, x_deg, y_deg, valid)` called with copies of the raw blocks, for the
        owner's own view on the trusted dashboard of the device. Never hand it to an app.
        """
        with self._state.lock:
            subscription = Subscription(next(self._state.numbers), "", self._unwatch)
            self._watchers[subscription] = callback
            return subscription

    def _unwatch(self, subscription: Subscription) -> None:
        with self._state.lock:
            self._watchers.pop(subscription, None)
            self._state.selections.hovers.pop(subscription, None)

    def end_watches(self, reason: str, code: str) -> None:
        """End what the platform and the owner's page look at."""
        for subscription in (*self._watchers, *self._state.selections.hovers):
            subscription.end(reason, code)


def _samples(
    t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike
) -> Samples | OneSample:
    """One sample, or the samples as arrays of their own: what a caller does to his afterwards
    changes nothing here.
    """
    if (
        isinstance(t_ns, _INTEGERS)
        and isinstance(x_deg, _NUMBERS)
        and isinstance(y_deg, _NUMBERS)
        and isinstance(valid, _BOOLEANS)
        and abs(int(t_ns)) < 2**62
    ):
        return OneSample(int(t_ns), float(x_deg), float(y_deg), bool(valid))
    owner = "Gatekeeper.push"
    ready = as_samples(t_ns, x_deg, y_deg, valid)
    if ready is not None:
        t, x, y, v = ready
        own = t.copy()
        _bound(own)
        return own, x.copy(), y.copy(), v.copy()
    try:
        t, x, y, v = (np.atleast_1d(np.asarray(a)) for a in (t_ns, x_deg, y_deg, valid))
    except (TypeError, ValueError):
        checks.refuse(owner, "samples", "numbers or arrays of equal length", "something else")
    for name, array, kinds, allowed in (
        ("t_ns", t, "iu", "whole nanoseconds"),
        ("x_deg", x, "fiu", "degrees"),
        ("y_deg", y, "fiu", "degrees"),
        ("valid", v, "b", "truth values"),
    ):
        if array.dtype.kind not in kinds and array.size:
            # The message names the type alone: a sample must not end up in a log.
            checks.refuse(owner, name, allowed, array.dtype.name)
    if v.shape == (1,) and x.shape != (1,):
        v = np.broadcast_to(v, x.shape)
    if not (x.ndim == 1 and t.shape == y.shape == v.shape == x.shape):
        checks.refuse(
            owner,
            "samples",
            "numbers or arrays of equal length",
            (t.shape, x.shape, y.shape, v.shape),
        )
    with np.errstate(invalid="ignore", over="ignore"):
        # A time beyond 62 bits is no time; it stays behind all others, so its sample is lost.
        t = np.where(
            (t.astype(np.float64) < 2.0**62) & (t.astype(np.float64) > -(2.0**62)), t, -(2**62)
        ).astype(np.int64)
        return t, x.astype(np.float64), y.astype(np.float64), v.astype(np.bool_)


@compiled
def _bound(t_ns: Ints) -> None:
    """A time beyond 62 bits is no time; it stays behind all others, so its sample is lost."""
    for i in range(len(t_ns)):
        if t_ns[i] <= -(1 << 62) or t_ns[i] >= 1 << 62:
            t_ns[i] = -(1 << 62)
