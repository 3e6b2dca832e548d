"""Fixations and smooth pursuit between saccades after Larsson, Nystroem, Andersson and Stridh 2015,
adapted to headsets.

1. The interval is covered by windows of 44 ms that overlap by 12 ms. In each, a Rayleigh test asks
   whether the directions of the steps agree; steps above 100 deg/s are left out. Each sample gets
   the mean p-value of the windows over it; runs of samples below and not below 0.01 are the
   segments, those under 32 ms join the one before.
2. Each segment gets four numbers: dispersion (second over first principal axis), consistency of
   direction (way from start to end over the first principal axis), displacement (that way over the
   length of the path) and range (diagonal of the bounding box). Pursuit has a dispersion below
   0.45, a consistency above 0.5, a displacement above 0.2 and a range above 1.9 deg.
3. All four: pursuit. None: fixation. In between, a segment with the displacement of a pursuit joins
   those neighbours (pursuit or in between as well) whose direction differs by less than 45 deg; it
   is pursuit if together they cover more than 1.1 deg. One without is pursuit if its range is that
   of a pursuit.

The times and thresholds are those in use for 120 Hz data of headsets; the authors had 22, 6 and 40
ms at 500 Hz, and 1.7 deg joined.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.auto.speed import distance
from gazeveil.events.trace import FIXATION, PURSUIT, UNDEFINED

_WINDOW_S, _OVERLAP_S, _SHORTEST_S = 0.044, 0.012, 0.032
_FASTEST_DEG_S, _P_VALUE = 100.0, 0.01
_DISPERSION, _CONSISTENCY, _DISPLACEMENT = 0.45, 0.5, 0.2
_RANGE_DEG, _JOINED_DEG, _TURN_COS = 1.9, 1.1, math.cos(math.pi / 4)

_OPEN = 7  # neither for sure; no code of an event


def mark_larsson(points: Floats, segments: Ints, rate_hz: float, codes: Codes) -> None:
    """Turn the UNDEFINED runs inside the segments into FIXATION and PURSUIT.

    Parameters
    ----------
    points : array of float64, shape (axes, n)
        Positions in degrees.
    segments : array of int64, shape (k, 2)
        Stretches without long gaps.
    rate_hz : float
        Nominal rate.
    codes : array of int8, shape (n,)
        Saccades, blinks and noise already written.
    """
    inside = np.zeros(len(codes), dtype=np.bool_)
    for first, stop in segments:
        inside[first:stop] = codes[first:stop] == UNDEFINED
    edges = np.diff(np.concatenate(([0], inside.astype(np.int8), [0])))
    for first, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        parts = _parts(points, int(first), int(stop), rate_hz)
        part_codes, ways = _judge(points, parts)
        _settle(points, parts, part_codes, ways)
        for (a, b), code in zip(parts, part_codes, strict=True):
            codes[a:b] = code


@compiled
def _parts(points: Floats, first: int, stop: int, rate_hz: float) -> Ints:
    """Cut [first, stop) where the directions begin or cease to agree; rows (start, stop)."""
    n = stop - first
    width = min(n, max(3, round(_WINDOW_S * rate_hz)))
    step = max(1, width - max(1, round(_OVERLAP_S * rate_hz)))
    total, covered = np.zeros(n), np.zeros(n)
    start = 0
    while True:
        start = min(start, n - width)
        p = _rayleigh(points, first + start, first + start + width, _FASTEST_DEG_S / rate_hz)
        total[start : start + width] += p
        covered[start : start + width] += 1
        if start + width >= n:
            break
        start += step
    least = _SHORTEST_S * rate_hz
    result = np.empty((n, 2), dtype=np.int64)
    count, begin = 0, 0
    for i in range(1, n + 1):
        if i == n or (total[i] / covered[i] < _P_VALUE) != (
            total[i - 1] / covered[i - 1] < _P_VALUE
        ):
            if count > 0 and i - begin < least:
                result[count - 1, 1] = first + i
            else:
                result[count, 0], result[count, 1] = first + begin, first + i
                count += 1
            begin = i
    return result[:count].copy()


@compiled
def _rayleigh(points: Floats, start: int, stop: int, longest: float) -> float:
    """p-value of the Rayleigh test for the directions of the steps (Fisher 1993, eq. 4.17)."""
    axes = len(points)
    mean = np.zeros(axes)
    m = 0
    for i in range(start + 1, stop):
        size = distance(points, i - 1, i)
        if 0 < size <= longest:
            m += 1
            for a in range(axes):
                mean[a] += (points[a, i] - points[a, i - 1]) / size
    if m == 0:
        return 1.0
    z = (mean * mean).sum() / m
    p = math.exp(-z) * (
        1 + (2 * z - z * z) / (4 * m) - (24 * z - 132 * z**2 + 76 * z**3 - 9 * z**4) / (288 * m * m)
    )
    return min(1.0, max(0.0, p))


@compiled
def _judge(points: Floats, parts: Ints) -> tuple[Codes, Floats]:
    """FIXATION, PURSUIT or open for each part, and its way from start to end."""
    axes = len(points)
    codes = np.empty(len(parts), dtype=np.int8)
    ways = np.empty((len(parts), axes))
    for k in range(len(parts)):
        start, stop = parts[k, 0], parts[k, 1]
        ways[k] = points[:, stop - 1] - points[:, start]
        path = 0.0
        for i in range(start + 1, stop):
            path += distance(points, i - 1, i)
        spread = np.zeros((axes, axes))
        for a in range(axes):
            for b in range(axes):
                spread[a, b] = (
                    (points[a, start:stop] - points[a, start:stop].mean())
                    * (points[b, start:stop] - points[b, start:stop].mean())
                ).mean()
        size = np.sqrt(np.maximum(0.0, np.linalg.eigvalsh(spread)))
        # The principal axes as lengths: a uniform run of length L has the standard deviation L /
        # sqrt(12).
        longer, shorter = size[axes - 1] * math.sqrt(12.0), size[axes - 2] * math.sqrt(12.0)
        way = math.sqrt((ways[k] * ways[k]).sum())
        thin = longer > 0 and shorter < _DISPERSION * longer
        straight = longer > 0 and way > _CONSISTENCY * longer
        moved = path > 0 and way > _DISPLACEMENT * path
        wide = _diagonal(points, start, stop) > _RANGE_DEG
        met = int(thin) + int(straight) + int(moved) + int(wide)
        if met == 4:
            codes[k] = PURSUIT
        elif met == 0:
            codes[k] = FIXATION
        elif moved:
            codes[k] = _OPEN
        else:
            codes[k] = PURSUIT if wide else FIXATION
    return codes, ways


@compiled
def _settle(points: Floats, parts: Ints, codes: Codes, ways: Floats) -> None:
    """Decide the open parts by what they cover together with neighbours of the same direction."""
    before = codes.copy()
    for k in range(len(parts)):
        if before[k] != _OPEN:
            continue
        low, high = k, k
        while low > 0 and before[low - 1] != FIXATION and _same_way(ways[k], ways[low - 1]):
            low -= 1
        while (
            high + 1 < len(parts)
            and before[high + 1] != FIXATION
            and _same_way(ways[k], ways[high + 1])
        ):
            high += 1
        codes[k] = (
            PURSUIT if _diagonal(points, parts[low, 0], parts[high, 1]) > _JOINED_DEG else FIXATION
        )


@compiled
def _same_way(u: Floats, v: Floats) -> bool:
    size = math.sqrt((u * u).sum() * (v * v).sum())
    return size > 0 and (u * v).sum() > _TURN_COS * size


@compiled
def _diagonal(points: Floats, start: int, stop: int) -> float:
    square = 0.0
    for a in range(len(points)):
        square += (points[a, start:stop].max() - points[a, start:stop].min()) ** 2
    return math.sqrt(square)
