"""What the curator makes of noisy sums: a prior of starts, a model of steps, and gaze.

Where windows really begin, from where they seem to: the noise of the starts is known, so it can
be undone on the average.

The density of true starts is estimated from all noisy ones by expectation maximisation with
smoothing (Silverman, Jones, Wilson and Nychka 1990): each round puts every noisy start back among
the cells it may have come from, in proportion to the present density times the noise's, and smooths
the result with the weights 1/4, 1/2, 1/4 along each side (less where cells are large against the
noise). First over all stimuli, then, from there, for each stimulus. A window's start is then drawn
from what its noisy start and the density of its stimulus say together, so that all starts together
follow the density and not its blurred image.

Everything here looks at noisy starts alone, so no promise depends on it.

What is learned from sums and noisy times, and gaze drawn from it (Ren et al. 2024, 4.3 to 4.5);
free of charge, since nothing but noisy answers is looked at.

What the curator learns from sums: unbiased counts, made consistent (Ren et al. 2024, 4.4;
equations (4) and (7)).

`corrected` and `published` estimate the count of every step of the grid, set negative counts to 0
and divide each cell's counts by their sum. A cell with no count above 0 is flagged and all its
steps are equally likely.

The one report learns less and more surely: directions of all cells together, beginning at public
ones. They depart from these only as far as the reports show that they differ: by the share
1 - Q / X of the estimated difference, where X is its squared size in units of the reports' noise
and Q the 99.9 % quantile of X if there were no difference.

Gaze is drawn by Algorithm 1 of Ren et al. 2024, over all windows at once.

A window begins in its noisy cell and has as many runs as its fixation times say. Each further run
lies in a neighbour of the cell before, drawn from the transition model. A run is one place, drawn
evenly from its cell, for as many samples as the run lasts.

Unless they are to stay `still`, the samples move as eyes do: a saccade from place to place with the
speed of the public main sequence, and slow drift around the place. Nothing about anybody enters
that, so it costs nothing, and event detectors find fixations and saccades of ordinary shape.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.events import read_only
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.simulate.kinematics import (
    Triple,
    angle,
    arc,
    duration,
    ornstein_uhlenbeck,
    share,
    step,
    to_degrees,
)
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


#: The public eye: main sequence 500 (1 - exp(-A / 9)) deg/s, a little skew, drift of 0.08 degrees
#: that changes within a fifth of a second.
V_MAX_DEG_S, CONSTANT_DEG, SKEW = 500.0, 9.0, 0.3
DRIFT_DEG, DRIFT_S = 0.08, 0.2


@dataclass(frozen=True, eq=False)
class Transitions:
    """The Markov chain on the grid.

    Parameters
    ----------
    rows : array of float64, shape (G**2, 8)
        Probability of each step from each cell; every row adds up to 1.
    uniform : array of bool, shape (G**2,)
        Cells nothing was learned about: all their steps are equally likely.
    """

    rows: Floats
    uniform: Bools


def walks(
    grid: CellGrid,
    transitions: Transitions,
    starts: Ints,
    counts: Ints,
    width: int,
    rng: np.random.Generator,
) -> Ints:
    """Cells of the runs of each window, shape (windows, width): from its start cell, one step per
    further run.

    Parameters
    ----------
    starts, counts : array of int64, shape (windows,)
        First cell and number of runs of each window; entries beyond it repeat the last cell.
    width : int
        At least the largest number of runs.
    """
    cells = np.repeat(starts[:, None], width, axis=1)
    for k in range(1, int(counts.max()) if len(counts) else 0):
        going = np.flatnonzero(counts > k)
        here = cells[going, k - 1]
        reached = np.cumsum(transitions.rows[here], axis=1)
        chosen = np.sum(rng.random(len(going))[:, None] * reached[:, -1:] >= reached, axis=1)
        # A number just below 1 may pass the last sum by rounding; steps that do not exist have
        # probability 0 and are never last.
        chosen = np.minimum(chosen, 7)
        off = grid.target[here, chosen] < 0
        if off.any():
            chosen[off] = np.argmax(transitions.rows[here[off]], axis=1)
        cells[going, k:] = grid.target[here, chosen][:, None]
    return cells


def samples_of(
    grid: CellGrid,
    cells: Ints,
    lengths: Ints,
    samples: int,
    rate_hz: float,
    still: bool,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Places of the first `samples` samples of windows whose runs have these cells and lengths,
    both of shape (windows, most runs).
    """
    there = lengths > 0
    count, cell = lengths[there], cells[there]
    x, y = grid.points(cell, rng.random(len(cell)), rng.random(len(cell)))
    if still:
        return np.repeat(x, count)[:samples], np.repeat(y, count)[:samples]
    return move(
        grid.space.vectors(x, y),
        count,
        samples,
        rate_hz,
        isinstance(grid.space, Sphere),
        rng.standard_normal((samples, 2)),
        np.zeros(2),
    )


