"""Metrics of an area of interest as running sums over the event log: nothing per event is kept for
them.

Which way the eyes look, coarsely: the tile that is looked at, with hysteresis, and an avatar's
regions.

A tile is left only when the eye is a tenth of a tile beyond its edge, so that an eye at an edge
does not flicker between two. Both change at the end of a tick, never at the tracker's rate: when a
saccade has landed, when a fixation or pursuit has ended, or when the eye has rested for
:data:`~gazeveil.gatekeeper.core.ongoing_fixation.PLACE_MS`, because a jump need not look like a
saccade (one huge step, a stalled tracker).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gazeveil.gatekeeper.core.areas import (
    PlacedTarget,
    PrecisionLevel,
    Rectangle,
    RegisteredArea,
    Target,
    area_of,
    moved,
)
from gazeveil.gatekeeper.core.events import LoggedEvent, tell
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Grid, Space, Sphere


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
        return (
            self.rectangle.has(entry.row, entry.column) and entry.event.t_ms >= self.area.since_ms
        )

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


#: Most areas of one subscription.
MOST_AREAS = 16

#: Metrics that have changed are pushed at most so often.
EVERY_MS = 250


class Observation:
    """Areas that an app watches while it is there: `callback(name, metrics)` is told what has
    changed, and they are gone with the subscription. A page that is loaded again begins anew, so it
    never meets a limit of areas that it left behind.
    """

    def __init__(
        self,
        subscription: Subscription,
        grid: Grid,
        targets: Sequence[PlacedTarget],
        callback: Callable[[str, AreaMetrics], None],
        t_ms: int,
    ) -> None:
        self.subscription, self._grid, self._callback = subscription, grid, callback
        self._placed = tuple(targets)
        self._areas = {
            target.name: MeasuredArea(
                area_of(grid, target.rectangle, number, target.name, t_ms), target.rectangle
            )
            for number, target in enumerate(targets, 1)
        }
        self._told: dict[str, AreaMetrics] = {}
        self._told_ms = -EVERY_MS
        self._visited = 0

    def take(self, entry: LoggedEvent) -> None:
        """Add the next event of the event log."""
        for area in self._areas.values():
            self._visited = area.take(entry, self._visited)

    def left(self) -> None:
        """The eye was somewhere outside the space."""
        for area in self._areas.values():
            area.left()

    def move(self, targets: Sequence[Target], now_ns: int, least_deg: float) -> None:
        """Put areas at new places; what was counted stays."""
        self._placed = moved(self._grid, self._placed, targets, now_ns, least_deg)
        for target in self._placed:
            self._areas[target.name].rectangle = target.rectangle

    def push(self, t_ms: int) -> None:
        """Tell what has changed, unless that was just done."""
        if t_ms - self._told_ms < EVERY_MS:
            return
        for name, area in self._areas.items():
            metrics = area.metrics()
            if self._told.get(name) != metrics:
                self._told[name], self._told_ms = metrics, t_ms
                tell(self.subscription, self._callback, name, metrics)


#: How far beyond the edge the eye must be, in tiles.
MARGIN = 0.1

#: Largest offset from the centre of the view that counts as `at-you`, across and down, in degrees.
AT_YOU_DEG = 10.0

_Where = TypeVar("_Where")


class Followed(Generic[_Where]):
    """A value that is told to its listeners when it changes. Guarded by the Gatekeeper's lock."""

    def __init__(self, unknown: _Where) -> None:
        self.now = self._unknown = unknown
        self._listeners: dict[Subscription, Callable[[_Where, int], None]] = {}

    def enter(self, subscription: Subscription, callback: Callable[[_Where, int], None]) -> None:
        """Tell a subscription of every other value."""
        self._listeners[subscription] = callback

    def leave(self, subscription: Subscription) -> None:
        """Tell a subscription nothing more."""
        self._listeners.pop(subscription, None)

    def forget(self, t_ms: int) -> None:
        """The eye is gone, or is not to be looked at."""
        self._change(self._unknown, t_ms)

    def _change(self, value: _Where, t_ms: int) -> None:
        if value != self.now:
            self.now = value
            for subscription, callback in tuple(self._listeners.items()):
                tell(subscription, callback, value, t_ms)


class Tiles(Followed["int | None"]):
    """The tile that is looked at, row by row from the upper left; the level says how many there
    are.

    Examples
    --------
    >>> tiles = Tiles(Sphere(), PrecisionLevel())
    >>> for x_deg in (10.0, 44.0, 46.0, 60.0):
    ...     tiles.see_event(x_deg, 90.0, 0)
    ...     print(tiles.now, end=" ")
    16 16 16 17
    """

    def __init__(self, space: Space, level: PrecisionLevel) -> None:
        super().__init__(None)
        self.columns, self.rows = level.tiles
        self._round = isinstance(space, Sphere)
        self._left, self._top = (
            (0.0, 0.0) if self._round else (-space.width_deg / 2, -space.height_deg / 2)
        )
        self._width, self._height = space.width_deg / self.columns, space.height_deg / self.rows

    def see_event(self, x_deg: float, y_deg: float, t_ms: int) -> None:
        """A look has landed, rests or has ended there."""
        x, y = (x_deg - self._left) / self._width, (y_deg - self._top) / self._height
        column = min(max(math.floor(x), 0), self.columns - 1)
        row = min(max(math.floor(y), 0), self.rows - 1)
        if self.now is not None:
            was_row, was_column = divmod(self.now, self.columns)
            beyond = x - (was_column + 0.5)
            if self._round:
                beyond = (beyond + self.columns / 2) % self.columns - self.columns / 2
            column = was_column if abs(beyond) <= 0.5 + MARGIN else column
            row = was_row if abs(y - (was_row + 0.5)) <= 0.5 + MARGIN else row
        self._change(row * self.columns + column, t_ms)


class Regions(Followed[str]):
    """Which way the eyes look, in words: all that an avatar needs.

    A look is told when it has landed or rests. `at-you` is within :data:`AT_YOU_DEG` of the middle
    of the view, else the larger of the two offsets says which way. `closed`: no gaze is known.
    """

    def __init__(self, sphere: bool) -> None:
        super().__init__("closed")
        self._middle = (180.0, 90.0) if sphere else (0.0, 0.0)
        self._last, self._shut = "closed", False

    def see_event(self, x_deg: float, y_deg: float, t_ms: int) -> None:
        """A look has landed, rests or has ended there."""
        across, down = x_deg - self._middle[0], y_deg - self._middle[1]
        if max(abs(across), abs(down)) <= AT_YOU_DEG:
            self._last = "at-you"
        elif abs(across) >= abs(down):
            self._last = "right" if across > 0 else "left"
        else:
            self._last = "down" if down > 0 else "up"
        if not self._shut:
            self._change(self._last, t_ms)

    def close(self, t_ms: int) -> None:
        """The eyes are closed: what ends meanwhile is told when they open."""
        self._shut = True
        self._change("closed", t_ms)

    def open(self, t_ms: int) -> None:
        """The eyes are open again: where they were, until the next look lands."""
        self._shut = False
        self._change(self._last, t_ms)

    def forget(self, t_ms: int) -> None:
        """The eye is gone, or is not to be looked at."""
        self._last, self._shut = "closed", False
        super().forget(t_ms)
