"""Speed profiles of saccades: 30 points each, and the Gaussian curve a * exp(-((t - b) / c)**2)
fitted to them (David-John et al. 2023).

A saccade's speed is resampled to 30 points of its own time, t from 0 to 1, so that saccades of all
durations and rates can be compared and averaged. The fit is least squares by Levenberg and
Marquardt, all saccades in one compiled loop.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import distance_deg
from gazeveil.gaze.recording import Recording

#: Points of a profile.
POINTS = 30

#: Places of the points in the saccade's own time.
TIMES = np.linspace(0.0, 1.0, POINTS)

#: Bounds of the fitted peak's place and width, in the saccade's own time, and of the peak in deg/s.
B_BOUNDS, C_BOUNDS, A_BOUNDS = (0.0, 1.0), (0.02, 2.0), (0.0, 2000.0)


def speed_profiles(recording: Recording, onset: Ints, offset: Ints) -> Floats:
    """Speeds of events at 30 points of their own time.

    Parameters
    ----------
    recording : Recording
        Samples with a known rate.
    onset, offset : arrays of int64, shape (events,)
        First and last sample of each event.

    Returns
    -------
    array, shape (events, 30)
        Speed in deg/s; steps to or from a lost sample are left out, and an event with no step left
        has NaN.
    """
    speed = np.full(len(recording), np.nan)
    both = recording.valid[1:] & recording.valid[:-1]
    steps = distance_deg(
        recording.space,
        recording.x_deg[:-1],
        recording.y_deg[:-1],
        recording.x_deg[1:],
        recording.y_deg[1:],
    )
    seconds = np.diff(recording.t_ns) / 1e9
    good = both & (seconds > 0)
    speed[1:][good] = steps[good] / seconds[good]
    return _resampled(
        speed,
        np.ascontiguousarray(onset, dtype=np.int64),
        np.ascontiguousarray(offset, dtype=np.int64),
    )


@compiled
def _resampled(speed: Floats, onset: Ints, offset: Ints) -> Floats:
    out = np.full((len(onset), 30), np.nan)
    for e in range(len(onset)):
        # speed[i] is that of the step from i - 1 to i, so the event's steps are onset + 1 to
        # offset, at the middles of the steps
        first, last = onset[e] + 1, offset[e]
        steps = last - first + 1
        if steps < 1:
            continue
        at, value, count = np.empty(steps), np.empty(steps), 0
        for i in range(first, last + 1):
            if not np.isnan(speed[i]):
                at[count], value[count] = (i - first + 0.5) / steps, speed[i]
                count += 1
        if count == 0:
            continue
        k = 0
        for p in range(30):
            t = p / 29.0
            while k + 1 < count and at[k + 1] < t:
                k += 1
            if t <= at[0]:
                out[e, p] = value[0]
            elif k + 1 >= count:
                out[e, p] = value[count - 1]
            else:
                share = (t - at[k]) / (at[k + 1] - at[k])
                out[e, p] = value[k] + share * (value[k + 1] - value[k])
    return out


def fit_profiles(profiles: Floats) -> Floats:
    """Least-squares parameters a (deg/s), b and c (of the saccade's own time) of each profile.

    Parameters
    ----------
    profiles : array, shape (saccades, 30)
        Speeds in deg/s.

    Returns
    -------
    array, shape (saccades, 3)
        Within :data:`A_BOUNDS`, :data:`B_BOUNDS`, :data:`C_BOUNDS`; NaN for a profile with NaN.

    Examples
    --------
    >>> curve = 300.0 * np.exp(-(((TIMES - 0.4) / 0.2) ** 2))
    >>> np.round(fit_profiles(curve[None]), 6).tolist()
    [[300.0, 0.4, 0.2]]
    """
    return _fit(
        np.ascontiguousarray(profiles, dtype=np.float64), np.array([A_BOUNDS, B_BOUNDS, C_BOUNDS])
    )


@compiled
def _loss(y: Floats, a: float, b: float, c: float) -> float:
    total = 0.0
    for p in range(30):
        u = (p / 29.0 - b) / c
        r = y[p] - a * math.exp(-u * u)
        total += r * r
    return total


@compiled
def _normal_equations(y: Floats, at: Floats, bounds: Floats, h: Floats, g: Floats) -> None:
    """Gauss-Newton matrix (its upper half) and gradient of the squared error."""
    h[:], g[:] = 0.0, 0.0
    a, b, c = at[0], at[1], at[2]
    for p in range(30):
        u = (p / 29.0 - b) / c
        f = math.exp(-u * u)
        r = y[p] - a * f
        j0, j1 = f, 2.0 * a * f * u / c
        j2 = j1 * u
        h[0, 0] += j0 * j0
        h[0, 1] += j0 * j1
        h[0, 2] += j0 * j2
        h[1, 1] += j1 * j1
        h[1, 2] += j1 * j2
        h[2, 2] += j2 * j2
        g[0] += j0 * r
        g[1] += j1 * r
        g[2] += j2 * r
    # A parameter at its bound that wants to go beyond stays there, and the others move without it.
    for i in range(3):
        if (at[i] <= bounds[i, 0] and g[i] < 0.0) or (at[i] >= bounds[i, 1] and g[i] > 0.0):
            g[i] = 0.0
            for j in range(3):
                h[min(i, j), max(i, j)] = 0.0
            h[i, i] = 1.0


@compiled
def _damped_step(
    at: Floats, h: Floats, g: Floats, damping: float, bounds: Floats, out: Floats
) -> bool:
    """Parameters after one step by Cramer's rule, kept inside bounds; whether there is a step."""
    m00 = h[0, 0] * (1.0 + damping)
    m11 = h[1, 1] * (1.0 + damping) + 1e-12
    m22 = h[2, 2] * (1.0 + damping) + 1e-12
    m01, m02, m12 = h[0, 1], h[0, 2], h[1, 2]
    c00, c01, c02 = m11 * m22 - m12 * m12, m02 * m12 - m01 * m22, m01 * m12 - m02 * m11
    det = m00 * c00 + m01 * c01 + m02 * c02
    if not det > 0.0:
        return False
    c11, c12, c22 = m00 * m22 - m02 * m02, m01 * m02 - m00 * m12, m00 * m11 - m01 * m01
    out[0] = at[0] + (c00 * g[0] + c01 * g[1] + c02 * g[2]) / det
    out[1] = at[1] + (c01 * g[0] + c11 * g[1] + c12 * g[2]) / det
    out[2] = at[2] + (c02 * g[0] + c12 * g[1] + c22 * g[2]) / det
    for i in range(3):
        out[i] = min(max(out[i], bounds[i, 0]), bounds[i, 1])
    return True


@compiled
def _refined(y: Floats, at: Floats, bounds: Floats) -> None:
    """Levenberg and Marquardt's steps from a first guess, in place."""
    h, g, tried = np.zeros((3, 3)), np.zeros(3), np.zeros(3)
    loss, damping = _loss(y, at[0], at[1], at[2]), 1e-3
    for _ in range(60):
        _normal_equations(y, at, bounds, h, g)
        better = False
        for _ in range(12):
            if _damped_step(at, h, g, damping, bounds, tried):
                new = _loss(y, tried[0], tried[1], tried[2])
                if new < loss:
                    better = loss - new > 1e-12 * (loss + 1e-30)
                    at[:], loss = tried, new
                    damping = max(damping * 0.2, 1e-12)
                    break
            damping *= 4.0
        if not better:
            return


@compiled
def _fit(profiles: Floats, bounds: Floats) -> Floats:
    out = np.full((len(profiles), 3), np.nan)
    for e in range(len(profiles)):
        y = profiles[e]
        peak, place, total = 0.0, 0, 0.0
        for p in range(30):
            total += y[p]
            if y[p] > peak:
                peak, place = y[p], p
        if np.isnan(total):
            continue
        if peak <= 0.0:
            out[e, 0], out[e, 1], out[e, 2] = 0.0, 0.5, 0.25
            continue
        out[e, 0], out[e, 1] = peak, place / 29.0
        # The area under the curve is a c sqrt(pi): a first guess of the width.
        width = total / 29.0 / peak / 1.7724538509055159
        out[e, 2] = min(max(width, bounds[2, 0]), bounds[2, 1])
        _refined(y, out[e], bounds)
    return out
