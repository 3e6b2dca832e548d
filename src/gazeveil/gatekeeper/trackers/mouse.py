"""A mouse in the place of a tracker, for development: pages tell where the pointer is."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator

from gazeveil import checks
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Screen

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
