"""A simulated tracker: one simulated person who looks at one thing after another without end, in
real time.

The material comes from :func:`gazeveil.simulate`, a minute at a time, made in a thread while the
minute before is played. Times go on by exactly one period from sample to sample, also from one
minute to the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial

import numpy as np

from gazeveil import checks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.pacing import Pace, checked_speed
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate import simulate

_STIMULI = 1000


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
