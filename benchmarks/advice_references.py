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

TEXTBOOK_FIXATION_S, TEXTBOOK_SACCADE_DEG = 0.25, 5.0


def references(cohort: gazeveil.Cohort) -> dict[str, float]:
    """What an analyst without the data gets wrong, by purpose."""
    material = RecordingSet(cohort)
    wrong: dict[str, list[float]] = {"fixation": [], "saccade": []}
    for kind, column, usual in (
        ("fixation", "duration", TEXTBOOK_FIXATION_S),
        ("saccade", "amplitude", TEXTBOOK_SACCADE_DEG),
    ):
        table = material.table(kind)
        values = table.values[:, table.columns.index(column)]
        people: dict[str, list[np.ndarray]] = {}
        for key, rows in table.recordings().items():
            people.setdefault(key[0], []).append(values[rows])
        for parts in people.values():
            every = np.concatenate(parts)
            wrong[kind].append(float(np.nanmean(np.abs(every - usual))))
    return {
        "events": float(np.mean(wrong["fixation"])),
        "teaching": float(np.mean(wrong["saccade"])),
        "samples": away_deg(cohort, middle_of_view),
    }


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
