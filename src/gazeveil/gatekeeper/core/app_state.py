"""State of one app on the device, in memory only, and which of its refusals get an audit row.

Which apps use the gaze now, for the indicator that a platform shows beside its camera light.

An app is in use while it has a subscription, and for five seconds after an answer. What it uses is
told by the name of the scope.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gazeveil.gatekeeper.core.area_metrics import MeasuredArea
from gazeveil.gatekeeper.core.events import EventNumbers

#: Refusals of an app in a minute that have a row of the audit log each: with a row for each of
#: thousands it would fill the disk, and other apps would wait for its rows.
ROWS_PER_MINUTE = 60

_MINUTE_NS = 60 * 10**9


def last_minute(times_ns: deque[int], now_ns: int) -> int:
    """How many of these times, which grow, are of the last minute; older ones are dropped.

    Examples
    --------
    >>> last_minute(deque([10, 50]), _MINUTE_NS + 10)
    1
    """
    while times_ns and times_ns[0] <= now_ns - _MINUTE_NS:
        times_ns.popleft()
    return len(times_ns)


@dataclass
class RefusalRows:
    """Counts the refusals of one app, those with a row in this minute and those without.

    Examples
    --------
    >>> rows = RefusalRows()
    >>> [rows.refused(0) for _ in range(62)][-3:], rows.refused(_MINUTE_NS), rows.unrecorded
    ([0, None, None], 2, 0)
    """

    unrecorded: int = 0
    recorded: int = 0
    minute: int = 0

    def refused(self, now_ns: int) -> int | None:
        """Count a refusal; gives how many before it have no row, or None where this one gets none
        either.
        """
        minute = now_ns // _MINUTE_NS
        if minute != self.minute:
            self.minute, self.recorded = minute, 0
        if self.recorded >= ROWS_PER_MINUTE:
            self.unrecorded += 1
            return None
        unrecorded, self.unrecorded = self.unrecorded, 0
        self.recorded += 1
        return unrecorded


@dataclass
class AppState:
    """Areas, numbers of events, calls of the last minute and refusals of one app."""

    events: EventNumbers
    areas: dict[int, MeasuredArea] = field(default_factory=dict)
    area_count: int = 0
    visited: int = 0
    calls_ns: deque[int] = field(default_factory=deque)
    refusals: RefusalRows = field(default_factory=RefusalRows)

    def begin_anew(self, t_ms: int) -> None:
        """Have the areas count from `t_ms` on alone, as if they were registered then."""
        self.visited = 0
        self.areas = {
            number: MeasuredArea(replace(measured.area, since_ms=t_ms), measured.rectangle)
            for number, measured in self.areas.items()
        }


#: An answer counts as use for so long.
ANSWER_NS = 5 * 10**9

#: Pairs of an app and the scope it uses, sorted.
InUse: TypeAlias = tuple[tuple[str, str], ...]

#: Told whenever that changes.
OnUse: TypeAlias = Callable[[InUse], None]


class Indicator:
    """Gaze in use by apps, and callbacks for changes. Guarded by the Gatekeeper's lock."""

    def __init__(self) -> None:
        self._until_ns: dict[tuple[str, str], int] = {}
        self.callbacks: list[OnUse] = []
        self._last: InUse = ()

    def answered(self, app: str, scope: str, now_ns: int) -> None:
        """An answer was given."""
        self._until_ns[app, scope] = now_ns + ANSWER_NS

    def forget(self) -> None:
        """Drop recent answers, because they belong to the last wearer."""
        self._until_ns.clear()

    @property
    def waiting(self) -> bool:
        """Whether an answer still counts, so that time alone may change what is in use."""
        return bool(self._until_ns)

    def look(
        self, subscriptions: Iterable[tuple[str, str]], now_ns: int, tell: bool = True
    ) -> InUse:
        """Return the present use, and call the callbacks if it has changed.

        Without the Gatekeeper's lock only reading is allowed.
        """
        until_ns = {use: until for use, until in self._until_ns.copy().items() if now_ns < until}
        now = tuple(sorted({*subscriptions, *until_ns}))
        if tell:
            self._until_ns = until_ns
        if tell and now != self._last:
            self._last = now
            for callback in tuple(self.callbacks):
                try:
                    callback(now)
                except Exception:  # the indicator's own fault must not reach tracker or apps
                    self.callbacks.remove(callback)
        return now
