"""Optokinetic nystagmus: slow phases that follow a moving field, and fast phases that jump back
(Agtzidis, Startsev, Dorr 2019).

For two consecutive saccades with directions s1, s2 and the slow phase d between them: angle(s1, s2)
< 70 deg, angle(s1, d) > 90 deg, angle(s2, d) > 90 deg, and the slow phase is faster than 10 deg/s.
Only runs of at least two such intervals count. The slow phases and the saccades that enclose them
are OKN; samples with confidence below 1 are left out.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled

_SAME_DEG, _OPPOSITE_DEG, _SLOW_DEG_S = 70.0, 90.0, 10.0


def mark_okn(points: Floats, saccades: Ints, rate_hz: float, doubtful: Bools) -> Bools:
    """Samples of optokinetic nystagmus.

    Parameters
    ----------
    points : array of float64, shape (axes, n)
        The eye in the head, in degrees (gaze, where the head does not move or is not known).
    saccades : array of int64, shape (k, 2)
        First and last sample of each saccade, in order; consecutive ones in one stretch without a
        long gap, see `doubtful`.
    rate_hz : float
        Nominal rate.
    doubtful : array of bool, shape (n,)
        Samples with confidence below 1 or lost: never OKN, and an interval that is nothing but
        these breaks a run.

    Returns
    -------
    array of bool, shape (n,)
    """
    result = np.zeros(points.shape[1], dtype=np.bool_)
    _mark(points, saccades, rate_hz, doubtful, result)
    return result & ~doubtful


@compiled
def _mark(points: Floats, saccades: Ints, rate_hz: float, doubtful: Bools, result: Bools) -> None:
    run = 0  # consecutive intervals that fit, up to the one before saccade j
    for j in range(1, len(saccades) + 1):
        fits = j < len(saccades) and _fits(points, saccades, j, rate_hz, doubtful)
        if fits:
            run += 1
            continue
        if run >= 2:
            result[saccades[j - 1 - run, 0] : saccades[j - 1, 1] + 1] = True
        run = 0


@compiled
def _fits(points: Floats, saccades: Ints, j: int, rate_hz: float, doubtful: Bools) -> bool:
    end, start = saccades[j - 1, 1], saccades[j, 0]
    if start <= end + 1 or doubtful[end + 1 : start].all():
        return False
    axes = len(points)
    before, after, slow = np.empty(axes), np.empty(axes), np.empty(axes)
    for a in range(axes):
        before[a] = points[a, end] - points[a, saccades[j - 1, 0]]
        after[a] = points[a, saccades[j, 1]] - points[a, start]
        slow[a] = points[a, start] - points[a, end]
    way = np.sqrt((slow * slow).sum())
    # A gap inside makes the way NaN, which fits nothing.
    if not way * rate_hz > _SLOW_DEG_S * (start - end):
        return False
    return (
        _angle(before, after) < _SAME_DEG
        and _angle(before, slow) > _OPPOSITE_DEG
        and _angle(after, slow) > _OPPOSITE_DEG
    )


@compiled
def _angle(u: Floats, v: Floats) -> float:
    size = np.sqrt((u * u).sum() * (v * v).sum())
    if not size > 0:
        return np.nan
    return np.degrees(np.arccos(min(1.0, max(-1.0, (u * v).sum() / size))))
