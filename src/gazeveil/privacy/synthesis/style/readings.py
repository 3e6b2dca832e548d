"""The private part of `style`: the noisy readings of `clock-render`, each drawn once, and everybody
who saw one stimulus on one clock.

Everything that other modules of this folder do starts from here and never looks at raw gaze.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.randomness.supply import Bits, derived_seed
from gazeveil.privacy.randomness.uniform import generator
from gazeveil.privacy.stream.losses.public_clock import on_clock
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.clock.shared import GazeBySlot
from gazeveil.privacy.synthesis.ksame.groups import one_kind_of_space
from gazeveil.privacy.synthesis.ksame.pairs import places

#: Stimulus and task. Not the session: where everybody has one of their own, by its date, nobody
#: would have company, and everybody would keep their own path.
Shown = tuple[str, str]


def noisy_readings(recording: Recording, clock: ClockRender, bits: Bits) -> GazeBySlot:
    """What is read of one recording: noisy places, NaN in slots without a good sample.

    Raises
    ------
    DataError
        For a recording whose rate is not known.
    """
    rate_hz, space = recording.rate_hz, recording.space
    if not rate_hz > 0:
        raise DataError(
            f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            " Nothing was released."
        )
    _, x, y, valid = on_clock(recording, rate_hz, None)
    slots = clock.slots(rate_hz, space, 1, bits)
    noisy_x, noisy_y, ok = slots.take(x[None], y[None], valid[None], flush=True)
    there = ok[0]
    noisy = np.full((len(there), 3), np.nan)
    noisy[there] = places(space, noisy_x[0, there], noisy_y[0, there])
    return GazeBySlot(space, rate_hz, len(x), slots.clock.length, noisy)


def all_readings(
    data: Cohort, clock: ClockRender, seed: int | None
) -> dict[RecordingKey, GazeBySlot]:
    """The readings of every recording of a cohort; one recording is held at a time.

    Raises
    ------
    DataError
        For a stimulus that some saw on a sphere and some on a screen, or a rate that is not known.
    """
    read: dict[RecordingKey, GazeBySlot] = {}
    for item in data.items:
        bits = Bits(None if seed is None else (derived_seed(seed, *item.key),))
        recording = item if isinstance(item, Recording) else item.load()
        read[item.key] = noisy_readings(recording, clock, bits)
    one_kind_of_space((key, gaze.space) for key, gaze in read.items())
    return read


@dataclass(frozen=True, eq=False)
class StimulusReadings:
    """Everybody who saw one stimulus, on one clock, without gaps.

    Parameters
    ----------
    keys : tuple of (person, stimulus, session, task)
        Whose each row is.
    sphere : bool
        Whether places are unit vectors.
    places : array, shape (viewers, slots, 3)
        Where a viewer has no reading, one of another viewer; NaN in slots in which nobody has one.
    """

    keys: tuple[RecordingKey, ...]
    sphere: bool
    places: Floats = field(repr=False)

    @property
    def middle(self) -> Floats:
        """The mean place of all viewers, shape (slots, 3); NaN where there is none."""
        total = np.asarray(self.places.sum(axis=0))
        if not self.sphere:
            return total / len(self.keys)
        size = np.linalg.norm(total, axis=1, keepdims=True)
        return np.divide(total, size, out=np.full_like(total, np.nan), where=size > 1e-9)


def crowds(
    read: Mapping[RecordingKey, GazeBySlot], source: Source
) -> dict[Shown, StimulusReadings]:
    """The crowd of every stimulus and task. The source decides who is borrowed from where
    a viewer has no reading.
    """
    cells: dict[Shown, list[RecordingKey]] = {}
    for key in sorted(read):
        cells.setdefault((key[1], key[3]), []).append(key)
    rng = generator(source)
    made: dict[Shown, StimulusReadings] = {}
    for cell, keys in cells.items():
        longest = max((read[key] for key in keys), key=lambda gaze: gaze.seconds)
        slots = len(longest.places)
        gaze = np.stack([read[key].at(longest.rate_hz, longest.length, slots) for key in keys])
        orders = [rng.permutation(len(keys)) for _ in keys]
        filled = np.stack([_borrowed(gaze, i, order) for i, order in enumerate(orders)])
        made[cell] = StimulusReadings(tuple(keys), isinstance(longest.space, Sphere), filled)
    return made


def _borrowed(gaze: Floats, viewer: int, order: Ints) -> Floats:
    """A viewer's readings; where there is none, that of the first of the others who has one."""
    own = gaze[viewer].copy()
    for other in order.tolist():
        missing = np.isnan(own[:, 0])
        if not missing.any():
            break
        own[missing] = gaze[other, missing]
    return own


def without_company(read: Mapping[RecordingKey, GazeBySlot], least: int) -> tuple[int, int]:
    """How many recordings are of a stimulus that fewer than `least` people saw, and how many others
    go on for more than a second after fewer than `least` people's are left.
    """
    longest_s: dict[Shown, dict[str, float]] = {}
    for key, gaze in read.items():
        people = longest_s.setdefault((key[1], key[3]), {})
        people[key[0]] = max(gaze.seconds, people.get(key[0], 0.0))
    alone = ends = 0
    for key, gaze in read.items():
        seconds = sorted(longest_s[key[1], key[3]].values(), reverse=True)
        if len(seconds) < least:
            alone += 1
        elif gaze.seconds > seconds[least - 1] + 1.0:
            ends += 1
    return alone, ends
