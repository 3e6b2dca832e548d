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

A recording as DPGazeSynth sees it: windows of W samples, where each begins, and how long gaze
stays in a cell (Ren et al. 2024, 4.2 and 4.3).

A window is a sequence of runs: cells one after the other, each different from the last, with the
number of samples spent in it; the numbers add up to W. Lost samples count for the run before them,
or at the beginning of a window for the first run; a last window that the recording does not fill
goes on in its last cell. A window without any gaze begins in the middle of the grid and stays
there. So every window says something of the same kind, and whether samples were lost is not seen.
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
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.gaze.events import read_only
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
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


#: Longest window.
MOST_SAMPLES = 1 << 15


@dataclass(frozen=True, eq=False)
class Windows:
    """The private side of a recording: nothing of this leaves a device as it is.

    Parameters
    ----------
    samples : int
        W, samples of a window.
    x_deg, y_deg : array of float64, shape (windows,)
        Where gaze is at the first valid sample of each window.
    first : array of int64, shape (windows + 1,)
        Number of the first run of each window, and at the end the number of runs.
    cell, length : array of int64, shape (runs,)
        Cell and samples of each run.
    """

    samples: int
    x_deg: Floats
    y_deg: Floats
    first: Ints
    cell: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def counts(self) -> Ints:
        """Runs of each window."""
        return np.diff(self.first)

    @property
    def window(self) -> Ints:
        """The window of each run."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def place(self) -> Ints:
        """How many runs of its window come before each run."""
        return np.arange(len(self.cell)) - np.repeat(self.first[:-1], self.counts)

    def capped(self, cap: int) -> Ints:
        """Lengths as vectors of exactly `cap` entries, shape (windows, cap): runs beyond go into
        the last, missing ones are 0.
        """
        slot = self.window * cap + np.minimum(self.place, cap - 1)
        return (
            np.bincount(slot, weights=self.length, minlength=len(self) * cap)
            .astype(np.int64)
            .reshape(len(self), cap)
        )

    def moves(self, grid: CellGrid) -> tuple[Ints, Ints, Ints, Ints]:
        """All transitions: window, how many of its transitions come before, cell they leave,
        direction.
        """
        later = np.flatnonzero(self.place > 0)
        return (
            self.window[later],
            self.place[later] - 1,
            self.cell[later - 1],
            grid.directions(self.cell[later - 1], self.cell[later]),
        )

    def slots(self, grid: CellGrid, cap: int) -> tuple[Ints, Ints]:
        """The first cap - 1 transitions of each window: cell they leave and direction, shape
        (windows, cap - 1); -1 where there is none.
        """
        window, place, cell, direction = self.moves(grid)
        kept = place < cap - 1
        cells, directions = (np.full((len(self), cap - 1), -1, dtype=np.int64) for _ in range(2))
        cells[window[kept], place[kept]] = cell[kept]
        directions[window[kept], place[kept]] = direction[kept]
        return cells, directions


def window_samples(rate_hz: float, window_s: float) -> int:
    """Samples of a window at a rate, at least two."""
    samples = round(window_s * rate_hz)
    if samples > MOST_SAMPLES:
        raise DataError(
            f"A window of {window_s:g} s holds {samples} samples at {rate_hz:g} Hz. At most"
            f" {MOST_SAMPLES} are taken; choose a shorter window_s."
        )
    if samples < 2:
        raise DataError(
            f"A window of {window_s:g} s holds fewer than two samples at {rate_hz:g} Hz. Choose a"
            " longer window_s."
        )
    return samples


def windows_of(recording: Recording, grid: CellGrid, samples: int) -> Windows:
    """The windows of a recording; the last one may be filled up."""
    x_deg, y_deg = recording.x_deg, recording.y_deg
    cells = np.where(recording.valid, grid.cells(x_deg, y_deg), -1)
    first, at, cell, length = _runs(cells, samples, grid.G // 2 * (grid.G + 1))
    x, y = (
        np.where(at < 0, middle, values[np.maximum(at, 0)]) if len(values) else values
        for middle, values in zip(grid.centre_deg, (x_deg, y_deg), strict=True)
    )
    return Windows(samples, x, y, first, cell, length)


@compiled
def _runs(cells: Ints, samples: int, middle: int) -> tuple[Ints, Ints, Ints, Ints]:
    """First run and first valid sample of each window, cell and length of each run."""
    n = len(cells)
    windows = (n + samples - 1) // samples
    first, at = np.zeros(windows + 1, dtype=np.int64), np.full(windows, -1, dtype=np.int64)
    cell = np.empty(max(n, windows), dtype=np.int64)
    length = np.empty(max(n, windows), dtype=np.int64)
    runs = 0
    for w in range(windows):
        begin, waiting, current = w * samples, 0, -1
        for i in range(begin, begin + samples):
            here = cells[i] if i < n else -1
            if here < 0 or here == current:
                if current < 0:
                    waiting += 1
                else:
                    length[runs - 1] += 1
                continue
            if current < 0:
                at[w] = i
            cell[runs], length[runs] = here, 1 + waiting
            runs, waiting, current = runs + 1, 0, here
        if current < 0:
            cell[runs], length[runs] = middle, samples
            runs += 1
        first[w + 1] = runs
    return first, at, cell[:runs].copy(), length[:runs].copy()
