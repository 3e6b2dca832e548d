"""Two speed thresholds for saccades, Dorr's test for fixations, and the blink rule (Dorr et al.
2010; Agtzidis, Startsev, Dorr 2019).

Saccades: remember where the speed last rose above `onset_slow`; once it exceeds `onset_fast`,
everything since then is a saccade. It ends when the speed falls below `offset`, after 200 ms, or
when the mean speed since its onset falls below `onset_slow`. Speeds above 1031.25 deg/s, low
confidence and places more than a tenth of the screen outside it start nothing. Saccades under 15 ms
are dropped.

Fixations, in the intervals between saccades: at least 100 ms; speed from the first to the last
sample at most 5 deg/s; no sample further from their mean than 0.55 deg (1 + 0.05 log2(1 +
milliseconds beyond 100)). Intervals over 500 ms that spread over more than 20 deg are left out. A
window of 100 ms moves through the interval until it passes, then grows, by a twentieth of its
length at a time and at last sample by sample, while it still passes.

Blinks: a run of confidence below 0.5 (or of lost samples) that lasts 20 ms or more, or that has a
saccade within 40 ms, is a blink together with the saccades within 40 ms on either side; beyond 500
ms it is noise. What nothing claims is `undefined`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.events.auto.network import distance
from gazeveil.events.trace import (
    BLINK,
    BLINK_S,
    FIXATION,
    NOISE,
    SACCADE,
    UNDEFINED,
    BridgedGaze,
    runs,
    to_events,
)
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, from_tangents
from gazeveil.gaze.recording import Recording

_FASTEST_DEG_S = 1031.25
_MIN_S, _MAX_S, _INTERVAL_S = 0.015, 0.2, 0.004
_MIN_CONFIDENCE, _BLINK_CONFIDENCE = 0.25, 0.5
_BLINK_REACH_S, _BLINK_MIN_S = 0.04, 0.02
_FRAME_SHARE = 0.1


class TwoThresholds(NamedTuple):
    """Speeds in deg/s of the saccade stage."""

    onset_fast: float
    onset_slow: float
    offset: float


#: Published values: gaze in the world (eye plus head), and eye in head.
PUBLISHED = {"E+H": TwoThresholds(150.0, 35.0, 35.0), "FOV": TwoThresholds(160.0, 70.0, 60.0)}


def detect_dorr(
    recording: Recording,
    signal: str = "E+H",
    onset_fast_deg_s: float | None = None,
    onset_slow_deg_s: float | None = None,
    offset_deg_s: float | None = None,
) -> Events:
    """Saccades, fixations and blinks after Dorr.

    Parameters
    ----------
    recording : Recording
        Any space and rate.
    signal : {"E+H", "FOV"}
        Gaze in the world, or the eye in the head with its own thresholds; the latter needs
        `eye_in_head_deg`.
    onset_fast_deg_s, onset_slow_deg_s, offset_deg_s : float, optional
        Replace the published thresholds of the signal.

    Returns
    -------
    Events
        `saccade`, `fixation`, `blink`, `noise` and `undefined`: a partition of the recording.

    Raises
    ------
    DataError
        For `signal="FOV"` without eye-in-head data.
    """
    published = PUBLISHED[checks.one_of("detect dorr", "signal", signal, PUBLISHED)]
    given = {
        "onset_fast_deg_s": onset_fast_deg_s,
        "onset_slow_deg_s": onset_slow_deg_s,
        "offset_deg_s": offset_deg_s,
    }
    limits = TwoThresholds(
        *(
            usual if value is None else checks.positive("detect dorr", name, value)
            for (name, value), usual in zip(given.items(), published, strict=True)
        )
    )
    if limits.onset_fast < limits.onset_slow:
        checks.refuse(
            "detect dorr",
            "onset_fast_deg_s",
            f"at least onset_slow_deg_s ({limits.onset_slow:g})",
            limits.onset_fast,
        )
    trace, points = signal_of(recording, signal)
    if len(trace.segments):
        mark_dorr(recording, trace, points, limits)
        _fixations(points, trace.segments, trace.rate_hz, trace.codes)
    return to_events(trace.codes, recording.t_ns, trace.cuts, f"dorr:{signal}")


def signal_of(recording: Recording, signal: str) -> tuple[BridgedGaze, Floats]:
    """The trace of gaze, and positions in degrees, shape (axes, n), of the signal, bridged like
    gaze.
    """
    if signal == "E+H":
        trace = BridgedGaze.of(recording)
        return trace, np.stack(trace.axes)
    if recording.eye_in_head_deg is None:
        raise DataError(
            f"The signal 'FOV' needs eye-in-head data, which {recording.title} does not have. Use"
            " signal='E+H'."
        )
    eye = recording.eye_in_head_deg
    trace = BridgedGaze.of(recording, np.isfinite(eye[:, 0]) & np.isfinite(eye[:, 1]))
    vectors = np.degrees(from_tangents(eye[:, 0], eye[:, 1])).T
    return trace, np.stack([trace.bridge(np.ascontiguousarray(row)) for row in vectors])


def mark_dorr(
    recording: Recording, trace: BridgedGaze, points: Floats, limits: TwoThresholds
) -> None:
    """Write SACCADE, BLINK and NOISE into the trace's codes; the rest of its segments stays
    UNDEFINED.
    """
    rate = trace.rate_hz
    poor = ~recording.valid
    trusted = np.ones(len(recording), dtype=np.bool_)
    if recording.confidence is not None:
        poor = poor | (recording.confidence < _BLINK_CONFIDENCE)
        trusted &= ~(recording.confidence < _MIN_CONFIDENCE)
    if isinstance(recording.space, Screen):
        half_x, half_y = (
            (0.5 + _FRAME_SHARE) * recording.space.width_deg,
            (0.5 + _FRAME_SHARE) * recording.space.height_deg,
        )
        outside = (np.abs(recording.x_deg) > half_x) | (np.abs(recording.y_deg) > half_y)
        trusted &= ~outside
        trace.codes[outside & recording.valid] = NOISE
    mark_two_thresholds(points, trusted, trace.segments, rate, limits, trace.codes)
    _blinks(
        poor, round(_BLINK_REACH_S * rate), _BLINK_MIN_S * rate - 1e-6, BLINK_S * rate, trace.codes
    )


@compiled
def mark_two_thresholds(
    points: Floats,
    trusted: Bools,
    segments: Ints,
    rate_hz: float,
    limits: TwoThresholds,
    codes: Codes,
) -> None:
    """Write SACCADE where the two-threshold machine finds one."""
    fast, slow, offset = limits
    span = max(1, round(_INTERVAL_S * rate_hz))
    least, most = _MIN_S * rate_hz - 1e-6, _MAX_S * rate_hz
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        # Where the speed last rose above slow, whether it then exceeded fast, and whether it was
        # below slow since the last saccade.
        rise, inside, armed = -1, False, True
        total = 0.0
        for i in range(first + 1, stop + 1):
            # One step past the end closes a saccade that is still open.
            speed = 0.0
            if i < stop and trusted[i]:
                back = max(first, i - span)
                speed = distance(points, back, i) * rate_hz / (i - back)
            over = i == stop or not trusted[i]
            if inside:
                length = i - rise
                total += speed
                if over or speed < offset or length >= most or total / (length + 1) < slow:
                    if length >= least:
                        codes[rise:i] = SACCADE
                    inside, armed = False, False
                    rise = -1
            if not inside:
                if over or speed < slow:
                    rise, armed = -1, True
                elif speed > _FASTEST_DEG_S:
                    rise = -1
                elif armed:
                    if rise < 0:
                        rise, total = i, 0.0
                    total += speed
                    if speed > fast:
                        inside = True


def _blinks(poor: Bools, reach: int, least: float, longest: float, codes: Codes) -> None:
    n, done = len(poor), 0
    for begin, stop in runs(poor):
        first = began = max(begin, done)
        last = ended = stop - 1
        if first >= stop:
            continue
        low = max(0, first - reach)
        before = np.flatnonzero(codes[low:first] == SACCADE)
        after = np.flatnonzero(codes[stop : last + reach + 1] == SACCADE)
        if len(before):
            began = low + int(before[0])
            while began > 0 and codes[began - 1] == SACCADE:
                began -= 1
        if len(after):
            ended = stop + int(after[-1])
            while ended + 1 < n and codes[ended + 1] == SACCADE:
                ended += 1
        if stop - first >= least or began < first or ended > last:
            codes[began : ended + 1] = BLINK if ended - began + 1 <= longest else NOISE
            done = ended + 1


@compiled
def _fixations(points: Floats, segments: Ints, rate_hz: float, codes: Codes) -> None:
    least = max(2, math.ceil(0.1 * rate_hz - 1e-6))
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        i = first
        while i < stop:
            if codes[i] != UNDEFINED:
                i += 1
                continue
            start = i
            while i < stop and codes[i] == UNDEFINED:
                i += 1
            if i - start > 0.5 * rate_hz and _spread(points, start, i) > 20.0:
                continue
            while start + least <= i:
                if not _is_fixation(points, start, start + least, rate_hz):
                    start += 1
                    continue
                end = start + least
                step = max(1, (end - start) // 20)
                while end < i:
                    wider = min(i, end + step)
                    if _is_fixation(points, start, wider, rate_hz):
                        end = wider
                        step = max(1, (end - start) // 20)
                    elif step > 1:
                        step //= 2
                    else:
                        break
                codes[start:end] = FIXATION
                start = end


@compiled
def _is_fixation(points: Floats, start: int, stop: int, rate_hz: float) -> bool:
    n = stop - start
    if distance(points, start, stop - 1) * rate_hz > 5.0 * (n - 1):
        return False
    limit = 0.55 * (1.0 + 0.05 * math.log2(max(0.0, 1000.0 * n / rate_hz - 100.0) + 1.0))
    axes = len(points)
    mean = np.zeros(axes)
    for a in range(axes):
        for k in range(start, stop):
            mean[a] += points[a, k]
        mean[a] /= n
    for k in range(start, stop):
        square = 0.0
        for a in range(axes):
            square += (points[a, k] - mean[a]) ** 2
        if square > limit * limit:
            return False
    return True


@compiled
def _spread(points: Floats, start: int, stop: int) -> float:
    """Diagonal of the bounding box in degrees."""
    square = 0.0
    for a in range(len(points)):
        square += (points[a, start:stop].max() - points[a, start:stop].min()) ** 2
    return math.sqrt(square)
