"""Where saccades begin and end: the network says that there is one, the speed at the tracker's own
rate says from which sample to which.

Two conventions, as human labellers have them. Where the rate shows the settling of the eye
(`fine`), a saccade ends when the eye no longer p_saccade on in the saccade's direction; the
oscillation that follows is an event of its own. At lower rates the settling cannot be told from
the saccade and belongs to it: it ends where the speed falls below a bound, and some ms later.
Where noise hides the speed, the network's own boundaries stay.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Bools, Codes, Floats, Ints, Singles
from gazeveil.compiled import compiled
from gazeveil.events.auto.network import P_FIXATION, P_OTHER, P_PSO, P_PURSUIT, P_SACCADE
from gazeveil.events.trace import FIXATION, NOISE, PSO, SACCADE

# At most so many saccades in one run of the network's.
_MOST = 5


def saccade_probabilities(
    probabilities: Singles, merge: int, split: int, segments: Ints, codes: Codes
) -> tuple[Floats, Floats]:
    """Chances of a saccade or its settling, and of the settling alone, at each sample, given that
    it is gaze; what is most likely something else becomes NOISE, the rest of the segments FIXATION.
    """
    rows = probabilities[np.arange(len(codes)) * split // merge]
    moving = rows[:, P_SACCADE] + rows[:, P_PSO]
    resting = rows[:, P_FIXATION] + rows[:, P_PURSUIT]
    other = rows[:, P_OTHER] > np.maximum(moving, resting)
    inside = np.zeros(len(codes), dtype=np.bool_)
    for first, stop in segments:
        inside[first:stop] = True
    codes[inside] = np.where(other, NOISE, FIXATION)[inside]
    gaze = inside & ~other
    chances = (np.where(gaze, side / (moving + resting), 0.0) for side in (moving, rows[:, P_PSO]))
    p_saccade, p_pso = (np.asarray(side, dtype=np.float64) for side in chances)
    return p_saccade, p_pso


@compiled
def mark_coarse(
    p_saccade: Floats,
    speed: Floats,
    lost: Bools,
    segments: Ints,
    limits: tuple[float, float, float, float],
    counts: tuple[int, int, int],
    codes: Codes,
) -> None:
    """Write SACCADE where the settling belongs to it.

    `limits` are the probability from which there is a saccade, its least peak, and the speeds at
    which it begins and ends in deg/s (0: the network's boundaries stay); `counts` are the tail, the
    most by which boundaries move outwards, and the longest rest of a run that is dropped, in
    samples.
    """
    probability, peak, onset, offset = limits
    tail, margin, rest = counts
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        i = first
        while i < stop:
            if lost[i] or p_saccade[i] <= probability:
                i += 1
                continue
            begin, top = i, i
            while i < stop and not lost[i] and p_saccade[i] > probability:
                if speed[i] > speed[top]:
                    top = i
                i += 1
            end = i - 1
            if onset == 0.0:
                codes[begin : end + 1] = SACCADE
                continue
            if speed[top] < peak:
                continue
            a, b = top, top
            while (
                a > max(first, begin - margin)
                and not lost[a - 1]
                and speed[a - 1] >= onset
                and codes[a - 1] == FIXATION
            ):
                a -= 1
            while b + 1 < min(stop, end + margin) and not lost[b + 1] and speed[b + 1] >= offset:
                b += 1
            reached = b
            while reached + 1 < stop and reached < b + tail and not lost[reached + 1]:
                reached += 1
            b = reached
            # A long rest of the run is another saccade, too close to be told apart.
            if a - begin > rest:
                a = begin
            if end - b > rest:
                b = end
            codes[a : b + 1] = SACCADE
            i = max(i, b + 1)


@compiled
def mark_fine(
    points: Floats,
    p_saccade: Floats,
    p_pso: Floats,
    lost: Bools,
    segments: Ints,
    rate_hz: float,
    limits: tuple[float, float, float, float, float],
    counts: tuple[int, int, int, int],
    codes: Codes,
) -> None:
    """Write SACCADE and PSO where the rate shows both.

    `limits` are the probability from which there may be a saccade, its least peak, the speed at
    which it begins, the speed in its own direction at which it ends (deg/s), and the share of the
    run's peak that another saccade of the run needs; `counts` are the most by which boundaries move
    outwards, half the stretch that gives a saccade's direction, the least distance of two saccades,
    and the least length of an oscillation, in samples.
    """
    probability, peak, onset, ahead, second = limits
    margin, reach, apart, least = counts
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        i = first
        while i < stop:
            if lost[i] or p_saccade[i] <= probability:
                i += 1
                continue
            begin = i
            while i < stop and not lost[i] and p_saccade[i] > probability:
                i += 1
            end = i - 1
            low, high = max(first, begin - margin), min(stop - 1, end + margin)
            while low < begin and (lost[low] or codes[low] != FIXATION):
                low += 1
            # Where something was found, and a strip beside it in which nothing more is looked for.
            taken = np.zeros(high - low + 1, dtype=np.bool_)
            begins, ends, top = high + 1, low - 1, 0.0
            for _ in range(_MOST):
                best, fastest = -1, 0.0
                for k in range(begin, end + 1):
                    if not taken[k - low]:
                        v = _speed(points, k, first, stop, rate_hz)
                        if v > fastest:
                            best, fastest = k, v
                if best < 0 or fastest < max(peak, second * top):
                    break
                if top > 0.0 and 2.0 * p_pso[best] > p_saccade[best]:
                    break
                a = best
                while (
                    a > low
                    and not taken[a - 1 - low]
                    and _speed(points, a - 1, first, stop, rate_hz) >= onset
                ):
                    a -= 1
                b = _end(points, best, high, first, stop, rate_hz, reach, ahead, lost)
                top = max(top, fastest)
                codes[a : b + 1] = SACCADE
                taken[max(0, a - apart - low) : b + 1 + apart - low] = True
                begins, ends = min(begins, a), max(ends, b)
            # What lies between two saccades of a run, and behind the last one, is settling.
            run = 0
            for k in range(begins, max(end, ends) + 1):
                if codes[k] == FIXATION:
                    codes[k] = PSO
            for k in range(begins, max(end, ends) + 2):
                if k <= max(end, ends) and codes[k] == PSO:
                    run += 1
                elif run > 0:
                    if run < least:
                        codes[k - run : k] = FIXATION
                    run = 0
            i = max(i, ends + 1)


@compiled
def _end(
    points: Floats,
    top: int,
    high: int,
    first: int,
    stop: int,
    rate_hz: float,
    reach: int,
    ahead: float,
    lost: Bools,
) -> int:
    """Last sample after `top` at which the eye still p_saccade on in its direction at `top`."""
    axes = len(points)
    before, after = max(first, top - reach), min(stop - 1, top + reach)
    length = 0.0
    for a in range(axes):
        length += (points[a, after] - points[a, before]) ** 2
    length = max(math.sqrt(length), 1e-9)
    b = top
    while b + 1 <= high and not lost[b + 1]:
        lo, hi = max(first, b), min(stop - 1, b + 2)
        along = 0.0
        for a in range(axes):
            way = points[a, after] - points[a, before]
            along += (points[a, hi] - points[a, lo]) * way
        if along * rate_hz / (hi - lo) < ahead * length:
            break
        b += 1
    return b


@compiled
def _speed(points: Floats, i: int, first: int, stop: int, rate_hz: float) -> float:
    lo, hi = max(first, i - 1), min(stop - 1, i + 1)
    if hi == lo:
        return 0.0
    square = 0.0
    for a in range(len(points)):
        square += (points[a, hi] - points[a, lo]) ** 2
    return math.sqrt(square) * rate_hz / (hi - lo)
