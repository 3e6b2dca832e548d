"""Pursuit while samples arrive: whether the eye followed something between two saccades, from sums
that are kept as it goes.

The numbers are those of :mod:`gazeveil.events.auto.pursuit`: mean places of successive blocks of 20
ms (one sample where the rate is lower), the way from the first block to the last, and the spread
around uniform straight motion. What comes after is not known yet and what came before is forgotten,
so three bounds decide instead of a fitted rule. An interval of at least five blocks is a pursuit if

* its way is 1 deg or more: fixational drift and tremor stay within a fraction of that (Rolfs 2009);
* it moved at 1 deg/s or more: slower is drift of the eye, or a headset that slips;
* the spread is at most an eighth of the way. A small saccade that was missed in the middle leaves a
  quarter.

The end of an interval is decided after it has passed. So a block is added up only when it is too
old to lie behind that end; the younger places wait in a short ring. Sums count from the first block
of the interval, and a stream that runs for days loses no digits.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled

_BLOCK_S = 0.02
_LEAST_BLOCKS = 5
_LEAST_WAY_DEG = 1.0
_LEAST_SPEED_DEG_S = 1.0
_WAY_OVER_SPREAD = 8.0

# Rows of the state: sums of the block being filled and of the last full one, mean of the first
# block; over all blocks less the first: sum, sum times their number, the last, sum of squares; two
# rows of counts; the ring. It is one array, since each array that compiled code is handed costs it
# time; whole numbers are exact in it.
_PART, _HELD, _FIRST, _SUM, _TILT, _LAST, _SQUARE, _WHERE, _COUNTS, _RING = range(10)

# Columns of `_WHERE` and `_COUNTS`.
_ONSET, _NEXT, _FULL = range(
    3
)  # first sample of the interval, next one to be added, samples of a full block
_IN_PART, _IN_HELD, _BLOCKS = range(3)

Way = Floats


def way_of(rate_hz: float, delay: int) -> Way:
    """An empty state.

    Parameters
    ----------
    rate_hz : float
        Nominal rate.
    delay : int
        How many samples after the last one of an interval its end may be decided.
    """
    way = np.zeros((_RING + delay + 1, 3))
    way[_WHERE] = -1, 0, max(1, int(_BLOCK_S * rate_hz + 0.5))
    return way


@compiled
def keep(way: Way, index: int, place: Floats) -> None:
    """Keep the place of a sample in the ring."""
    row = _RING + index % (len(way) - _RING)
    for a in range(3):
        way[row, a] = place[a]


@compiled
def follow(way: Way, onset: int, last: int) -> None:
    """Add the samples up to `last` of the interval that began at `onset`."""
    if way[_WHERE, _ONSET] != onset:
        way[:_WHERE] = 0.0
        way[_COUNTS] = 0.0
        way[_WHERE, _ONSET], way[_WHERE, _NEXT] = onset, onset
    size = len(way) - _RING
    for index in range(int(way[_WHERE, _NEXT]), last + 1):
        for a in range(3):
            way[_PART, a] += way[_RING + index % size, a]
        way[_COUNTS, _IN_PART] += 1.0
        if way[_COUNTS, _IN_PART] == way[_WHERE, _FULL]:
            # The last block takes what is left over, so each waits for the next to be full.
            if way[_COUNTS, _IN_HELD] > 0.0:
                _add(way)
            way[_HELD] = way[_PART]
            way[_PART] = 0.0
            way[_COUNTS, _IN_HELD], way[_COUNTS, _IN_PART] = way[_COUNTS, _IN_PART], 0.0
    way[_WHERE, _NEXT] = max(way[_WHERE, _NEXT], last + 1.0)


@compiled
def _add(way: Way) -> None:
    """A block is whole: its mean goes into the sums."""
    for a in range(3):
        mean = way[_HELD, a] / way[_COUNTS, _IN_HELD]
        if way[_COUNTS, _BLOCKS] == 0.0:
            way[_FIRST, a] = mean
        step = mean - way[_FIRST, a]
        way[_SUM, a] += step
        way[_TILT, a] += way[_COUNTS, _BLOCKS] * step
        way[_SQUARE, a] += step * step
        way[_LAST, a] = step
    way[_COUNTS, _BLOCKS] += 1.0


@compiled
def way_and_spread(way: Way, onset: int, last: int) -> tuple[int, float, float]:
    """End the interval: its blocks, its way and its spread, both in degrees."""
    follow(way, onset, last)
    way[_WHERE, _ONSET] = -1.0
    if way[_COUNTS, _IN_HELD] == 0.0:
        return 0, 0.0, 0.0
    way[_HELD] += way[_PART]
    way[_COUNTS, _IN_HELD] += way[_COUNTS, _IN_PART]
    _add(way)
    n = way[_COUNTS, _BLOCKS]
    moved, square = 0.0, 0.0
    for a in range(3):
        moved += way[_LAST, a] ** 2
        square += way[_SQUARE, a] - way[_SUM, a] ** 2 / n
        if n > 1.0:
            square -= (way[_TILT, a] - 0.5 * (n - 1.0) * way[_SUM, a]) ** 2 / (
                n * (n * n - 1.0) / 12.0
            )
    return int(n), math.sqrt(moved), math.sqrt(max(0.0, square) / n)


@compiled
def pursued(way: Way, onset: int, last: int, rate_hz: float) -> bool:
    """End the interval from `onset` to `last`; says whether it was a pursuit."""
    blocks, moved, spread = way_and_spread(way, onset, last)
    if blocks < _LEAST_BLOCKS or moved < _LEAST_WAY_DEG:
        return False
    return (
        moved >= _LEAST_SPEED_DEG_S * (last - onset + 1) / rate_hz
        and moved >= _WAY_OVER_SPREAD * spread
    )
