"""Areas of interest: rectangles an app registers in advance, snapped outward to the public place
grid.

Membership is decided between cells: an event is in an area if the middle of its cell is. So a
rectangle that shrinks, or a hundred that overlap, tell nothing below the grid. An area counts from
the tick at which it was registered; what was looked at before stays untold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gazeveil.gatekeeper.core.level import PrecisionLevel
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gaze.grid import Grid


@dataclass(frozen=True)
class RegisteredArea:
    """Description of an area, for the app that owns it.

    Parameters
    ----------
    id : int
        Counts the app's own areas from 1.
    name : str
        As the app called it.
    x_deg, y_deg : float
        Left and upper edge, on the grid. On a sphere an area may go round at 360.
    width_deg, height_deg : float
        Sides, whole cells.
    since_ms : int
        Tick at which it was registered.
    """

    id: int
    name: str
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float
    since_ms: int = 0


@dataclass(frozen=True)
class Rectangle:
    """Cells of a grid: first row and column, how many of both."""

    row: int
    column: int
    rows: int
    columns: int
    all_columns: int

    def has(self, row: int, column: int) -> bool:
        """Whether a cell lies inside."""
        return (
            self.row <= row < self.row + self.rows
            and (column - self.column) % self.all_columns < self.columns
        )


def snap(
    grid: Grid,
    level: PrecisionLevel,
    x_deg: float,
    y_deg: float,
    width_deg: float,
    height_deg: float,
) -> Rectangle:
    """The smallest rectangle of whole cells that holds the one asked for.

    One that is smaller than the level allows is widened around its middle.

    Raises
    ------
    Denied
        With the code "area": not numbers, no sides, or outside the space.
    """
    asked = finite(x_deg, y_deg, width_deg, height_deg)
    if asked is None:
        raise Denied(
            "area",
            "An area is four finite numbers in degrees: x_deg, y_deg, width_deg, height_deg.",
        )
    least = level.least_side_deg
    if min(asked[2:]) <= 0:
        raise Denied("area", "Both sides of an area must be above 0.")
    cells = covering(grid, *widened(least, *asked))
    # A space smaller than the least side has one area: all of it.
    wide = cells.columns * grid.column_deg >= least - 1e-9 or cells.columns == grid.columns
    tall = cells.rows * grid.row_deg >= least - 1e-9 or cells.rows == grid.rows
    if cells.columns < 1 or cells.rows < 1 or not (wide and tall):
        raise Denied(
            "area",
            f"At least {least:g} degrees of both sides of an area must lie inside the space.",
        )
    return cells


def widened(
    least_deg: float, x_deg: float, y_deg: float, width_deg: float, height_deg: float
) -> tuple[float, float, float, float]:
    """A rectangle whose sides are at least so long, around the same middle."""
    wide, tall = max(width_deg, least_deg), max(height_deg, least_deg)
    return x_deg - (wide - width_deg) / 2, y_deg - (tall - height_deg) / 2, wide, tall


def finite(*degrees: float) -> tuple[float, ...] | None:
    """Numbers of an app as floats; None where one is no number of ordinary size."""
    try:
        values = tuple(map(float, degrees))
    except (TypeError, ValueError, OverflowError):
        return None
    return values if all(math.isfinite(v) and abs(v) <= 1e6 for v in values) else None


def covering(
    grid: Grid, x_deg: float, y_deg: float, width_deg: float, height_deg: float
) -> Rectangle:
    """The cells that hold a rectangle, as far as it lies in the space; none where it does not."""
    top, bottom = _outward(y_deg - grid.top_deg, height_deg, grid.row_deg)
    left, right = _outward(x_deg - grid.left_deg, width_deg, grid.column_deg)
    top, bottom = max(0, top), min(grid.rows, bottom)
    if grid.sphere:
        # Far from a turn of the sphere it is no place on it, but a page's word for elsewhere.
        columns = min(right - left, grid.columns) if abs(x_deg) <= 720 else 0
        left = 0 if columns == grid.columns else left % grid.columns
    else:
        left, right = max(0, left), min(grid.columns, right)
        columns = right - left
    return Rectangle(top, left, bottom - top, columns, grid.columns)


def _outward(start: float, side: float, step: float) -> tuple[int, int]:
    # A hair less than asked for: edges that come from the grid itself stay where they are.
    first = math.floor(start / step + 1e-9)
    return first, max(first + 1, math.ceil((start + side) / step - 1e-9))


def area_of(
    grid: Grid, rectangle: Rectangle, number: int, name: str, since_ms: int
) -> RegisteredArea:
    """The app's view of a rectangle."""
    return RegisteredArea(
        number,
        name,
        grid.left_deg + rectangle.column * grid.column_deg,
        grid.top_deg + rectangle.row * grid.row_deg,
        rectangle.columns * grid.column_deg,
        rectangle.rows * grid.row_deg,
        since_ms,
    )
