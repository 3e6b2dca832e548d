"""A recording as DPGazeSynth sees it: windows of W samples, where each begins, and how long gaze
stays in a cell (Ren et al. 2024, 4.2 and 4.3).

A window is a sequence of runs: cells one after the other, each different from the last, with the
number of samples spent in it; the numbers add up to W. Lost samples count for the run before them,
or at the beginning of a window for the first run; a last window that the recording does not fill
goes on in its last cell. A window without any gaze begins in the middle of the grid and stays
there. So every window says something of the same kind, and whether samples were lost is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid

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
