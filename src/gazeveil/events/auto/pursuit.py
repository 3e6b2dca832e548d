"""Fixation or smooth pursuit: decided for each interval between saccades, with the share of pursuit
of the recording itself.

The network gives the odds of pursuit against fixation sample by sample. They lean towards what its
training recordings held, an eighth of pursuit; people who look at moving dots pursue most of the
time, and the same drift means more there. So the share of pursuit is estimated from the recording:
intervals vote with their mean log odds, tempered since neighbouring samples do not speak
independently, and the share moves from :data:`SHARE` as far as the votes carry it against
:data:`PRIOR_S` seconds that keep it there (expectation maximisation of the share of a mixture,
Saerens et al. 2002). The odds then move with the share, and the interval is what its mean says.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Codes, Floats, Ints, Singles
from gazeveil.compiled import compiled
from gazeveil.events.auto.network import P_FIXATION, P_PURSUIT
from gazeveil.events.auto.speed import distance
from gazeveil.events.trace import FIXATION, PURSUIT

#: Share of pursuit that a recording has without evidence, and the seconds that speak for it.
SHARE = 0.12
PRIOR_S = 2.0

#: Slower recordings show too little of an interval: their share may fall, not rise.
SHARE_FROM_HZ = 200.0

#: Log odds are divided by this before they vote.
TEMPERATURE = 1.5

#: Longest part of an interval that is decided as one, in seconds.
PART_S = 1.0

#: Gaze that stays within so many degrees rests, however smoothly it drifts.
AREA_DEG = 0.3

#: Chances count at least this much.
LEAST_PROBABILITY = 1e-4


@compiled
def mark_pursuit(
    points: Floats, probabilities: Singles, merge: int, split: int, rate_hz: float, codes: Codes
) -> None:
    """Turn the parts of FIXATION that pursue into PURSUIT."""
    parts = _parts(codes, max(1, int(PART_S * rate_hz)))
    count = len(parts)
    if count == 0:
        return
    odds, length = np.empty(count), np.empty(count)
    for p in range(count):
        total = 0.0
        begin, end = parts[p, 0] * split // merge, (parts[p, 1] - 1) * split // merge
        for g in range(begin, end + 1):
            pursues, fixates = probabilities[g, P_PURSUIT], probabilities[g, P_FIXATION]
            total += np.log((pursues + LEAST_PROBABILITY) / (fixates + LEAST_PROBABILITY))
        odds[p] = total / (end + 1 - begin)
        length[p] = (parts[p, 1] - parts[p, 0]) / rate_hz
    shift = TEMPERATURE * share_shift(odds, length)
    if rate_hz < SHARE_FROM_HZ:
        shift = min(shift, 0.0)
    for p in range(count):
        if odds[p] + shift > 0.0 and _exceeds_area(points, parts[p, 0], parts[p, 1]):
            codes[parts[p, 0] : parts[p, 1]] = PURSUIT


@compiled
def share_shift(odds: Floats, length_s: Floats) -> float:
    """By how much the log odds of the share of pursuit differ from those of :data:`SHARE`."""
    usual = np.log(SHARE / (1.0 - SHARE))
    shift, whole = 0.0, length_s.sum() + PRIOR_S
    for _ in range(100):
        pursued = PRIOR_S * SHARE
        for p in range(len(odds)):
            pursued += length_s[p] / (1.0 + np.exp(-(odds[p] / TEMPERATURE + shift)))
        share = pursued / whole
        moved = np.log(share / (1.0 - share)) - usual
        if abs(moved - shift) < 1e-4:
            return moved
        shift = moved
    return shift


@compiled
def _exceeds_area(points: Floats, first: int, stop: int) -> bool:
    """Whether gaze gets further than :data:`AREA_DEG` from where it was."""
    furthest = 0.0
    for i in range(first + 1, stop):
        furthest = max(furthest, distance(points, first, i))
    return furthest > AREA_DEG


@compiled
def _parts(codes: Codes, longest: int) -> Ints:
    """First and one past the last sample of equal parts of the runs of FIXATION."""
    n, count = len(codes), 0
    result = np.empty((n // 2 + n // longest + 2, 2), dtype=np.int64)
    i = 0
    while i < n:
        if codes[i] != FIXATION:
            i += 1
            continue
        first = i
        while i < n and codes[i] == FIXATION:
            i += 1
        pieces = (i - first + longest - 1) // longest
        for k in range(pieces):
            result[count, 0] = first + (i - first) * k // pieces
            result[count, 1] = first + (i - first) * (k + 1) // pieces
            count += 1
    return result[:count]
