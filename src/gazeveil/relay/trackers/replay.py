"""A replayed recording as a tracker: any file or folder that :func:`gazeveil.read` reads, paced by
its own times.

The recordings of a folder are played one after another. Between two the tracker is lost (None),
because the next one may be another person. A recording whose rate or space differs from the first
is left out, counted and named in the log. Times keep their distances but begin at the time of the
start, so that the time of recording is not revealed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.simulated import Pace, checked_speed
from gazeveil.gatekeeper.trackers.tracker import LOG, Tracker
from gazeveil.gaze.recording import Recording
from gazeveil.io.reading import read

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
