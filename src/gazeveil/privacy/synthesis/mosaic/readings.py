"""Noisy readings of all viewers of one stimulus: the private part of `mosaic`. Everything else is
computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.losses.public_clock import on_clock
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.mosaic.windows import PublicWindows


@dataclass(frozen=True, eq=False)
class CrowdReadings:
    """What was read of the viewers of a stimulus.

    Parameters
    ----------
    keys : tuple of (person, stimulus, session, task)
        The recordings.
    space : Sphere or Screen
        What degrees mean.
    windows : PublicWindows
        When gaze was read.
    places : array, shape (viewers, slots, 3)
        Unit vectors on a sphere, (x, y, 0) in degrees on a screen.
    seen : array of bool, shape (viewers, slots)
        Whether there is a reading.
    """

    keys: tuple[RecordingKey, ...]
    space: Space
    windows: PublicWindows
    places: Floats = field(repr=False)
    seen: Bools = field(repr=False)

    @property
    def sphere(self) -> bool:
        """Whether places are unit vectors."""
        return isinstance(self.space, Sphere)

    def people_in(self, window: int) -> int:
        """How many people have a reading in a window: a function of losses, and not of gaze."""
        seen = np.flatnonzero(self.seen[:, self.windows.slice(window)].any(axis=1))
        return len({self.keys[int(i)][0] for i in seen})

    @cached_property
    def filled(self) -> Floats:
        """A place in every slot, shape (viewers, slots, 3): the last reading at or before it, else
        the first one after it; of a viewer without any reading nothing that may be used.
        """
        slots = np.arange(self.seen.shape[1])
        last = np.maximum.accumulate(np.where(self.seen, slots, -1), axis=1)
        first = np.where(self.seen.any(axis=1), self.seen.argmax(axis=1), 0)
        at = np.where(last >= 0, last, first[:, None])
        return np.take_along_axis(self.places, at[:, :, None], axis=1)

    @cached_property
    def usable(self) -> Bools:
        """Whether a viewer may be followed in a slot, shape (viewers, slots): where there is a
        reading; in a slot in which fewer than two viewers have one, all who have any.
        """
        known = np.broadcast_to(self.seen.any(axis=1, keepdims=True), self.seen.shape)
        return np.asarray(np.where(self.seen.sum(axis=0) >= 2, self.seen, known))


def noisy_places(
    recording: Recording, reader: ClockRender, windows: PublicWindows, space: Space, bits: Bits
) -> tuple[Floats, Bools]:
    """Readings of one recording with noise: places, shape (slots, 3), and whether there is one.
    Nothing is read in gaps. The reader says which samples are read, and their noise.
    """
    _, x, y, valid = on_clock(recording, windows.rate_hz, windows.duration_s)
    valid &= windows.inside()[: len(valid)]
    slots = reader.slots(windows.rate_hz, space, 1, bits)
    slot_x, slot_y, seen = slots.take(x[None], y[None], valid[None], flush=True)
    there: Bools = np.asarray(seen)[0]
    clean_x, clean_y = np.where(there, slot_x[0], 0.0), np.where(there, slot_y[0], 0.0)
    places = np.zeros((len(there), 3))
    if isinstance(space, Sphere):
        places[:] = space.vectors(clean_x, clean_y)
    else:
        places[:, 0], places[:, 1] = clean_x, clean_y
    return places, there


def others_of(keys: Sequence[RecordingKey], viewer: int) -> Ints:
    """Whose readings may stand for a viewer's: all recordings but those of the same person."""
    person = keys[viewer][0]
    return np.array([i for i, key in enumerate(keys) if key[0] != person], dtype=np.int64)
