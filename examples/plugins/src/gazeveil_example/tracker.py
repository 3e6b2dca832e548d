"""`circle`: a source whose gaze goes round in a circle, for trying a display."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np

from gazeveil import Sphere
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import Tracker


class CircleTracker(Tracker):
    """Gaze on a circle of 10 degrees round the middle, once in four seconds.

    Parameters
    ----------
    rate_hz : float
        Samples per second.
    """

    summary = "Gaze that goes round in a circle"
    form = "circle"

    def __init__(self, rate_hz: float = 100.0) -> None:
        super().__init__()
        self.name, self.rate_hz, self.space = "circle", float(rate_hz), Sphere()
        self._open = True

    async def samples(self) -> AsyncIterator[Block | None]:
        """The samples that are due, every 20 ms."""
        started, number, first_ns = time.monotonic(), 0, time.time_ns()
        while self._open:
            due = int((time.monotonic() - started) * self.rate_hz)
            if due > number:
                count = np.arange(number, due)
                angle = count * (np.pi / 2 / self.rate_hz)
                t_ns = first_ns + np.round(count * (1e9 / self.rate_hz)).astype(np.int64)
                number = due
                part = block(
                    t_ns,
                    180 + 10 * np.cos(angle),
                    90 + 10 * np.sin(angle),
                    np.ones(len(count), dtype=bool),
                )
                self.counts["samples"] += len(part)
                yield part
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """End the iterator."""
        self._open = False
