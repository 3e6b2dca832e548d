"""I-VT: a sample belongs to a saccade when gaze is as fast as a threshold (Salvucci and Goldberg
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
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints
from gazeveil.events.trace import FIXATION, SACCADE, UNDEFINED, BridgedGaze, runs, to_events
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording

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
