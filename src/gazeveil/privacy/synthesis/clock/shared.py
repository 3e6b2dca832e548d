"""Many people on one public clock: where each of them looks in each slot, and recordings rendered
from such places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.synthesis.clock import eye as clock_eye
from gazeveil.privacy.synthesis.clock import places as clock_places
from gazeveil.privacy.synthesis.clock.stage import show
from gazeveil.privacy.synthesis.ksame.groups import one_kind_of_space
from gazeveil.privacy.synthesis.ksame.pairs import degrees, places

#: Standard deviation along an axis, in degrees, up to which means of people are taken for one
#: place, and seconds without one that are filled.
SPREAD_DEG, FILL_S = 0.5, 1.0

#: The longest recording that is put on a clock, in slots: about three months at four a second.
_MOST_SLOTS = 1 << 25


@dataclass(frozen=True, eq=False)
class GazeBySlot:
    """Where one recording looked, slot by slot.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    rate_hz : float
        Samples per second; NaN where it is not known, and then there are no slots.
    samples, length : int
        Samples of the recording and of a slot.
    places : array, shape (slots, 3)
        Unit vectors on a sphere, (x, y, 0) on a screen; NaN where nothing was seen.
    """

    space: Space
    rate_hz: float
    samples: int
    length: int
    places: Floats = field(repr=False)

    @property
    def seconds(self) -> float:
        """The whole recording."""
        return self.samples / self.rate_hz

    def at(self, rate_hz: float, length: int, slots: int) -> Floats:
        """The places in the slots of another clock, shape (slots, 3): those under way in the middle
        of them.
        """
        middle_s = (np.arange(slots) + 0.5) * (length / rate_hz)
        slot = np.floor(middle_s * (self.rate_hz / self.length) + 1e-9).astype(np.int64)
        out = np.full((slots, 3), np.nan)
        there = slot < len(self.places)
        out[there] = self.places[slot[there]]
        return out


def length_of(slot_s: Fraction, rate_hz: float) -> int:
    """Samples of a slot, rounded up."""
    return max(1, math.ceil(slot_s * Fraction(repr(float(rate_hz)))))


def seen(recording: Recording, slot_s: Fraction) -> GazeBySlot:
    """Where a recording looked in each slot: the mean of the good samples of the slot's middle
    fifth, else the good sample nearest to its middle.
    """
    if not recording.rate_hz > 0 or len(recording) == 0:
        return GazeBySlot(recording.space, recording.rate_hz, len(recording), 1, np.empty((0, 3)))
    length = length_of(slot_s, recording.rate_hz)
    slots = -(-len(recording) // length)
    if slots > _MOST_SLOTS:
        raise DataError(
            f"{recording.title} has {slots} slots of {float(slot_s):g} s, more than {_MOST_SLOTS}."
            " Choose longer slots."
        )
    good = recording.valid & np.isfinite(recording.x_deg) & np.isfinite(recording.y_deg)
    x, y = (np.where(good, a, 0.0) for a in (recording.x_deg, recording.y_deg))
    middles = _middles(np.ascontiguousarray(places(recording.space, x, y)), good, length, slots)
    if isinstance(recording.space, Sphere):
        size = np.linalg.norm(middles, axis=1, keepdims=True)
        middles = np.divide(middles, size, out=np.full_like(middles, np.nan), where=size > 1e-9)
    return GazeBySlot(recording.space, recording.rate_hz, len(recording), length, middles)


@compiled
def _middles(place: Floats, good: Bools, length: int, slots: int) -> Floats:
    out = np.full((slots, 3), np.nan)
    for j in range(slots):
        begin, end = j * length, min((j + 1) * length, len(good))
        low, high = begin + (2 * (end - begin)) // 5, begin + (3 * (end - begin) + 4) // 5
        total, count = np.zeros(3), 0
        for i in range(low, max(high, low + 1)):
            if good[i]:
                total += place[i]
                count += 1
        if count == 0:
            middle, best = (begin + end - 1) / 2.0, -1
            for i in range(begin, end):
                if good[i] and (best < 0 or abs(i - middle) < abs(best - middle)):
                    best = i
            if best >= 0:
                total, count = place[best].copy(), 1
        if count > 0:
            out[j] = total / count
    return out


def all_seen(data: Cohort, slot_s: Fraction) -> dict[RecordingKey, GazeBySlot]:
    """Every recording of a cohort on the clock; one is held at a time.

    Raises
    ------
    DataError
        For a stimulus that some saw on a sphere and some on a screen.
    """
    gaze: dict[RecordingKey, GazeBySlot] = {}
    for item in data.items:
        gaze[item.key] = seen(item if isinstance(item, Recording) else item.load(), slot_s)
    one_kind_of_space((key, places.space) for key, places in gaze.items())
    return gaze


@dataclass(frozen=True, eq=False)
class Law:
    """What a recording is rendered from; the fields are those of :class:`GazeBySlot`."""

    space: Space
    rate_hz: float
    samples: int
    length: int
    places: Floats = field(repr=False)


@dataclass(frozen=True)
class Rendering:
    """A recording that is rendered from a law with a public eye when it is called; the same each
    time.
    """

    key: RecordingKey
    law: Law
    eye: int

    def __call__(self) -> Recording:
        """The recording."""
        law = self.law
        sphere = isinstance(law.space, Sphere)
        n, slot_s = law.samples, law.length / law.rate_hz
        ok: Bools = np.isfinite(law.places[:, 0])
        slot_x, slot_y = degrees(law.space, np.where(ok[:, None], law.places, 0.0))
        edges = (
            (math.inf, math.inf)
            if isinstance(law.space, Sphere)
            else (law.space.width_deg / 2, law.space.height_deg / 2)
        )
        x, y, valid = np.empty((1, n)), np.empty((1, n)), np.empty((1, n), dtype=np.bool_)
        # means over people wander slowly; an eye does not, so it fixates and jumps after them
        model = clock_places.model(
            sphere, SPREAD_DEG, slot_s, False, math.ceil(FILL_S / slot_s - 1e-9)
        )
        settings = clock_eye.settings(sphere, law.rate_hz, edges, law.length // 4, law.length)
        show(
            slot_x[None],
            slot_y[None],
            ok[None],
            law.length,
            model,
            settings,
            np.array([self.eye], dtype=np.uint64),
            x,
            y,
            valid,
        )
        t: Ints = np.rint(np.arange(n) * (1e9 / law.rate_hz)).astype(np.int64)
        person, stimulus, session, task = self.key
        return Recording(
            person,
            stimulus,
            t,
            x[0],
            y[0],
            valid[0],
            space=law.space,
            rate_hz=law.rate_hz,
            session=session,
            task=task,
        )


def rendered(
    laws: Mapping[RecordingKey, Law], eyes: Mapping[RecordingKey, int], lazy: bool
) -> list[Recording | Handle]:
    """Recordings of all laws, at once or when they are looked at."""
    items: list[Recording | Handle] = []
    for key in sorted(laws):
        load = Rendering(key, laws[key], eyes[key])
        items.append(Handle(key[0], key[1], load, key[2], key[3]) if lazy else load())
    return items
