"""The public level of a device: how coarse the places and times are that any app can learn.

One level holds for the whole device, never for one app: apps that compare their answers see one grid and one clock. Android XR knows two
permissions, `EYE_TRACKING_COARSE` and `EYE_TRACKING_FINE`, and does not say what coarse removes; here it is stated:

=========  ===========  ======  ==================  ========
level      place grid   ticks   smallest area side  tiles
=========  ===========  ======  ==================  ========
`coarse`   5 degrees    100 ms  10 degrees          8 x 4
`fine`     1 degree     10 ms   2 degrees           36 x 18
=========  ===========  ======  ==================  ========

The grid divides the space into equal columns and rows that are not smaller than the resolution. On a sphere columns grow together towards
the poles, so that a cell is nowhere narrower on the sphere than seven tenths of the resolution (but at the poles themselves, where a row is
one cell).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.gaze.geometry import Space, Sphere


@dataclass(frozen=True)
class Level:
    """How coarse everything is.

    Parameters
    ----------
    resolution_deg : float
        Least side of a cell of the place grid.
    tick_ms : int
        Step of the public clock.
    least_side_deg : float
        Smallest side of an area an app may register.
    tiles : (int, int)
        Columns and rows of the tiles.
    name : str
        For people.
    """

    resolution_deg: float = 5.0
    tick_ms: int = 100
    least_side_deg: float = 10.0
    tiles: tuple[int, int] = (8, 4)
    name: str = "coarse"

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "resolution_deg", checks.positive("Level", "resolution_deg", self.resolution_deg))
        store(self, "tick_ms", checks.count("Level", "tick_ms", self.tick_ms))
        store(self, "least_side_deg", checks.positive("Level", "least_side_deg", self.least_side_deg))
        if self.least_side_deg < self.resolution_deg:
            checks.refuse("Level", "least_side_deg", "at least resolution_deg", self.least_side_deg)
        if not isinstance(self.tiles, tuple | list) or len(self.tiles) != 2:
            checks.refuse("Level", "tiles", "two counts, columns and rows", self.tiles)
        store(self, "tiles", (checks.count("Level", "tiles", self.tiles[0]), checks.count("Level", "tiles", self.tiles[1])))


#: The levels by name.
LEVELS: Mapping[str, Level] = MappingProxyType(
    {"coarse": Level(), "fine": Level(resolution_deg=1.0, tick_ms=10, least_side_deg=2.0, tiles=(36, 18), name="fine")}
)


def level_of(level: Level | str) -> Level:
    """A level, or the one of that name."""
    return level if isinstance(level, Level) else LEVELS[checks.one_of("Gatekeeper", "level", level, LEVELS)]


class Grid:
    """The public cells of a space.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    resolution_deg : float
        Least side of a cell.

    Examples
    --------
    >>> grid = Grid(Sphere(), 5.0)
    >>> grid.cell(182.3, 91.0), grid.centre(18, 36)
    ((18, 36), (182.5, 92.5))
    """

    def __init__(self, space: Space, resolution_deg: float) -> None:
        self.sphere = isinstance(space, Sphere)
        self.width_deg, self.height_deg = space.width_deg, space.height_deg
        self.left_deg, self.top_deg = (0.0, 0.0) if self.sphere else (-self.width_deg / 2, -self.height_deg / 2)
        # A hair more than the resolution divides the extent where it should: 360 / 0.1 is not quite 3600 in floating point.
        self.columns = max(1, math.floor(self.width_deg / resolution_deg + 1e-9))
        self.rows = max(1, math.floor(self.height_deg / resolution_deg + 1e-9))
        self.column_deg, self.row_deg = self.width_deg / self.columns, self.height_deg / self.rows
        self._together = tuple(self._columns_together(row, resolution_deg) for row in range(self.rows))
        self._cells = np.array(self._together, dtype=np.int64)

    @property
    def numbers(self) -> tuple[float, float, float, float, int, NDArray[np.int64]]:
        """Left and upper edge, width and height of a column and a row, how many columns, and how many of them make a cell of each row."""
        return self.left_deg, self.top_deg, self.column_deg, self.row_deg, self.columns, self._cells

    def _columns_together(self, row: int, resolution_deg: float) -> int:
        """How many columns make a cell of that row."""
        if not self.sphere:
            return 1
        narrow = self.column_deg * math.sin(math.radians((row + 0.5) * self.row_deg))
        return next(g for g in range(1, self.columns + 1) if self.columns % g == 0 and (g == self.columns or g * narrow >= 0.7 * resolution_deg))

    def cell(self, x_deg: float, y_deg: float) -> tuple[int, int] | None:
        """The cell of a place as (row, column of its middle); None outside the space."""
        row = math.floor((y_deg - self.top_deg) / self.row_deg)
        column = math.floor((x_deg - self.left_deg) / self.column_deg)
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        together = self._together[row]
        return row, column - column % together + together // 2

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Middle of a cell in degrees."""
        together = self._together[row]
        x = self.left_deg + (column - column % together + together / 2) * self.column_deg
        return x, self.top_deg + (row + 0.5) * self.row_deg