@compiled
def move(
    place: Floats,
    count: Ints,
    samples: int,
    rate_hz: float,
    sphere: bool,
    drawn: Floats,
    drift: Floats,
) -> tuple[Floats, Floats]:
    """Degrees of samples that go from place to place (unit vectors) and drift around each.

    Gaze is at the first place from the start; one with a count of 0 is only where it comes from.
    `drift`, in degrees along x and y, goes on from where it was.
    """
    x, y = np.empty(samples), np.empty(samples)
    fade, fresh = ornstein_uhlenbeck(1.0 / rate_hz, DRIFT_S, DRIFT_DEG)
    drift_x, drift_y, i = drift[0], drift[1], 0
    before: Triple = (0.0, 0.0, 1.0)
    for run in range(len(place)):
        here: Triple = (place[run, 0], place[run, 1], place[run, 2])
        if run == 0:
            before = here
        size = angle(before, here)
        # Opposite places have no one great circle between them: there gaze jumps.
        flight = (
            min(duration(size, V_MAX_DEG_S, CONSTANT_DEG, SKEW) * rate_hz, float(count[run]))
            if 0.0 < size < 179.0
            else 0.0
        )
        for k in range(count[run]):
            if i >= samples:
                return x, y
            drift_x = fade * drift_x + fresh * drawn[i, 0]
            drift_y = fade * drift_y + fresh * drawn[i, 1]
            drift[0], drift[1] = drift_x, drift_y
            at = arc(before, here, share((k + 1.0) / flight, SKEW)) if k + 1.0 < flight else here
            x[i], y[i] = to_degrees(step(at, drift_x, drift_y), sphere)
            i += 1
        before = here
    return x, y


#: Public prior of directions, without a report. Drifting gaze leaves a cell through an edge (a
#: corner is a point); a jump goes into any of eight equal sectors. Half of each.
PUBLIC_DIRECTIONS: Floats = read_only(np.tile([3.0, 1.0], 4) / 16.0)

#: Quantile of the noise that a difference must exceed to count.
_SURE = 0.999

#: Least share of reports that hold something: where fewer seem to, that is noise, and dividing by
#: it would blow noise up.
_LEAST_HELD = 1 / 8


def from_steps(grid: CellGrid, counts: Floats, variance: float) -> tuple[Transitions, float]:
    """The chain of estimated counts of all steps, shape (|S|,), and how much of their differences
    is not noise of that variance (0 to 1).
    """
    number = grid.number
    kept = np.where(number >= 0, np.maximum(counts, 0.0)[np.maximum(number, 0)], 0.0)
    total = kept.sum(axis=1, keepdims=True)
    uniform = total[:, 0] <= 0
    even = (number >= 0) / np.maximum((number >= 0).sum(axis=1, keepdims=True), 1)
    rows = np.where(uniform[:, None], even, kept / np.where(total > 0, total, 1.0))
    return Transitions(rows, uniform), kept_share(counts - counts.mean(), variance, len(counts) - 1)


def from_directions(grid: CellGrid, directions: Floats, learned: bool) -> Transitions:
    """The chain whose cells all have these shares of directions, as far as steps exist."""
    rows = directions * (grid.number >= 0)
    rows = rows / rows.sum(axis=1, keepdims=True)
    return Transitions(rows, np.full(len(rows), not learned))


