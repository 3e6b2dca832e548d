"""The smooth-pursuit stage: which intervals between saccades follow something that moves.

A fixation drifts and trembles around a place; a pursuit gets somewhere. Four numbers of the interval decide, all of them free of
the rate and in plain units:

* `way_deg`: distance between its first and its last 20 ms;
* `straightness`: that distance over the length of the path in steps of 20 ms, 1 for a straight run, near 0 for tremor;
* `spread_deg`: root mean square distance from uniform straight motion;
* `along`: how fast the intervals before and after it moved in the same direction, since pursuit goes on after a catch-up saccade.

The rule is a logistic one with the coefficients of :data:`RULE`. They were fitted on the GazeCom people with odd numbers
(`python benchmarks/events_agreement.py --refit` fits them again and prints the figures on the other half).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.events.saccades import distance
from gazeveil.events.trace import FIXATION, PURSUIT

#: Columns of :func:`interval_features`.
FEATURES = ("log_way", "straightness", "log_spread", "along")

_END_S = 0.02


@dataclass(frozen=True)
class PursuitRule:
    """A pursuit is an interval with intercept + weights . features above 0, lasting at least `min_ms`."""

    intercept: float
    log_way: float
    straightness: float
    log_spread: float
    along: float
    min_ms: float = 60.0

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights in the order of :data:`FEATURES`."""
        return np.array([getattr(self, name) for name in FEATURES])


RULE = PursuitRule(intercept=-6.53, log_way=3.23, straightness=2.63, log_spread=-1.18, along=0.55)


def mark_pursuit(points: NDArray[np.float64], rate_hz: float, codes: NDArray[np.int8], rule: PursuitRule = RULE) -> None:
    """Turn the runs of FIXATION that pursue into PURSUIT."""
    runs = fixation_runs(codes)
    if len(runs) == 0:
        return
    score = rule.intercept + interval_features(points, runs, rate_hz) @ rule.weights
    for first, last in runs[(score > 0) & (runs[:, 1] - runs[:, 0] + 1 >= rule.min_ms * rate_hz / 1000)]:
        codes[first : last + 1] = PURSUIT


def fixation_runs(codes: NDArray[np.int8]) -> NDArray[np.int64]:
    """First and last sample of each run of FIXATION, shape (k, 2)."""
    inside = np.zeros(len(codes) + 2, dtype=np.int8)
    inside[1:-1] = codes == FIXATION
    edges = np.diff(inside)
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1), axis=1)


@compiled
def interval_features(points: NDArray[np.float64], runs: NDArray[np.int64], rate_hz: float) -> NDArray[np.float64]:
    """The four numbers of each interval, shape (k, 4), in the order of :data:`FEATURES`.

    Distances enter as log(0.1 deg + distance), the spread as log(0.05 deg + spread), `along` as the sum over both neighbours of
    log(1 + speed in deg/s of the neighbour's part in our direction), for neighbours at most 0.2 s away.
    """
    axes, count = len(points), len(runs)
    result = np.zeros((count, 4))
    slope = np.zeros((count, axes))
    end = max(1, int(_END_S * rate_hz + 0.5))
    for r in range(count):
        first, last = runs[r, 0], runs[r, 1]
        n = last - first + 1
        edge = min(end, n)
        middle = 0.5 * (n - 1)
        square, time = 0.0, 0.0
        for k in range(n):
            time += (k - middle) ** 2
        way = 0.0
        for a in range(axes):
            row = points[a]
            head, foot, mean, tilt = 0.0, 0.0, 0.0, 0.0
            for k in range(edge):
                head += row[first + k]
                foot += row[last - k]
            way += ((foot - head) / edge) ** 2
            for k in range(n):
                mean += row[first + k]
                tilt += (k - middle) * row[first + k]
            mean /= n
            tilt = tilt / time if n > 1 else 0.0
            slope[r, a] = tilt * rate_hz
            for k in range(n):
                square += (row[first + k] - mean - tilt * (k - middle)) ** 2
        way = np.sqrt(way)
        path, k = 0.0, first
        while k + end <= last:
            path += distance(points, k, k + end)
            k += end
        result[r, 0] = np.log(0.1 + way)
        result[r, 1] = min(1.5, way / max(path, 1e-3))
        result[r, 2] = np.log(0.05 + np.sqrt(square / n))
    for r in range(count):
        own = np.sqrt((slope[r] ** 2).sum())
        for other in (r - 1, r + 1):
            if 0 <= other < count and own > 0:
                gap = runs[r, 0] - runs[other, 1] if other < r else runs[other, 0] - runs[r, 1]
                if gap < 0.2 * rate_hz:
                    part = (slope[r] * slope[other]).sum() / own
                    result[r, 3] += np.log(1.0 + min(20.0, max(0.0, part)))
    return result
