"""A simulator of people who look at things: the embedded default data of the project.

:func:`simulate` makes a cohort. Inside, from the bottom up: `kinematics` (vectors, the course of a
saccade), `people` (tasks, trackers, traits), `stimuli` (what is looked at), `head`, `scanpath`
(where to look next), `render` (the main loop) and `cohort`. How well it matches real recordings is
in docs/explain/simulator.md.
"""

from __future__ import annotations

from gazeveil.gaze.simulate.cohort import DEFAULT_SCREEN, Truth, simulate
from gazeveil.gaze.simulate.people import DOCUMENTS, TASKS, Traits

__all__ = ["DEFAULT_SCREEN", "DOCUMENTS", "TASKS", "Traits", "Truth", "simulate"]
