"""Real-time pacing of samples that are known in advance: simulated gaze and replayed recordings."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator

import numpy as np

from gazeveil import checks
from gazeveil.gatekeeper.blocks import Block

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
    return Block(t[part], x[part], y[part], valid[part], samples.form)
