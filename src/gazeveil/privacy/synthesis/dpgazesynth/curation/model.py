"""What the curator learns from sums: unbiased counts, made consistent (Ren et al. 2024, 4.4;
equations (4) and (7)).

`corrected` and `published` estimate the count of every step of the grid, set negative counts to 0
and divide each cell's counts by their sum. A cell with no count above 0 is flagged and all its
steps are equally likely.

The one report learns less at once and more surely: directions of all cells together, beginning at
public ones, then of zones of the grid, then turns. Each level departs from the one above it only as
far as the reports show that it differs: by the share 1 - Q / X of the estimated difference, where X
is its squared size in units of the reports' noise and Q the 99.9 % quantile of X if there were no
difference. So where nothing can be learned, nothing but the level above remains.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.events import read_only
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import Transitions
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid

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


@dataclass(frozen=True, eq=False)
class Learned:
    """How much of each level of the one report's model is its own, from 0 (nothing) to 1."""

    directions: float
    zones: float
    turns: float


def zone_of(grid: CellGrid, zones: int) -> Ints:
    """The zone of each cell: zones x zones rectangles of the grid, numbered row by row."""
    row, column = np.divmod(np.arange(grid.G**2), grid.G)
    return row * zones // grid.G * zones + column * zones // grid.G


@dataclass(frozen=True, eq=False)
class Levels:
    """The one report's estimates.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    counts : array of float64, shape (zones**2, 9 or 1, 8)
        Unbiased counts of steps by zone, step before (1: not told apart) and direction.
    reports : int
        Answers behind them.
    variance : float
        Of each of them.
    occupied : array of float64, shape (G**2,)
        Share of windows that begin in each cell, from the noisy starts.
    """

    grid: CellGrid
    counts: Floats = field(repr=False)
    reports: int
    variance: float
    occupied: Floats = field(repr=False)

    def transitions(self) -> tuple[Transitions, Learned]:
        """The chain, and how much of it was learned."""
        zones, turns, _ = self.counts.shape
        total = max(float(self.counts.sum()), _LEAST_HELD * self.reports, 1.0)
        over_all = self.counts.sum(axis=(0, 1))
        directions, first = histogram(
            over_all, self.reports, self.variance * zones * turns, PUBLIC_DIRECTIONS
        )
        by_zone, second = self._zones(directions, total)
        side = round(zones**0.5)
        rows = by_zone[zone_of(self.grid, side)] * (self.grid.number >= 0)
        rows = rows / rows.sum(axis=1, keepdims=True)
        factors, third = self._turns(directions) if turns > 1 else (None, 0.0)
        nothing = np.full(len(rows), first == 0.0 and second == 0.0)
        return Transitions(rows, nothing, factors), Learned(first, second, third)

    def _zones(self, directions: Floats, total: float) -> tuple[Floats, float]:
        """Directions of each zone: how they differ from all zones', over how
        often gaze is there.
        """
        zones, turns, _ = self.counts.shape
        if zones == 1:
            return directions[None], 0.0
        there = np.bincount(
            zone_of(self.grid, round(zones**0.5)), weights=self.occupied, minlength=zones
        )
        # A zone that is hardly ever looked at cannot be learned about; its own share would blow the
        # noise up.
        expected = total * np.maximum(there / there.sum(), 1 / (4 * zones))
        difference = self.counts.sum(axis=1) - expected[:, None] * directions
        kept = kept_share(difference, self.variance * turns, 7 * zones)
        rows = np.maximum(directions + kept * difference / expected[:, None], 1e-3 / 8)
        return rows / rows.sum(axis=1, keepdims=True), kept

    def _turns(self, directions: Floats) -> tuple[Floats, float]:
        """Factors on directions by the step before."""
        zones = len(self.counts)
        before = self.counts.sum(axis=0)
        often = np.maximum(
            before.sum(axis=1, keepdims=True),
            max(float(before.sum()), _LEAST_HELD * self.reports, 1.0) / 36,
        )
        expected = often * directions
        difference = before - expected
        kept = kept_share(difference, self.variance * zones, 9 * 7)
        return np.clip(1.0 + kept * difference / np.maximum(expected, 1e-12), 0.05, 20.0), kept
