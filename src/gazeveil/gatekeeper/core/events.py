"""Events as apps are told of them: the log, each app's own numbers, and listeners.

The event log is the one list of quantised events that every answer of the Gatekeeper is made from.

An event holds the middle of a public cell, a tick and whole ticks. Nothing finer is kept, so
nothing finer can be asked for. The event log remembers the last :data:`LENGTH` events; older ones
are forgotten, and the sums of :mod:`gazeveil.gatekeeper.core.area_metrics` go on without them.

A fixation or pursuit has the cell of the mean of its samples, the tick it began in and the ticks
between the one it began in and the one it ended in (sums of such durations are right on average,
whatever the tick); where a pursuit began, ended or went is not kept. A saccade has the cell and the
tick of its landing alone.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

from gazeveil.gatekeeper.streams.subscription import Subscription

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
        own (:class:`EventNumbers`).
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


#: Numbers begin below this: large enough to hide where, small enough for a number in JavaScript to
#: count on.
_FIRST_BELOW = 2**40


def first_number(seed: int | None, app: str) -> int:
    """Where an app's numbers begin; with a seed, which is for tests, always at the same place."""
    if seed is None:
        return 1 + secrets.randbelow(_FIRST_BELOW)
    return (
        1 + int.from_bytes(blake2b(f"{seed} {app}".encode(), digest_size=5).digest()) % _FIRST_BELOW
    )


class EventNumbers:
    """The numbers by which one app knows the events it was told of; it counts from `first`.

    Every app has numbers of its own. They begin at a secret place and go up by one with each event
    that the app is told of for the first time. So a gap never tells of events that others were told
    of or that happened elsewhere, and two apps that compare their numbers learn nothing from them.

    Examples
    --------
    >>> event_log = EventLog()
    >>> entries = [event_log.write("fixation", 1, 1, 2.5, 2.5, 100 * i, 100) for i in range(5)]
    >>> numbers = EventNumbers(71)
    >>> [numbers.told(entries[i], event_log.oldest).number for i in (1, 4, 1, 2)]
    [71, 72, 71, 73]
    """

    def __init__(self, first: int) -> None:
        self._next = first
        self._mine: dict[int, int] = {}
        self._device_number: dict[int, int] = {}

    def told(self, entry: LoggedEvent, oldest: int) -> PublicEvent:
        """The event as this app sees it, from now on one it was told of. What is older than
        `oldest`, the oldest number the event log remembers, is forgotten here too, now and then.
        """
        there = entry.event.number
        if there not in self._mine:
            if len(self._mine) > 2 * LENGTH:
                self._mine = {there: mine for there, mine in self._mine.items() if there >= oldest}
                self._device_number = {mine: there for there, mine in self._mine.items()}
            self._mine[there], self._device_number[self._next] = self._next, there
            self._next += 1
        return replace(entry.event, number=self._mine[there])

    def device_number(self, number: object) -> int | None:
        """The event log's own number of an event that the app was told of; None for all others."""
        return self._device_number.get(number) if type(number) is int else None


#: What a listener may be told of: ends; for saccades starts too, or starts alone.
MODES = ("end", "start-stop", "start")


@dataclass(frozen=True, slots=True)
class SaccadeStart:
    """A saccade has begun: the tick and nothing else.

    Parameters
    ----------
    t_ms : int
        The tick in milliseconds since the session began.
    kind : str
        Always `saccade-start`.
    """

    t_ms: int
    kind: str = "saccade-start"


@dataclass(eq=False)
class Listener:
    """Listener for events of one kind: their starts, their ends, or both.

    A start carries its tick alone. Events before `since_ms`, the time of subscription, are not
    delivered.
    """

    subscription: Subscription
    kind: str
    starts: bool
    ends: bool
    callback: Callable[[PublicEvent | SaccadeStart], None]
    since_ms: int


def tell(subscription: Subscription, callback: Callable[..., None], *what: object) -> None:
    """Call a subscriber back, unless its subscription has ended; one that fails ends."""
    if subscription.ended is not None:
        return
    try:
        callback(*what)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscription.end("Its callback failed.", "closed")
