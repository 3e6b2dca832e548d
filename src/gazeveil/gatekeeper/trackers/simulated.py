"""A simulated tracker: one simulated person who looks at one thing after another without end, in
real time.

The material comes from :func:`gazeveil.simulate`, a minute at a time, made in a thread while the
minute before is played. Times go on by exactly one period from sample to sample, also from one
minute to the next.

A mouse in the place of a tracker, for development: pages tell where the pointer is.

A replayed recording as a tracker: any file or folder that :func:`gazeveil.read` reads, paced by
its own times.

The recordings of a folder are played one after another. Between two the tracker is lost (None),
because the next one may be another person. A recording whose rate or space differs from the first
is left out, counted and named in the log. Times keep their distances but begin at the time of the
start, so that the time of recording is not revealed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.tracker import LOG, Tracker
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate import simulate
from gazeveil.io.reading import read

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
            late = math.floor((time.monotonic() - begin_s) * self.rate_hz)
            number = max(number + 1, late)
            await asyncio.sleep(max(0.0, begin_s + number / self.rate_hz - time.monotonic()))
            x_deg, y_deg = self._place or (math.nan, math.nan)
            self.counts["samples"] += 1
            yield block(time.time_ns(), x_deg, y_deg, self._place is not None)


#: Rates that differ by less are one rate: a recording's is estimated from its times.
_SAME_RATE = 0.05


class ReplayTracker(Tracker):
    """A recording, or the recordings of a folder, played in real time.

    Parameters
    ----------
    path : path
        File or folder of any readable format.
    loop : bool
        Whether to begin again at the end; if not, the samples end.
    speed : float
        Recorded seconds per second; infinity for as fast as possible.
    format : str, optional
        As :func:`gazeveil.read` takes it; found by looking at the files if not given.
    rate_hz : float, optional
        Said in place of what the recording says; needed where that is not known.
    start_ns : int, optional
        Time of the first sample; default: now.
    **options
        Options of the format, e.g. `screen`.
    """

    def __init__(
        self,
        path: str | Path,
        loop: bool = False,
        speed: float = 1.0,
        format: str | None = None,  # noqa: A002 - the name gazeveil.read has
        rate_hz: float | None = None,
        start_ns: int | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self.name = "replay"
        if not isinstance(loop, bool):
            checks.refuse("replay tracker", "loop", "true or false", loop)
        self.loop = loop
        self.speed = checked_speed("replay tracker", speed)
        self._start_ns = start_ns
        self._cohort = read(path, format, **options)
        if not len(self._cohort):
            raise DataError(f"There is no recording to replay in {path}.")
        first = self._cohort[0]
        if rate_hz is None and not np.isfinite(first.rate_hz):
            raise DataError(
                f"The rate of {first.title} is not known. Say it: replay:{path}?rate_hz=120."
            )
        self.rate_hz = checks.positive(
            "replay tracker", "rate_hz", first.rate_hz if rate_hz is None else rate_hz
        )
        self._said = rate_hz is not None
        self.space = first.space

    async def samples(self) -> AsyncIterator[Block | None]:
        """The samples, with None between recordings and at the end."""
        pace, next_ns = Pace(self.speed), self._start_ns
        played = False
        while True:
            some = False
            for k in range(len(self._cohort)):
                recording = await asyncio.to_thread(self._cohort.__getitem__, k)
                if not len(recording) or not self._fits(recording):
                    continue
                if played:
                    self.counts["lost"] += 1
                    yield None
                played = some = True
                self.counts["connected"] += 1
                next_ns = time.time_ns() if next_ns is None else next_ns
                t = next_ns + (recording.t_ns - recording.t_ns[0])
                async for part in pace.play(
                    block(t, recording.x_deg, recording.y_deg, recording.valid)
                ):
                    self.counts["samples"] += len(part)
                    yield part
                next_ns = int(t.max()) + round(1e9 / self.rate_hz)
            if not self.loop or not some:
                break
        self.counts["lost"] += 1
        yield None

    def _fits(self, recording: Recording) -> bool:
        same_rate = self._said or abs(recording.rate_hz / self.rate_hz - 1) <= _SAME_RATE
        if same_rate and recording.space == self.space:
            return True
        self.counts["left out"] += 1
        LOG.warning(
            "replay: left out the %s: its %s is not that of the first",
            recording.title,
            "space" if same_rate else "rate",
        )
        return False
