"""I-S5T: five speed thresholds on gaze, head and eye, with two tiers of labels (Agtzidis, Startsev,
Dorr 2019).

Saccades, blinks and noise come from :mod:`gazeveil.events.dorr` with the thresholds for gaze in the
world (150, 35, 35 deg/s). Each interval between them is cut into equal windows of about 100 ms. The
speed of a window is the distance from its first to its last sample over the time between them: g of
gaze in the world, h of the head, e of the eye in the head. With low = 10 deg/s and high = 65 deg/s,
both times (1 + h / 60 deg/s), because gaze is noisier while the head moves:

========== ====== ====== ========= ============
g          h      e      primary   secondary
========== ====== ====== ========= ============
below low  < 7    any    fixation
below low  >= 7   >= 7   fixation  vor
below low  >= 7   < 7    fixation
low..high  < 7    any    pursuit
low..high  >= 7   < 7    pursuit   head_pursuit
low..high  >= 7   >= 7   pursuit   vor
above high any    any    noise
========== ====== ====== ========= ============

Optokinetic nystagmus (:mod:`gazeveil.events.is5t`) is added to the second tier: `okn`, or `okn+vor`
where both hold. Without head data h is 0 and the eye is gaze itself, so the second tier can only
say `okn`. The window length, the upper threshold and the table are inferred from the published
label definitions; the paper's own code is not public in full.

Optokinetic nystagmus: slow phases that follow a moving field, and fast phases that jump back
(Agtzidis, Startsev, Dorr 2019).

For two consecutive saccades with directions s1, s2 and the slow phase d between them: angle(s1, s2)
< 70 deg, angle(s1, d) > 90 deg, angle(s2, d) > 90 deg, and the slow phase is faster than 10 deg/s.
Only runs of at least two such intervals count. The slow phases and the saccades that enclose them
are OKN; samples with confidence below 1 are left out.
"""

from __future__ import annotations

import math

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.auto.speed import distance
from gazeveil.events.dorr import PUBLISHED, mark_dorr, signal_of
from gazeveil.events.trace import FIXATION, NOISE, PURSUIT, SACCADE, UNDEFINED, to_events
from gazeveil.gaze.events import WORD, Events
from gazeveil.gaze.geometry import Sphere, from_tangents
from gazeveil.gaze.recording import Recording

_SAME_DEG, _OPPOSITE_DEG, _SLOW_DEG_S = 70.0, 90.0, 10.0


def mark_okn(points: Floats, saccades: Ints, rate_hz: float, doubtful: Bools) -> Bools:
    """Samples of optokinetic nystagmus.

    Parameters
    ----------
    points : array of float64, shape (axes, n)
        The eye in the head, in degrees (gaze, where the head does not move or is not known).
    saccades : array of int64, shape (k, 2)
        First and last sample of each saccade, in order; consecutive ones in one stretch without a
        long gap, see `doubtful`.
    rate_hz : float
        Nominal rate.
    doubtful : array of bool, shape (n,)
        Samples with confidence below 1 or lost: never OKN, and an interval that is nothing but
        these breaks a run.

    Returns
    -------
    array of bool, shape (n,)
    """
    result = np.zeros(points.shape[1], dtype=np.bool_)
    _mark(points, saccades, rate_hz, doubtful, result)
    return result & ~doubtful


@compiled
def _mark(points: Floats, saccades: Ints, rate_hz: float, doubtful: Bools, result: Bools) -> None:
    run = 0  # consecutive intervals that fit, up to the one before saccade j
    for j in range(1, len(saccades) + 1):
        fits = j < len(saccades) and _fits(points, saccades, j, rate_hz, doubtful)
        if fits:
            run += 1
            continue
        if run >= 2:
            result[saccades[j - 1 - run, 0] : saccades[j - 1, 1] + 1] = True
        run = 0


@compiled
def _fits(points: Floats, saccades: Ints, j: int, rate_hz: float, doubtful: Bools) -> bool:
    end, start = saccades[j - 1, 1], saccades[j, 0]
    if start <= end + 1 or doubtful[end + 1 : start].all():
        return False
    axes = len(points)
    before, after, slow = np.empty(axes), np.empty(axes), np.empty(axes)
    for a in range(axes):
        before[a] = points[a, end] - points[a, saccades[j - 1, 0]]
        after[a] = points[a, saccades[j, 1]] - points[a, start]
        slow[a] = points[a, start] - points[a, end]
    way = np.sqrt((slow * slow).sum())
    # A gap inside makes the way NaN, which fits nothing.
    if not way * rate_hz > _SLOW_DEG_S * (start - end):
        return False
    return (
        _angle(before, after) < _SAME_DEG
        and _angle(before, slow) > _OPPOSITE_DEG
        and _angle(after, slow) > _OPPOSITE_DEG
    )


@compiled
def _angle(u: Floats, v: Floats) -> float:
    size = np.sqrt((u * u).sum() * (v * v).sum())
    if not size > 0:
        return np.nan
    return np.degrees(np.arccos(min(1.0, max(-1.0, (u * v).sum() / size))))


