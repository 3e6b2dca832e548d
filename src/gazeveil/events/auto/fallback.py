"""What `auto` does with a recording outside what its network was shown to handle.

Below 32 Hz a saccade fits between two samples, and gaze from a webcam trembles by degrees: the
network would call most of that pursuit. Fixations are then found by their dispersion (I-DT), after
a running mean over 100 ms, with a threshold from the recording: 1.2 times the median dispersion
over 200 ms, at least 1 deg. The figures on people who read before a webcam are in
`docs/reference/events.md`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.compiled import compiled
from gazeveil.events.idt import detect_idt
from gazeveil.events.quality import QualityWarning
from gazeveil.events.trace import positions
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

#: The slowest and the noisiest recording that the network was shown to handle.
SLOWEST_HZ = 32.0
NOISIEST_DEG = 1.5

_WINDOW_S = 0.2
_MEAN_S = 0.1
_TIMES = 1.2
_SPREAD = 10.0
_LEAST_DEG = 1.0


def outside(rate_hz: float, noise_deg: float) -> bool:
    """Whether a recording is outside what the network was shown to handle."""
    return rate_hz < SLOWEST_HZ or noise_deg > NOISIEST_DEG


def detect_by_dispersion(recording: Recording, rate_hz: float, noise_deg: float) -> Events:
    """Fixations by dispersion, with a warning that says so."""
    calm = smoothed_over(recording, rate_hz)
    places = np.stack(positions(calm))[:, calm.valid]
    window = max(2, round(_WINDOW_S * rate_hz) + 1)
    # White noise alone spreads over so much within a fixation, after the mean.
    averaged = 2 * round(_MEAN_S * rate_hz / 2) + 1
    threshold_deg = max(_LEAST_DEG, _SPREAD * noise_deg / math.sqrt(averaged))
    if places.shape[1] >= window:
        threshold_deg = max(threshold_deg, _TIMES * float(np.median(_dispersions(places, window))))
    reason = (
        f"{rate_hz:.0f} Hz is below {SLOWEST_HZ:.0f} Hz"
        if rate_hz < SLOWEST_HZ
        else f"its noise of {noise_deg:.2f} deg is above {NOISIEST_DEG:g} deg"
    )
    warnings.warn(
        f"detect auto was not shown to handle this recording ({reason}); it used idt with"
        f" threshold_deg={threshold_deg:.1f}, which finds no pursuit. Choose a method yourself"
        " to be rid of this warning.",
        QualityWarning,
        stacklevel=4,
    )
    return replace(detect_idt(calm, threshold_deg=threshold_deg), source="auto (idt)")


def smoothed_over(recording: Recording, rate_hz: float) -> Recording:
    """The recording with each place the mean of those seen within 50 ms of it."""
    reach = round(_MEAN_S * rate_hz / 2)
    if reach == 0:
        return recording
    axes = _running_mean(np.stack(positions(recording)), recording.valid, reach)
    if isinstance(recording.space, Sphere):
        x_deg, y_deg = recording.space.degrees(axes.T)
        return recording.with_(x_deg=x_deg, y_deg=y_deg)
    return recording.with_(x_deg=axes[0], y_deg=axes[1])


@compiled
def _running_mean(places: Floats, valid: Bools, reach: int) -> Floats:
    axes, n = places.shape
    result = places.copy()
    for i in range(n):
        if not valid[i]:
            continue
        for a in range(axes):
            total, count = 0.0, 0
            for k in range(max(0, i - reach), min(n, i + reach + 1)):
                if valid[k]:
                    total += places[a, k]
                    count += 1
            result[a, i] = total / count
    return result


@compiled
def _dispersions(places: Floats, window: int) -> Floats:
    """Sum over the axes of the range within each window."""
    axes, n = places.shape
    result = np.zeros(n - window + 1)
    for i in range(n - window + 1):
        for a in range(axes):
            low, high = places[a, i], places[a, i]
            for k in range(i + 1, i + window):
                low, high = min(low, places[a, k]), max(high, places[a, k])
            result[i] += high - low
    return result
