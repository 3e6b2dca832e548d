"""What every source of gaze is: a rate, a space, and samples that arrive block by block, with None
where the tracker vanished.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing

from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.picture import ImagePlane
from gazeveil.gaze.geometry import Space

#: Lines about trackers go here: counts and reasons, never gaze.
LOG = logging.getLogger(__package__)

#: For libraries whose own lines would hold gaze: `websockets` writes every frame to its log at
#: level DEBUG, whatever the frame holds.
QUIET = logging.getLogger("gazeveil.gatekeeper.quiet")
QUIET.setLevel(logging.CRITICAL + 1)


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
    picture : ImagePlane, optional
        The picture that its places are parts of, where it has one.
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
    picture: ImagePlane | None = None

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


class ReconnectingTracker(Tracker):
    """A source that is connected to, and connected to again with back-off when it is gone.

    Subclasses have :meth:`connection`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._closing = False

    async def close(self) -> None:
        """End the iterator at the next sample or silence."""
        self._closing = True

    @abstractmethod
    def connection(self) -> AsyncGenerator[Block | None, None]:
        """Yield the samples of one connection until it ends; none if there is no answer."""

    async def samples(self) -> AsyncIterator[Block | None]:
        """Samples of one connection after another; None when the tracker vanished."""
        pauses = back_off()
        while not self._closing:
            live = False
            async with aclosing(self.connection()) as blocks:
                async for block in blocks:
                    if block is not None and not live:
                        live, pauses = True, back_off()
                        self.counts["connected"] += 1
                    yield block
            if self._closing:
                break
            if live:
                self.vanished()
                yield None
            await asyncio.sleep(next(pauses))


def back_off(first_s: float = 0.2, most_s: float = 5.0) -> Iterator[float]:
    """Pauses between attempts to connect: each twice as long as the last, up to a limit, without
    end.
    """
    pause = first_s
    while True:
        yield pause
        pause = min(most_s, pause * 2)
