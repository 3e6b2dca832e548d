"""Noise, smoothing and speed at the tracker's own rate, for the `auto` detector.

Speed is the distance covered over an interval of some ms around the sample, after a light Gaussian;
where the rate is too low for that interval, it is the step that led to the sample.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil.arrays import Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.auto.motion import MEDIAN_SQUARE
from gazeveil.events.trace import FIXATION, SACCADE, UNDEFINED

# Second differences from which a median is certain enough.
_ENOUGH = 100_000


def noise_deg(points: Floats, segments: Ints) -> float:
    """Standard deviation of white noise per direction, from the median second difference, which
    real movement hardly touches; 0 where there is none. Long recordings are looked at here and
    there.
    """
    squares = _second_differences(points, segments, max(1, points.shape[1] // _ENOUGH))
    return math.sqrt(float(np.median(squares)) / MEDIAN_SQUARE) if len(squares) else 0.0


@compiled
def _second_differences(points: Floats, segments: Ints, step: int) -> Floats:
    """Squares of every `step`-th second difference within the segments."""
    result = np.empty(points.shape[1])
    count = 0
    for s in range(len(segments)):
        for i in range(segments[s, 0] + 1, segments[s, 1] - 1, step):
            square = 0.0
            for a in range(len(points)):
                bend = points[a, i + 1] - 2.0 * points[a, i] + points[a, i - 1]
                square += bend * bend
            result[count] = square
            count += 1
    return result[:count]


def smoothing_samples(
    noise: float, rate_hz: float, least: float, speed_noise_deg_s: float
) -> float:
    """Gaussian width in samples, at least `least`, that holds the noise of the speed at
    `speed_noise_deg_s`.

    The derivative of white noise of deviation s after a Gaussian of width w has deviation s / (2
    pi^(1/4) w^(3/2)) per sample.
    """
    return max(
        least,
        (
            (noise * rate_hz / (2 * math.pi**0.25 * speed_noise_deg_s)) ** (2 / 3)
            if noise * rate_hz > speed_noise_deg_s
            else 0.0
        ),
    )


@compiled
def smoothed(points: Floats, segments: Ints, sigma: float) -> Floats:
    """Positions, shape (axes, n), after a Gaussian of `sigma` samples inside each segment; its ends
    are continued as they are.
    """
    result = points.copy()
    reach = math.ceil(3.0 * sigma)
    if sigma < 0.2:
        return result
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    for s in range(len(segments)):
        first, last = segments[s, 0], segments[s, 1] - 1
        for a in range(len(points)):
            row, out = points[a], result[a]
            for i in range(first, last + 1):
                total = 0.0
                if i - reach >= first and i + reach <= last:
                    for k in range(2 * reach + 1):
                        total += weights[k] * row[i - reach + k]
                else:
                    for k in range(2 * reach + 1):
                        total += weights[k] * row[min(max(i - reach + k, first), last)]
                out[i] = total
    return result


@compiled
def speeds(points: Floats, segments: Ints, rate_hz: float, interval_s: float) -> Floats:
    """Speed in deg/s at each sample of the segments, over `interval_s` or the step before the
    sample; 0 elsewhere.
    """
    result = np.zeros(points.shape[1])
    steps = max(1, round(interval_s * rate_hz))
    back, ahead = (steps + 1) // 2, steps // 2
    for s in range(len(segments)):
        first, last = segments[s, 0], segments[s, 1] - 1
        for i in range(first, last + 1):
            lo, hi = max(first, i - back), min(last, i + ahead)
            if hi > lo:
                result[i] = distance(points, lo, hi) * rate_hz / (hi - lo)
    return result


@compiled
def distance(points: Floats, i: int, j: int) -> float:
    """Degrees between two samples."""
    total = 0.0
    for a in range(len(points)):
        step = points[a, j] - points[a, i]
        total += step * step
    return math.sqrt(total)


@compiled
def close_short_fixations(segments: Ints, least: float, codes: Codes) -> None:
    """Fixations of fewer than `least` samples between two saccades become part of them; alone
    between gaps they are UNDEFINED.
    """
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        start = first
        for i in range(first, stop):
            if i + 1 == stop or codes[i + 1] != codes[i]:
                if codes[i] == FIXATION and i + 1 - start < least:
                    before = codes[start - 1] if start > first else UNDEFINED
                    after = codes[i + 1] if i + 1 < stop else UNDEFINED
                    if before == SACCADE and after == SACCADE:
                        codes[start : i + 1] = SACCADE
                    elif before == UNDEFINED and after == UNDEFINED:
                        codes[start : i + 1] = UNDEFINED
                start = i + 1
