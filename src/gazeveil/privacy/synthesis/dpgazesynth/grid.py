"""The public grid of DPGazeSynth: G x G cells over a screen or a sphere, and the steps from a cell
to its neighbours (Ren et al. 2024, 4.1 and 4.4).

Cells are equal in degrees, numbered row by row from the top left; places beside the screen belong
to the nearest cell. There are eight directions, clockwise from "right" since y grows downwards. A
jump to a cell that is no neighbour counts as the step into its 45 degree sector.

On a screen there are 8 G**2 - 12 G + 4 steps. On a sphere the grid spans 360 x 180 degrees and the
first and the last column are neighbours: 8 G**2 - 6 G steps. Ren et al. 2024 lays the sphere flat,
so its reading `published` does not wrap.

The public numbers of recordings of one rate in one space: what a device and the curator must agree
on before anybody looks at anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.events import read_only
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.noise.lattice import ROUNDING_STEPS, lattice_bits
from gazeveil.privacy.noise.planar import MOST_SCALE
from gazeveil.privacy.rational import Number, exact

#: (columns, rows) of the eight steps.
STEPS: Ints = read_only(
    np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)], dtype=np.int64)
)

# Whole numbers hold this many cells.
_FAR = 1e15

#: Relations between r and G: what Ren et al. 2024 prints as equation (8), and what its tables use
#: (G = 60 is 5 %, G = 30 is 10 %).
RELATIONS = {"eq8": Fraction(1, 6), "table": Fraction(3)}


def radius_deg(space: Space, cells: int, relation: str) -> Fraction:
    """The radius of a relation in degrees: a multiple of the shorter side over G.

    Examples
    --------
    >>> radius_deg(Sphere(), 60, "table"), radius_deg(Sphere(), 60, "eq8")
    (Fraction(9, 1), Fraction(1, 2))
    """
    shorter = Fraction(repr(float(min(space.width_deg, space.height_deg))))
    return RELATIONS[relation] * shorter / cells


@lru_cache(maxsize=16)
def _steps(cells: int, wraps: bool) -> tuple[Ints, Ints]:
    """Where each step leads and its number among all steps, both of shape (G**2, 8); -1 where there
    is no such step.
    """
    rows, columns = np.divmod(np.arange(cells * cells), cells)
    to_column, to_row = columns[:, None] + STEPS[:, 0], rows[:, None] + STEPS[:, 1]
    if wraps:
        to_column %= cells
    inside = (to_column >= 0) & (to_column < cells) & (to_row >= 0) & (to_row < cells)
    target = np.where(inside, to_row * cells + to_column, -1)
    number = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)
    return read_only(target), read_only(number)


@dataclass(frozen=True)
class CellGrid:
    """Cells over a space.

    Parameters
    ----------
    space : Sphere or Screen
        What is divided.
    G : int
        Cells along each side.
    wraps : bool
        Whether the first and the last column are neighbours; only on a sphere.

    Examples
    --------
    >>> grid = CellGrid(Sphere(), 60, wraps=False)
    >>> grid.transitions == 8 * 60**2 - 12 * 60 + 4
    True
    """

    space: Space
    G: int
    wraps: bool

    @property
    def target(self) -> Ints:
        """The cell each step leads to, shape (G**2, 8); -1 where it would leave the grid."""
        return _steps(self.G, self.wraps)[0]

    @property
    def number(self) -> Ints:
        """The number of each step, shape (G**2, 8), from 0 to :attr:`transitions` - 1; -1 where
        there is none.
        """
        return _steps(self.G, self.wraps)[1]

    @property
    def transitions(self) -> int:
        """How many steps there are: |S|."""
        return int(self.number.max()) + 1

    @property
    def origin_deg(self) -> tuple[float, float]:
        """The top left corner."""
        if isinstance(self.space, Sphere):
            return (0.0, 0.0)
        return (-self.space.width_deg / 2, -self.space.height_deg / 2)

    @property
    def centre_deg(self) -> tuple[float, float]:
        """The middle: where a window without gaze is said to begin."""
        return (180.0, 90.0) if isinstance(self.space, Sphere) else (0.0, 0.0)

    @property
    def diagonal_deg(self) -> float:
        """The largest distance of two places."""
        if isinstance(self.space, Sphere):
            return 180.0
        return math.hypot(self.space.width_deg, self.space.height_deg)

    def scaled(self, x_deg: Floats, y_deg: Floats) -> tuple[Floats, Floats]:
        """Places in cells right of and below the top left corner."""
        left, top = self.origin_deg
        return (x_deg - left) * (self.G / self.space.width_deg), (y_deg - top) * (
            self.G / self.space.height_deg
        )

    def cells(self, x_deg: Floats, y_deg: Floats) -> Ints:
        """The cell of each place, the nearest one for places outside; -1 for NaN."""
        column, row = self.scaled(
            np.asarray(x_deg, dtype=np.float64), np.asarray(y_deg, dtype=np.float64)
        )
        lost = ~(np.isfinite(column) & np.isfinite(row))
        across, down = (
            np.floor(np.clip(np.where(lost, 0.0, v), -_FAR, _FAR)).astype(np.int64)
            for v in (column, row)
        )
        across = across % self.G if self.wraps else np.clip(across, 0, self.G - 1)
        return np.where(lost, -1, np.clip(down, 0, self.G - 1) * self.G + across)

    def points(self, cells: Ints, across: Floats, down: Floats) -> tuple[Floats, Floats]:
        """The place in each cell at shares of its width and height in [0, 1)."""
        left, top = self.origin_deg
        row, column = np.divmod(cells, self.G)
        wide, high = self.space.width_deg, self.space.height_deg
        # Rounding may lift a place onto the far edge, which a sphere does not have.
        x = np.minimum(left + (column + across) * (wide / self.G), np.nextafter(left + wide, left))
        y = np.minimum(top + (row + down) * (high / self.G), np.nextafter(top + high, top))
        return x, y

    def directions(self, before: Ints, after: Ints) -> Ints:
        """The step that a move from one cell to another counts as: the neighbour it leads to, or
        the sector it goes into.
        """
        across, down = after % self.G - before % self.G, after // self.G - before // self.G
        if self.wraps:
            across = (across + self.G // 2) % self.G - self.G // 2
        # The sectors' borders have irrational slopes, so no move between cells lies on one.
        return np.floor(np.arctan2(down, across) / (math.pi / 4) + 0.5).astype(np.int64) % 8


class BudgetSplit(tuple[Fraction, ...]):
    """Shares of the budget for starts, fixation times and transitions; they add up to 1, and print
    as a ratio: 3:1:1.

    Examples
    --------
    >>> str(BudgetSplit.of("3:1:1")), BudgetSplit.of((0.6, 0.2, 0.2)) == BudgetSplit.of("3:1:1")
    ('3:1:1', True)
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: object, owner: str = "dpgazesynth") -> BudgetSplit:
        """From three shares that add up to 1, or from a ratio in words."""
        wanted = "three shares above 0 that add up to 1, or a ratio such as '3:1:1'"
        ratio = isinstance(value, str)
        parts: list[Number] = (
            list(value.split(":"))
            if isinstance(value, str)
            else list(value)
            if isinstance(value, Iterable)
            else []
        )
        if len(parts) != 3:
            checks.refuse(owner, "split", wanted, value)
        shares = [exact(owner, "split", p, above=0) for p in parts]
        if ratio:
            shares = [s / sum(shares) for s in shares]
        if sum(shares) != 1:
            checks.refuse(owner, "split", wanted, value)
        return cls(shares)

    def __str__(self) -> str:
        common = math.lcm(*(s.denominator for s in self))
        return ":".join(str(s * common) for s in self)


