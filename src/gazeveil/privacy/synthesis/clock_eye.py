"""One public eye: samples of gaze that go where they are told, the same eye for everybody.

A jump is a saccade along a straight line (on a sphere the great circle) with the minimum-jerk profile 10 s**3 - 15 s**4 + 6 s**5 (Flash and Hogan
1985) in the time of the public main sequence, (21 + 2.2 A) ms for A degrees (Carpenter 1988). Between jumps gaze drifts evenly to where the slot
ends. An Ornstein-Uhlenbeck process lies on top of everything: the unrest of a fixation and of the tracker. Places stop at the edges of a screen; on a
sphere x wraps and y stops at the poles.

Randomness here protects nothing. It comes from a counter through the finaliser of SplitMix64, so a sample's unrest is a function of the stream's key
and the sample's number: the same in blocks of any size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.privacy.synthesis.clock_places import ENDS_X, ENDS_Y, JUMPS, LANDS_X, LANDS_Y, SHOWN, degrees, vector

#: Unrest of a fixation: standard deviation along an axis in degrees, and its time constant in seconds.
UNREST_DEG, UNREST_S = 0.1, 0.15

#: The main sequence: milliseconds of a saccade of no length, and more for each degree.
SACCADE_MS, SACCADE_MS_PER_DEG = 21.0, 2.2

# Settings, by place: on a sphere, samples per second, edges (x, y), what is kept of the unrest from sample to sample, size of its steps, latest onset
# of a jump and longest drift in samples.
SPHERE, RATE, EDGE_X, EDGE_Y, KEPT, STEP, LATEST, LONGEST = range(8)

# State of a stream, by place: where gaze is, its unrest, drift per sample, samples of drift left, samples until a jump begins, samples of the jump
# done and in all, where it began, where it lands, where the slot ends, is there gaze, samples of the slot left, degrees of x to a degree of arc.
X, Y, U, V, DRIFT_X, DRIFT_Y, DRIFTS, WAITS, DONE, LASTS, FROM_X, FROM_Y, TO_X, TO_Y, END_X, END_Y, HAS, LEFT, STRETCH = range(19)
STATE = 19

_LAST_Y = math.nextafter(180.0, 0.0)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def settings(sphere: bool, rate_hz: float, edges_deg: tuple[float, float], latest: int, longest: int) -> NDArray[np.float64]:
    """The numbers that :func:`look` takes.

    Parameters
    ----------
    sphere : bool
        Whether degrees are those of a sphere.
    rate_hz : float
        Samples per second.
    edges_deg : (float, float)
        Half the width and the height of the screen.
    latest : int
        A jump begins so many samples after its slot at most.
    longest : int
        A drift to a new place takes so many samples at most.
    """
    kept = math.exp(-1.0 / (UNREST_S * rate_hz))
    return np.array([sphere, rate_hz, *edges_deg, kept, UNREST_DEG * math.sqrt(1.0 - kept * kept), latest, longest], dtype=np.float64)


@compiled
def _mixed(key: np.uint64, number: int) -> np.uint64:
    z = key + np.uint64(number) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _two_bells(word: np.uint64) -> tuple[float, float]:
    """Two sums of four uniform bytes each, brought to mean 0 and variance 1: normal enough for unrest, which sums many of them."""
    # pairs of bytes are added in lanes of 16 bits, then the lanes
    low = (word & np.uint64(0x00FF00FF00FF00FF)) + ((word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF))
    one = (low & np.uint64(0xFFFF)) + ((low >> np.uint64(16)) & np.uint64(0xFFFF))
    two = ((low >> np.uint64(32)) & np.uint64(0xFFFF)) + (low >> np.uint64(48))
    return (np.float64(one) - 510.0) * 0.006765909, (np.float64(two) - 510.0) * 0.006765909


@compiled
def _on_the_way(x0: float, y0: float, x1: float, y1: float, share: float, sphere: bool) -> tuple[float, float]:
    """The place at a share of the way from one place to another."""
    if not sphere:
        return x0 + share * (x1 - x0), y0 + share * (y1 - y0)
    a0, b0, c0 = vector(x0, y0, True)
    a1, b1, c1 = vector(x1, y1, True)
    dot = min(max(a0 * a1 + b0 * b1 + c0 * c1, -1.0), 1.0)
    arc = math.acos(dot)
    sine = math.sin(arc)
    if sine < 1e-6:
        return x1, y1
    p, q = math.sin((1.0 - share) * arc) / sine, math.sin(share * arc) / sine
    return degrees(p * a0 + q * a1, p * b0 + q * b1, p * c0 + q * c1, True)


@compiled
def _across(x0: float, x1: float, sphere: bool) -> float:
    """How far it is along x, the short way round."""
    d = x1 - x0
    return d - 360.0 * np.rint(d / 360.0) if sphere else d


@compiled
def _apart_deg(x0: float, y0: float, x1: float, y1: float, sphere: bool) -> float:
    if not sphere:
        return math.hypot(x1 - x0, y1 - y0)
    a0, b0, c0 = vector(x0, y0, True)
    a1, b1, c1 = vector(x1, y1, True)
    return math.degrees(2.0 * math.asin(min(1.0, 0.5 * math.sqrt((a1 - a0) ** 2 + (b1 - b0) ** 2 + (c1 - c0) ** 2))))


@compiled
def _drift_to_end(state: NDArray[np.float64], settings: NDArray[np.float64]) -> None:
    sphere, left = settings[SPHERE] == 1.0, min(state[LEFT], settings[LONGEST])
    state[DRIFTS] = left
    state[STRETCH] = 1.0 / max(math.sin(math.radians(state[Y])), 0.02) if sphere else 1.0
    if left > 0.0:
        state[DRIFT_X], state[DRIFT_Y] = _across(state[X], state[END_X], sphere) / left, (state[END_Y] - state[Y]) / left


@compiled
def _begin_slot(place: NDArray[np.float64], length: int, onset: int, state: NDArray[np.float64], settings: NDArray[np.float64]) -> None:
    state[LEFT], state[END_X], state[END_Y] = float(length), place[ENDS_X], place[ENDS_Y]
    if place[SHOWN] == 0.0:
        state[HAS] = 0.0
        return
    if state[HAS] == 0.0:
        state[HAS], state[X], state[Y], state[WAITS], state[LASTS], state[DONE] = 1.0, place[LANDS_X], place[LANDS_Y], 0.0, 0.0, 0.0
        _drift_to_end(state, settings)
    elif place[JUMPS] == 1.0:
        # what was under way stops here
        state[LASTS], state[DRIFTS], state[WAITS], state[TO_X], state[TO_Y] = 0.0, 0.0, 1.0 + onset, place[LANDS_X], place[LANDS_Y]
    elif state[LASTS] == 0.0:
        state[WAITS] = 0.0
        _drift_to_end(state, settings)


@compiled
def _move(state: NDArray[np.float64], settings: NDArray[np.float64]) -> None:
    """One sample of a jump, or of waiting for it."""
    sphere = settings[SPHERE] == 1.0
    if state[WAITS] > 0.0:
        state[WAITS] -= 1.0
        if state[WAITS] > 0.0:
            return
        away = _apart_deg(state[X], state[Y], state[TO_X], state[TO_Y], sphere)
        lasts = np.rint((SACCADE_MS + SACCADE_MS_PER_DEG * away) * 1e-3 * settings[RATE])
        state[FROM_X], state[FROM_Y], state[DONE], state[LASTS] = state[X], state[Y], 0.0, max(lasts, 1.0)
    state[DONE] += 1.0
    t = state[DONE] / state[LASTS]
    share = t * t * t * (10.0 + t * (6.0 * t - 15.0))
    state[X], state[Y] = _on_the_way(state[FROM_X], state[FROM_Y], state[TO_X], state[TO_Y], share, sphere)
    if state[DONE] == state[LASTS]:
        state[X], state[Y], state[LASTS] = state[TO_X], state[TO_Y], 0.0
        _drift_to_end(state, settings)


@compiled
def look(
    x_deg: NDArray[np.float64],
    y_deg: NDArray[np.float64],
    valid: NDArray[np.bool_],
    places: NDArray[np.float64],
    left: int,
    length: int,
    early: int,
    settings: NDArray[np.float64],
    states: NDArray[np.float64],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int64],
) -> None:
    """Samples, in place.

    Parameters
    ----------
    x_deg, y_deg, valid : arrays of shape (streams, n)
        Overwritten.
    places : array of float64, shape (streams, slots, PLACE)
        What the slots say that begin in this block, see :mod:`gazeveil.privacy.synthesis.clock_places`.
    left : int
        Samples until the first of them begins.
    length : int
        Samples of a slot.
    early : int
        A slot that begins with the block is so many samples shorter, and those after it are so much earlier.
    states : array of float64, shape (streams, STATE)
        Updated.
    keys : array of uint64, shape (streams,)
        Public random keys.
    numbers : array of int64, shape (streams,)
        Numbers of the first samples; updated.
    """
    sphere, kept, step, latest = settings[SPHERE] == 1.0, settings[KEPT], settings[STEP], int(settings[LATEST])
    edge_x, edge_y = settings[EDGE_X], settings[EDGE_Y]
    n = x_deg.shape[1]
    for s in range(x_deg.shape[0]):
        state, key, number = states[s], keys[s], numbers[s]
        i, slot, until = 0, 0, left
        u, v = state[U], state[V]
        while True:
            stop = n if slot == places.shape[1] else until
            while i < stop:
                many = stop - i
                if state[HAS] == 0.0:
                    for k in range(i, stop):
                        x_deg[s, k], y_deg[s, k], valid[s, k] = np.nan, np.nan, False
                    state[LEFT] -= many
                    i = stop
                    break
                if state[WAITS] > 1.0:
                    many = min(many, int(state[WAITS]) - 1)
                    state[WAITS] -= many
                elif state[WAITS] == 1.0 or state[LASTS] > 0.0:
                    many = 1
                    _move(state, settings)
                x, y, drift_x, drift_y, stretch = state[X], state[Y], 0.0, 0.0, state[STRETCH]
                if state[DRIFTS] > 0.0:
                    many = min(many, int(state[DRIFTS]))
                    drift_x, drift_y = state[DRIFT_X], state[DRIFT_Y]
                    state[DRIFTS] -= many
                for k in range(i, i + many):
                    one, two = _two_bells(_mixed(key, number + k))
                    u, v = kept * u + step * one, kept * v + step * two
                    x, y = x + drift_x, y + drift_y
                    a, b = x + u * stretch, y + v
                    if sphere:
                        a = a if 0.0 <= a < 360.0 else a - 360.0 * math.floor(a / 360.0)
                        a, b = (a if a < 360.0 else 0.0), min(max(b, 0.0), _LAST_Y)
                    else:
                        a, b = min(max(a, -edge_x), edge_x), min(max(b, -edge_y), edge_y)
                    x_deg[s, k], y_deg[s, k], valid[s, k] = a, b, True
                state[X], state[Y] = x, y
                state[LEFT] -= many
                i += many
            if slot == places.shape[1]:
                break
            onset = _mixed(key ^ _GOLDEN, number + i) % np.uint64(latest + 1)
            until = i + (length if slot > 0 or left > 0 else length - early)
            _begin_slot(places[s, slot], until - i, int(onset), state, settings)
            slot += 1
        state[U], state[V] = u, v
        numbers[s] = number + n
