"""How good a recording is, in the field's measures, and whether the default detector was shown to
handle it.

* `rms_s2s_deg`: root mean square of the distance from sample to sample within a fixation.
* `sd_deg`: standard deviation of gaze around the fixation's mean place, root of the sum over both
  directions.
* `noise_deg`: deviation of white noise per direction, from the median second difference; it needs
  no events.
* `lost`: share of samples that are not valid.

The first two are medians over fixations of 100 ms or more (Holmqvist et al. 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.events.auto.speed import noise_deg
from gazeveil.events.trace import BridgedGaze
from gazeveil.gaze.events import Events
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