@dataclass(frozen=True)
class WindowLayout:
    """Public numbers for recordings of one rate in one space.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    samples : int
        W, samples of a window.
    rate_hz : float
        Samples per second.
    cap : int
        c, most runs of a window that are told apart.
    r_deg : Fraction
        How far the beginning of a window may lie from that of a neighbour.
    starts, times, moves : Fraction
        Budgets of a window: epsilon1, epsilon2, epsilon3.
    """

    grid: CellGrid
    samples: int
    rate_hz: float
    cap: int
    r_deg: Fraction
    starts: Fraction
    times: Fraction
    moves: Fraction

    @property
    def sphere(self) -> bool:
        """Whether distances are arcs."""
        return isinstance(self.grid.space, Sphere)

    @property
    def step_bits(self) -> int:
        """The lattice of noisy starts has 2**step_bits steps to a degree."""
        bits = lattice_bits(self.r_deg)
        while not self.sphere and self._scale(bits) > MOST_SCALE:
            bits -= 1
        return bits

    def _scale(self, bits: int) -> Fraction:
        return (self.r_deg * Fraction(2) ** bits + ROUNDING_STEPS) / self.starts

    @property
    def start_scale(self) -> Fraction:
        """Scale of a start's noise in steps: both places are rounded to the lattice, which may
        carry them sqrt(2) steps farther apart.
        """
        return self._scale(self.step_bits)

    @property
    def start_scale_deg(self) -> float:
        """Scale of a start's noise in degrees."""
        return float(self.start_scale / Fraction(2) ** self.step_bits)

    @property
    def time_scale(self) -> Fraction:
        """Scale of the noise of a run's length in samples: two vectors of lengths that add up to W
        differ by at most 2 W - 2 in all.
        """
        return Fraction(2 * self.samples - 2) / self.times
