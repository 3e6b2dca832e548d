"""What every source of gaze is: a rate, a space, and samples that arrive block by block, with None
where the tracker vanished.

The clock of a tracker, followed by when its samples arrive: how old gaze is, and where the
tracker's clock was set.

A tracker's clock has an origin of its own, so the age of a sample is known only against the
quickest arrivals: by how much more than theirs its arrival lies behind its time. After a stall (of
the service, the driver or the line) what had waited comes all at once, with times that go on where
they stopped: it is old, until the last of it has come, also where some of it was lost on the way.
A clock that is set shows itself otherwise: times go back, or lie beyond the present. Then the times
are shifted, so that the device's own go on.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable

import numpy as np

from gazeveil.gatekeeper.blocks import Block
from gazeveil.gaze.geometry import Space

#: Lines about trackers go here: counts and reasons, never gaze.
LOG = logging.getLogger(__package__)


class Tracker(ABC):
    """A source of gaze; made by :func:`gazeveil.gatekeeper.trackers.open_tracker`.

    Attributes
    ----------
    rate_hz : float
        Nominal samples per second.
    space : Sphere or Screen
        What the degrees mean.
    name : str
        For logs and the dashboard.
    counts : Counter of str
        `samples`, `malformed`, `lost` (times the tracker vanished), `connected` and whatever else
        the source counts. No gaze.
    trouble : str
        Fault that stops or distorts gaze, and its remedy, in one sentence for the operator; empty
        without a fault.
    on_confirm : callable, optional
        Called, on the event loop, when the tracker says that the wearer made the gesture for a
        choice.
    """

    rate_hz: float
    space: Space
    name: str

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.trouble = ""
        self.on_confirm: Callable[[], None] | None = None

    @abstractmethod
    def samples(self) -> AsyncIterator[Block | None]:
        """The samples as they come; None when the tracker vanished.

        The iterator connects, and connects again with back-off when the tracker is gone; it ends
        only where the source itself ends (a replay that does not loop). Take it once.
        """

    async def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Let go of sockets and threads; the iterator ends."""

    def malformed(self, reason: str) -> None:
        """Count a message that could not be read; the first and every thousandth is logged. The
        reason holds no gaze.
        """
        self.counts["malformed"] += 1
        if self.counts["malformed"] % 1000 == 1:
            LOG.warning(
                "%s: dropped a malformed message (%d so far): %s",
                self.name,
                self.counts["malformed"],
                reason,
            )

    def confirmed(self) -> None:
        """Hand the wearer's gesture on."""
        self.counts["confirmed"] += 1
        if self.on_confirm is not None:
            self.on_confirm()

    def vanished(self) -> None:
        """Count and log that the tracker is gone."""
        self.counts["lost"] += 1
        LOG.warning("%s: the tracker vanished", self.name)


#: A time that lies so far behind the one before is of a clock that was set back, in ns.
_BACK_NS = 50_000_000

#: A time that lies so far beyond the present is of a clock that was set ahead.
_AHEAD_NS = 1_000_000_000

#: For so long the quickest arrival counts; longer, and clocks that drift apart would age all gaze.
_WINDOW_NS = 30_000_000_000


