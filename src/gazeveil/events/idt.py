"""I-DT: a fixation is a window of samples that stay close together (Salvucci and Goldberg 2000).

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

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.events.trace import FIXATION, SACCADE, BridgedGaze, to_events
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere, unwrap_x
from gazeveil.gaze.recording import Recording


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
