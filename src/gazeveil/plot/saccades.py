"""The main sequence: how fast saccades of each size are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import GazeveilError
from gazeveil.events import detect
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import distance_deg
from gazeveil.gaze.recording import Recording
from gazeveil.plot.canvas import KIND_COLOURS, axes_or_new, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Smaller or slower is noise of the tracker.
_LEAST_DEG, _LEAST_DEG_S = 0.05, 1.0


def main_sequence(
    data: Recording | Cohort | Iterable[Recording],
    ax: Axes | None = None,
    *,
    events: Events | None = None,
    most: int = 40,
) -> Axes:
    """Peak speed of saccades against their amplitude, both logarithmic.

    Parameters
    ----------
    data : Recording, Cohort or iterable of recordings
        Whose saccades; of a cohort at most `most` recordings, spread over it.
    ax : Axes, optional
        Where to draw; new axes if not given.
    events : Events, optional
        Of one recording; detected if not given.
    most : int
        Recordings that are looked at.

    Returns
    -------
    Axes
        The axes; the title says how many saccades of how many recordings are drawn. A recording
        too short to detect anything in counts as one without saccades.
    """
    checks.count("plot.main_sequence", "most", most)
    if events is not None and not isinstance(data, Recording):
        checks.refuse("plot.main_sequence", "events", "left out, but for one recording", events)
    sizes: list[tuple[Floats, Floats]] = []
    recordings = 0
    for recording in _spread(data, most):
        recordings += 1
        try:
            found = events if events is not None else detect(recording)
        except GazeveilError:
            continue
        sizes.append(saccade_sizes(recording, found))
    amplitude, peak = (np.concatenate([s[i] for s in sizes] or [np.empty(0)]) for i in (0, 1))
    shown = (amplitude > _LEAST_DEG) & (peak > _LEAST_DEG_S)
    axes = axes_or_new("plot.main_sequence", ax, 5.0, 4.0)
    axes.loglog(
        amplitude[shown], peak[shown], ".", ms=2.5, alpha=0.4, color=KIND_COLOURS["saccade"]
    )
    axes.set(xlabel="saccade amplitude (deg)", ylabel="peak speed (deg/s)")
    of_all = f" of {recordings} recordings" if not isinstance(data, Recording) else ""
    titled(axes, f"Main sequence: {int(shown.sum())} saccades{of_all}")
    axes.grid(alpha=0.3)
    return axes


def _spread(data: Recording | Cohort | Iterable[Recording], most: int) -> Iterable[Recording]:
    if isinstance(data, Recording):
        return (data,)
    if not isinstance(data, Cohort):
        if not isinstance(data, Iterable):
            checks.refuse("plot.main_sequence", "data", "recordings", data)
        return data
    places = np.unique(np.linspace(0, len(data) - 1, most).astype(int)) if len(data) else ()
    return (data[int(i)] for i in places)


def saccade_sizes(recording: Recording, events: Events) -> tuple[Floats, Floats]:
    """Amplitude (deg) and peak speed (deg/s) of each saccade with valid ends."""
    saccades = events.of("saccade")
    saccades = saccades.where(saccades.onset >= 0)
    if len(saccades) == 0:
        return np.empty(0), np.empty(0)
    a, b = saccades.onset, saccades.offset
    x, y = recording.x_deg, recording.y_deg
    amplitude = distance_deg(recording.space, x[a], y[a], x[b], y[b])
    steps = (
        np.concatenate(([0.0], distance_deg(recording.space, x[:-1], y[:-1], x[1:], y[1:])))
        * recording.rate_hz
    )
    steps[~recording.valid] = 0.0
    steps[1:][~recording.valid[:-1]] = 0.0
    # A saccade's first step leads into its first sample, so one more than its samples is looked at.
    ends = np.minimum(b + 1, len(steps) - 1)
    peak = np.maximum.reduceat(np.append(steps, 0.0), np.stack((a, ends + 1), axis=1).ravel())[::2]
    good = recording.valid[a] & recording.valid[b]
    return amplitude[good], peak[good]
