"""Gaze from what the curator knows: Algorithm 1 of Ren et al. 2024, over all windows at once.

A window begins in its noisy cell and has as many runs as its fixation times say. Each further run
lies in a neighbour of the cell before, drawn from the transition model. A run is one place, drawn
evenly from its cell, for as many samples as the run lasts.

With `motion="public"` the samples move as eyes do: a saccade from place to place with the speed of
the public main sequence, and slow drift around the place. Nothing about anybody enters that, so it
costs nothing, and event detectors find fixations and saccades of ordinary shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
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

MOTIONS = ("still", "public")


@dataclass(frozen=True, eq=False)
class Transitions:
    """The Markov chain on the grid.

    Parameters
    ----------
    rows : array of float64, shape (G**2, 8)
        Probability of each step from each cell; every row adds up to 1.
    uniform : array of bool, shape (G**2,)
        Cells nothing was learned about: all their steps are equally likely.
    turns : array of float64, shape (9, 8), optional
        A second-order chain: factors on the steps by the step before (8: none in this window).
    """

    rows: Floats
    uniform: Bools
    turns: Floats | None = None

    def probabilities(self, cells: Ints, before: Ints) -> Floats:
        """Probabilities of the eight steps, shape (n, 8), from cells that were reached by the steps
        `before`.
        """
        rows = self.rows[cells]
        if self.turns is None:
            return rows
        turned = rows * self.turns[before]
        total = turned.sum(axis=1, keepdims=True)
        return np.where(total > 0, turned / np.where(total > 0, total, 1.0), rows)


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
    before = np.full(len(starts), 8, dtype=np.int64)
    for k in range(1, int(counts.max()) if len(counts) else 0):
        going = np.flatnonzero(counts > k)
        here = cells[going, k - 1]
        reached = np.cumsum(transitions.probabilities(here, before[going]), axis=1)
        chosen = np.sum(rng.random(len(going))[:, None] * reached[:, -1:] >= reached, axis=1)
        # A number just below 1 may pass the last sum by rounding; steps that do not exist have
        # probability 0 and are never last.
        chosen = np.minimum(chosen, 7)
        off = grid.target[here, chosen] < 0
        if off.any():
            chosen[off] = np.argmax(transitions.rows[here[off]], axis=1)
        cells[going, k:] = grid.target[here, chosen][:, None]
        before[going] = chosen
    return cells


def samples_of(
    grid: CellGrid,
    cells: Ints,
    lengths: Ints,
    samples: int,
    rate_hz: float,
    motion: str,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Places of the first `samples` samples of windows whose runs have these cells and lengths,
    both of shape (windows, most runs).
    """
    there = lengths > 0
    count, cell = lengths[there], cells[there]
    x, y = grid.points(cell, rng.random(len(cell)), rng.random(len(cell)))
    if motion == "still":
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
