"""The compiled loop of the online detector: samples in, edges of events out.

Each sample goes to the network (:mod:`gazeveil.events.online.streaming`), which says somewhat later
whether the eye moved there. `limits` are counts of samples and times in ns, as
:class:`~gazeveil.events.online.detector.OnlineDetector` sets them.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints, Singles
from gazeveil.compiled import compiled
from gazeveil.events.auto.network import DELAY, FIXATES, PURSUES, SACCADES, SETTLES, Network
from gazeveil.events.auto.pursuit import LEAST_CHANCE
from gazeveil.events.online.streaming import (
    StreamState,
    forget,
    hear,
    put,
    unpack_network,
    unpack_state,
)
from gazeveil.events.trace import BLINK, FIXATION, PURSUIT, SACCADE, UNDEFINED

# Places in the integer state.
(
    _NEXT,  # index of the next sample
    _SEEN,  # index of the last valid sample, -1 before the first
    _CODE,  # code of the running event, -1 for none
    _ONSET,  # its first sample
    _SENT,  # whether its onset was sent
    _BASE,  # sample with which the network began
    _GRID,  # grid samples decided since then
    _SEEN_NS,  # time of the last valid sample
    _SIZE,
) = range(9)

# Places in `limits`.
(
    BACK,  # samples until a fixation is told
    BRIDGE,  # most lost samples in a row that are no blink
    BLINKED,  # most lost samples in a row that are one
    BRIDGE_NS,
    BLINK_NS,
    SET_BACK,  # samples after which a clock that was set back is believed
    MERGE,  # samples per grid sample
    SPLIT,  # grid samples per sample
    LIMITS,
) = range(9)

# Columns of `votes`: log odds of pursuit and their weight in this fixation, what of both is kept
# from sample to sample, samples at which they spoke for pursuit and samples in all, and whether
# anyone asks for pursuit.
_ODDS, _WEIGHT, _KEEP, _FOR, _HEARD, _ASKED = range(6)

# Within an interval, what was said so long ago counts for little: the network knows more at its end
# than at its beginning. It pursues if the odds of pursuit are above one half at its end, or were
# for two thirds of it: what was followed may have stopped.
_MEMORY_S = 0.1
_LEAST_ODDS = -math.log(2.0)
_MOST_OF_IT = 2.0 / 3.0

# The chances at which a saccade begins and ends.
_MOVES, _RESTS = 0.5, 0.4


def new_state() -> Ints:
    """The state before the first sample."""
    state = np.zeros(_SIZE, dtype=np.int64)
    state[[_SEEN, _CODE]] = -1
    return state


def new_numbers(rate_hz: float, pursuit: bool) -> Floats:
    """Place and votes before the first sample."""
    keep = math.exp(-1.0 / (_MEMORY_S * rate_hz))
    return np.array([0.0, 0.0, 0.0, 0.0, 0.0, keep, 0.0, 0.0, float(pursuit)])


@compiled
def _emit(edges: Ints, count: int, code: int, side: int, index: int, times: Ints, now: int) -> int:
    edges[count, 0], edges[count, 1] = 2 * code + side, index
    edges[count, 2], edges[count, 3] = times[index % len(times)], now
    return count + 1


@compiled
def _end(
    edges: Ints, count: int, state: Ints, last: int, times: Ints, now: int, votes: Floats
) -> int:
    """Emit the end of the running event, and its onset if that was not sent; an event that would
    only have begun now is dropped.
    """
    if state[_CODE] >= 0 and state[_ONSET] <= last:
        if not state[_SENT]:
            count = _emit(edges, count, state[_CODE], 0, state[_ONSET], times, now)
        code = state[_CODE]
        if code == FIXATION and votes[_ASKED] > 0.0 and _pursued(votes):
            code = PURSUIT
        count = _emit(edges, count, code, 1, last, times, now)
    state[_CODE] = -1
    return count


@compiled
def _pursued(votes: Floats) -> bool:
    """Whether the interval was a pursuit."""
    now = votes[_ODDS] > _LEAST_ODDS * votes[_WEIGHT]
    return now or votes[_FOR] > _MOST_OF_IT * votes[_HEARD]


@compiled
def _begin(state: Ints, code: int, onset: int, votes: Floats) -> None:
    state[_CODE], state[_ONSET], state[_SENT] = code, onset, 0
    votes[_ODDS], votes[_WEIGHT], votes[_FOR], votes[_HEARD] = 0.0, 0.0, 0.0, 0.0


@compiled
def _lose(
    edges: Ints, count: int, limits: Ints, state: Ints, times: Ints, now: int, votes: Floats
) -> int:
    """A lost sample has come: tell a blink once the run is too long to be bridged, and what lies
    beyond a blink.
    """
    run = now - state[_SEEN]
    if state[_SEEN] < 0:
        # Nothing was seen yet: it cannot be a blink.
        if state[_CODE] < 0:
            _begin(state, UNDEFINED, now, votes)
            count = _emit(edges, count, UNDEFINED, 0, now, times, now)
            state[_SENT] = 1
    elif run == limits[BRIDGE] + 1:
        count = _end(edges, count, state, state[_SEEN], times, now, votes)
        _begin(state, BLINK, state[_SEEN] + 1, votes)
        count = _emit(edges, count, BLINK, 0, state[_ONSET], times, now)
        state[_SENT] = 1
    elif run == limits[BLINKED] + 1 and state[_CODE] == BLINK:
        count = _end(edges, count, state, now - 1, times, now, votes)
        _begin(state, UNDEFINED, now, votes)
        count = _emit(edges, count, UNDEFINED, 0, now, times, now)
        state[_SENT] = 1
    return count


@compiled
def _decide(
    edges: Ints,
    count: int,
    index: int,
    now: int,
    limits: Ints,
    state: Ints,
    stream: StreamState,
    times: Ints,
    lost: Bools,
    votes: Floats,
) -> int:
    """What the network said about the sample `index`; lost ones go on with what is running."""
    if index < state[_ONSET] or (state[_CODE] != FIXATION and state[_CODE] != SACCADE):
        return count
    if not lost[index % len(lost)]:
        chances = stream.chances
        moves = chances[SACCADES] + chances[SETTLES]
        if state[_CODE] == FIXATION and moves > _MOVES:
            if index > state[_ONSET]:
                count = _end(edges, count, state, index - 1, times, now, votes)
            _begin(state, SACCADE, index, votes)
            count = _emit(edges, count, SACCADE, 0, index, times, now)
            state[_SENT] = 1
        elif state[_CODE] == SACCADE and moves < _RESTS:
            count = _end(edges, count, state, index - 1, times, now, votes)
            _begin(state, FIXATION, index, votes)
        if state[_CODE] == FIXATION:
            pursues, fixates = chances[PURSUES], chances[FIXATES]
            odds = math.log((pursues + LEAST_CHANCE) / (fixates + LEAST_CHANCE))
            votes[_ODDS] = votes[_ODDS] * votes[_KEEP] + odds
            votes[_WEIGHT] = votes[_WEIGHT] * votes[_KEEP] + 1.0
            votes[_HEARD] += 1.0
            if votes[_ODDS] > _LEAST_ODDS * votes[_WEIGHT]:
                votes[_FOR] += 1.0
    if state[_CODE] == FIXATION and not state[_SENT] and index - state[_ONSET] >= limits[BACK]:
        count = _emit(edges, count, FIXATION, 0, state[_ONSET], times, now)
        state[_SENT] = 1
    return count


@compiled
def _feed(
    edges: Ints,
    count: int,
    now: int,
    before: Floats,
    place: Floats,
    seen: bool,
    seen_before: bool,
    limits: Ints,
    state: Ints,
    stream: StreamState,
    net: Network,
    times: Ints,
    lost: Bools,
    votes: Floats,
) -> int:
    """One sample goes through the network, with the points that lie between it and the last."""
    merge, split = limits[MERGE], limits[SPLIT]
    between = np.empty(3)
    first = 1 if now > state[_BASE] else split
    for j in range(first, split + 1):
        share = j / split
        for a in range(3):
            between[a] = before[a] + (place[a] - before[a]) * share
        if j == split:
            between[:] = place
            if merge == 1:
                hear(stream, place, seen)
        if not put(stream, net, between, seen and (j == split or seen_before), merge):
            continue
        about = state[_GRID] - DELAY
        state[_GRID] += 1
        if about < 0 or about % split != 0:
            continue
        begin = state[_BASE] + about * merge // split
        for index in range(begin, begin + merge):
            count = _decide(edges, count, index, now, limits, state, stream, times, lost, votes)
    return count


@compiled
def _to_place(x: float, y: float, sphere: bool, place: Floats) -> None:
    """Coordinates whose short distances are degrees."""
    place[0], place[1] = x, y
    if sphere:
        lon, lat = math.radians(x - 180.0), math.radians(90.0 - y)
        unit = 180.0 / math.pi
        place[0], place[1], place[2] = (
            unit * math.cos(lat) * math.sin(lon),
            unit * math.sin(lat),
            unit * math.cos(lat) * math.cos(lon),
        )


@compiled
def _find(
    edges: Ints,
    count: int,
    t_ns: int,
    limits: Ints,
    state: Ints,
    stream: StreamState,
    times: Ints,
    now: int,
    votes: Floats,
) -> int:
    """A valid sample has come: end what was lost, or what lies before a gap in time."""
    seen, gap_ns = state[_SEEN], t_ns - state[_SEEN_NS]
    if seen < 0 or gap_ns > limits[BRIDGE_NS]:
        if seen >= 0 and state[_CODE] != BLINK and state[_CODE] != UNDEFINED:
            # Too long a gap, though few samples were counted in it: rows are missing or times jump.
            count = _end(edges, count, state, seen, times, now, votes)
            if now - seen > 1:
                blinked = gap_ns <= limits[BLINK_NS]
                _begin(state, BLINK if blinked else UNDEFINED, seen + 1, votes)
        if seen < 0 or now - seen == 1 or gap_ns > limits[BLINK_NS]:
            forget(stream)
            state[_BASE], state[_GRID] = now, 0
    if state[_CODE] == BLINK or state[_CODE] == UNDEFINED:
        count = _end(edges, count, state, now - 1, times, now, votes)
    if state[_CODE] < 0:
        _begin(state, FIXATION, now, votes)
    return count


@compiled
def push_samples(
    t: Ints,
    x: Floats,
    y: Floats,
    valid: Bools,
    sphere: bool,
    limits: Ints,
    state: Ints,
    numbers: Floats,
    doubles: Floats,
    singles: Singles,
    counts: Ints,
    weights: Singles,
    times: Ints,
    lost: Bools,
    edges: Ints,
) -> int:
    """Samples go through the detector one by one; the number of edges written to `edges`.

    `numbers` are the last place and the votes; the next three arrays hold the stream's memory.
    """
    count = 0
    last_place, votes = numbers[:3], numbers[3:]
    stream, net = unpack_state(doubles, singles, counts), unpack_network(weights)
    place = np.zeros(3)
    for row in range(len(t)):
        now = state[_NEXT]
        state[_NEXT] += 1
        times[now % len(times)] = t[row]
        seen = state[_SEEN]
        behind = seen >= 0 and t[row] <= state[_SEEN_NS] and now - seen <= limits[SET_BACK]
        good = valid[row] and not behind
        lost[now % len(lost)] = not good
        was_seen = now > 0 and not lost[(now - 1) % len(lost)]
        if good:
            _to_place(x[row], y[row], sphere, place)
            count = _find(edges, count, t[row], limits, state, stream, times, now, votes)
            if now == state[_BASE]:
                last_place[:] = place
            state[_SEEN] = now
            state[_SEEN_NS] = t[row]
        else:
            count = _lose(edges, count, limits, state, times, now, votes)
            if seen < 0:
                continue
            place[:] = last_place
        count = _feed(
            edges,
            count,
            now,
            last_place,
            place,
            good,
            was_seen,
            limits,
            state,
            stream,
            net,
            times,
            lost,
            votes,
        )
        last_place[:] = place
    return count


@compiled
def close_stream(state: Ints, numbers: Floats, times: Ints, edges: Ints) -> int:
    """The stream ends: the number of edges written to `edges`."""
    votes = numbers[3:]
    last, seen = state[_NEXT] - 1, state[_SEEN]
    if last < 0:
        return 0
    count = 0
    if state[_CODE] == BLINK or state[_CODE] == UNDEFINED or last == seen:
        return _end(edges, count, state, last, times, last, votes)
    count = _end(edges, count, state, seen, times, last, votes)
    _begin(state, UNDEFINED, seen + 1, votes)
    return _end(edges, count, state, last, times, last, votes)
