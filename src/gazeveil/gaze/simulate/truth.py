"""What the simulator knows about a recording it made."""

from __future__ import annotations

from dataclasses import dataclass, field

from gazeveil.arrays import Floats
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.stimuli import Stimulus


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth behind a simulated recording (`Recording.truth`).

    Parameters
    ----------
    events : Events
        What the eye did; every sample is in exactly one event. Microsaccades are part of fixations;
        `noise` is a lid that moves while the tracker still reports gaze.
    traits : Traits
        The person's traits in this recording.
    person_traits : Traits
        The person's traits in this session, without what changes from recording to recording.
    stimulus : Stimulus
        What was looked at, with its attention map and targets.
    space : Sphere or Screen
        What the degrees of the recording mean.
    vectors : array, shape (n, 3)
        Gaze without the tracker's noise, error and losses, as unit vectors; `x_deg` and `y_deg` are
        its degrees.
    """

    events: Events
    traits: Traits
    person_traits: Traits
    stimulus: Stimulus
    space: Space
    vectors: Floats = field(repr=False)

    @property
    def x_deg(self) -> Floats:
        """Clean gaze, first coordinate."""
        return self.space.degrees(self.vectors)[0]

    @property
    def y_deg(self) -> Floats:
        """Clean gaze, second coordinate."""
        return self.space.degrees(self.vectors)[1]
