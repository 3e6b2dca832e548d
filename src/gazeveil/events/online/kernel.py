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
from gazeveil.events.auto.network import (
    DELAY,
    LEAST_PROBABILITY,
    P_FIXATION,
    P_PSO,
    P_PURSUIT,
    P_SACCADE,
    Network,
)
from gazeveil.events.online.streaming import (
    StreamState,
    add_sample,
    reset,
    unpack_network,
    unpack_state,
    update_noise,
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

# Columns of `odds_state`: running mean of the log odds of pursuit in this fixation as sum and
# weight, how both decay from sample to sample, samples at which it was above the bound and samples
# in all, and whether pursuit is wanted.
_ODDS, _WEIGHT, _DECAY, _ABOVE, _SAMPLES, _WANTED = range(6)

# Within an interval, what was said so long ago counts for little: the network knows more at its end
# than at its beginning. It pursues if the odds of pursuit are above one half at its end, or were
# for two thirds of it: what was followed may have stopped.
_MEMORY_S = 0.1
_LEAST_ODDS = -math.log(2.0)
_MOST_OF_IT = 2.0 / 3.0

# The probabilities at which a saccade begins and ends.
_BEGIN_PROBABILITY, _END_PROBABILITY = 0.5, 0.4


def new_state() -> Ints:
    """The state before the first sample."""
    state = np.zeros(_SIZE, dtype=np.int64)
    state[[_SEEN, _CODE]] = -1
    return state


def new_floats(rate_hz: float, pursuit: bool) -> Floats:
    """Place and odds_state before the first sample."""
    keep = math.exp(-1.0 / (_MEMORY_S * rate_hz))
    return np.array([0.0, 0.0, 0.0, 0.0, 0.0, keep, 0.0, 0.0, float(pursuit)])


@compiled
def _emit(edges: Ints, count: int, code: int, side: int, index: int, times: Ints, now: int) -> int:
    edges[count, 0], edges[count, 1] = 2 * code + side, index
    edges[count, 2], edges[count, 3] = times[index % len(times)], now
    return count + 1


@compiled
def _end(
    edges: Ints, count: int, state: Ints, last: int, times: Ints, now: int, odds_state: Floats
) -> int:
    """Emit the end of the running event, and its onset if that was not sent; an event that would
    only have begun now is dropped.
    """
    if state[_CODE] >= 0 and state[_ONSET] <= last:
        if not state[_SENT]:
            count = _emit(edges, count, state[_CODE], 0, state[_ONSET], times, now)
        code = state[_CODE]
        if code == FIXATION and odds_state[_WANTED] > 0.0 and _pursued(odds_state):
            code = PURSUIT
        count = _emit(edges, count, code, 1, last, times, now)
    state[_CODE] = -1
    return count


@compiled
def _pursued(odds_state: Floats) -> bool:
    """Whether the interval was a pursuit."""
    now = odds_state[_ODDS] > _LEAST_ODDS * odds_state[_WEIGHT]
    return now or odds_state[_ABOVE] > _MOST_OF_IT * odds_state[_SAMPLES]


@compiled
def _begin(state: Ints, code: int, onset: int, odds_state: Floats) -> None:
    state[_CODE], state[_ONSET], state[_SENT] = code, onset, 0
    for column in (_ODDS, _WEIGHT, _ABOVE, _SAMPLES):
        odds_state[column] = 0.0


@compiled
def _lose(
    edges: Ints, count: int, limits: Ints, state: Ints, times: Ints, now: int, odds_state: Floats
) -> int:
    """A lost sample has come: tell a blink once the run is too long to be bridged, and what lies
    beyond a blink.
    """
    run = now - state[_SEEN]
    if state[_SEEN] < 0:
        # Nothing was seen yet: it cannot be a blink.
        if state[_CODE] < 0:
            _begin(state, UNDEFINED, now, odds_state)
            count = _emit(edges, count, UNDEFINED, 0, now, times, now)
            state[_SENT] = 1
    elif run == limits[BRIDGE] + 1:
        count = _end(edges, count, state, state[_SEEN], times, now, odds_state)
        _begin(state, BLINK, state[_SEEN] + 1, odds_state)
        count = _emit(edges, count, BLINK, 0, state[_ONSET], times, now)
        state[_SENT] = 1
    elif run == limits[BLINKED] + 1 and state[_CODE] == BLINK:
        count = _end(edges, count, state, now - 1, times, now, odds_state)
        _begin(state, UNDEFINED, now, odds_state)
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
    odds_state: Floats,
) -> int:
    """What the network said about the sample `index`; lost ones go on with what is running."""
    if index < state[_ONSET] or (state[_CODE] != FIXATION and state[_CODE] != SACCADE):
        return count
    if not lost[index % len(lost)]:
        probabilities = stream.probabilities
        p_saccade = probabilities[P_SACCADE] + probabilities[P_PSO]
        if state[_CODE] == FIXATION and p_saccade > _BEGIN_PROBABILITY:
            if index > state[_ONSET]:
                count = _end(edges, count, state, index - 1, times, now, odds_state)
            _begin(state, SACCADE, index, odds_state)
            count = _emit(edges, count, SACCADE, 0, index, times, now)
            state[_SENT] = 1
        elif state[_CODE] == SACCADE and p_saccade < _END_PROBABILITY:
            count = _end(edges, count, state, index - 1, times, now, odds_state)
            _begin(state, FIXATION, index, odds_state)
        if state[_CODE] == FIXATION:
            pursues, fixates = probabilities[P_PURSUIT], probabilities[P_FIXATION]
            odds = math.log((pursues + LEAST_PROBABILITY) / (fixates + LEAST_PROBABILITY))
            odds_state[_ODDS] = odds_state[_ODDS] * odds_state[_DECAY] + odds
            odds_state[_WEIGHT] = odds_state[_WEIGHT] * odds_state[_DECAY] + 1.0
            odds_state[_SAMPLES] += 1.0
            if odds_state[_ODDS] > _LEAST_ODDS * odds_state[_WEIGHT]:
                odds_state[_ABOVE] += 1.0
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
    odds_state: Floats,
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
                update_noise(stream, place, seen)
        if not add_sample(stream, net, between, seen and (j == split or seen_before), merge):
            continue
        about = state[_GRID] - DELAY
        state[_GRID] += 1
        if about < 0 or about % split != 0:
            continue
        begin = state[_BASE] + about * merge // split
        for index in range(begin, begin + merge):
            count = _decide(
                edges, count, index, now, limits, state, stream, times, lost, odds_state
            )
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
def _end_gap(
    edges: Ints,
    count: int,
    t_ns: int,
    limits: Ints,
    state: Ints,
    stream: StreamState,
    times: Ints,
    now: int,
    odds_state: Floats,
) -> int:
    """A valid sample has come: end what was lost, or what lies before a gap in time."""
    seen, gap_ns = state[_SEEN], t_ns - state[_SEEN_NS]
    if seen < 0 or gap_ns > limits[BRIDGE_NS]:
        if seen >= 0 and state[_CODE] != BLINK and state[_CODE] != UNDEFINED:
            # Too long a gap, though few samples were counted in it: rows are missing or times jump.
            count = _end(edges, count, state, seen, times, now, odds_state)
            if now - seen > 1:
                blinked = gap_ns <= limits[BLINK_NS]
                _begin(state, BLINK if blinked else UNDEFINED, seen + 1, odds_state)
        if seen < 0 or now - seen == 1 or gap_ns > limits[BLINK_NS]:
            reset(stream)
            state[_BASE], state[_GRID] = now, 0
    if state[_CODE] == BLINK or state[_CODE] == UNDEFINED:
        count = _end(edges, count, state, now - 1, times, now, odds_state)
    if state[_CODE] < 0:
        _begin(state, FIXATION, now, odds_state)
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
    floats: Floats,
    doubles: Floats,
    singles: Singles,
    counts: Ints,
    weights: Singles,
    times: Ints,
    lost: Bools,
    edges: Ints,
) -> int:
    """Samples go through the detector one by one; the number of edges written to `edges`.

    `floats` are the last place and the odds_state; the next three arrays hold the stream's memory.
    """
    count = 0
    last_place, odds_state = floats[:3], floats[3:]
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
            count = _end_gap(edges, count, t[row], limits, state, stream, times, now, odds_state)
            if now == state[_BASE]:
                last_place[:] = place
            state[_SEEN] = now
            state[_SEEN_NS] = t[row]
        else:
            count = _lose(edges, count, limits, state, times, now, odds_state)
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
            odds_state,
        )
        last_place[:] = place
    return count


@compiled
def close_stream(state: Ints, floats: Floats, times: Ints, edges: Ints) -> int:
    """The stream ends: the number of edges written to `edges`."""
    odds_state = floats[3:]
    last, seen = state[_NEXT] - 1, state[_SEEN]
    if last < 0:
        return 0
    count = 0
    if state[_CODE] == BLINK or state[_CODE] == UNDEFINED or last == seen:
        return _end(edges, count, state, last, times, last, odds_state)
    count = _end(edges, count, state, seen, times, last, odds_state)
    _begin(state, UNDEFINED, seen + 1, odds_state)
    return _end(edges, count, state, last, times, last, odds_state)
