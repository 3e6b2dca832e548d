"""What the simulator knows about a recording it made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.events import Events
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.stimuli import Stimulus


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth behind a simulated recording (`Recording.truth`).

    Parameters
    ----------
    events : Events
        What the eye did; every sample is in exactly one event. Microsaccades are part of fixations; `noise` is a lid that moves
        while the tracker still reports gaze.
    traits : Traits
        The person's traits in this recording.
    person_traits : Traits
        The person's traits in this session, without what changes from recording to recording.
    stimulus : Stimulus
        What was looked at, with its attention map and targets.
    x_deg, y_deg : array, shape (n,)
        Gaze without the tracker's noise, error and losses.
    """

    events: Events
    traits: Traits
    person_traits: Traits
    stimulus: Stimulus
    x_deg: NDArray[np.float64] = field(repr=False)
    y_deg: NDArray[np.float64] = field(repr=False)
