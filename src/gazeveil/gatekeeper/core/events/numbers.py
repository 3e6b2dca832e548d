"""The numbers by which an app knows the events it was told of.

Every app has numbers of its own. They begin at a secret place and go up by one with each event that
the app is told of for the first time. So a gap never tells of events that others were told of or
that happened elsewhere, and two apps that compare their numbers learn nothing from them.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from hashlib import blake2b

from gazeveil.gatekeeper.core.events.log import LENGTH, LoggedEvent, PublicEvent

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
    """Numbers of one app, which counts from `first`.

    Examples
    --------
    >>> from gazeveil.gatekeeper.core.events.log import EventLog
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
