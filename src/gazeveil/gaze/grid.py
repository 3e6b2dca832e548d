"""Public cells of a space: places that are told as one.

The grid divides the space into equal columns and rows that are not smaller than the resolution. On
a sphere columns grow together towards the poles, so that a cell is nowhere narrower on the sphere
than seven tenths of the resolution (but at the poles themselves, where a row is one cell).
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.gaze.geometry import Space, Sphere


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
        self.left_deg, self.top_deg = (
            (0.0, 0.0) if self.sphere else (-self.width_deg / 2, -self.height_deg / 2)
        )
        # A hair more than the resolution divides the extent where it should: 360 / 0.1 is not quite
        # 3600 in floating point.
        self.columns = max(1, math.floor(self.width_deg / resolution_deg + 1e-9))
        self.rows = max(1, math.floor(self.height_deg / resolution_deg + 1e-9))
        self.column_deg, self.row_deg = self.width_deg / self.columns, self.height_deg / self.rows
        self._together = tuple(
            self._columns_together(row, resolution_deg) for row in range(self.rows)
        )
        self._cells = np.array(self._together, dtype=np.int64)

    @property
    def numbers(self) -> tuple[float, float, float, float, int, Ints]:
        """Left and upper edge, width and height of a column and a row, how many columns, and how
        many of them make a cell of each row.
        """
        return self.left_deg, self.top_deg, self.column_deg, self.row_deg, self.columns, self._cells

    def _columns_together(self, row: int, resolution_deg: float) -> int:
        """How many columns make a cell of that row."""
        if not self.sphere:
            return 1
        narrow = self.column_deg * math.sin(math.radians((row + 0.5) * self.row_deg))
        return next(
            g
            for g in range(1, self.columns + 1)
            if self.columns % g == 0 and (g == self.columns or g * narrow >= 0.7 * resolution_deg)
        )

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

    # --- cells by number: row * columns + first column of the cell
    # ----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """What tells this grid from every other one."""
        return (
            f"{'sphere' if self.sphere else 'screen'} {self.width_deg!r} {self.height_deg!r}"
            f" {self.columns} {self.rows}"
        )

    @property
    def size(self) -> int:
        """Cell numbers are below this; where columns grow together some numbers
        stand for no cell.
        """
        return self.rows * self.columns

    def index(self, x_deg: float, y_deg: float) -> int:
        """Number of the cell of a place; outside a screen the nearest cell at its border."""
        row = min(max(math.floor((y_deg - self.top_deg) / self.row_deg), 0), self.rows - 1)
        column = min(
            max(math.floor((x_deg - self.left_deg) / self.column_deg), 0), self.columns - 1
        )
        return row * self.columns + column - column % self._together[row]

    def centre_of(self, index: int) -> tuple[float, float]:
        """Middle of the cell of that number in degrees."""
        return self.centre(index // self.columns, index % self.columns)
