"""Saccades as codes, statistics of their n-grams, and the compiled loop over windows.

Codes (Hoppe et al. 2018): 16 directions of large saccades, in sectors of 22.5 deg centred on
multiples of 22.5 deg, and 8 of small ones in sectors of 45 deg. Direction 0 points right, 90 deg
up. Codes 0 to 15 are large, 16 to 23 small.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.features.definitions import SACCADE_CODES


def saccade_codes(jumps: Floats, large_deg: float) -> Ints:
    """The code of each saccade.

    Parameters
    ----------
    jumps : array, shape (saccades, 3)
        Amplitude, x and y (right and down) in degrees.
    large_deg : float
        From this amplitude on a saccade is large.
    """
    direction = np.degrees(np.arctan2(-jumps[:, 2], jumps[:, 1]))
    large = np.mod(np.floor(direction / 22.5 + 0.5), 16)
    small = np.mod(np.floor(direction / 45.0 + 0.5), 8) + 16
    return np.where(jumps[:, 0] >= large_deg, large, small).astype(np.int64)


@compiled
def _mean_var(v: Floats, a: int, b: int) -> tuple[float, float, int]:
    """Mean and variance (ddof 0) of the finite values of v[a:b], and how many they are; zeros where
    none is.
    """
    n, total = 0, 0.0
    for i in range(a, b):
        if not np.isnan(v[i]):
            n += 1
            total += v[i]
    if n == 0:
        return 0.0, 0.0, 0
    mean = total / n
    square = 0.0
    for i in range(a, b):
        if not np.isnan(v[i]):
            square += (v[i] - mean) ** 2
    return mean, square / n, n


@compiled
def _ngram_statistics(
    codes: Ints, a: int, b: int, n: int, scratch: Ints, min_over_all: bool, out: Floats
) -> None:
    """Statistics of the counts of n-grams in codes[a:b] into out[:6]: non-zero, max, min, range,
    mean, variance.
    """
    total = b - a - n + 1
    if total <= 0:
        return
    for i in range(total):
        number = 0
        for k in range(n):
            number = number * SACCADE_CODES + codes[a + i + k]
        scratch[i] = number
    ngrams = scratch[:total]
    ngrams.sort()
    most, least, different, squares, run = 0, total, 0, 0.0, 0
    for i in range(total):
        run += 1
        if i + 1 == total or ngrams[i + 1] != ngrams[i]:
            different += 1
            most, least = max(most, run), min(least, run)
            squares += float(run) * run
            run = 0
    size = float(SACCADE_CODES**n)
    if min_over_all and different < size:
        least = 0
    mean = total / size
    out[0] = different
    out[1] = most
    out[2] = least
    out[3] = most - least
    out[4] = mean
    out[5] = squares / size - mean * mean


@compiled
def window_rows(
    number: int,
    window_ns: int,
    step_ns: int,
    fix_start: Ints,
    fix_end: Ints,
    fix: Floats,
    sac_start: Ints,
    sac_end: Ints,
    amplitude: Floats,
    large: Bools,
    right: Bools,
    codes: Ints,
    blink_start: Ints,
    blink_end: Ints,
    blink_s: Floats,
    min_over_all: bool,
) -> Floats:
    """All windows of a recording, shape (number, 52), in file order.

    Times are nanoseconds from the first window's start, events in order of onset; an event is in a
    window it overlaps. `fix` holds duration, variance of x, variance of y, mean pupil and variance
    of the pupil of each fixation, NaN where unknown.
    """
    out = np.zeros((number, 52))
    seconds = window_ns / 1e9
    scratch = np.empty(len(codes) + 1, dtype=np.int64)
    durations, var_x, var_y = fix[:, 0].copy(), fix[:, 1].copy(), fix[:, 2].copy()
    pupil_mean, pupil_var = fix[:, 3].copy(), fix[:, 4].copy()
    fa = fb = sa = sb = ba = bb = 0
    for w in range(number):
        start = w * step_ns
        end = start + window_ns
        row = out[w]
        while fa < len(fix_end) and fix_end[fa] <= start:
            fa += 1
        while fb < len(fix_start) and fix_start[fb] < end:
            fb += 1
        while sa < len(sac_end) and sac_end[sa] <= start:
            sa += 1
        while sb < len(sac_start) and sac_start[sb] < end:
            sb += 1
        while ba < len(blink_end) and blink_end[ba] <= start:
            ba += 1
        while bb < len(blink_start) and blink_start[bb] < end:
            bb += 1
        fixations, saccades, blinks = fb - fa, sb - sa, bb - ba
        row[0] = fixations / seconds
        row[1] = saccades / seconds
        if fixations > 0:
            row[6] = saccades / fixations
        if saccades > 0:
            n_large = n_right = 0
            top = 0.0
            for i in range(sa, sb):
                n_large += large[i]
                n_right += right[i]
                top = max(top, amplitude[i])
            for k, n in enumerate((saccades - n_large, n_large, n_right, saccades - n_right)):
                row[2 + k] = n / seconds
                row[7 + k] = n / saccades
            row[11], row[12], _ = _mean_var(amplitude, sa, sb)
            row[13] = top
        if fixations > 0:
            row[14], row[15], _ = _mean_var(durations, fa, fb)
            row[16] = durations[fa:fb].max()
            row[17], row[19], _ = _mean_var(var_x, fa, fb)
            row[18], row[20], _ = _mean_var(var_y, fa, fb)
            row[21], row[22], _ = _mean_var(pupil_mean, fa, fb)
            row[23], row[24], _ = _mean_var(pupil_var, fa, fb)
        if blinks > 0:
            row[25], row[26], _ = _mean_var(blink_s, ba, bb)
            row[27] = blinks / seconds
        for n in range(1, 5):
            _ngram_statistics(codes, sa, sb, n, scratch, min_over_all, row[22 + 6 * n : 28 + 6 * n])
    return out
