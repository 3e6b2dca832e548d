"""The compiled loop of the online detector: samples in, edges of events out.

`speeds` are peak, onset, offset (deg/s) and the rate (Hz); `limits` are counts of samples and
times in ns, as :class:`~gazeveil.events.online.detector.OnlineDetector` sets them.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.online.following import Way, follow, keep, pursued
from gazeveil.events.trace import BLINK, FIXATION, PURSUIT, SACCADE, UNDEFINED

# Places in the integer state.
(
    _NEXT,  # index of the next sample
    _SEEN,  # index of the last valid sample, -1 before the first
    _CODE,  # code of the running event, -1 for none
    _ONSET,  # its first sample
    _SENT,  # whether its onset was sent
    _CANDIDATE,  # where the speed rose above onset, -1 for nowhere
    _CALM,  # samples below offset so far
    _FILLED,  # samples in the speed filter since it was last emptied
    _SIZE,
) = range(9)


def new_state() -> Ints:
    """The state before the first sample."""
    state = np.zeros(_SIZE, dtype=np.int64)
    state[[_SEEN, _CODE, _CANDIDATE]] = -1
    return state


@compiled
def _emit(edges: Ints, count: int, code: int, side: int, index: int, times: Ints, now: int) -> int:
    edges[count, 0], edges[count, 1] = 2 * code + side, index
    edges[count, 2], edges[count, 3] = times[index % len(times)], now
    return count + 1


@compiled
def _end(
    edges: Ints, count: int, state: Ints, last: int, times: Ints, now: int, way: Way, rate_hz: float
) -> int:
    """Emit the end of the running event, and its onset if that was not sent; an event that would
    only have begun now is dropped.
    """
    if state[_CODE] >= 0 and state[_ONSET] <= last:
        if not state[_SENT]:
            count = _emit(edges, count, state[_CODE], 0, state[_ONSET], times, now)
        code = state[_CODE]
        if code == FIXATION and len(way) > 0 and pursued(way, state[_ONSET], last, rate_hz):
            code = PURSUIT
        count = _emit(edges, count, code, 1, last, times, now)
    state[_CODE] = -1
    return count


@compiled
def _begin(state: Ints, code: int, onset: int) -> None:
    state[_CODE], state[_ONSET], state[_SENT] = code, onset, 0
    state[_CANDIDATE], state[_CALM] = -1, 0


@compiled
def _lose(
    edges: Ints,
    count: int,
    speeds: Floats,
    limits: Ints,
    state: Ints,
    times: Ints,
    now: int,
    way: Way,
) -> int:
    """A lost sample has come: tell a blink once the run is too long to be bridged, and what lies
    beyond a blink.
    """
    run = now - state[_SEEN]
    if state[_SEEN] < 0:
        # Nothing was seen yet: it cannot be a blink.
        if state[_CODE] < 0:
            _begin(state, UNDEFINED, now)
            count = _emit(edges, count, UNDEFINED, 0, now, times, now)
            state[_SENT] = 1
    elif run == limits[4] + 1:
        count = _end(edges, count, state, state[_SEEN], times, now, way, speeds[3])
        _begin(state, BLINK, state[_SEEN] + 1)
        count = _emit(edges, count, BLINK, 0, state[_ONSET], times, now)
        state[_SENT] = 1
    elif run == limits[5] + 1 and state[_CODE] == BLINK:
        count = _end(edges, count, state, now - 1, times, now, way, speeds[3])
        _begin(state, UNDEFINED, now)
        count = _emit(edges, count, UNDEFINED, 0, now, times, now)
        state[_SENT] = 1
    return count


@compiled
def _step(
    edges: Ints,
    count: int,
    index: int,
    now: int,
    place: Floats,
    speeds: Floats,
    limits: Ints,
    state: Ints,
    points: Floats,
    times: Ints,
    way: Way,
) -> int:
    """One valid or bridged sample goes through the filter and the two thresholds."""
    k = limits[0]
    points[index % (2 * k)] = place
    state[_FILLED] += 1
    if state[_CODE] < 0:
        _begin(state, FIXATION, index)
    if len(way) > 0:
        keep(way, index, place)
        if state[_CODE] == FIXATION:
            follow(way, state[_ONSET], index - limits[0] - limits[1])
    speed = 0.0
    at = index - k + 1
    if state[_FILLED] >= 2 * k:
        square = 0.0
        for a in range(3):
            late, early = 0.0, 0.0
            for j in range(k):
                late += points[(index - j) % (2 * k), a]
                early += points[(index - k - j) % (2 * k), a]
            square += ((late - early) / k) ** 2
        speed = math.sqrt(square) * speeds[3] / k
    if state[_CODE] == FIXATION:
        if speed >= speeds[1]:
            if state[_CANDIDATE] < 0:
                state[_CANDIDATE] = at
            state[_CANDIDATE] = max(state[_CANDIDATE], at - limits[1] + 1, state[_ONSET])
            if speed >= speeds[0]:
                onset = state[_CANDIDATE]
                if onset > state[_ONSET]:
                    count = _end(edges, count, state, onset - 1, times, now, way, speeds[3])
                _begin(state, SACCADE, onset)
                count = _emit(edges, count, SACCADE, 0, onset, times, now)
                state[_SENT] = 1
        else:
            state[_CANDIDATE] = -1
        if state[_CODE] == FIXATION and not state[_SENT] and at - state[_ONSET] >= limits[1]:
            count = _emit(edges, count, FIXATION, 0, state[_ONSET], times, now)
            state[_SENT] = 1
    elif state[_CODE] == SACCADE:
        state[_CALM] = 0 if speed >= speeds[2] else state[_CALM] + 1
        if state[_CALM] >= limits[2] or at - state[_ONSET] + 1 >= limits[3]:
            count = _end(edges, count, state, at, times, now, way, speeds[3])
            _begin(state, FIXATION, at + 1)
    return count


@compiled
def push_samples(
    t: Ints,
    x: Floats,
    y: Floats,
    valid: Bools,
    sphere: bool,
    speeds: Floats,
    limits: Ints,
    state: Ints,
    points: Floats,
    last_place: Floats,
    times: Ints,
    seen_ns: Ints,
    way: Way,
    edges: Ints,
) -> int:
    """Samples go through the detector one by one; the number of edges written to `edges`."""
    count = 0
    place, between = np.zeros(3), np.zeros(3)
    for row in range(len(t)):
        now = state[_NEXT]
        state[_NEXT] += 1
        times[now % len(times)] = t[row]
        seen = state[_SEEN]
        behind = seen >= 0 and t[row] <= seen_ns[0] and now - seen <= limits[8]
        if not valid[row] or behind:
            count = _lose(edges, count, speeds, limits, state, times, now, way)
            continue
        if sphere:
            lon, lat = math.radians(x[row] - 180.0), math.radians(90.0 - y[row])
            unit = 180.0 / math.pi
            place[0], place[1], place[2] = (
                unit * math.cos(lat) * math.sin(lon),
                unit * math.sin(lat),
                unit * math.cos(lat) * math.cos(lon),
            )
        else:
            place[0], place[1] = x[row], y[row]
        run = now - seen - 1
        if seen < 0:
            count = _end(edges, count, state, now - 1, times, now, way, speeds[3])
        elif state[_CODE] == BLINK or state[_CODE] == UNDEFINED:
            count = _end(edges, count, state, now - 1, times, now, way, speeds[3])
            state[_FILLED] = 0
        elif t[row] - seen_ns[0] > limits[6]:
            # Too long a gap, though few samples were counted in it: rows are missing or times jump.
            count = _end(edges, count, state, seen, times, now, way, speeds[3])
            if run > 0:
                _begin(state, BLINK if t[row] - seen_ns[0] <= limits[7] else UNDEFINED, seen + 1)
                count = _end(edges, count, state, now - 1, times, now, way, speeds[3])
            state[_FILLED] = 0
        else:
            for j in range(1, run + 1):
                share = j / (run + 1)
                for a in range(3):
                    between[a] = last_place[a] + (place[a] - last_place[a]) * share
                count = _step(
                    edges, count, seen + j, now, between, speeds, limits, state, points, times, way
                )
        count = _step(edges, count, now, now, place, speeds, limits, state, points, times, way)
        last_place[:] = place
        state[_SEEN] = now
        seen_ns[0] = t[row]
    return count


@compiled
def close_stream(speeds: Floats, state: Ints, times: Ints, way: Way, edges: Ints) -> int:
    """The stream ends: the number of edges written to `edges`."""
    last, seen = state[_NEXT] - 1, state[_SEEN]
    if last < 0:
        return 0
    count = 0
    if state[_CODE] == BLINK or state[_CODE] == UNDEFINED or last == seen:
        return _end(edges, count, state, last, times, last, way, speeds[3])
    count = _end(edges, count, state, seen, times, last, way, speeds[3])
    _begin(state, UNDEFINED, seen + 1)
    return _end(edges, count, state, last, times, last, way, speeds[3])
