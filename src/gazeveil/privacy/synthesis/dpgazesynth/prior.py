"""Where windows really begin, from where they seem to: the noise of the starts is known, so it can
be undone on the average.

The density of true starts is estimated from all noisy ones by expectation maximisation with
smoothing (Silverman, Jones, Wilson and Nychka 1990): each round puts every noisy start back among
the cells it may have come from, in proportion to the present density times the noise's, and smooths
the result with the weights 1/4, 1/2, 1/4 along each side (less where cells are large against the
noise). First over all stimuli, then, from there, for each stimulus. A window's start is then drawn
from what its noisy start and the density of its stimulus say together, so that all starts together
follow the density and not its blurred image.

Everything here looks at noisy starts alone, so no promise depends on it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid

ROUNDS = 30

#: Stimuli with fewer windows keep the density of all.
LEAST_WINDOWS = 50

#: On a screen with fewer windows in all and noise narrower than this share of its smaller side, a
#: density is too rough to place starts better than their own noise does. On a sphere gaze keeps to
#: a small part of it, which shows at once.
FEW_WINDOWS, NARROW = 5_000, 0.04

_LEAST = 1e-12

# Places inside a cell at which the noise is averaged: the difference of two places of a cell has a
# triangular law.
_OFFSETS = np.arange(-3, 4) / 4.0
_WEIGHTS = 1.0 - np.abs(_OFFSETS)


class Blur(ABC):
    """The noise of starts as it acts on cells.

    Noisy cells have rows and columns of their own: on a screen they begin :attr:`margin` cells
    outside it.
    """

    grid: CellGrid
    margin: int

    #: Weights of the neighbours across and down in one round of smoothing: at most 1/4, less where
    #: a cell is large against the noise, so that no more is smoothed away than the noise has
    #: blurred.
    smoothing: tuple[float, float]

    #: Likelihoods: for a true cell (r, c) and a noisy cell (i, j) it is `table[line[r, i], j - c +
    #: shift]`, the last number modulo G on a sphere.
    table: Floats
    line: Ints
    shift: int

    @abstractmethod
    def bins(self, x_deg: Floats, y_deg: Floats) -> tuple[Ints, Ints]:
        """Row and column of the noisy cell of each noisy start; those farther out go to the
        outermost one.
        """

    @abstractmethod
    def forward(self, density: Floats) -> Floats:
        """Where true starts of this density, shape (G, G), seem to be."""

    @abstractmethod
    def backward(self, noisy: Floats) -> Floats:
        """The transpose of :meth:`forward`."""

    def counted(self, row: Ints, column: Ints) -> Floats:
        """Noisy starts per noisy cell."""
        rows = self.line.shape[1]
        columns = self.grid.G + 2 * self.margin
        return (
            np.bincount(row * columns + column, minlength=rows * columns)
            .astype(np.float64)
            .reshape(rows, columns)
        )

    def density(self, noisy: Floats, begin: Floats) -> Floats:
        """Density of true starts, shape (G, G), adding up to 1.

        Parameters
        ----------
        noisy : array of float64
            Noisy starts per noisy cell.
        begin : array of float64, shape (G, G)
            A density to begin with.
        """
        noisy = self._inner(noisy)
        covered = np.maximum(self.backward(self._inner(np.ones_like(noisy))), _LEAST)
        density = begin * (noisy.sum() / begin.sum())
        for _ in range(ROUNDS):
            density = (
                density * self.backward(noisy / np.maximum(self.forward(density), _LEAST)) / covered
            )
            density = np.maximum(self._smoothed(density), _LEAST)
        return density / density.sum()

    def _inner(self, noisy: Floats) -> Floats:
        """Without the outermost cells of a screen, which hold everything beyond them as well."""
        if self.margin == 0:
            return noisy
        kept = np.zeros_like(noisy)
        kept[1:-1, 1:-1] = noisy[1:-1, 1:-1]
        return kept

    def _smoothed(self, density: Floats) -> Floats:
        across, down = self.smoothing
        tall = np.pad(density, ((1, 1), (0, 0)), mode="edge")
        density = down * (tall[:-2] + tall[2:]) + (1.0 - 2.0 * down) * density
        wide = np.pad(density, ((0, 0), (1, 1)), mode="wrap" if self.grid.wraps else "edge")
        return across * (wide[:, :-2] + wide[:, 2:]) + (1.0 - 2.0 * across) * density

    def drawn(self, row: Ints, column: Ints, density: Floats, rng: np.random.Generator) -> Ints:
        """A true cell for each noisy one, in proportion to its density times the likelihood."""
        return _drawn(
            self.table,
            self.line,
            self.shift,
            self.margin == 0,
            density,
            row,
            column,
            rng.random(len(row)),
        )


@compiled
def _drawn(
    table: Floats,
    line: Ints,
    shift: int,
    wraps: bool,
    density: Floats,
    row: Ints,
    column: Ints,
    uniform: Floats,
) -> Ints:
    size = len(density)
    out = np.empty(len(row), dtype=np.int64)
    reached = np.empty(size * size)
    for w in range(len(row)):
        total = 0.0
        for r in range(size):
            likely = table[line[r, row[w]]]
            for c in range(size):
                place = column[w] - c + shift
                if wraps and place < 0:
                    place += size
                total += density[r, c] * likely[place]
                reached[r * size + c] = total
        out[w] = min(np.searchsorted(reached, uniform[w] * total, side="right"), size * size - 1)
    return out


def _smoothing(scale_deg: float, grid: CellGrid) -> tuple[float, float]:
    """Neighbours' weights: a round spreads by a variance of twice the weight, in cells; the noise
    by 3 (scale / cell)**2.
    """
    sides = grid.space.width_deg / grid.G, grid.space.height_deg / grid.G
    across, down = (min(0.25, (scale_deg / side) ** 2 / 16.0) for side in sides)
    return across, down


class ScreenBlur(Blur):
    """Planar Laplace noise on a screen, by Fourier transform."""

    def __init__(self, grid: CellGrid, scale_deg: float) -> None:
        from scipy.fft import next_fast_len, rfft2

        self.grid, size = grid, grid.G
        wide, high = grid.space.width_deg / size, grid.space.height_deg / size
        self.smoothing = _smoothing(scale_deg, grid)
        # 1 % of the noise goes farther than 6.6 scales
        self.margin = min(max(4, math.ceil(6.6 * scale_deg / min(wide, high))), size)
        self.shift = size + self.margin
        offsets = np.arange(-self.shift, self.shift + 1)
        self.table = np.zeros((len(offsets), len(offsets)))
        for a, u in zip(_OFFSETS, _WEIGHTS, strict=True):
            for b, v in zip(_OFFSETS, _WEIGHTS, strict=True):
                self.table += (
                    u
                    * v
                    * np.exp(
                        -np.hypot((offsets + a) * wide, ((offsets + b) * high)[:, None]) / scale_deg
                    )
                )
        self.table /= self.table.max()
        self._outer = size + 2 * self.margin
        # numbers of noisy cells count from the margin on, those of true ones from the screen's edge
        self.line = np.arange(self._outer) - np.arange(size)[:, None] - self.margin + self.shift
        self.shift -= self.margin
        # long enough that nothing of what is looked at comes round
        self._side = next_fast_len(self._outer + size + self.margin, real=True)
        self._spectrum = rfft2(self.table, (self._side, self._side))

    def _applied(self, field: Floats) -> Floats:
        from scipy.fft import irfft2, rfft2

        out = irfft2(
            rfft2(field, (self._side, self._side)) * self._spectrum, (self._side, self._side)
        )
        begin = self.grid.G + self.margin
        return np.maximum(out[begin : begin + self._outer, begin : begin + self._outer], 0.0)

    def bins(self, x_deg: Floats, y_deg: Floats) -> tuple[Ints, Ints]:
        """Row and column counted from the outermost noisy cell on."""
        column, row = (
            np.clip(np.floor(v) + self.margin, 0, self._outer - 1).astype(np.int64)
            for v in self.grid.scaled(x_deg, y_deg)
        )
        return row, column

    def forward(self, density: Floats) -> Floats:
        """By Fourier transform."""
        return self._inner(self._applied(np.pad(density, self.margin)))

    def backward(self, noisy: Floats) -> Floats:
        """The kernel is even, so it is its own transpose."""
        m = self.margin
        return self._applied(noisy)[m:-m, m:-m]


class SphereBlur(Blur):
    """Noise by arc length on a sphere, by Fourier transform along the rows."""

    def __init__(self, grid: CellGrid, scale_deg: float) -> None:
        self.grid, size = grid, grid.G
        self.margin, self.shift = 0, 0
        self.smoothing = _smoothing(scale_deg, grid)
        turn = np.arange(size) * (2 * np.pi / size)
        polar = (np.arange(size) + 0.5) * (np.pi / size)
        likely = np.zeros((size, size, size))
        for a, u in zip(_OFFSETS, _WEIGHTS, strict=True):
            for part in (-0.25, 0.25):
                above, below = polar + part * np.pi / size, polar - part * np.pi / size
                for start, end in ((above, above), (above, below)):
                    flat = (
                        np.sin(start)[:, None, None]
                        * np.sin(end)[None, :, None]
                        * np.cos(turn + a * 2 * np.pi / size)
                    )
                    near = np.cos(start)[:, None, None] * np.cos(end)[None, :, None] + flat
                    likely += u * np.exp(
                        -np.degrees(np.arccos(np.clip(near, -1.0, 1.0))) / scale_deg
                    )
        # the density of noise is by area, and rows near the poles are smaller
        likely *= np.sin(polar)[None, :, None] / likely.max()
        self.table = likely.reshape(size * size, size)
        self.line = np.arange(size)[:, None] * size + np.arange(size)
        self._spectrum = np.fft.rfft(likely, axis=2)

    def bins(self, x_deg: Floats, y_deg: Floats) -> tuple[Ints, Ints]:
        """Row and column of the cell."""
        row, column = np.divmod(self.grid.cells(x_deg, y_deg), self.grid.G)
        return row, column

    def forward(self, density: Floats) -> Floats:
        """By Fourier transform along the rows."""
        return np.fft.irfft(
            np.einsum("abk,ak->bk", self._spectrum, np.fft.rfft(density, axis=1)),
            self.grid.G,
            axis=1,
        )

    def backward(self, noisy: Floats) -> Floats:
        """A kernel that is even in the columns is its own transpose there."""
        return np.fft.irfft(
            np.einsum("abk,bk->ak", self._spectrum, np.fft.rfft(noisy, axis=1)), self.grid.G, axis=1
        )


@lru_cache(maxsize=8)
def blur(grid: CellGrid, scale_deg: float) -> Blur:
    """The blur of a grid's starts."""
    if isinstance(grid.space, Sphere):
        return SphereBlur(grid, scale_deg)
    return ScreenBlur(grid, scale_deg)


def worth_undoing(grid: CellGrid, scale_deg: float, windows: int) -> bool:
    """Whether starts are drawn from what noise and density say together, or stay as the noise left
    them: a rule on public numbers.
    """
    narrow = scale_deg < NARROW * min(grid.space.width_deg, grid.space.height_deg)
    return isinstance(grid.space, Sphere) or windows >= FEW_WINDOWS or not narrow


def even(grid: CellGrid) -> Floats:
    """The density of gaze that is uniform over the area."""
    rows = (
        np.sin((np.arange(grid.G) + 0.5) * np.pi / grid.G)
        if isinstance(grid.space, Sphere)
        else np.ones(grid.G)
    )
    return np.repeat((rows / rows.sum() / grid.G)[:, None], grid.G, axis=1)
