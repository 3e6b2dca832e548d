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

Optokinetic nystagmus (below) is added to the second tier: `okn`, or `okn+vor`
where both hold. Without head data h is 0 and the eye is gaze itself, so the second tier can only
say `okn`. The window length, the upper threshold and the table are inferred from the published
label definitions; the paper's own code is not public in full.

Optokinetic nystagmus: slow phases that follow a moving field, and fast phases that jump back
(Agtzidis, Startsev, Dorr 2019).

For two consecutive saccades with directions s1, s2 and the slow phase d between them: angle(s1, s2)
< 70 deg, angle(s1, d) > 90 deg, angle(s2, d) > 90 deg, and the slow phase is faster than 10 deg/s.
Only runs of at least two such intervals count. The slow phases and the saccades that enclose them
are OKN; samples with confidence below 1 are left out.

I-VT: a sample belongs to a saccade when gaze is as fast as a threshold (Salvucci and Goldberg
2000).

Two published settings:

* `george`: George and Routray 2016 as Schroeder et al. (CHI 2020) released it. Savitzky-Golay, 15
  samples, order 6, on each axis; speed = length of the first difference times the rate; 50 deg/s;
  fixations under 100 ms become part of the saccade around them; then saccades under 12 ms are
  discarded, that is, become part of the fixation around them.
* `ren2024`: the same with 30 deg/s and 200 ms.

The events partition the recording. A short fixation at the very start or end joins the neighbouring
saccade; a stretch between two long gaps that is too short for a fixation and holds no saccade is
`undefined`. A duration is the number of samples over the rate.

The frame of 15 samples spans 60 ms at the 250 Hz it was chosen for. Where it would span more than
150 ms (below 100 Hz) it would smear saccades over whole fixations, so there, and in stretches
shorter than the frame, positions are not smoothed; `smooth=True` or `smooth=False` overrule that
rate limit.

I-DT: a fixation is a window of samples that stay close together (Salvucci and Goldberg 2000).

Begin with a window of the shortest fixation. While its dispersion is above the threshold, move it
on by one sample; once it is not, let it grow until the next sample would exceed the threshold. That
window is a fixation, and the next begins after it. Samples in no fixation are `saccade`: the method
knows no third class, so pursuit and noise end up there too.

* `dispersion="range"`: (largest x - smallest x) + (largest y - smallest y), the form of the paper.
  On a sphere x is unwrapped and scaled by the cosine of the window's middle latitude; a window
  across a pole looks wider than it is, so gaze that far up or down is better served by the other
  form.
* `dispersion="pairwise"`: the greatest angle between any two samples of the window, exact in both
  spaces.

The range form looks at a window from its end, and goes on behind the first sample that is too far
from it. The pairwise form compares a new sample with the window only if the window's
bounding box leaves the answer open.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.dorr import PUBLISHED, mark_dorr, signal_of
from gazeveil.events.trace import (
    FIXATION,
    NOISE,
    PURSUIT,
    SACCADE,
    UNDEFINED,
    BridgedGaze,
    runs,
    to_events,
)
from gazeveil.gaze.events import WORD, Events
from gazeveil.gaze.geometry import Sphere, from_tangents, unwrap_x
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
    (begin, end), (after, last) = saccades[:-1].T, saccades[1:].T
    known = np.append(0, np.cumsum(~doubtful))
    before, slow, following = (
        points[:, b] - points[:, a] for a, b in ((begin, end), (end, after), (after, last))
    )
    # A gap inside makes the way NaN, which fits nothing.
    fits = (
        (known[after] > known[end + 1])
        & (np.linalg.norm(slow, axis=0) * rate_hz > _SLOW_DEG_S * (after - end))
        & (_angle_deg(before, following) < _SAME_DEG)
        & (_angle_deg(before, slow) > _OPPOSITE_DEG)
        & (_angle_deg(following, slow) > _OPPOSITE_DEG)
    )
    for first, stop in runs(fits):
        if stop - first >= 2:
            result[saccades[first, 0] : saccades[stop, 1] + 1] = True
    return result & ~doubtful


