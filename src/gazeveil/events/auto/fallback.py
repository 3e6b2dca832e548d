"""What `auto` does with a recording outside what its network was shown to handle.

Below 32 Hz a saccade fits between two samples, and gaze from a webcam trembles by degrees: its
network calls half of that pursuit. Fixations are then found by their dispersion (I-DT) with a
threshold from the recording: half of the median dispersion over 200 ms, at least 1 deg. On people
who read before a webcam (WebQAmGaze) that gives fixations of 0.24 s as a median, 1.8 per second.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.compiled import compiled
from gazeveil.events.idt import detect_idt
from gazeveil.events.quality import QualityWarning
from gazeveil.events.trace import positions
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording

#: The slowest and the noisiest recording that the network was shown to handle.
SLOWEST_HZ = 32.0
NOISIEST_DEG = 0.7

_WINDOW_S = 0.2
_SHARE = 0.5
_LEAST_DEG = 1.0


def outside(rate_hz: float, noise_deg: float) -> bool:
    """Whether a recording is outside what the network was shown to handle."""
    return rate_hz < SLOWEST_HZ or noise_deg > NOISIEST_DEG


def detect_by_dispersion(recording: Recording, rate_hz: float, noise_deg: float) -> Events:
    """Fixations by dispersion, with a warning that says so."""
    places = np.stack(positions(recording))[:, recording.valid]
    window = max(2, round(_WINDOW_S * rate_hz) + 1)
    threshold_deg = _LEAST_DEG
    if places.shape[1] >= window:
        threshold_deg = max(_LEAST_DEG, _SHARE * float(np.median(_dispersions(places, window))))
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
    return replace(detect_idt(recording, threshold_deg=threshold_deg), source="auto (idt)")


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