def arrival_ns() -> int:
    """Now, on a clock that also goes on while the device sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()


class TrackerClock:
    """Follows a tracker's clock.

    Parameters
    ----------
    late_ns : int
        From which age on gaze is old.

    Examples
    --------
    Samples of a second come at once after a stall: those of the last 0.2 s are of use.

    >>> def block(*t_ms):
    ...     t_ns = np.array(t_ms, dtype=np.int64) * 10**6
    ...     return Block(t_ns, t_ns * 0.0, t_ns * 0.0, t_ns >= 0)
    >>> clock = TrackerClock(200 * 10**6)
    >>> for t_ms in range(0, 500, 100):
    ...     _ = clock.follow(block(t_ms), t_ms * 10**6)
    >>> waited = clock.follow(block(*range(500, 1501, 100)), 1500 * 10**6)
    >>> len(clock.fresh(waited, 1500 * 10**6))
    3
    """

    def __init__(self, late_ns: int) -> None:
        self.late_ns = late_ns
        #: How often the tracker's clock was set.
        self.jumps = 0
        self.forget()

    def forget(self) -> None:
        """The tracker has left; the next one's clock is another."""
        self._shift_ns = 0
        self._last: int | None = None
        self._settled_ns = 0
        self._window_ns = 0
        # What the least difference was when this window began: what waited may come sample by
        # sample, each only a little newer than the last.
        self._begun_ns = 0
        # The least difference between arrival and time, in this window and in the one before.
        self._least_ns: list[int] = []
        self.age_ns = 0

    def follow(self, block: Block, now_ns: int) -> Block:
        """A block that has arrived, with times that go on although the tracker's clock was set."""
        present_ns = now_ns - min(self._least_ns, default=0)
        t_ns = block.t_ns + self._shift_ns
        if self._last is not None:
            back = np.flatnonzero(np.diff(t_ns, prepend=self._last) < -_BACK_NS)
            # Until it is settled what is old, times far ahead are of gaze that waited less long.
            settled = now_ns >= self._settled_ns
            ahead = np.flatnonzero((t_ns > present_ns + _AHEAD_NS) & settled)
            if len(back) or len(ahead):
                # The newest sample of a clock that was just set is taken to be new.
                begin = back[-1] if len(back) else ahead[0]
                shift_ns = present_ns - int(t_ns[-1])
                t_ns[begin:] += shift_ns
                self._shift_ns += shift_ns
                self.jumps += 1
                t_ns = np.minimum(t_ns, present_ns)
        self._last = int(t_ns[-1])
        self._arrived(now_ns - self._last, now_ns)
        return Block(t_ns, block.x_deg, block.y_deg, block.valid)

    def follow_one(self, t_ns: int, now_ns: int) -> int | None:
        """The time of one sample that is new and goes on from the last, as nearly all do; None, and
        nothing is taken, for one that :meth:`follow` and :meth:`fresh` have to look at.
        """
        if self._last is None or now_ns < self._settled_ns:
            return None
        t_ns += self._shift_ns
        behind_ns, least_ns = now_ns - t_ns, min(self._least_ns)
        quickest_ns = max(self._begun_ns - self.late_ns // 4, least_ns - _AHEAD_NS)
        new = quickest_ns <= behind_ns <= least_ns + self.late_ns
        if t_ns < self._last - _BACK_NS or not new:
            return None
        self._last = t_ns
        self._arrived(behind_ns, now_ns)
        return t_ns

    def _arrived(self, behind_ns: int, now_ns: int) -> None:
        """Take how far an arrival lies behind its time."""
        if not self._least_ns or behind_ns < self._begun_ns - self.late_ns // 4:
            # What came before was old, or is not known not to be.
            self._least_ns, self._settled_ns = [behind_ns], now_ns + self.late_ns
            self._begun_ns, self._window_ns = behind_ns, now_ns
        self.age_ns = behind_ns - min(self._least_ns)
        if self.age_ns <= self.late_ns:
            if now_ns - self._window_ns > _WINDOW_NS:
                self._least_ns, self._window_ns = [*self._least_ns[-1:], behind_ns], now_ns
                self._begun_ns = min(self._least_ns)
            self._least_ns[-1] = min(self._least_ns[-1], behind_ns)

    def fresh(self, block: Block, now_ns: int) -> Block:
        """The samples of a block that are new enough now; none in the first moment of a tracker,
        when what waited for it may still be coming.
        """
        least_ns = self._least_ns  # the tracker may leave meanwhile
        if not least_ns:
            return block
        oldest_ns = now_ns - min(least_ns) - self.late_ns
        settled = now_ns >= self._settled_ns
        begin = int(np.sum(block.t_ns < oldest_ns)) if settled else len(block)
        return Block(
            block.t_ns[begin:], block.x_deg[begin:], block.y_deg[begin:], block.valid[begin:]
        )
