"""A simulated tracker: one simulated person who looks at one thing after another without end, in
real time.

The material comes from :func:`gazeveil.simulate`, a minute at a time, made in a thread while the
minute before is played. Times go on by exactly one period from sample to sample, also from one
minute to the next.

A mouse in the place of a tracker, for development: pages tell where the pointer is.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from functools import partial

import numpy as np

from gazeveil import checks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate import simulate

_STIMULI = 1000

#: Waking more often than this buys nothing: clocks of event loops are not finer.
_LEAST_PAUSE_S = 0.002

#: Blocks of a source that is not paced.
_UNPACED_SAMPLES = 4096


def checked_speed(owner: str, speed: float) -> float:
    """A speed above 0; infinity is one."""
    return speed if speed == math.inf else checks.positive(owner, "speed", speed)


class Pace:
    """Gives samples out when their time has come, `speed` seconds of the recording per second;
    infinity for as fast as they are taken.
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._origin: tuple[float, int] | None = None

    async def play(self, samples: Block) -> AsyncIterator[Block]:
        """The samples in blocks of what is due; a sample is never early, and one that is late comes
        with those due by then.
        """
        n, at = len(samples), 0
        if math.isinf(self.speed):
            while at < n:
                yield _part(samples, at, at + _UNPACED_SAMPLES)
                at += _UNPACED_SAMPLES
                await asyncio.sleep(0)
            return
        # times that go back (a tracker's own mistakes) are due at once
        due_ns = np.maximum.accumulate(samples.t_ns)
        if self._origin is None and n:
            self._origin = (time.monotonic(), int(due_ns[0]))
        while at < n:
            assert self._origin is not None
            started, first_ns = self._origin
            now_ns = first_ns + round((time.monotonic() - started) * self.speed * 1e9)
            stop = int(np.searchsorted(due_ns, now_ns, side="right"))
            if stop > at:
                yield _part(samples, at, stop)
                at = stop
            else:
                await asyncio.sleep(
                    max((int(due_ns[at]) - now_ns) / 1e9 / self.speed, _LEAST_PAUSE_S)
                )


def _part(samples: Block, start: int, stop: int) -> Block:
    part = slice(start, stop)
    t, x, y, valid = samples.t_ns, samples.x_deg, samples.y_deg, samples.valid
    return Block(t[part], x[part], y[part], valid[part])


class SimulatedTracker(Tracker):
    """A simulated person under a simulated tracker.

    Parameters
    ----------
    rate_hz : float
        Samples per second.
    task : str
        A task of :func:`gazeveil.simulate`.
    space : Sphere or Screen, optional
        Default: as :func:`gazeveil.simulate` has it for the task.
    seed : int, optional
        The same seed gives the same gaze; without one every start has another person.
    speed : float
        Simulated seconds per second; infinity for as fast as possible.
    minute_s : float
        Length of one stimulus in seconds.
    start_ns : int, optional
        Time of the first sample; default: now.
    """

    def __init__(
        self,
        rate_hz: float = 120.0,
        task: str = "free-viewing",
        space: Space | None = None,
        seed: int | None = None,
        speed: float = 1.0,
        minute_s: float = 60.0,
        start_ns: int | None = None,
    ) -> None:
        super().__init__()
        self.name = "simulated"
        self.rate_hz = checks.positive("simulated tracker", "rate_hz", rate_hz)
        self.speed = checked_speed("simulated tracker", speed)
        length = checks.positive("simulated tracker", "minute_s", minute_s)
        self._cohort = simulate(
            1, _STIMULI, length, self.rate_hz, task=task, space=space, seed=seed
        )
        if space is None:
            space = simulate(1, 1, 1 / self.rate_hz, self.rate_hz, task=task, seed=0)[0].space
        self.space = space
        self._start_ns = start_ns

    async def samples(self) -> AsyncIterator[Block | None]:
        """Samples without end."""
        pace, number, start_ns = Pace(self.speed), 0, self._start_ns
        ahead: asyncio.Task[Recording] = asyncio.ensure_future(
            asyncio.to_thread(partial(self._cohort.__getitem__, 0))
        )
        which = 0
        try:
            while True:
                recording = await ahead
                which = (which + 1) % _STIMULI
                ahead = asyncio.ensure_future(
                    asyncio.to_thread(partial(self._cohort.__getitem__, which))
                )
                if start_ns is None:
                    start_ns = time.time_ns()
                    self.counts["connected"] += 1
                t = start_ns + np.round(
                    (number + np.arange(len(recording))) * (1e9 / self.rate_hz)
                ).astype(np.int64)
                number += len(recording)
                async for part in pace.play(
                    block(t, recording.x_deg, recording.y_deg, recording.valid)
                ):
                    self.counts["samples"] += len(part)
                    yield part
        finally:
            ahead.cancel()


#: A usual desk: 24 inches at 60 cm.
DESK = Screen(1920, 1080, 527.0, 296.0, 600.0)


class MouseTracker(Tracker):
    """Repeats the last place that it was told, at its rate.

    Parameters
    ----------
    rate_hz : float
        Samples per second.
    space : Screen, optional
        The screen; a usual desk's by default.
    """

    def __init__(self, rate_hz: float = 60.0, space: Screen | None = None) -> None:
        super().__init__()
        self.name = "mouse"
        self.rate_hz = checks.positive("mouse tracker", "rate_hz", rate_hz)
        self.space = DESK if space is None else space
        self._place: tuple[float, float] | None = None
        self._closing = False

    def point(self, x_deg: float | None, y_deg: float | None) -> None:
        """The pointer is there now; None where it has left the page."""
        known = x_deg is not None and y_deg is not None
        self._place = (float(x_deg or 0.0), float(y_deg or 0.0)) if known else None

    async def close(self) -> None:
        """End the iterator."""
        self._closing = True

    async def samples(self) -> AsyncIterator[Block | None]:
        """The last place, again and again."""
        self.counts["connected"] += 1
        begin_s, number = time.monotonic(), 0
        while not self._closing:
            number = max(number + 1, math.floor((time.monotonic() - begin_s) * self.rate_hz))
            await asyncio.sleep(max(0.0, begin_s + number / self.rate_hz - time.monotonic()))
            x_deg, y_deg = self._place or (math.nan, math.nan)
            self.counts["samples"] += 1
            yield block(time.time_ns(), x_deg, y_deg, self._place is not None)