_NONE, _VOR, _HEAD_PURSUIT, _OKN, _OKN_VOR = range(5)
_SECONDARY = np.array(["", "vor", "head_pursuit", "okn", "okn+vor"], dtype=WORD)


def detect_is5t(
    recording: Recording,
    low_deg_s: float = 10.0,
    high_deg_s: float = 65.0,
    head_deg_s: float = 7.0,
    head_scale_deg_s: float = 60.0,
    window_ms: float = 100.0,
) -> Events:
    """Events with primary and secondary labels.

    Parameters
    ----------
    recording : Recording
        With `head_deg` and `eye_in_head_deg` where they are known; it works without.
    low_deg_s, high_deg_s : float
        Gaze speed that separates fixation from pursuit, and pursuit from noise, while the head is
        still.
    head_deg_s : float
        Speed from which head and eye count as moving.
    head_scale_deg_s : float
        Head speed that doubles the thresholds for gaze.
    window_ms : float
        Length of the windows.

    Returns
    -------
    Events
        A partition; `secondary` holds the second tier.
    """
    low = checks.positive("detect is5t", "low_deg_s", low_deg_s)
    high = checks.positive("detect is5t", "high_deg_s", high_deg_s)
    if high <= low:
        checks.refuse("detect is5t", "high_deg_s", f"above low_deg_s ({low:g})", high_deg_s)
    turning = checks.positive("detect is5t", "head_deg_s", head_deg_s)
    scale = checks.positive("detect is5t", "head_scale_deg_s", head_scale_deg_s)
    window = checks.positive("detect is5t", "window_ms", window_ms)
    trace, gaze = signal_of(recording, "E+H")
    codes = trace.codes
    second = np.zeros(len(recording), dtype=np.int8)
    if len(trace.segments):
        mark_dorr(recording, trace, gaze, PUBLISHED["E+H"])
        head, eye = _head_and_eye(recording)
        eye_points = gaze if eye is None else np.stack([trace.bridge(row) for row in eye])
        head_points = np.zeros_like(gaze) if head is None else head
        with_head = head is not None
        limits = (low, high, turning, scale)
        _windows(
            gaze,
            head_points,
            eye_points,
            with_head,
            trace.segments,
            trace.rate_hz,
            window / 1000,
            limits,
            codes,
            second,
        )
        doubtful = ~recording.valid
        if recording.confidence is not None:
            doubtful = doubtful | (recording.confidence < 1)
        saccades = _runs(codes == SACCADE)
        nystagmus = mark_okn(eye_points, saccades, trace.rate_hz, doubtful)
        second[nystagmus] = np.where(second[nystagmus] == _VOR, _OKN_VOR, _OKN)
    return to_events(codes, recording.t_ns, trace.cuts, "is5t", _SECONDARY[second])


def _head_and_eye(recording: Recording) -> tuple[Floats | None, Floats | None]:
    """Head and eye-in-head directions in degrees, each of shape (3, n), or None."""
    head = eye = None
    if recording.head_deg is not None:
        head = np.ascontiguousarray(
            np.degrees(Sphere().vectors(recording.head_deg[:, 0], recording.head_deg[:, 1])).T
        )
    if recording.eye_in_head_deg is not None:
        eye = np.ascontiguousarray(
            np.degrees(
                from_tangents(recording.eye_in_head_deg[:, 0], recording.eye_in_head_deg[:, 1])
            ).T
        )
    return head, eye


def _runs(mask: Bools) -> Ints:
    """First and last index of each run of True, shape (k, 2)."""
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1), axis=1)


@compiled
def _windows(
    gaze: Floats,
    head: Floats,
    eye: Floats,
    with_head: bool,
    segments: Ints,
    rate_hz: float,
    window_s: float,
    limits: tuple[float, float, float, float],
    codes: Codes,
    second: Codes,
) -> None:
    low, high, turning, scale = limits
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
            n = i - start
            if n < 2:
                continue  # one sample has no speed
            parts = max(1, min(n // 2, round(n / (window_s * rate_hz))))
            for p in range(parts):
                a, b = start + p * n // parts, start + (p + 1) * n // parts - 1
                g = distance(gaze, a, b) * rate_hz / (b - a)
                h = distance(head, a, b) * rate_hz / (b - a) if with_head else 0.0
                if math.isnan(h):
                    h = 0.0  # the head was lost: as if there were none
                e = distance(eye, a, b) * rate_hz / (b - a)
                grown = 1.0 + h / scale
                code, tier = NOISE, _NONE
                if g < low * grown:
                    code = FIXATION
                    tier = _VOR if h >= turning and e >= turning else _NONE
                elif g <= high * grown:
                    code = PURSUIT
                    if h >= turning:
                        tier = _VOR if e >= turning else _HEAD_PURSUIT
                codes[a : b + 1] = code
                second[a : b + 1] = tier
