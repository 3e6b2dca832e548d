"""One public eye: samples of gaze that go where they are told, the same eye for everybody.

A jump is a saccade along a straight line (on a sphere the great circle) with the minimum-jerk
profile 10 s**3 - 15 s**4 + 6 s**5 (Flash and Hogan 1985) in the time of the public main sequence,
(21 + 2.2 A) ms for A degrees (Carpenter 1988). Between jumps gaze drifts evenly to where the slot
ends. An Ornstein-Uhlenbeck process lies on top of everything: the unrest of a fixation and of the
tracker. Places stop at the edges of a screen; on a sphere x wraps and y stops at the poles.

Randomness here protects nothing. The unrest is one public path that goes round, the same for
everybody; a stream begins at a random place of it. When a jump begins comes from a counter through
the finaliser of SplitMix64. Both are functions of the stream's key and the sample's number: the
same in blocks of any size.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import LAST_Y_DEG
from gazeveil.privacy.synthesis.clock.places import (
    ENDS_X,
    ENDS_Y,
    JUMPS,
    LANDS_X,
    LANDS_Y,
    SHOWN,
    degrees,
    vector,
)

#: Unrest of a fixation: standard deviation along an axis in degrees, and its time constant in
#: seconds.
UNREST_DEG, UNREST_S = 0.1, 0.15

#: Samples of the path of unrest.
PATH = 1 << 15

#: The main sequence: milliseconds of a saccade of no length, and more for each degree.
SACCADE_MS, SACCADE_MS_PER_DEG = 21.0, 2.2

# Settings, by place: on a sphere, samples per second, edges (x, y), latest onset of a jump and
# longest drift in samples.
SPHERE, RATE, EDGE_X, EDGE_Y, LATEST, LONGEST = range(6)

# State of a stream, by place: where gaze was when it last landed or stopped, its drift per sample,
# samples of drift done and in all, samples until a jump begins, samples of the jump done and in
# all, where it began, where it lands, is it short, where the slot ends, is there gaze, samples of
# the slot left, degrees of x to a degree of arc.
(
    X,
    Y,
    DRIFT_X,
    DRIFT_Y,
    STEPS,
    DRIFTS,
    WAITS,
    DONE,
    LASTS,
    FROM_X,
    FROM_Y,
    TO_X,
    TO_Y,
    SHORT,
    END_X,
    END_Y,
    HAS,
    LEFT,
    STRETCH,
) = range(19)
STATE = 19

# Up to this arc in degrees, and where the columns of a sphere are at least so wide, a saccade goes
# straight in degrees: that is next to the great circle.
_SHORT_DEG, _WIDE = 15.0, 0.7

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def settings(
    sphere: bool, rate_hz: float, edges_deg: tuple[float, float], latest: int, longest: int
) -> Floats:
    """The numbers that :func:`render_gaze` takes.

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
    return np.array([sphere, rate_hz, *edges_deg, latest, longest], dtype=np.float64)


