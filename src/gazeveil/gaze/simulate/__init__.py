"""A simulator of people who look at things: the embedded default data of the project.

:func:`simulate` makes a cohort. Inside, from the bottom up: `directions` (vectors), `saccade` (the
course of one), `conditions` (tasks and trackers), `people` (traits), `stimuli` (what is looked at),
`targets` (where to look next), `render` (the main loop), `truth` and `cohort`. How well it matches
real recordings is in docs/explain/simulator.md.
"""

from __future__ import annotations

from gazeveil.gaze.simulate.cohort import DEFAULT_SCREEN, Truth, simulate
from gazeveil.gaze.simulate.conditions import (
    DESK_TRACKER,
    DOCUMENTS,
    HEADSET_TRACKER,
    TASKS,
    TrackerModel,
)
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.stimuli import Stimulus

__all__ = [
    "DEFAULT_SCREEN",
    "DESK_TRACKER",
    "DOCUMENTS",
    "HEADSET_TRACKER",
    "TASKS",
    "Stimulus",
    "TrackerModel",
    "Traits",
    "Truth",
    "simulate",
]
