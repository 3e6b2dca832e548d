"""The only part of the Gatekeeper that sees gaze: samples in, quantised events out.

Samples wait for the end of the current tick (or of the block they came in) and go through the
online detector. Of their past stay running sums over the detector's reach, so that the mean of a
fixation or pursuit can be told when its end is decided, and the detector's own memory: running sums
of the last second of places, and what its network made of the last four. Both stay inside this
process. A mean becomes a cell at once, an edge a tick. An event is handed on when the tick in which
it was decided is over: a listener with a good clock learns the tick and no more.

A sample is lost if the tracker says so, if it is not a place of the space or if its time does not
come after the last good one. After half a second of such times the clock is believed to have been
set back; the session's own time goes on and never goes back.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.online.detector import OnlineDetector
from gazeveil.events.trace import FIXATION, PURSUIT, SACCADE
from gazeveil.gatekeeper.core.ongoing_fixation import OngoingFixation, OngoingFixations, cell_of
from gazeveil.gaze.geometry import Grid, Space, Sphere
from gazeveil.gaze.recording import set_back_samples
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain

#: Shorter rests of the eye are not told.
LEAST_FIXATION_MS = 60

#: Samples that are looked at together.
CHUNK = 4096

_KINDS = ("fixation", "saccade", "saccade-start", "pursuit")

# Places in the state of the front.
_NEXT, _BEGUN, _LAST_NS, _BAD, _ELAPSED, _STATE = range(6)


class QuantisedEvent(NamedTuple):
    """An event or the beginning of a saccade, in cells and ticks.

    Parameters
    ----------
    kind : str
        `fixation`, `pursuit`, `saccade` or `saccade-start`.
    cell : (int, int) or None
        Row and column; None outside the space and for the beginning of a saccade.
    onset_tick, offset_tick : int
        First and last tick.
    decided_tick : int
        The tick in which it became known.
    """

    kind: str
    cell: tuple[int, int] | None
    onset_tick: int
    offset_tick: int
    decided_tick: int


class EventQuantiser:
    """Turns samples into events on the public grid.

    Parameters
    ----------
    rate_hz : float
        Nominal rate of the tracker.
    space : Sphere or Screen
        What its degrees mean.
    grid : Grid
        Public cells.
    tick_ms : int
        Public clock.
    """

    def __init__(self, rate_hz: float, space: Space, grid: Grid, tick_ms: int) -> None:
        self.rate_hz, self.space, self.grid = rate_hz, space, grid
        self.tick_ns = tick_ms * 1_000_000
        self._sphere = isinstance(space, Sphere)
        self._least_ns = LEAST_FIXATION_MS * 1_000_000
        self._state = np.zeros(_STATE, dtype=np.int64)
        self._believe = set_back_samples(rate_hz)
        self._t = np.zeros(CHUNK, dtype=np.int64)
        self._x, self._y = np.zeros(CHUNK), np.zeros(CHUNK)
        self._ok = np.zeros(CHUNK, dtype=np.bool_)
        self._waiting = 0
        self._ongoing_fixations = OngoingFixations(rate_hz, grid, self.tick_ns)
        self._ongoing: list[OngoingFixation] = []
        self.reset()

    def reset(self) -> None:
        """Forget open events and what waits; the session's time goes on."""
        self._detector = OnlineDetector(self.rate_hz, self.space, pursuit=True)
        # As far back as an edge can lie, and a chunk more because a whole chunk is summed before
        # its edges are looked at. The place of an ongoing fixation reaches back too.
        reach = math.ceil(self._detector.latency_s * self.rate_hz)
        size = CHUNK + reach + self._ongoing_fixations.back + 64
        self._sums = np.zeros((size, 4))
        self._times = np.zeros(size, dtype=np.int64)
        self._state[_NEXT] = 0
        self._before, self._open = np.zeros(4), np.full(1, -1, dtype=np.int64)
        self._ongoing_fixations.reset()
        self._ongoing.clear()
        self._wipe()
        self._next_ns = self._last_ns = -(2**62)

    def _wipe(self) -> None:
        self._x[: self._waiting] = 0.0
        self._y[: self._waiting] = 0.0
        self._waiting = 0

    @property
    def tick(self) -> int:
        """The current tick, counted from the first sample."""
        return int(self._state[_ELAPSED]) // self.tick_ns

    def one(self, t_ns: int, x_deg: float, y_deg: float, valid: bool) -> bool:
        """Take one sample; says whether it is time to :meth:`look`."""
        i = self._waiting
        self._t[i], self._x[i], self._y[i], self._ok[i] = t_ns, x_deg, y_deg, valid
        self._waiting = i + 1
        due = t_ns >= self._next_ns or t_ns <= self._last_ns or self._waiting == CHUNK
        self._last_ns = t_ns
        return due

    def block(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> list[QuantisedEvent]:
        """Take many samples and look at them."""
        events: list[QuantisedEvent] = []
        done = 0
        while done < len(t_ns):
            i = self._waiting
            n = min(CHUNK - i, len(t_ns) - done)
            part = slice(done, done + n)
            to = slice(i, i + n)
            self._t[to], self._x[to] = t_ns[part], x_deg[part]
            self._y[to], self._ok[to] = y_deg[part], valid[part]
            self._waiting = i + n
            done += n
            events += self.look()
        return events

    def look(self) -> list[QuantisedEvent]:
        """Look at the samples that wait; gives what was decided by now."""
        n = self._waiting
        if n == 0:
            return []
        t, x, y, ok = self._t[:n], self._x[:n], self._y[:n], self._ok[:n]
        begin = int(self._state[_NEXT])
        _sum(t, x, y, ok, self._sphere, self._believe, self._state, self._sums, self._times)
        # `_sum` has left only finite samples good. A clock that is believed again after it was set
        # back is new to the detector as well.
        edges = self._detector.push_arrays(t, x, y, ok)
        events = self._quantised(edges)
        self._ongoing += self._ongoing_fixations.take(
            edges, begin, begin + n, self._sums, self._times
        )
        self._last_ns = int(t[-1])
        self._next_ns = (
            int(self._state[_LAST_NS]) + self.tick_ns - int(self._state[_ELAPSED]) % self.tick_ns
        )
        self._wipe()
        return events

    def ongoing_fixations(self) -> list[OngoingFixation]:
        """Where the eye rested at the ends of ticks since this was last asked."""
        ongoing, self._ongoing = self._ongoing, []
        return ongoing

    def close(self) -> list[QuantisedEvent]:
        """Look at what waits and end the open event: the tracker is gone."""
        events = self.look() + self._quantised(self._detector.close_rows())
        self.reset()
        return events

    def _quantised(self, edges: Ints) -> list[QuantisedEvent]:
        if not len(edges):
            return []
        rows = np.empty((len(edges), 6), dtype=np.int64)
        past = edges, rows, self._sphere, self._sums, self._times, self._before, self._open
        count = _events(*past, self.tick_ns, self._least_ns, *self.grid.numbers)
        return [
            QuantisedEvent(_KINDS[kind], None if row < 0 else (row, column), onset, offset, decided)
            for kind, row, column, onset, offset, decided in rows[:count].tolist()
        ]


@compiled
def _events(
    edges: Ints,
    rows: Ints,
    sphere: bool,
    sums: Floats,
    times: Ints,
    before: Floats,
    begun: Ints,
    tick_ns: int,
    least_ns: int,
    left_deg: float,
    top_deg: float,
    column_deg: float,
    row_deg: float,
    columns: int,
    together: Ints,
) -> int:
    """Edges of the detector to events (place in `_KINDS`, row, column, first tick, last tick, tick
    of the decision); row -1 without a cell.

    `before` are the sums up to the open event, `begun` its time (-1 for none): an event may begin
    in one call and end in a later one.
    """
    size = len(times)
    count = 0
    for i in range(len(edges)):
        kind, side, index = edges[i, 0] // 2, edges[i, 0] % 2, edges[i, 1]
        decided = times[edges[i, 3] % size] // tick_ns
        # A pursuit began as a fixation; its end says what it was.
        code = 1 if kind == SACCADE else 3 if kind == PURSUIT else 0
        if kind != FIXATION and kind != SACCADE and kind != PURSUIT:
            begun[0] = -1
            continue
        now = times[index % size]
        if side == 0:
            for a in range(4):
                before[a] = sums[(index - 1) % size, a] if index > 0 else 0.0
            begun[0] = now
            if code == 1:
                rows[count, 0], rows[count, 1], rows[count, 2] = 2, -1, -1
                rows[count, 3], rows[count, 4], rows[count, 5] = (
                    now // tick_ns,
                    now // tick_ns,
                    decided,
                )
                count += 1
            continue
        onset = begun[0]
        begun[0] = -1
        if onset < 0 or (code != 1 and now - onset < least_ns):
            continue
        end = index % size
        first = before.copy()
        if code == 1 and sums[end, 3] - first[3] > 0.5:
            # A saccade lands where its last good sample is.
            j = index
            while j > 0 and sums[end, 3] - sums[(j - 1) % size, 3] < 0.5:
                j -= 1
            for a in range(4):
                first[a] = sums[(j - 1) % size, a] if j > 0 else 0.0
        good = sums[end, 3] - first[3]
        row, column = -1, -1
        if good > 0.5:
            x, y, z = (
                (sums[end, 0] - first[0]) / good,
                (sums[end, 1] - first[1]) / good,
                (sums[end, 2] - first[2]) / good,
            )
            row, column = cell_of(
                x, y, z, sphere, left_deg, top_deg, column_deg, row_deg, columns, together
            )
        rows[count, 0], rows[count, 1], rows[count, 2] = code, row, column
        rows[count, 3], rows[count, 4], rows[count, 5] = (onset // tick_ns, now // tick_ns, decided)
        count += 1
    return count


@compiled
def _sum(
    t: Ints,
    x: Floats,
    y: Floats,
    ok: Bools,
    sphere: bool,
    believe: int,
    state: Ints,
    sums: Floats,
    times: Ints,
) -> None:
    """Decide which samples are good, count the session's time, and add up places: x, y, z (or x and
    y in degrees) and how many.
    """
    size, bounds = len(times), bounds_deg(sphere)
    for i in range(len(t)):
        now = state[0]
        good = ok[i] and is_plain(x[i], y[i], bounds)
        if state[1] == 0:
            state[1], state[2], state[3] = 1, t[i], 0
        elif t[i] > state[2]:
            # A clock that jumps by more moves the session by a day. In floating point first: the
            # difference of two wild clocks may not fit 64 bits.
            step = float(t[i]) - float(state[2])
            state[4] += t[i] - state[2] if step < 8.64e13 else np.int64(86_400_000_000_000)
            state[2], state[3] = t[i], 0
        else:
            good = False
            state[3] += 1
            if state[3] > believe:
                state[2], state[3] = t[i], 0
        ok[i] = good
        here, last = now % size, (now - 1) % size
        for a in range(4):
            sums[here, a] = sums[last, a] if now > 0 else 0.0
        if good:
            if sphere:
                lon, lat = math.radians(x[i] - 180.0), math.radians(90.0 - y[i])
                sums[here, 0] += math.cos(lat) * math.sin(lon)
                sums[here, 1] += math.sin(lat)
                sums[here, 2] += math.cos(lat) * math.cos(lon)
            else:
                sums[here, 0] += x[i]
                sums[here, 1] += y[i]
            sums[here, 3] += 1.0
        times[here] = state[4]
        state[0] += 1