def _angle_deg(u: Floats, v: Floats) -> Floats:
    """Angles between vectors, one per column; NaN where one has no length."""
    size = np.sqrt((u * u).sum(axis=0) * (v * v).sum(axis=0))
    cosine = (u * v).sum(axis=0) / np.where(size > 0, size, np.nan)
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


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
        paths = gaze, np.zeros_like(gaze) if head is None else head, eye_points
        _windows(paths, trace, window / 1000, (low, high, turning, scale), second)
        doubtful = ~recording.valid
        if recording.confidence is not None:
            doubtful = doubtful | (recording.confidence < 1)
        saccades = np.array(runs(codes == SACCADE), dtype=np.int64).reshape(-1, 2) - (0, 1)
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


def _windows(
    paths: tuple[Floats, Floats, Floats],
    trace: BridgedGaze,
    window_s: float,
    limits: tuple[float, float, float, float],
    second: Codes,
) -> None:
    """Write the codes of both tiers, by the speeds of gaze, head and eye in each window."""
    low, high, turning, scale = limits
    codes, rate = trace.codes, trace.rate_hz
    found = np.array(
        [
            (begin + first, begin + stop)
            for begin, end in trace.segments.tolist()
            for first, stop in runs(codes[begin:end] == UNDEFINED)
            if stop - first >= 2  # one sample has no speed
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    n = found[:, 1] - found[:, 0]
    parts = np.clip(np.rint(n / (window_s * rate)).astype(np.int64), 1, n // 2)
    of = np.repeat(np.arange(len(found)), parts)
    part = _counted(parts)
    a, b = (found[of, 0] + (part + end) * n[of] // parts[of] for end in (0, 1))
    g, h, e = (
        np.linalg.norm(path[:, b - 1] - path[:, a], axis=0) * rate / (b - 1 - a) for path in paths
    )
    h = np.nan_to_num(h)  # where the head was lost: as if there were none
    grown = 1.0 + h / scale
    code = np.select([g < low * grown, g <= high * grown], [FIXATION, PURSUIT], NOISE)
    moving = np.where(e >= turning, _VOR, np.where(code == PURSUIT, _HEAD_PURSUIT, _NONE))
    tier = np.where((h >= turning) & (code != NOISE), moving, _NONE)
    samples = np.repeat(a, b - a) + _counted(b - a)
    codes[samples], second[samples] = np.repeat(code, b - a), np.repeat(tier, b - a)


def _counted(lengths: Ints) -> Ints:
    """0, 1, ... within each of consecutive groups of these lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


#: (threshold in deg/s, shortest fixation in ms) of each published setting.
SETTINGS = {"george": (50.0, 100.0), "ren2024": (30.0, 200.0)}

FRAME_SAMPLES = 15
ORDER = 6
_LONGEST_FRAME_S = 0.15


def detect_ivt(
    recording: Recording,
    setting: str = "george",
    threshold_deg_s: float | None = None,
    min_fixation_ms: float | None = None,
    min_saccade_ms: float = 12.0,
    smooth: bool | None = None,
) -> Events:
    """Fixations and saccades by speed alone.

    Parameters
    ----------
    recording : Recording
        Any space and rate.
    setting : {"george", "ren2024"}
        Published parameters: 50 deg/s and 100 ms, or 30 deg/s and 200 ms.
    threshold_deg_s, min_fixation_ms : float, optional
        Replace those of the setting.
    min_saccade_ms : float
        Shorter saccades are discarded.
    smooth : bool, optional
        Whether to apply the Savitzky-Golay filter; by default at 100 Hz and above.

    Returns
    -------
    Events
        `fixation` and `saccade`, with `blink` and `undefined` for long gaps.
    """
    threshold, shortest = SETTINGS[checks.one_of("detect ivt", "setting", setting, SETTINGS)]
    if threshold_deg_s is not None:
        threshold = checks.positive("detect ivt", "threshold_deg_s", threshold_deg_s)
    if min_fixation_ms is not None:
        shortest = checks.not_negative("detect ivt", "min_fixation_ms", min_fixation_ms)
    least_saccade = checks.not_negative("detect ivt", "min_saccade_ms", min_saccade_ms)
    if smooth is not None and not isinstance(smooth, bool):
        checks.refuse("detect ivt", "smooth", "True, False or None", smooth)
    trace = BridgedGaze.of(recording)
    rate = trace.rate_hz
    if len(trace.segments):
        use = rate * _LONGEST_FRAME_S >= FRAME_SAMPLES - 1e-9 if smooth is None else smooth
        squared = squared_steps(trace, use)
        limit = (threshold / rate) ** 2
        # A run of k samples lasts k / rate; rounding must not turn 3 samples of 4 ms into less than
        # 12 ms.
        _label(
            squared >= limit,
            trace.segments,
            shortest * rate / 1000 - 1e-6,
            least_saccade * rate / 1000 - 1e-6,
            trace.codes,
        )
    return to_events(trace.codes, recording.t_ns, trace.cuts, f"ivt:{setting}")


def squared_steps(trace: BridgedGaze, smooth: bool) -> Floats:
    """Squared degrees moved since the sample before, smoothed or not; a segment's first sample
    copies its second.
    """
    total = np.zeros(len(trace.codes))
    for first, stop in trace.segments:
        if stop - first < 2:
            continue
        for axis in trace.axes:
            part = axis[first:stop]
            path = _smoothed(part) if smooth and len(part) > FRAME_SAMPLES else part
            total[first + 1 : stop] += np.diff(path) ** 2
        total[first] = total[first + 1]
    return total


def _smoothed(path: Floats) -> Floats:
    """A path behind the filter. Within half a frame of an end the polynomial of the outermost frame
    is used, as scipy's `savgol_filter` does.
    """
    hat, half = _projection(), FRAME_SAMPLES // 2
    inside = np.correlate(path, hat[half], "valid")
    begin, end = path[:FRAME_SAMPLES], path[-FRAME_SAMPLES:]
    return np.concatenate((hat[:half] @ begin, inside, hat[half + 1 :] @ end))


@cache
def _projection() -> Floats:
    """Hat matrix of the filter: row k gives the fitted value at place k of a frame."""
    place = np.arange(FRAME_SAMPLES, dtype=np.float64) - FRAME_SAMPLES // 2
    basis, _ = np.linalg.qr(np.vander(place / place[-1], ORDER + 1))
    return np.ascontiguousarray(basis @ basis.T)


def _label(
    fast: Bools, segments: Ints, least_fixation: float, least_saccade: float, codes: Codes
) -> None:
    """Write the codes of each segment: threshold, then short fixations to saccades, then short
    saccades to fixations.
    """
    for begin, end in segments:
        n, moving = int(end - begin), fast[begin:end].copy()
        if n < 2:
            continue
        if not moving.any() and n < least_fixation:
            codes[begin:end] = UNDEFINED
            continue
        for first, stop in runs(~moving):
            moving[first:stop] = stop - first < least_fixation
        own = codes[begin:end]
        own[:] = np.where(moving, SACCADE, FIXATION)
        for first, stop in runs(moving):
            if stop - first < least_saccade:
                # Nothing but this run in the segment: there is no fixation it could join.
                own[first:stop] = UNDEFINED if stop - first == n else FIXATION


def detect_idt(
    recording: Recording,
    dispersion: str = "range",
    threshold_deg: float = 1.0,
    min_fixation_ms: float = 100.0,
) -> Events:
    """Fixations by dispersion, everything between them a saccade.

    Parameters
    ----------
    recording : Recording
        Any space and rate.
    dispersion : {"range", "pairwise"}
        How wide a window is.
    threshold_deg : float
        Greatest dispersion of a fixation.
    min_fixation_ms : float
        Shortest fixation; at least two samples whatever the rate.

    Returns
    -------
    Events
        `fixation` and `saccade`, with `blink` and `undefined` for long gaps. A stretch between two
        gaps that is shorter than a fixation is `undefined`.
    """
    form = checks.one_of("detect idt", "dispersion", dispersion, ("range", "pairwise"))
    threshold = checks.positive("detect idt", "threshold_deg", threshold_deg)
    shortest = checks.positive("detect idt", "min_fixation_ms", min_fixation_ms)
    trace = BridgedGaze.of(recording)
    begins = np.zeros(len(recording), dtype=np.bool_)
    if len(trace.segments):
        least = max(2, math.ceil(shortest * trace.rate_hz / 1000 - 1e-6))
        if form == "range":
            x, y, round_world = _plane(recording, trace)
            _by_range(x, y, trace.segments, threshold, least, round_world, trace.codes, begins)
        else:
            points = _vectors(recording, trace)
            chord = 2 * math.sin(math.radians(min(threshold, 180.0)) / 2)
            _by_pairs(points, trace.segments, chord, least, trace.codes, begins)
    # Where the rate is low, one fixation may follow another without a sample between them.
    cuts = np.union1d(trace.cuts, np.flatnonzero(begins))
    return to_events(trace.codes, recording.t_ns, cuts, f"idt:{form}")


def _plane(recording: Recording, trace: BridgedGaze) -> tuple[Floats, Floats, bool]:
    if isinstance(recording.space, Sphere):
        x, y = recording.space.degrees(np.stack(trace.axes, axis=-1))
        return unwrap_x(x), y, True
    return trace.axes[0], trace.axes[1], False


def _vectors(recording: Recording, trace: BridgedGaze) -> Floats:
    """Unit vectors, shape (3, n)."""
    if isinstance(recording.space, Sphere):
        vectors = np.stack(trace.axes)
        return vectors / np.linalg.norm(vectors, axis=0)
    return np.ascontiguousarray(recording.space.vectors(trace.axes[0], trace.axes[1]).T)


@compiled
def _by_range(
    x: Floats,
    y: Floats,
    segments: Ints,
    threshold: float,
    least: int,
    round_world: bool,
    codes: Codes,
    begins: Bools,
) -> None:
    for s in range(len(segments)):
        start, stop = segments[s, 0], segments[s, 1]
        if stop - start < least:
            continue
        codes[start:stop] = SACCADE
        while start + least <= stop:
            left, right, top, bottom = np.inf, -np.inf, np.inf, -np.inf
            k = start + least - 1
            while k >= start:
                left, right = min(left, x[k]), max(right, x[k])
                top, bottom = min(top, y[k]), max(bottom, y[k])
                if _range(left, right, top, bottom, round_world) > threshold:
                    break
                k -= 1
            if k >= start:
                start = k + 1
                continue
            end = start + least
            while end < stop:
                left, right = min(left, x[end]), max(right, x[end])
                top, bottom = min(top, y[end]), max(bottom, y[end])
                if _range(left, right, top, bottom, round_world) > threshold:
                    break
                end += 1
            codes[start:end] = FIXATION
            begins[start] = True
            start = end


@compiled
def _range(left: float, right: float, top: float, bottom: float, round_world: bool) -> float:
    width = right - left
    if round_world:
        width *= math.cos(math.radians(90.0 - 0.5 * (top + bottom)))
    return width + bottom - top


@compiled
def _by_pairs(
    points: Floats, segments: Ints, chord: float, least: int, codes: Codes, begins: Bools
) -> None:
    square = chord * chord
    low, high = np.empty(3), np.empty(3)
    for s in range(len(segments)):
        first, stop = segments[s, 0], segments[s, 1]
        if stop - first < least:
            continue
        codes[first:stop] = SACCADE
        # All pairs of [start, i) are close. A new sample that is far from some of them moves the
        # start behind the last of these.
        start = first
        low[:], high[:] = points[:, first], points[:, first]
        for i in range(first + 1, stop):
            diagonal = 0.0
            for a in range(3):
                low[a], high[a] = min(low[a], points[a, i]), max(high[a], points[a, i])
                diagonal += (high[a] - low[a]) ** 2
            far = start - 1
            if diagonal > square:
                k = i - 1
                while k >= start:
                    apart = (
                        (points[0, i] - points[0, k]) ** 2
                        + (points[1, i] - points[1, k]) ** 2
                        + (points[2, i] - points[2, k]) ** 2
                    )
                    if apart > square:
                        far = k
                        break
                    k -= 1
            if far >= start:
                if i - start >= least:
                    codes[start:i] = FIXATION
                    begins[start] = True
                    start = i
                else:
                    start = far + 1
                low[:], high[:] = points[:, i], points[:, i]
                for k in range(start, i):
                    for a in range(3):
                        low[a], high[a] = min(low[a], points[a, k]), max(high[a], points[a, k])
        if stop - start >= least:
            codes[start:stop] = FIXATION
            begins[start] = True
