"""What is learned from sums and noisy times, and gaze drawn from it (Ren et al. 2024, 4.3 to 4.5);
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

from dataclasses import dataclass

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
