"""The event log: the one list of quantised events that every answer of the Gatekeeper is made from.

An event holds the middle of a public cell, a tick and whole ticks. Nothing finer is kept, so
nothing finer can be asked for. The event log remembers the last :data:`LENGTH` events; older ones
are forgotten, and the sums of :mod:`gazeveil.gatekeeper.core.area_metrics` go on without them.

A fixation or pursuit has the cell of the mean of its samples, the tick it began in and the ticks
between the one it began in and the one it ended in (sums of such durations are right on average,
whatever the tick); where a pursuit began, ended or went is not kept. A saccade has the cell and the
tick of its landing alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: Events that are remembered: about twenty minutes of looking.
LENGTH = 8192

#: What an event may be.
KINDS = ("fixation", "saccade", "pursuit")


@dataclass(frozen=True, slots=True)
class PublicEvent:
    """What an app can learn of an event.

    Parameters
    ----------
    number : int
        On the event log, counts the events of the device from 1. An app is given a number of its
        own (:mod:`gazeveil.gatekeeper.core.events.numbers`).
    kind : str
        One of :data:`KINDS`.
    x_deg, y_deg : float
        Middle of the cell: of a fixation's or pursuit's mean, of a saccade's landing.
    t_ms : int
        Tick in which a fixation or pursuit began or a saccade landed, in milliseconds since the
        session began.
    duration_ms : int
        Whole ticks of a fixation or pursuit, 0 for a saccade.
    """

    number: int
    kind: str
    x_deg: float
    y_deg: float
    t_ms: int
    duration_ms: int


class LoggedEvent(NamedTuple):
    """An event with its cell, as the event log keeps it."""

    event: PublicEvent
    row: int
    column: int


class EventLog:
    """The events of a device, the last `length` of them."""

    def __init__(self, length: int = LENGTH) -> None:
        self._entries: deque[LoggedEvent] = deque(maxlen=length)
        self.count = 0

    def write(
        self,
        kind: str,
        row: int,
        column: int,
        x_deg: float,
        y_deg: float,
        t_ms: int,
        duration_ms: int,
    ) -> LoggedEvent:
        """Add an event and give it the next number."""
        self.count += 1
        entry = LoggedEvent(
            PublicEvent(self.count, kind, x_deg, y_deg, t_ms, duration_ms), row, column
        )
        self._entries.append(entry)
        return entry

    @property
    def oldest(self) -> int:
        """Number of the oldest event that is remembered."""
        return self.count - len(self._entries) + 1

    def get(self, number: int) -> LoggedEvent | None:
        """The event of a number, None where it is forgotten or never was."""
        place = number - self.oldest
        return self._entries[place] if 0 <= place < len(self._entries) else None

    def after(self, number: int) -> Iterator[LoggedEvent]:
        """Remembered events with larger numbers, oldest first."""
        skip = max(0, number - self.oldest + 1)
        if skip > len(self._entries) // 2:
            # A deque is quick at its ends: those who ask for what is new do not walk through what
            # is old.
            newest = [self._entries[-i] for i in range(1, len(self._entries) - skip + 1)]
            yield from reversed(newest)
        else:
            for place, entry in enumerate(self._entries):
                if place >= skip:
                    yield entry