def kept_share(difference: Floats, variance: float, freedom: int) -> float:
    """The share of an estimated difference that is kept: 0 where noise of that variance alone would
    often look like it.
    """
    from scipy.stats import chi2

    if freedom < 1 or variance <= 0:
        return 0.0
    statistic = float(np.sum(difference**2)) / variance
    return max(0.0, 1.0 - float(chi2.ppf(_SURE, freedom)) / statistic) if statistic > 0 else 0.0


def histogram(
    counts: Floats, reports: int, variance: float, public: Floats
) -> tuple[Floats, float]:
    """Shares of categories from unbiased counts, kept near public ones as far as noise alone would
    explain the difference.

    Parameters
    ----------
    counts : array of float64
        Estimated counts; what `reports` they lack is another category that is not asked about.
    reports : int
        Answers behind them.
    variance : float
        Of each count.
    public : array of float64
        Shares to begin with.

    Returns
    -------
    shares : array of float64
        At least 0, adding up to 1.
    kept : float
        0 where nothing was learned, near 1 where the counts speak for themselves.
    """
    total = max(float(counts.sum()), _LEAST_HELD * reports, 1.0)
    difference = counts - counts.sum() * public
    kept = kept_share(difference, variance, len(counts) - 1)
    shares = np.maximum(public + kept * difference / total, 0.0)
    return shares / shares.sum(), kept


def rounded(values: Floats, totals: Ints) -> Ints:
    """Whole numbers near the values of each row that add up to the row's total: all rounded down,
    then one more for the largest remainders.

    Parameters
    ----------
    values : array of float64, shape (rows, n)
        At least 0; each row adds up to its total, but for rounding.
    totals : array of int64, shape (rows,)
        Whole totals.
    """
    down = np.floor(values)
    # Rounding may have left a row a little short or long of its total, so that one more or one less
    # must be given than there are remainders.
    missing = (totals - down.sum(axis=1)).astype(np.int64)
    order = np.argsort(down - values, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(values.shape[1]), order.shape), axis=1)
    return down.astype(np.int64) + (rank < missing[:, None])


def stretched(noisy: Floats, samples: int) -> Ints:
    """Run lengths from vectors of c noisy ones (`corrected`): at least 1 in the first m places, 0
    in the others, adding up to W.

    How many runs there are is told from the noisy vector alone: as many as are above 0, or the
    largest one. What is left of W after one sample each is shared in proportion to the noisy
    lengths.

    Parameters
    ----------
    noisy : array of float64, shape (windows, c)
        Noisy lengths.
    samples : int
        W.

    Returns
    -------
    array of int64, shape (windows, c)
    """
    rank = np.argsort(np.argsort(-noisy, axis=1, kind="stable"), axis=1, kind="stable")
    # more runs than samples cannot be
    active = ((noisy > 0) | (rank == 0)) & (rank < samples)
    kept = np.where(active, np.maximum(noisy, 1.0), 0.0)
    rest = samples - active.sum(axis=1)
    whole = rounded(kept * (rest / kept.sum(axis=1))[:, None], rest) + active
    # active runs first, in their order
    order = np.argsort(~active, axis=1, kind="stable")
    return np.take_along_axis(whole, order, axis=1)


def rescaled(noisy: Floats, counts: Ints, samples: int) -> Ints:
    """Run lengths from noisy ones as Ren et al. 2024 has it (`published`): negative ones become 0,
    the rest is stretched to W and rounded; runs of 0 stay.

    Parameters
    ----------
    noisy : array of float64, shape (windows, most)
        Noisy lengths; entries from `counts` on are not looked at.
    counts : array of int64, shape (windows,)
        Runs of each window.
    samples : int
        W. Where nothing is above 0 all runs get the same.
    """
    there = np.arange(noisy.shape[1]) < counts[:, None]
    kept = np.where(there, np.maximum(noisy, 0.0), 0.0)
    kept = np.where((kept.sum(axis=1) > 0)[:, None], kept, there.astype(np.float64))
    return rounded(
        kept * (samples / kept.sum(axis=1))[:, None], np.full(len(noisy), samples, dtype=np.int64)
    )
