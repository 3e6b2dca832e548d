"""What is not gaze: blinks, tracker jumps and looks off the screen, for the `auto` detector.

A blink starts before the tracker loses the eye and ends after it has found it again: the lid drags
the pupil's centre, which looks like one or more fast saccades. The core of an artefact is what
cannot be gaze (lost samples, impossible speed, a place beside the screen); it grows over the
saccades, and what the network takes for no gaze, near it. Two further rules: trackers that code a
lost eye as the corner (0, 0) in pixels are recognised; and a saccade that covers its whole way
within one sample, at a rate at which it could not, is a tracker jump.

A dropout of a few samples is no blink: it is bridged (see :mod:`gazeveil.events.trace`). A somewhat
longer one is a blink only if the lid moved, that is, if bridging it makes a saccade.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Codes, Floats
from gazeveil.compiled import compiled
from gazeveil.events.auto.speed import distance
from gazeveil.events.trace import BLINK, FIXATION, NOISE, SACCADE, runs
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording

#: Core codes: gaze, eye lost, beside the screen, and a short loss that may be either blink or
#: dropout.
GAZE, LOST, BESIDE, SHORT = range(4)


def corner_coded(recording: Recording) -> Bools:
    """Samples that sit exactly in the top-left corner of a screen: (0, 0) in pixels, which trackers
    write for "no eye".
    """
    space = recording.space
    if not isinstance(space, Screen):
        return np.zeros(len(recording), dtype=np.bool_)
    corner_x, corner_y = space.from_px([0.0], [0.0])
    return (np.abs(recording.x_deg - corner_x[0]) < 1e-6) & (
        np.abs(recording.y_deg - corner_y[0]) < 1e-6
    )


def beside_screen(recording: Recording, margin_deg: float) -> Bools:
    """Samples further outside the screen than `margin_deg`; none on a sphere."""
    space = recording.space
    if not isinstance(space, Screen):
        return np.zeros(len(recording), dtype=np.bool_)
    return (np.abs(recording.x_deg) > space.width_deg / 2 + margin_deg) | (
        np.abs(recording.y_deg) > space.height_deg / 2 + margin_deg
    )


@compiled
def mark_cores(
    points: Floats,
    valid: Bools,
    beside: Bools,
    rate_hz: float,
    fastest: float,
    interval_s: float,
    dropout: float,
    short: float,
) -> Codes:
    """Core codes per sample; lost runs of at most `dropout` samples stay GAZE, those of at most
    `short` become SHORT.

    Speed above `fastest` over `interval_s` (at least one step) is impossible: the samples at both
    ends of it are LOST.
    """
    n = len(valid)
    cores = np.zeros(n, dtype=np.int8)
    start = -1
    for i in range(n + 1):
        gone = i < n and not valid[i]
        if gone and start < 0:
            start = i
        elif not gone and start >= 0:
            if i - start > dropout:
                cores[start:i] = SHORT if i - start <= short else LOST
            start = -1
        if i < n and valid[i] and beside[i]:
            cores[i] = BESIDE
    span = max(1, int(interval_s * rate_hz))
    limit = fastest * span / rate_hz
    for i in range(span, n):
        j = i - span
        if valid[i] and valid[j] and distance(points, j, i) > limit:
            cores[j : i + 1] = LOST
    return cores


def settle_short(codes: Codes, reach: int, cores: Codes) -> None:
    """SHORT runs with a saccade or noise in them or within `reach` samples become LOST, the others
    GAZE.
    """
    moved = (codes == SACCADE) | (codes == NOISE)
    for first, stop in runs(cores == SHORT):
        near = moved[max(0, first - reach) : stop + reach]
        cores[first:stop] = LOST if near.any() else GAZE


def mark_jumps(points: Floats, share: float, least_deg: float, codes: Codes) -> None:
    """Saccades of at least `least_deg` that cover more than `share` of their way in one step become
    NOISE.
    """
    for first, stop in runs(codes == SACCADE):
        path = points[:, first:stop]
        way = float(np.linalg.norm(path[:, -1] - path[:, 0]))
        if way >= least_deg and (np.linalg.norm(np.diff(path), axis=0) > share * way).any():
            codes[first:stop] = NOISE


@compiled
def grow_artefacts(
    cores: Codes,
    join: int,
    near_lost: int,
    near_beside: int,
    flank: int,
    longest_blink: float,
    codes: Codes,
) -> None:
    """Cores at most `join` samples apart become one artefact, which takes in the saccades near it,
    again and again.

    `near_lost` and `near_beside` are the reach in samples; what begins more than `flank` samples
    from the core is left alone. An artefact with a LOST core of at most `longest_blink` samples is
    a BLINK, any other NOISE.
    """
    n = len(codes)
    i = 0
    while i < n:
        if cores[i] == GAZE:
            i += 1
            continue
        first, last, lost = i, i, cores[i] == LOST
        j = i + 1
        while j < n and j - last <= join + 1:
            if cores[j] != GAZE:
                last = j
                lost = lost or cores[j] == LOST
            j += 1
        reach = near_lost if lost else near_beside
        first, last = _absorb(codes, first, last, reach, flank)
        code = BLINK if lost and last - first + 1 <= longest_blink else NOISE
        codes[first : last + 1] = code
        i = last + 1


@compiled
def _absorb(codes: Codes, first: int, last: int, reach: int, flank: int) -> tuple[int, int]:
    n = len(codes)
    least, most = first - flank, last + flank
    k, calm = first - 1, 0
    while k >= 0 and calm <= reach and (k >= least or calm == 0):
        if codes[k] == FIXATION:
            calm += 1
        elif k >= least or codes[k] == codes[k + 1]:
            first, calm = k, 0
        else:
            break
        k -= 1
    k, calm = last + 1, 0
    while k < n and calm <= reach and (k <= most or calm == 0):
        if codes[k] == FIXATION:
            calm += 1
        elif k <= most or codes[k] == codes[k - 1]:
            last, calm = k, 0
        else:
            break
        k += 1
    return first, last
