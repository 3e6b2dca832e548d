"""State of one app on the device, in memory only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gazeveil.gatekeeper.core.area_metrics import MeasuredArea
from gazeveil.gatekeeper.core.areas import Rectangle
from gazeveil.gatekeeper.core.events.numbers import EventNumbers
from gazeveil.gatekeeper.core.refusal_rows import RefusalRows

_SECOND_NS = 1_000_000_000


@dataclass
class AppState:
    """Areas, numbers of events, calls of the last minute, counters and refusals of one app."""

    events: EventNumbers
    areas: dict[int, MeasuredArea] = field(default_factory=dict)
    area_count: int = 0
    visited: int = 0
    calls: list[int] = field(default_factory=lambda: [0] * 60)
    calls_second: int = 0
    #: Up to which horizon the app has paid for an area's counter.
    horizons: dict[Rectangle, int] = field(default_factory=dict)
    #: What an area's counter said, with its noise, when the app began to ask.
    counted_before: dict[Rectangle, int] = field(default_factory=dict)
    refusals: RefusalRows = field(default_factory=RefusalRows)

    def begin_anew(self, t_ms: int) -> None:
        """Have the areas count from `t_ms` on alone, as if they were registered then."""
        self.visited = 0
        self.areas = {
            number: MeasuredArea(replace(measured.area, since_ms=t_ms), measured.rectangle)
            for number, measured in self.areas.items()
        }

    def calls_last_minute(self, now_ns: int) -> int:
        """Questions in the last sixty seconds."""
        second = now_ns // _SECOND_NS
        if second > self.calls_second:
            for old in range(self.calls_second + 1, min(second, self.calls_second + 60) + 1):
                self.calls[old % 60] = 0
            self.calls_second = second
        elif second < self.calls_second:
            # The clock was put back: what was asked counts as asked now, and is forgotten a minute
            # from now.
            total = sum(self.calls)
            self.calls[:] = [0] * 60
            self.calls[second % 60], self.calls_second = total, second
        return sum(self.calls)

    def recent_calls(self, now_ns: int) -> int:
        """Return :meth:`calls_last_minute` without changing anything.

        Callers need not hold the lock.
        """
        first, last = self.calls_second + 1, now_ns // _SECOND_NS
        over = {second % 60 for second in range(first, min(last, first + 59) + 1)}
        return sum(count for slot, count in enumerate(self.calls) if slot not in over)

    def called(self) -> None:
        """One more question."""
        self.calls[self.calls_second % 60] += 1
