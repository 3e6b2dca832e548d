"""The only part of the Gatekeeper that sees gaze: samples in, quantised events out.

Samples wait for the end of the current tick (or of the block they came in), go through the online detector and are forgotten. Of their past
only running sums over the detector's reach stay, so that the mean of a fixation can be told when its end is decided. A mean becomes a cell at
once, an edge a tick. An event is handed on when the tick in which it was decided is over: a listener with a good clock learns the tick and
no more.

A sample is lost if the tracker says so, if it is not a place of the space or if its time does not come after the last good one. After half
a second of such times the clock is believed to have been set back; the session's own time goes on and never goes back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.events.online import Edge, OnlineDetector
from gazeveil.gatekeeper.level import Grid
from gazeveil.gaze.geometry import Space, Sphere

#: Shorter rests of the eye are not told as fixations.
LEAST_FIXATION_MS = 60

#: Samples that are looked at together.
CHUNK = 4096

_BELIEVE_S = 0.5
_LONGEST_STEP_NS = 24 * 3600 * 10**9  # a clock that jumps further moves the session's time by a day

# Places in the state of the front.
_NEXT, _BEGUN, _LAST_NS, _BAD, _ELAPSED, _STATE = range(6)


@dataclass(frozen=True, slots=True)
class Told:
    """An event or the beginning of a saccade, in cells and ticks.

    Parameters
    ----------
    kind : str
        `fixation`, `saccade` or `saccade-start`.
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


class Looker:
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
        self._believe = max(1, round(_BELIEVE_S * rate_hz))
        self._t = np.zeros(CHUNK, dtype=np.int64)
        self._x, self._y = np.zeros(CHUNK), np.zeros(CHUNK)
        self._ok = np.zeros(CHUNK, dtype=np.bool_)
        self._waiting = 0
        self.reset()

    def reset(self) -> None:
        """Forget open events and what waits; the session's time goes on."""
        self._detector = OnlineDetector(self.rate_hz, self.space)
        # As far back as an edge can lie, and a chunk more because a whole chunk is summed before its edges are looked at.
        size = CHUNK + math.ceil(self._detector.latency_s * self.rate_hz) + 64
        self._sums = np.zeros((size, 4))
        self._times = np.zeros(size, dtype=np.int64)
        self._state[_NEXT] = 0
        self._onset: tuple[int, NDArray[np.float64]] | None = None
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

    def block(self, t_ns: NDArray[np.int64], x_deg: NDArray[np.float64], y_deg: NDArray[np.float64], valid: NDArray[np.bool_]) -> list[Told]:
        """Take many samples and look at them."""
        told: list[Told] = []
        done = 0
        while done < len(t_ns):
            i = self._waiting
            n = min(CHUNK - i, len(t_ns) - done)
            part = slice(done, done + n)
            self._t[i : i + n], self._x[i : i + n], self._y[i : i + n], self._ok[i : i + n] = t_ns[part], x_deg[part], y_deg[part], valid[part]
            self._waiting = i + n
            done += n
            told += self.look()
        return told

    def look(self) -> list[Told]:
        """Look at the samples that wait; gives what was decided by now."""
        n = self._waiting
        if n == 0:
            return []
        t, x, y, ok = self._t[:n], self._x[:n], self._y[:n], self._ok[:n]
        _sum(t, x, y, ok, self._sphere, self._believe, self._state, self._sums, self._times)
        # A clock that is believed again after it was set back is new to the detector as well; it has the same patience.
        told = self._told(self._detector.push(t, x, y, ok))
        self._last_ns = int(t[-1])
        self._next_ns = int(self._state[_LAST_NS]) + self.tick_ns - int(self._state[_ELAPSED]) % self.tick_ns
        self._wipe()
        return told

    def close(self) -> list[Told]:
        """Look at what waits and end the open event: the tracker is gone."""
        told = self.look() + self._told(self._detector.close())
        self.reset()
        return told

    def _told(self, edges: tuple[Edge, ...]) -> list[Told]:
        told: list[Told] = []
        for edge in edges:
            if edge.kind not in ("fixation", "saccade"):
                self._onset = None
                continue
            if edge.edge == "onset":
                before = self._sums[(edge.index - 1) % len(self._sums)].copy() if edge.index else np.zeros(4)
                self._onset = (self._time(edge.index), before)
                if edge.kind == "saccade":
                    tick = self._onset[0] // self.tick_ns
                    told.append(Told("saccade-start", None, tick, tick, self._time(edge.decided) // self.tick_ns))
            elif self._onset is not None:
                begin, before = self._onset
                end = self._time(edge.index)
                self._onset = None
                if edge.kind == "fixation" and end - begin < self._least_ns:
                    continue
                place = self._mean(before, edge.index) if edge.kind == "fixation" else self._landing(before, edge.index)
                decided = self._time(edge.decided) // self.tick_ns
                told.append(Told(edge.kind, self._cell(place), begin // self.tick_ns, end // self.tick_ns, decided))
        return told

    def _time(self, index: int) -> int:
        return int(self._times[index % len(self._times)])

    def _mean(self, before: NDArray[np.float64], last: int) -> NDArray[np.float64] | None:
        total = self._sums[last % len(self._sums)] - before
        # Sums of directions need no division; sums of degrees do.
        return total[:3] / total[3] if total[3] >= 0.5 else None

    def _landing(self, before: NDArray[np.float64], last: int) -> NDArray[np.float64] | None:
        """The last good sample of a saccade."""
        size = len(self._sums)
        end = self._sums[last % size]
        if end[3] - before[3] < 0.5:
            return None
        index = last
        while index > 0 and last - index < CHUNK and end[3] - self._sums[(index - 1) % size][3] < 0.5:
            index -= 1
        return np.asarray(end[:3] - self._sums[(index - 1) % size][:3]) if index > 0 else np.asarray(end[:3])

    def _cell(self, place: NDArray[np.float64] | None) -> tuple[int, int] | None:
        if place is None:
            return None
        a, b, c = place.tolist()
        if not self._sphere:
            return self.grid.cell(a, b)
        flat = math.hypot(a, c)
        if flat == 0 and b == 0:
            return None
        x = math.degrees(math.atan2(a, c)) + 180.0
        return self.grid.cell(0.0 if x >= 360.0 else x, min(90.0 - math.degrees(math.atan2(b, flat)), 180.0 - 1e-9))


@compiled
def _sum(
    t: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    ok: NDArray[np.bool_],
    sphere: bool,
    believe: int,
    state: NDArray[np.int64],
    sums: NDArray[np.float64],
    times: NDArray[np.int64],
) -> None:
    """Decide which samples are good, count the session's time, and add up places: x, y, z (or x and y in degrees) and how many."""
    size = len(times)
    for i in range(len(t)):
        now = state[0]
        good = ok[i]
        if sphere:
            good = good and x[i] >= 0.0 and x[i] < 360.0 and y[i] >= 0.0 and y[i] < 180.0
        else:
            good = good and x[i] > -90.0 and x[i] < 90.0 and y[i] > -90.0 and y[i] < 90.0
        if state[1] == 0:
            state[1], state[2], state[3] = 1, t[i], 0
        elif t[i] > state[2]:
            # In floating point first: the difference of two wild clocks may not fit 64 bits.
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
