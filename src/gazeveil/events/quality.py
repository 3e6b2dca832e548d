"""How good a recording is, in the field's measures, and whether the default detector was shown to
handle it.

* `rms_s2s_deg`: root mean square of the distance from sample to sample within a fixation.
* `sd_deg`: standard deviation of gaze around the fixation's mean place, root of the sum over both
  directions.
* `noise_deg`: deviation of white noise per direction, from the median second difference; it needs
  no events.
* `lost`: share of samples that are not valid.

The first two are medians over fixations of 100 ms or more (Holmqvist et al. 2012).

What `auto` does with a recording outside what its network was shown to handle.

Below 32 Hz a saccade fits between two samples, and gaze from a webcam trembles by degrees: the
network would call most of that pursuit. Fixations are then found by their dispersion (I-DT), after
a running mean over 100 ms, with a threshold from the recording: 1.2 times the median dispersion
over 200 ms, at least 1 deg. The figures on people who read before a webcam are in
`docs/reference/events.md`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.events.auto.network import noise_deg
from gazeveil.events.ivt import detect_idt
from gazeveil.events.trace import BridgedGaze, positions
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

_LEAST_S = 0.1

#: Share of lost samples from which a recording deserves a look.
MUCH_LOST = 0.25


class QualityWarning(UserWarning):
    """A recording is outside what a detector was shown to handle."""

    #: There may be one for each recording: a command says the first alone.
    about_recording: ClassVar[bool] = True


@dataclass(frozen=True)
class Quality:
    """Quality of one recording; NaN where it cannot be told.

    Parameters
    ----------
    rate_hz : float
        Nominal rate.
    noise_deg, rms_s2s_deg, sd_deg : float
        As the module says.
    lost : float
        Share of samples that are not valid.
    detector : str
        Who found the fixations: the events' source.
    concerns : tuple of str
        What a reader should know, in sentences; empty if nothing.
    """

    rate_hz: float
    noise_deg: float
    rms_s2s_deg: float
    sd_deg: float
    lost: float
    detector: str
    concerns: tuple[str, ...] = ()


def quality(recording: Recording, events: Events) -> Quality:
    """Measure a recording with its events, from any detector; those of `auto` say whether it was
    used.
    """
    trace = BridgedGaze.of(recording)
    points = np.stack(trace.axes)
    noise = noise_deg(points, trace.segments) if len(trace.segments) else float("nan")
    steps, spreads = [], []
    for fixation in events.of("fixation"):
        if fixation.onset >= 0 and fixation.duration_ns >= _LEAST_S * 1e9:
            inside = slice(fixation.onset, fixation.offset + 1)
            step, spread = _within(points[:, inside][:, recording.valid[inside]])
            steps.append(step)
            spreads.append(spread)
    lost = 1.0 - float(recording.valid.mean()) if len(recording) else float("nan")
    concerns = []
    if events.source == "auto (idt)":
        concerns.append(
            "The default detector was not shown to handle this recording; fixations are by"
            " dispersion."
        )
    if lost > MUCH_LOST:
        concerns.append(f"{lost:.0%} of the samples are lost.")
    return Quality(
        recording.rate_hz,
        noise,
        float(np.median(steps)) if steps else float("nan"),
        float(np.median(spreads)) if spreads else float("nan"),
        lost,
        events.source,
        tuple(concerns),
    )


def _within(points: Floats) -> tuple[float, float]:
    """RMS-S2S and SD of the samples of one fixation."""
    if points.shape[1] < 2:
        return float("nan"), float("nan")
    step = np.diff(points, axis=1)
    spread = points - points.mean(axis=1, keepdims=True)
    return (
        float(np.sqrt((step**2).sum(axis=0).mean())),
        float(np.sqrt((spread**2).sum(axis=0).mean())),
    )


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


def _running_mean(places: Floats, valid: Bools, reach: int) -> Floats:
    near = np.ones(2 * reach + 1)
    count = np.maximum(np.convolve(valid, near), 1)[reach:-reach]
    means = (np.convolve(np.where(valid, axis, 0.0), near)[reach:-reach] / count for axis in places)
    return np.where(valid, np.stack(list(means)), places)


def _dispersions(places: Floats, window: int) -> Floats:
    """Sum over the axes of the range within each window."""
    return np.ptp(np.lib.stride_tricks.sliding_window_view(places, window, 1), axis=2).sum(axis=0)
