"""From noisy readings to places of fixations: which readings are one fixation, and where it lies.
Post-processing: nothing private is looked at.

A public model of gaze from slot to slot: it stays with probability exp(-jumps * slot), and then
drifts a little, or it jumps by a normal step. Readings have the known variance of their noise, 3
b**2 along each axis (planar Laplace of scale b). A filter keeps the mean m and the variance of the
present place; for a reading at a distance d from m it takes the likelier of the two stories, and
moves m by the Kalman gain of that story. So near readings are fused, the more readily the noisier
they are, and their mean gets better with every one.

:func:`follow` uses the past only. :func:`look_back` has the whole recording: within a fixation it
also uses what comes later (Rauch, Tung and Striebel). Places are 3-vectors: unit vectors on a
sphere, (x, y, 0) in degrees on a screen.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import LAST_Y_DEG

#: Jumps per second, their standard deviation along an axis in degrees, and the drift of a fixation
#: in degrees squared per second along an axis.
JUMPS_HZ, JUMP_DEG, DRIFT_DEG2_S = 3.0, 7.0, 4.0

# Model as the functions take it, by place: on a sphere, variance of a reading, of a jump, of the
# drift of a slot, log odds of staying, most empty slots.
SPHERE, NOISE, JUMP, DRIFT, STAYS, FILLED = range(6)

# State of a stream, by place: mean, variance, is there one, empty slots in a row.
VARIANCE, HAS, EMPTY = 3, 4, 5
STATE = 6

# What is said of a slot, by place: where a jump lands, where gaze is at the end of the slot, is
# there a jump, is there gaze.
LANDS_X, LANDS_Y, ENDS_X, ENDS_Y, JUMPS, SHOWN = range(6)
PLACE = 6


def model(sphere: bool, noise_deg: float, slot_s: float, drift: bool, filled: int) -> Floats:
    """The numbers that :func:`follow` and :func:`look_back` take.

    Parameters
    ----------
    sphere : bool
        Whether degrees are those of a sphere.
    noise_deg : float
        Standard deviation of a reading along an axis.
    slot_s : float
        Seconds of a slot.
    drift : bool
        Whether a fixation may drift, as pursuit does.
    filled : int
        How many slots in a row without a reading show the last place.
    """
    slot_s = min(slot_s, 60.0)  # after a minute nothing is known of where gaze was
    stays = math.exp(-JUMPS_HZ * slot_s)
    return np.array(
        [
            sphere,
            noise_deg**2,
            JUMP_DEG**2,
            DRIFT_DEG2_S * slot_s if drift else 0.0,
            math.log(stays / -math.expm1(-JUMPS_HZ * slot_s)),
            filled,
        ]
    )


@compiled
def vector(x: float, y: float, sphere: bool) -> tuple[float, float, float]:
    """The place of degrees."""
    if not sphere:
        return x, y, 0.0
    lon, lat = math.radians(x - 180.0), math.radians(90.0 - y)
    return math.cos(lat) * math.sin(lon), math.sin(lat), math.cos(lat) * math.cos(lon)


@compiled
def degrees(a: float, b: float, c: float, sphere: bool) -> tuple[float, float]:
    """The degrees of a place; what points nowhere is straight ahead."""
    if not sphere:
        return a, b
    flat = math.hypot(a, c)
    if flat == 0.0 and b == 0.0:
        return 180.0, 90.0
    x = math.degrees(math.atan2(a, c)) + 180.0
    return (x if x < 360.0 else 0.0), min(
        max(90.0 - math.degrees(math.atan2(b, flat)), 0.0), LAST_Y_DEG
    )


@compiled
def _unit(v: Floats) -> None:
    size = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    if size > 1e-9:
        v[0], v[1], v[2] = v[0] / size, v[1] / size, v[2] / size
    else:
        v[0], v[1], v[2] = 0.0, 0.0, 1.0


@compiled
def _step(x: float, y: float, ok: bool, model: Floats, state: Floats) -> bool:
    """One slot; whether gaze jumps."""
    if not ok:
        state[EMPTY] += 1.0
        state[VARIANCE] += model[DRIFT]
        return False
    sphere, noise = model[SPHERE] == 1.0, model[NOISE]
    a, b, c = vector(x, y, sphere)
    if state[HAS] == 0.0 or state[EMPTY] > model[FILLED]:
        state[0] = a
        state[1] = b
        state[2] = c
        state[VARIANCE] = noise
        state[HAS] = 1.0
        state[EMPTY] = 0.0
        return True
    state[EMPTY] = 0.0
    square = (a - state[0]) ** 2 + (b - state[1]) ** 2 + (c - state[2]) ** 2
    if sphere:
        square *= (180.0 / math.pi) ** 2
    near, far = state[VARIANCE] + model[DRIFT], state[VARIANCE] + model[JUMP]
    # normal laws for noise and jumps: planar Laplace ones of the same variance, with their longer
    # tails, fuse less and are no better on real gaze
    stays, leaves = near + noise, far + noise
    log_stays = model[STAYS] - math.log(stays) - 0.5 * square / stays
    jumps = log_stays < -math.log(leaves) - 0.5 * square / leaves
    before = far if jumps else near
    gain = before / (before + noise)
    state[VARIANCE] = gain * noise
    state[0], state[1], state[2] = (
        state[0] + gain * (a - state[0]),
        state[1] + gain * (b - state[1]),
        state[2] + gain * (c - state[2]),
    )
    if sphere:
        _unit(state[:3])
    return bool(jumps)


@compiled
def follow(x: Floats, y: Floats, ok: Bools, model: Floats, states: Floats, places: Floats) -> None:
    """Places from readings of the past.

    Parameters
    ----------
    x, y, ok : arrays of shape (streams, slots)
        Noisy readings.
    states : array of float64, shape (streams, STATE)
        Updated.
    places : array of float64, shape (streams, slots, PLACE)
        Filled.
    """
    for s in range(x.shape[0]):
        state = states[s]
        for j in range(x.shape[1]):
            jumps = _step(x[s, j], y[s, j], ok[s, j], model, state)
            at_x, at_y = degrees(state[0], state[1], state[2], model[SPHERE] == 1.0)
            shown = state[HAS] == 1.0 and state[EMPTY] <= model[FILLED]
            places[s, j, LANDS_X] = at_x
            places[s, j, LANDS_Y] = at_y
            places[s, j, ENDS_X] = at_x
            places[s, j, ENDS_Y] = at_y
            places[s, j, JUMPS] = 1.0 if jumps else 0.0
            places[s, j, SHOWN] = 1.0 if shown else 0.0


@compiled
def look_back(x: Floats, y: Floats, ok: Bools, model: Floats, places: Floats) -> None:
    """Places from all readings; as :func:`follow`."""
    sphere, drift = model[SPHERE] == 1.0, model[DRIFT]
    n = x.shape[1]
    means = np.empty((n, STATE))
    for s in range(x.shape[0]):
        state = np.zeros(STATE)
        for j in range(n):
            places[s, j, JUMPS] = 1.0 if _step(x[s, j], y[s, j], ok[s, j], model, state) else 0.0
            places[s, j, SHOWN] = (
                1.0 if state[HAS] == 1.0 and state[EMPTY] <= model[FILLED] else 0.0
            )
            means[j] = state
        for j in range(n - 2, -1, -1):
            if places[s, j + 1, JUMPS] == 0.0 and means[j, HAS] == 1.0:
                gain = (
                    means[j, VARIANCE] / (means[j, VARIANCE] + drift)
                    if means[j, VARIANCE] > 0.0
                    else 1.0
                )
                for k in range(3):
                    means[j, k] += gain * (means[j + 1, k] - means[j, k])
                if sphere:
                    _unit(means[j, :3])
        for j in range(n):
            places[s, j, LANDS_X], places[s, j, LANDS_Y] = degrees(
                means[j, 0], means[j, 1], means[j, 2], sphere
            )
            places[s, j, ENDS_X], places[s, j, ENDS_Y] = (
                places[s, j, LANDS_X],
                places[s, j, LANDS_Y],
            )
            if j + 1 < n and places[s, j + 1, JUMPS] == 0.0:
                # a slot ends halfway between its middle and that of the next
                a = means[j, 0] + means[j + 1, 0]
                b = means[j, 1] + means[j + 1, 1]
                c = means[j, 2] + means[j + 1, 2]
                places[s, j, ENDS_X], places[s, j, ENDS_Y] = degrees(
                    0.5 * a, 0.5 * b, 0.5 * c, sphere
                )
