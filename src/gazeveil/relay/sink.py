"""Where a relay sends protected gaze: the same protocols that trackers speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.privacy.guarantee import Guarantee

#: What is said of a port that others reach, in a protocol without a token.
OPEN = (
    "Whoever reaches {host} gets the protected gaze: this protocol has no token. Use 127.0.0.1,"
    " or a network of its own."
)


class Sink(ABC):
    """A place that clients connect to.

    Attributes
    ----------
    counts : Counter of str
        `sent`, `dropped` and whatever else the protocol counts. No gaze.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @abstractmethod
    async def start(
        self, tracker: Tracker, guarantee: Guarantee, rate_hz: float | None = None
    ) -> str:
        """Open the port; returns where clients find it, as text.

        Parameters
        ----------
        tracker : Tracker
            Where gaze comes from.
        guarantee : Guarantee
            What the stream promises.
        rate_hz : float, optional
            Samples released in a second; by default as many as the tracker sends.
        """

    @property
    def seen_by(self) -> str:
        """One sentence where others than this machine's users get the gaze without a token."""
        return ""

    @abstractmethod
    def send(self, samples: Block) -> None:
        """Send protected samples; never waits: who reads too slowly loses samples, which are
        counted.
        """

    def lost(self) -> None:  # noqa: B027 - most protocols have no word for it
        """The tracker vanished."""

    @abstractmethod
    async def close(self) -> None:
        """Close the port."""
