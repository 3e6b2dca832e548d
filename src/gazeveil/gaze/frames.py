"""Gaze relative to the world, or to the head.

On a sphere a recording gives gaze in the world, and so the direction of the head: places identify
people. Gaze in the head keeps the eye movements and leaves out the head. It is computed sample by
sample. A promise about samples that move therefore holds unchanged, with degrees in the head
instead of degrees in the world.

What is not offered: gaze relative to the mean direction of a recording. Every sample would depend
on all others, and a promise about a window of samples would no longer be about that window.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Sphere, eye_in_head, from_tangents
from gazeveil.gaze.recording import Recording

#: What degrees are relative to.
FRAMES = ("world", "head")


def in_frame(recording: Recording, frame: str) -> Recording:
    """A recording with its gaze in a frame.

    Parameters
    ----------
    recording : Recording
        Gaze on a sphere; for `head` with the direction of the head or of the eye in it.
    frame : {"world", "head"}
        `world` is the recording as it is. `head`: straight ahead of the head is the middle of the
        sphere, (180, 90); channels of the head and of single eyes are left out, because together
        with gaze they would give the world back.

    Raises
    ------
    DataError
        Where there is no head to be relative to.
    """
    if checks.one_of("in_frame", "frame", frame, FRAMES) == "world":
        return recording
    if not isinstance(recording.space, Sphere):
        raise DataError(
            f"{recording.title} is on a screen, so its gaze is not relative to a head. Leave frame"
            " out."
        )
    eye = recording.eye_in_head_deg
    if eye is None and recording.head_deg is not None:
        vectors = recording.space.vectors(recording.x_deg, recording.y_deg)
        eye = np.stack(eye_in_head(vectors, recording.head_deg), axis=1)
    if eye is None:
        raise DataError(
            f"{recording.title} does not say where the head was, so gaze cannot be put in the head."
            " Leave frame out, or read recordings with the head's direction."
        )
    x_deg, y_deg = recording.space.degrees(from_tangents(eye[:, 0], eye[:, 1]))
    return recording.with_(
        x_deg=x_deg,
        y_deg=y_deg,
        valid=recording.valid & np.isfinite(x_deg) & np.isfinite(y_deg),
        head_deg=None,
        eye_in_head_deg=None,
        left_deg=None,
        right_deg=None,
        truth=None,
        metadata={**recording.metadata, "frame": frame},
    )


def cohort_in_frame(cohort: Cohort, frame: str) -> Cohort:
    """Every recording of a cohort in a frame; files are changed when they are loaded."""
    if checks.one_of("in_frame", "frame", frame, FRAMES) == "world":
        return cohort
    items: list[Recording | Handle] = [
        in_frame(item, frame)
        if isinstance(item, Recording)
        else replace(item, load=partial(_load, item.load, frame), chunks=None)
        for item in cohort.items
    ]
    return Cohort(items, cohort.people, cohort.skipped, cohort.name, cohort.read_as)


def _load(load: Any, frame: str) -> Recording:
    return in_frame(load(), frame)
