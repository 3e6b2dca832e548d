"""Where a relay sends protected gaze: the same protocols that trackers speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.privacy.guarantee import Guarantee


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
    async def start(self, tracker: Tracker, guarantee: Guarantee) -> str:
        """Open the port; returns where clients find it, as text."""

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
