"""The smooth-pursuit stage: which intervals between saccades follow something that moves.

A fixation drifts and trembles around a place; a pursuit gets somewhere. Four numbers of the
interval decide. They are made from the mean places of successive blocks of 20 ms (one sample where
the rate is lower), so they hardly depend on rate and sample noise:

* `way_deg`: distance between the first and the last block;
* `straightness`: that distance over the length of the path from block to block, 1 for a straight
  run, near 0 for tremor;
* `spread_deg`: root mean square distance of the blocks from uniform straight motion;
* `along`: how fast the intervals before and after it moved in the same direction, since pursuit
  goes on after a catch-up saccade.

The rule is a logistic one with the coefficients of :data:`RULE`. They were fitted on the GazeCom
people with odd numbers (`python benchmarks/events_agreement.py --refit` fits them again and prints
the figures on the other half).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.auto.saccades import distance
from gazeveil.events.trace import FIXATION, PURSUIT

#: Columns of :func:`interval_features`.
FEATURES = ("log_way", "straightness", "log_spread", "along")

_BLOCK_S = 0.02


@dataclass(frozen=True)
class PursuitRule:
    """A pursuit is an interval with intercept + weights . features above 0, lasting at least
    `min_ms`.
    """

    intercept: float
    log_way: float
    straightness: float
    log_spread: float
    along: float
    min_ms: float = 60.0

    @property
    def weights(self) -> Floats:
        """Weights in the order of :data:`FEATURES`."""
        return np.array([getattr(self, name) for name in FEATURES])


RULE = PursuitRule(intercept=-6.55, log_way=3.52, straightness=1.80, log_spread=-1.39, along=0.57)


def mark_pursuit(points: Floats, rate_hz: float, codes: Codes, rule: PursuitRule = RULE) -> None:
    """Turn the runs of FIXATION that pursue into PURSUIT."""
    runs = fixation_runs(codes)
    if len(runs) == 0:
        return
    score = rule.intercept + interval_features(points, runs, rate_hz) @ rule.weights
    for first, last in runs[
        (score > 0) & (runs[:, 1] - runs[:, 0] + 1 >= rule.min_ms * rate_hz / 1000)
    ]:
        codes[first : last + 1] = PURSUIT


def fixation_runs(codes: Codes) -> Ints:
    """First and last sample of each run of FIXATION, shape (k, 2)."""
    inside = np.zeros(len(codes) + 2, dtype=np.int8)
    inside[1:-1] = codes == FIXATION
    edges = np.diff(inside)
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1), axis=1)


@compiled
def interval_features(points: Floats, runs: Ints, rate_hz: float) -> Floats:
    """The four numbers of each interval, shape (k, 4), in the order of :data:`FEATURES`.

    Distances enter as log(0.1 deg + distance), the spread as log(0.05 deg + spread), `along` as the
    sum over both neighbours of log(1 + speed in deg/s of the neighbour's part in our direction),
    for neighbours at most 0.2 s away.
    """
    axes, count = len(points), len(runs)
    result = np.zeros((count, 4))
    slope = np.zeros((count, axes))
    block = max(1, int(_BLOCK_S * rate_hz + 0.5))
    longest = 0
    for r in range(count):
        longest = max(longest, runs[r, 1] - runs[r, 0] + 1)
    means = np.empty((axes, longest // block + 1))
    for r in range(count):
        first, n = runs[r, 0], runs[r, 1] - runs[r, 0] + 1
        blocks = max(1, n // block)
        for a in range(axes):
            for k in range(blocks):
                # The last block takes what is left over.
                start, stop = k * block, n if k == blocks - 1 else (k + 1) * block
                total = 0.0
                for i in range(start, stop):
                    total += points[a, first + i]
                means[a, k] = total / (stop - start)
        way = distance(means, 0, blocks - 1)
        path = 0.0
        for k in range(1, blocks):
            path += distance(means, k - 1, k)
        middle = 0.5 * (blocks - 1)
        time = blocks * (blocks * blocks - 1) / 12.0
        square = 0.0
        for a in range(axes):
            mean, tilt = 0.0, 0.0
            for k in range(blocks):
                mean += means[a, k]
                tilt += (k - middle) * means[a, k]
            mean /= blocks
            tilt = tilt / time if blocks > 1 else 0.0
            slope[r, a] = tilt * rate_hz / block
            for k in range(blocks):
                square += (means[a, k] - mean - tilt * (k - middle)) ** 2
        result[r, 0] = np.log(0.1 + way)
        result[r, 1] = way / max(path, 1e-3)
        result[r, 2] = np.log(0.05 + np.sqrt(square / blocks))
    for r in range(count):
        own = np.sqrt((slope[r] ** 2).sum())
        for other in (r - 1, r + 1):
            if 0 <= other < count and own > 0:
                gap = runs[r, 0] - runs[other, 1] if other < r else runs[other, 0] - runs[r, 1]
                if gap < 0.2 * rate_hz:
                    part = (slope[r] * slope[other]).sum() / own
                    result[r, 3] += np.log(1.0 + min(20.0, max(0.0, part)))
    return result