@lru_cache(maxsize=16)
def unrest(rate_hz: float) -> Floats:
    """The public path of unrest in degrees along two axes, shape (2, PATH): an Ornstein-Uhlenbeck
    process on a circle of samples.
    """
    kept = math.exp(-1.0 / (UNREST_S * rate_hz))
    steps = (
        np.random.default_rng(20240229).standard_normal((2, PATH))
        * UNREST_DEG
        * math.sqrt(1.0 - kept * kept)
    )
    # a filter with one pole that goes round: the transform of u[i] = kept u[i - 1] + step[i]
    turn = 1.0 - kept * np.exp(-2j * np.pi * np.arange(PATH // 2 + 1) / PATH)
    path = np.fft.irfft(np.fft.rfft(steps) / turn, PATH)
    path.flags.writeable = False
    return path


@compiled
def _mixed(key: np.uint64, number: int) -> np.uint64:
    z = key + np.uint64(number) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


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
    return math.degrees(
        2.0 * math.asin(min(1.0, 0.5 * math.sqrt((a1 - a0) ** 2 + (b1 - b0) ** 2 + (c1 - c0) ** 2)))
    )


@compiled
def _settle(x: float, y: float, state: Floats, settings: Floats) -> None:
    """Gaze is at a place, and drifts to where the slot ends."""
    sphere, left = settings[SPHERE] == 1.0, min(state[LEFT], settings[LONGEST])
    state[X], state[Y], state[STEPS], state[DRIFTS] = x, y, 0.0, left
    state[STRETCH] = 1.0 / max(math.sin(math.radians(y)), 0.02) if sphere else 1.0
    if left > 0.0:
        state[DRIFT_X], state[DRIFT_Y] = (
            _across(x, state[END_X], sphere) / left,
            (state[END_Y] - y) / left,
        )


@compiled
def _stop(state: Floats) -> None:
    """What is under way ends where it is."""
    if state[LASTS] == 0.0:
        done = min(state[STEPS], state[DRIFTS])
        state[X], state[Y] = state[X] + done * state[DRIFT_X], state[Y] + done * state[DRIFT_Y]
    state[STEPS] = 0.0
    state[DRIFTS] = 0.0
    state[DRIFT_X] = 0.0
    state[DRIFT_Y] = 0.0
    state[LASTS] = 0.0
    state[WAITS] = 0.0


@compiled
def _begin_slot(place: Floats, length: int, onset: int, state: Floats, settings: Floats) -> None:
    state[LEFT], state[END_X], state[END_Y] = float(length), place[ENDS_X], place[ENDS_Y]
    if place[SHOWN] == 0.0:
        state[HAS] = 0.0
    elif state[HAS] == 0.0:
        state[HAS], state[WAITS], state[LASTS] = 1.0, 0.0, 0.0
        _settle(place[LANDS_X], place[LANDS_Y], state, settings)
    elif place[JUMPS] == 1.0:
        _stop(state)
        state[WAITS], state[TO_X], state[TO_Y] = 1.0 + onset, place[LANDS_X], place[LANDS_Y]
    elif state[LASTS] == 0.0 and state[WAITS] == 0.0:
        _stop(state)
        _settle(state[X], state[Y], state, settings)


@compiled
def _begin_jump(state: Floats, settings: Floats) -> None:
    sphere = settings[SPHERE] == 1.0
    x, y, to_x, to_y = state[X], state[Y], state[TO_X], state[TO_Y]
    away = _apart_deg(x, y, to_x, to_y, sphere)
    state[LASTS] = max(
        np.rint((SACCADE_MS + SACCADE_MS_PER_DEG * away) * 1e-3 * settings[RATE]), 1.0
    )
    state[FROM_X], state[FROM_Y], state[DONE], state[WAITS] = x, y, 0.0, 0.0
    wide = min(math.sin(math.radians(y)), math.sin(math.radians(to_y))) >= _WIDE
    state[SHORT] = 1.0 if not sphere or (wide and away <= _SHORT_DEG) else 0.0


@compiled
def _share(t: float) -> float:
    """Share of the way of a minimum-jerk movement at a share of its time."""
    return t * t * t * (10.0 + t * (6.0 * t - 15.0))


# Long: one loop over samples whose state stays in registers.
@compiled
def render_gaze(
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    places: Floats,
    left: int,
    length: int,
    early: int,
    settings: Floats,
    unrest: Floats,
    states: Floats,
    keys: NDArray[np.uint64],
    numbers: Ints,
) -> None:
    """Samples, in place.

    Parameters
    ----------
    x_deg, y_deg, valid : arrays of shape (streams, n)
        Overwritten.
    places : array of float64, shape (streams, slots, PLACE)
        What the slots say that begin in this block, see
        :mod:`gazeveil.privacy.synthesis.clock.places`.
    left : int
        Samples until the first of them begins.
    length : int
        Samples of a slot.
    early : int
        A slot that begins with the block is so many samples shorter, and those after it are so much
        earlier.
    settings, unrest : arrays
        Of :func:`settings` and :func:`unrest`.
    states : array of float64, shape (streams, STATE)
        Updated.
    keys : array of uint64, shape (streams,)
        Public random keys.
    numbers : array of int64, shape (streams,)
        Numbers of the first samples; updated.
    """
    sphere, latest = settings[SPHERE] == 1.0, int(settings[LATEST])
    edge_x, edge_y = settings[EDGE_X], settings[EDGE_Y]
    n, around = x_deg.shape[1], np.int64(unrest.shape[1] - 1)
    for s in range(x_deg.shape[0]):
        state, key, number = states[s], keys[s], numbers[s]
        xs, ys, seen = x_deg[s], y_deg[s], valid[s]
        begin = np.int64(key & np.uint64(around)) + number
        i, slot, until = 0, 0, left
        while True:
            stop = n if slot == places.shape[1] else until
            while i < stop:
                many = stop - i
                if state[HAS] == 0.0:
                    for k in range(i, stop):
                        xs[k], ys[k], seen[k] = np.nan, np.nan, False
                    state[LEFT] -= many
                    i = stop
                    break
                if state[WAITS] == 1.0:
                    _begin_jump(state, settings)
                # the path of unrest is read in one piece
                at = (begin + i) & around
                many = min(many, around + 1 - at)
                u = unrest[0, at : at + many]
                v = unrest[1, at : at + many]
                out_x = xs[i : i + many]
                out_y = ys[i : i + many]
                x, y, done, stretch = state[X], state[Y], state[STEPS], state[STRETCH]
                if state[LASTS] > 0.0:
                    done = state[DONE]
                    lasts = state[LASTS]
                    from_x = state[FROM_X]
                    from_y = state[FROM_Y]
                    many, each = min(many, int(lasts - done)), 1.0 / lasts
                    if state[SHORT] == 1.0:
                        way_x, way_y = _across(from_x, state[TO_X], sphere), state[TO_Y] - from_y
                        for k in range(many):
                            share = _share((done + 1.0 + k) * each)
                            x, y = from_x + share * way_x, from_y + share * way_y
                            out_x[k], out_y[k] = x + stretch * u[k], y + v[k]
                    else:
                        # along the great circle through both places
                        a0, b0, c0 = vector(from_x, from_y, True)
                        a1, b1, c1 = vector(state[TO_X], state[TO_Y], True)
                        cos = min(max(a0 * a1 + b0 * b1 + c0 * c1, -1.0), 1.0)
                        arc, sin = math.acos(cos), max(math.sqrt(1.0 - cos * cos), 1e-6)
                        for k in range(many):
                            way = _share((done + 1.0 + k) * each) * arc
                            q = math.sin(way) / sin
                            p = math.cos(way) - q * cos
                            x, y = degrees(p * a0 + q * a1, p * b0 + q * b1, p * c0 + q * c1, True)
                            out_x[k], out_y[k] = x + stretch * u[k], y + v[k]
                    state[X], state[Y], state[DONE] = x, y, done + many
                else:
                    drift_x, drift_y = state[DRIFT_X], state[DRIFT_Y]
                    if state[WAITS] > 1.0:
                        many = min(many, int(state[WAITS]) - 1)
                        state[WAITS] -= many
                    if done >= state[DRIFTS]:
                        x = x + state[DRIFTS] * drift_x
                        y = y + state[DRIFTS] * drift_y
                        drift_x = 0.0
                        drift_y = 0.0
                    else:
                        many = min(many, int(state[DRIFTS] - done))
                        state[STEPS] += many
                    for k in range(many):
                        out_x[k] = x + (done + 1.0 + k) * drift_x + stretch * u[k]
                    for k in range(many):
                        out_y[k] = y + (done + 1.0 + k) * drift_y + v[k]
                for k in range(
                    many
                ):  # without a branch, so that several samples are written at a time
                    a, b = out_x[k], out_y[k]
                    if sphere:
                        a -= 360.0 * np.floor(a * (1.0 / 360.0))
                        a = a if a < 360.0 else 0.0
                        b = b if b > 0.0 else 0.0
                        b = b if b < LAST_Y_DEG else LAST_Y_DEG
                    else:
                        a = a if a > -edge_x else -edge_x
                        a = a if a < edge_x else edge_x
                        b = b if b > -edge_y else -edge_y
                        b = b if b < edge_y else edge_y
                    out_x[k], out_y[k] = a, b
                for k in range(i, i + many):
                    seen[k] = True
                state[LEFT] -= many
                i += many
                if state[LASTS] > 0.0 and state[DONE] == state[LASTS]:
                    state[LASTS] = 0.0
                    _settle(state[TO_X], state[TO_Y], state, settings)
            if slot == places.shape[1]:
                break
            onset = _mixed(key, number + i) % np.uint64(latest + 1)
            until = i + (length if slot > 0 or left > 0 else length - early)
            _begin_slot(places[s, slot], until - i, int(onset), state, settings)
            slot += 1
        numbers[s] = number + n
