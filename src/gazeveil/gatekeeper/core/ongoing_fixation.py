"""Where the eye rests now and since when, at the end of every tick: what a selection is judged by.

An ongoing fixation is a fixation of the device's own detector, while it lasts. A tracker's noise
and the small saccades of a steady look break fixations into pieces, so a fixation that begins
within :data:`GAP_MS` of the last one and within :data:`NEAR_DEG` of where the first began goes on
with it. Its place is the mean over the last :data:`PLACE_MS` of the open fixation: an eye that
follows something is not fixating. Ongoing fixations stay inside the Gatekeeper; apps learn of them
only by the choice they lead to (:mod:`gazeveil.gatekeeper.core.selection`).

Samples, and the tick they end, decide; how they were cut into blocks does not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.trace import FIXATION
from gazeveil.gaze.geometry import Grid

#: Longest pause between two parts of one fixation.
GAP_MS = 300

#: Farthest that a fixation goes from where it began.
NEAR_DEG = 2.0

#: The place of an ongoing fixation is the mean over so long.
PLACE_MS = 200

# Places in the state: first sample and time of the open fixation, beginning and end of the ongoing
# fixation, tick of the last sample.
_OPEN, _OPEN_NS, _START_NS, _END_NS, _TICK, _STATE = range(6)


class OngoingFixation(NamedTuple):
    """Where the eye rested when a tick was over.

    Parameters
    ----------
    cell : (int, int) or None
        Row and column; None outside the space.
    start_ns, end_ns : int
        First and last sample so far, in the session's own time.
    settled : bool
        Whether the cell is of samples since `start_ns` alone: an eye that a jump without a saccade
        led away is first seen on the way.
    """

    cell: tuple[int, int] | None
    start_ns: int
    end_ns: int
    settled: bool


class OngoingFixations:
    """Follows the open fixation from tick to tick.

    Parameters
    ----------
    rate_hz : float
        Nominal rate of the tracker.
    grid : Grid
        Public cells.
    tick_ns : int
        Public clock.
    """

    def __init__(self, rate_hz: float, grid: Grid, tick_ns: int) -> None:
        self.grid, self.tick_ns = grid, tick_ns
        #: Samples that the place is the mean of.
        self.back = max(1, math.ceil(PLACE_MS * rate_hz / 1000))
        self._state = np.zeros(_STATE, dtype=np.int64)
        self._first = np.zeros(3)
        self.reset()

    def reset(self) -> None:
        """Forget both fixations."""
        self._state[:] = -1
        self._first[:] = 0.0

    def take(
        self, edges: Ints, begin: int, end: int, sums: Floats, times: Ints
    ) -> list[OngoingFixation]:
        """The ongoing fixations at the ends of ticks, from what the detector decided with samples
        `begin` to `end` (one after the last); running sums of places and times come as rings.
        """
        rows = np.empty((end - begin, 5), dtype=np.int64)
        past = sums, times, self.back, self.tick_ns, self._state, self._first
        grid = self.grid
        count = _ongoing_rows(edges, begin, end, grid.sphere, *past, rows, *grid.numbers)
        return [
            OngoingFixation(None if row < 0 else (row, column), start, stop, bool(settled))
            for row, column, start, stop, settled in rows[:count].tolist()
        ]


@compiled
def cell_of(
    x: float,
    y: float,
    z: float,
    sphere: bool,
    left_deg: float,
    top_deg: float,
    column_deg: float,
    row_deg: float,
    columns: int,
    together: Ints,
) -> tuple[int, int]:
    """The cell of a mean place: degrees on a screen, a direction of any length on a sphere; (-1,
    -1) outside the space.
    """
    if sphere:
        flat = math.hypot(x, z)
        x, y = math.degrees(math.atan2(x, z)) + 180.0, 90.0 - math.degrees(math.atan2(y, flat))
        x = 0.0 if x >= 360.0 else x
        y = min(y, 179.999999999)
    row, column = math.floor((y - top_deg) / row_deg), math.floor((x - left_deg) / column_deg)
    if row < 0 or row >= len(together) or column < 0 or column >= columns:
        return -1, -1
    return row, column - column % together[row] + together[row] // 2


@compiled
def _near(sphere: bool, x: float, y: float, z: float, first: Floats) -> bool:
    if sphere:
        length = math.sqrt(
            (x * x + y * y + z * z) * (first[0] ** 2 + first[1] ** 2 + first[2] ** 2)
        )
        return (
            x * first[0] + y * first[1] + z * first[2] >= math.cos(math.radians(NEAR_DEG)) * length
        )
    return math.hypot(x - first[0], y - first[1]) <= NEAR_DEG


@compiled
def _ongoing_rows(
    edges: Ints,
    begin: int,
    end: int,
    sphere: bool,
    sums: Floats,
    times: Ints,
    back: int,
    tick_ns: int,
    state: Ints,
    first: Floats,
    rows: Ints,
    left_deg: float,
    top_deg: float,
    column_deg: float,
    row_deg: float,
    columns: int,
    together: Ints,
) -> int:
    """Rows of (row, column, start, end, settled), one for each tick that is over and has an open
    fixation; row -1 outside the space.
    """
    size = len(times)
    count, known = 0, 0
    for i in range(begin, end + 1):
        tick = times[i % size] // tick_ns if i < end else np.int64(-1)
        over = i < end and state[4] >= 0 and tick > state[4]
        # What was decided before this sample came; after the last one, all that is left.
        while (over or i == end) and known < len(edges) and edges[known, 3] < i:
            kind, side, index = edges[known, 0] // 2, edges[known, 0] % 2, edges[known, 1]
            opens = side == 0 and kind == FIXATION
            state[0], state[1] = (index, times[index % size]) if opens else (-1, -1)
            known += 1
        if over and state[0] >= 0:
            last, before = (i - 1) % size, max(state[0], i - back) - 1
            good = sums[last, 3] - (sums[before % size, 3] if before >= 0 else 0.0)
            if good > 0.5:
                x = (sums[last, 0] - (sums[before % size, 0] if before >= 0 else 0.0)) / good
                y = (sums[last, 1] - (sums[before % size, 1] if before >= 0 else 0.0)) / good
                z = (sums[last, 2] - (sums[before % size, 2] if before >= 0 else 0.0)) / good
                if (
                    state[3] < 0
                    or state[1] - state[3] > GAP_MS * 1_000_000
                    or not _near(sphere, x, y, z, first)
                ):
                    # The eye has come from elsewhere, or was led away within one fixation.
                    state[2] = max(state[1], state[3])
                    first[0], first[1], first[2] = x, y, z
                state[3] = times[last]
                rows[count, 0], rows[count, 1] = cell_of(
                    x, y, z, sphere, left_deg, top_deg, column_deg, row_deg, columns, together
                )
                rows[count, 2], rows[count, 3] = state[2], state[3]
                rows[count, 4] = times[(before + 1) % size] >= state[2]
                count += 1
        if i < end:
            state[4] = tick
    return count
