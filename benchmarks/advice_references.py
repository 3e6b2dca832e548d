"""What an analyst without the data gets wrong: the references of the table of `advice_table.py`.

Where somebody looked at a given time (`samples`): in front of a screen the analyst says "at the
middle of the screen". On a sphere no direction is the middle: another zero of the headset would
give another figure, and even the constant that is best in hindsight for each stimulus is 77 degrees
off in EyeNavGS, so that a release 45 degrees off would count as of use. What a screen is to a
person at a desk, the view of a headset is to one who wears it, and it goes along with the head: the
analyst says "at the middle of the view", which needs the direction of the head and no gaze.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.geometry import distance_deg
from gazeveil.utility.registry import utility

#: Purpose -> the utility and its figure.
FIGURES = {
    "maps": ("density", "jsd"),
    "events": ("events", "fixation_duration_wasserstein_s"),
    "teaching": ("events", "saccade_amplitude_wasserstein_deg"),
}


def anchors(cohort: gazeveil.Cohort) -> tuple[dict[str, float], dict[str, float]]:
    """By purpose: the error of raw recordings against others of the same people, and that of an
    analyst without the data.
    """
    material = RecordingSet(cohort)
    raw, without = {}, {"samples": away_deg(cohort, middle_of_view)}
    for purpose, (name, metric) in FIGURES.items():
        chosen = utility(name)
        first, second = chosen.halved(material)
        halves = {r.metric: r for r in chosen.measure(first, first, second, 0)}
        whole = {r.metric: r for r in chosen.measure(material, material, material, 0)}
        raw[purpose] = round(halves[metric].value, 4)
        without[purpose] = whole[metric].chance
    return raw, without


def away_deg(
    cohort: gazeveil.Cohort, said: Callable[[gazeveil.Recording], tuple[Floats, Floats]]
) -> float:
    """Root mean square in degrees between gaze and what is said of it: per recording, then the mean
    over a person's recordings, then over people, as the utility `signal` has it.
    """
    away: dict[str, list[float]] = {}
    for recording in cohort:
        x, y = said(recording)
        error = distance_deg(recording.space, recording.x_deg, recording.y_deg, x, y)
        error = error[recording.valid & np.isfinite(error)]
        if len(error):
            away.setdefault(recording.person, []).append(float(np.sqrt(np.mean(error**2))))
    return float(np.mean([np.mean(a) for a in away.values()]))


def middle_of_view(recording: gazeveil.Recording) -> tuple[Floats, Floats]:
    """The middle of the screen, or where the head points."""
    if not isinstance(recording.space, gazeveil.Sphere):
        return np.zeros(len(recording)), np.zeros(len(recording))
    if recording.head_deg is None:
        raise SystemExit(f"{recording.person}, {recording.stimulus}: where the head was is unknown")
    return recording.head_deg[:, 0], recording.head_deg[:, 1]
