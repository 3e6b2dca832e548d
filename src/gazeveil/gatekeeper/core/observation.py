"""Areas that an app watches while it is there: their metrics are pushed, and gone with the
subscription.

A page that is loaded again begins anew, so it never meets a limit of areas that it left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gazeveil.gatekeeper.core.area_metrics import AreaMetrics, MeasuredArea
from gazeveil.gatekeeper.core.areas import area_of
from gazeveil.gatekeeper.core.events.listeners import tell
from gazeveil.gatekeeper.core.events.log import LoggedEvent
from gazeveil.gatekeeper.core.targets import PlacedTarget, Target, moved
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.grid import Grid

#: Most areas of one subscription.
MOST_AREAS = 16

#: Metrics that have changed are pushed at most so often.
EVERY_MS = 250


class Observation:
    """The areas of one subscription; `callback(name, metrics)` is told what has changed."""

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


class Regions:
    """Which way the eyes look, in words: all that an avatar needs.

    A look is told when it has landed. `at-you` is within :data:`AT_YOU_DEG` of the middle of the
    view, else the larger of the two offsets says which way. `closed`: no gaze is known.
    """

    def __init__(self, sphere: bool) -> None:
        self._middle = (180.0, 90.0) if sphere else (0.0, 0.0)
        self._sphere = sphere
        self._last = self.region = "closed"
        self._shut = False
        self._listeners: dict[Subscription, Callable[[str, int], None]] = {}

    def enter(
        self, subscription: Subscription, callback: Callable[[str, int], None], t_ms: int
    ) -> None:
        """Tell a subscription the region now, and every other one."""
        self._listeners[subscription] = callback
        tell(subscription, callback, self.region, t_ms)

    def leave(self, subscription: Subscription) -> None:
        """Tell a subscription nothing more."""
        self._listeners.pop(subscription, None)

    def see_event(self, x_deg: float, y_deg: float, t_ms: int) -> None:
        """A look has landed or ended there."""
        across, down = x_deg - self._middle[0], y_deg - self._middle[1]
        if max(abs(across), abs(down)) <= AT_YOU_DEG:
            self._last = "at-you"
        elif abs(across) >= abs(down):
            self._last = "right" if across > 0 else "left"
        else:
            self._last = "down" if down > 0 else "up"
        if not self._shut:
            self._tell(self._last, t_ms)

    def close(self, t_ms: int) -> None:
        """The eyes are closed: what ends meanwhile is told when they open."""
        self._shut = True
        self._tell("closed", t_ms)

    def open(self, t_ms: int) -> None:
        """The eyes are open again: where they were, until the next look lands."""
        self._shut = False
        self._tell(self._last, t_ms)

    def forget(self, t_ms: int) -> None:
        """The eye is gone, or is not to be looked at."""
        self._last, self._shut = "closed", False
        self._tell("closed", t_ms)

    def _tell(self, region: str, t_ms: int) -> None:
        if region != self.region:
            self.region = region
            for subscription, callback in tuple(self._listeners.items()):
                tell(subscription, callback, region, t_ms)


#: Largest offset from the centre of the view that counts as `at-you`, across and down, in degrees.
AT_YOU_DEG = 10.0
