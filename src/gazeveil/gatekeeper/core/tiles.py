"""The tile that is looked at, with hysteresis.

A tile is left only when the eye is a tenth of a tile beyond its edge, so that an eye at an edge
does not flicker between two. Without a configured stream the tile follows the event log: it changes
only when a saccade has landed or a fixation or pursuit has ended. With one it follows that
protected stream, once a tick. Either way it is post-processing, never at the tracker's rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gatekeeper.core.events.listeners import TileListener, tell
from gazeveil.gatekeeper.core.level import PrecisionLevel
from gazeveil.gatekeeper.streams.pool import StreamPool
from gazeveil.gatekeeper.streams.shared import PATIENCE_S, Subscriber
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: How far beyond the edge the eye must be, in tiles.
MARGIN = 0.1

#: Idle time after which a tile's stream ends, in ms.
IDLE_MS = 10_000


class Tiles:
    """Follows places from tile to tile; the level says how many tiles there are.

    Examples
    --------
    >>> tiles = Tiles(Sphere(), PrecisionLevel())
    >>> [tiles.see(x, 90.0) for x in (10.0, 44.0, 46.0, 60.0)]
    [16, 16, 16, 17]
    """

    def __init__(self, space: Space, level: PrecisionLevel) -> None:
        self.columns, self.rows = level.tiles
        self._round = isinstance(space, Sphere)
        self._left, self._top = (
            (0.0, 0.0) if self._round else (-space.width_deg / 2, -space.height_deg / 2)
        )
        self._width, self._height = space.width_deg / self.columns, space.height_deg / self.rows
        self.tile: int | None = None

    def forget(self) -> None:
        """The eye is gone."""
        self.tile = None

    def see(self, x_deg: float, y_deg: float) -> int | None:
        """Take a place; gives the tile after it."""
        x, y = (x_deg - self._left) / self._width, (y_deg - self._top) / self._height
        column, row = (
            min(max(math.floor(x), 0), self.columns - 1),
            min(max(math.floor(y), 0), self.rows - 1),
        )
        if self.tile is not None:
            was_row, was_column = divmod(self.tile, self.columns)
            beyond = x - (was_column + 0.5)
            if self._round:
                beyond = (beyond + self.columns / 2) % self.columns - self.columns / 2
            column = was_column if abs(beyond) <= 0.5 + MARGIN else column
            row = was_row if abs(y - (was_row + 0.5)) <= 0.5 + MARGIN else row
        self.tile = row * self.columns + column
        return self.tile


class TilePublisher:
    """Tells apps which tile is looked at. Guarded by the Gatekeeper's lock.

    Parameters
    ----------
    tiles : Tiles
        Follows the places.
    mechanism : StreamMechanism, optional
        Mechanism of the protected stream that the tile follows; None for the event log. The device
        pays for the stream while the tile is in use.
    pool : StreamPool
        The device's streams.
    subscribe : callable
        A new subscription of the device's own.
    t_ms : callable
        The public clock, in milliseconds.
    """

    def __init__(
        self,
        tiles: Tiles,
        mechanism: StreamMechanism | None,
        pool: StreamPool,
        subscribe: Callable[[], Subscription],
        t_ms: Callable[[], int],
    ) -> None:
        self._tiles, self._mechanism, self._pool = tiles, mechanism, pool
        self._subscribe, self._t_ms = subscribe, t_ms
        self._listeners: list[TileListener] = []
        self._place: tuple[float, float] | None = None
        self._subscription: Subscription | None = None
        self._asked_ms = 0

    def ask(self) -> int | None:
        """The tile, None while it is not known; where it has a protected stream, that is opened.

        Raises
        ------
        Denied, LedgerError
            Where the stream cannot be had or paid.
        """
        self._asked_ms = self._t_ms()
        if self._mechanism is not None and (
            self._subscription is None or self._subscription.ended is not None
        ):
            self._open(self._mechanism)
        return self._tiles.tile

    def _open(self, mechanism: StreamMechanism) -> None:
        shared, view = self._pool.reserve(mechanism, 1)
        try:
            # Everything waits for the lock held here: the ledger gets no longer than for a lease.
            paid = shared.billing.wait(
                shared.billing.later(shared.first_lease(view, None)), lambda: True, PATIENCE_S
            )
        except BaseException:
            self._pool.give_back(shared)
            raise
        subscription = self._subscribe()
        self._pool.subscribe(
            shared, Subscriber("", self._deliver, subscription, view, pays=False), paid
        )
        self._subscription = subscription
        subscription.on_end(self._ended)

    def _deliver(self, t_ns: object, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        good = np.flatnonzero(valid)
        if len(good):
            self._place = (float(x_deg[good[-1]]), float(y_deg[good[-1]]))

    def _ended(self, reason: str, code: str) -> None:
        self._subscription, self._place = None, None
        self.forget()
        if code != "idle":
            for listener in tuple(self._listeners):
                listener.subscription.end(reason, code)

    def end(self, reason: str, code: str) -> None:
        """End the protected stream that the tile follows, where one is open."""
        if self._subscription is not None:
            self._subscription.end(reason, code)

    def enter(self, listener: TileListener) -> None:
        """Tell a listener of every other tile from now on."""
        self._listeners.append(listener)

    def leave(self, subscription: Subscription) -> None:
        """Tell a subscription nothing more."""
        self._listeners = [
            listener for listener in self._listeners if listener.subscription is not subscription
        ]

    def see_event(self, x_deg: float, y_deg: float) -> None:
        """Take the place of a logged event; a tile with a protected stream does not follow it."""
        if self._mechanism is None:
            self._see(x_deg, y_deg)

    def tick_over(self) -> None:
        """Follow the protected stream, where there is one and the tile is in use."""
        if self._place is not None:
            place, self._place = self._place, None
            self._see(*place)
        if not self._listeners and self._t_ms() - self._asked_ms > IDLE_MS:
            self.end("Nobody asks for the tile.", "idle")

    def forget(self) -> None:
        """The eye is gone."""
        if self._tiles.tile is not None:
            self._tiles.forget()
            self._publish()

    def _see(self, x_deg: float, y_deg: float) -> None:
        before = self._tiles.tile
        if self._tiles.see(x_deg, y_deg) != before:
            self._publish()

    def _publish(self) -> None:
        for listener in tuple(self._listeners):
            tell(listener.subscription, listener.callback, self._tiles.tile, self._t_ms())
