"""The tile that is looked at, with hysteresis.

A tile is left only when the eye is a tenth of a tile beyond its edge, so that an eye at an edge
does not flicker between two. Without a configured stream the tile follows the event log: it changes
only when a saccade has landed or a fixation or pursuit has ended. With one it follows that
protected stream, once a tick. Either way it is post-processing, never at the tracker's rate.
"""

from __future__ import annotations

import math

from gazeveil.gatekeeper.core.level import PrecisionLevel
from gazeveil.gaze.geometry import Space, Sphere

#: How far beyond the edge the eye must be, in tiles.
MARGIN = 0.1


class Tiles:
    """Follows places from tile to tile.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    level : PrecisionLevel
        Says how many tiles there are.

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
