"""Which public cell each sample belongs to, with hysteresis: gaze leaves a cell when it is far
enough outside it.

Gaze near an edge would change its cell with every tremor. So a stream stays in its cell until gaze
is more than so many degrees outside it, along x or y (on a sphere x is measured along the circle of
latitude). Gaze that flies over a cell and comes to rest just behind it would be held there, and the
next time, on another way, in another cell: so gaze also leaves a cell when it is outside at all and
more than twice as far from where it entered. What comes later changes nothing of what came before.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.grid import Grid

#: The cell of a sample that is lost, and of a stream that has seen none.
NO_CELL = -1


class CellWalk:
    """The cells of one or many streams that go in step.

    Parameters
    ----------
    grid : Grid
        The public cells.
    hysteresis_deg : float
        How far gaze must be outside a cell to leave it.
    streams : int
        How many streams.
    """

    def __init__(self, grid: Grid, hysteresis_deg: float, streams: int = 1) -> None:
        self.grid, self.hysteresis_deg = grid, hysteresis_deg
        self.now = np.full(streams, NO_CELL, dtype=np.int64)
        self.entered = np.zeros((streams, 2))

    def reset(self) -> None:
        """Forget the cells."""
        self.now[...] = NO_CELL

    def run(self, x_deg: Floats, y_deg: Floats, valid: Bools) -> Ints:
        """Cell numbers of samples, shape (streams, n); :data:`NO_CELL` where they are lost."""
        cells = np.empty(x_deg.shape, dtype=np.int64)
        _walk(
            x_deg,
            y_deg,
            valid,
            cells,
            self.now,
            self.entered,
            self.hysteresis_deg,
            self.grid.sphere,
            self.grid.rows,
            *self.grid.numbers,
        )
        return cells


@compiled
def _walk(
    x: Floats,
    y: Floats,
    valid: Bools,
    cells: Ints,
    now: Ints,
    entered: Floats,
    hysteresis: float,
    sphere: bool,
    rows: int,
    left: float,
    top: float,
    width: float,
    height: float,
    columns: int,
    together: Ints,
) -> None:
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            if not valid[s, i]:
                cells[s, i] = NO_CELL
                continue
            a, b = x[s, i], y[s, i]
            if not sphere:  # outside the screen: as at its border
                a = min(max(a, left), left + columns * width)
                b = min(max(b, top), top + rows * height)
            beyond = (
                np.inf
                if now[s] == NO_CELL
                else _outside(a, b, now[s], sphere, left, top, width, height, columns, together)
            )
            if beyond > hysteresis or (
                beyond > 0.0
                and _apart(a, b, entered[s, 0], entered[s, 1], sphere) > 2.0 * hysteresis
            ):
                entered[s, 0], entered[s, 1] = a, b
                row = min(max(int(np.floor((b - top) / height)), 0), rows - 1)
                column = min(max(int(np.floor((a - left) / width)), 0), columns - 1)
                now[s] = row * columns + column - column % together[row]
            cells[s, i] = now[s]


@compiled
def _outside(
    x: float,
    y: float,
    cell: int,
    sphere: bool,
    left: float,
    top: float,
    width: float,
    height: float,
    columns: int,
    together: Ints,
) -> float:
    """How far a place is outside a cell along x or y, whichever is more, in degrees; 0 inside."""
    row, first = cell // columns, cell % columns
    up = top + row * height
    beyond = max(max(up - y, y - up - height), 0.0)
    if together[row] == columns:
        return beyond
    half = 0.5 * together[row] * width
    dx = abs(x - (left + first * width + half))
    if sphere:
        dx = min(dx, 360.0 - dx)
    dx -= half
    if sphere:
        dx *= math.sin(y * (math.pi / 180.0))
    return max(dx, beyond)


@compiled
def _apart(x0: float, y0: float, x1: float, y1: float, sphere: bool) -> float:
    """How far two places are apart along x or y, whichever is more, in degrees."""
    dx = abs(x0 - x1)
    if sphere:
        dx = min(dx, 360.0 - dx) * math.sin(y0 * (math.pi / 180.0))
    return max(dx, abs(y0 - y1))
