"""Metrics of an area of interest as running sums over the event log: nothing per event is kept for
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gazeveil.gatekeeper.core.areas import Rectangle, RegisteredArea
from gazeveil.gatekeeper.core.events.log import LoggedEvent


@dataclass(frozen=True)
class AreaMetrics:
    """Answer to an app about one of its areas.

    Parameters
    ----------
    fixations : int
        Fixations in it since it was registered.
    visits : int
        Runs of fixations in it without a fixation or pursuit elsewhere between them.
    dwell_ms : int
        Sum of the durations of fixations and pursuits in it, whole ticks. A pursuit counts here
        alone: it is no fixation and begins no visit.
    order : int or None
        1 for the first of the app's areas that was visited, 2 for the second...; None before it is
        visited.
    first_fixation_ms : int or None
        From the registration to the beginning of the first fixation in it.
    first_saccade_ms : int or None
        From the registration to the landing of the first saccade in it.
    """

    fixations: int
    visits: int
    dwell_ms: int
    order: int | None
    first_fixation_ms: int | None
    first_saccade_ms: int | None


class MeasuredArea:
    """An area as the app sees it, its cells, and its sums."""

    def __init__(self, area: RegisteredArea, rectangle: Rectangle) -> None:
        self.area = area
        self.rectangle = rectangle
        self.fixations = self.visits = self.dwell_ms = 0
        self.first_fixation_ms: int | None = None
        self.first_saccade_ms: int | None = None
        self.order: int | None = None
        self._inside = False

    def has(self, entry: LoggedEvent) -> bool:
        """Whether an event belongs to the area: inside, and not before it was registered."""
        inside = self.rectangle.has(entry.row, entry.column)
        return inside and entry.event.t_ms >= self.area.since_ms

    def take(self, entry: LoggedEvent, visited: int) -> int:
        """Add the next event of the event log; takes and gives how many of the app's areas were
        visited.
        """
        event = entry.event
        inside = self.has(entry)
        if event.kind == "saccade":
            if inside and self.first_saccade_ms is None:
                self.first_saccade_ms = event.t_ms - self.area.since_ms
            return visited
        if event.kind == "pursuit":
            self.dwell_ms += event.duration_ms if inside else 0
            self._inside = self._inside and inside
            return visited
        if inside:
            self.fixations += 1
            self.dwell_ms += event.duration_ms
            if not self._inside:
                self.visits += 1
            if self.order is None:
                visited += 1
                self.order, self.first_fixation_ms = visited, event.t_ms - self.area.since_ms
        self._inside = inside
        return visited

    def left(self) -> None:
        """The eye was somewhere outside the space: the next fixation in the area is a new visit."""
        self._inside = False

    def metrics(self) -> AreaMetrics:
        """The sums so far."""
        return AreaMetrics(
            self.fixations,
            self.visits,
            self.dwell_ms,
            self.order,
            self.first_fixation_ms,
            self.first_saccade_ms,
        )
