"""Noisy readings of all viewers of one stimulus: the private part of `mosaic`. Everything else is
computed from them.

Public windows: when pieces begin and end, the same for every viewer of a stimulus.

A piece rendered by the public eye of `clock-render`.

Crowds: everybody who saw one stimulus, and the public windows they are cut into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.losses.public_clock import on_clock, steps_of
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.clock.stage import show
from gazeveil.privacy.synthesis.ksame.mechanism import common_space, one_kind_of_space

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.mosaic.mechanism import Mosaic


@dataclass(frozen=True)
class PublicWindows:
    """Windows of whole slots, one after the other, with a gap after each.

    Parameters
    ----------
    rate_hz : float
        Of the clock, in Hz.
    slot : int
        Samples of a slot.
    piece, gap : int
        Slots of a piece and of the gap after it.
    count : int
        How many windows there are.

    Examples
    --------
    >>> windows = PublicWindows.of(250.0, 63, Fraction(5), Fraction(1), Fraction(18))
    >>> windows.piece, windows.gap, windows.count
    (20, 4, 3)
    """

    rate_hz: float
    slot: int
    piece: int
    gap: int
    count: int

    @classmethod
    def of(
        cls, rate_hz: float, slot: int, piece_s: Fraction, gap_s: Fraction, duration_s: Fraction
    ) -> PublicWindows:
        """The windows that fit into a duration: pieces and gaps have the nearest number of slots,
        pieces at least one; a gap that is asked for has at least one too.
        """
        slot_s = slot / Fraction(repr(float(rate_hz)))
        piece = max(1, round(piece_s / slot_s))
        gap = max(1 if gap_s > 0 else 0, round(gap_s / slot_s))
        slots = math.floor(duration_s / slot_s)
        return cls(rate_hz, slot, piece, gap, max(0, (slots + gap) // (piece + gap)))

    @property
    def slots(self) -> int:
        """Slots from the first window's beginning to the last one's end."""
        return max(0, self.count * (self.piece + self.gap) - self.gap)

    @property
    def duration_s(self) -> Fraction:
        """The same in seconds."""
        return self.slots * self.slot / Fraction(repr(float(self.rate_hz)))

    @property
    def piece_samples(self) -> int:
        """Samples of a piece."""
        return self.piece * self.slot

    @property
    def samples_read(self) -> int:
        """Samples of all pieces of a recording together; outside them nothing is read."""
        return self.count * self.piece_samples

    def slice(self, window: int) -> slice:
        """The slots of a window."""
        begin = window * (self.piece + self.gap)
        return slice(begin, begin + self.piece)

    def times_ns(self, window: int) -> Ints:
        """Times of a window's samples from the beginning of the stimulus, in nanoseconds."""
        first = window * (self.piece + self.gap) * self.slot
        ticks = np.arange(first, first + self.piece_samples)
        return np.rint(ticks * (1e9 / self.rate_hz)).astype(np.int64)

    def inside(self) -> Bools:
        """Whether each sample of the clock lies in a piece."""
        slots = np.arange(self.slots) % (self.piece + self.gap) < self.piece
        return np.repeat(slots, self.slot)


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


@dataclass(frozen=True, eq=False)
class PieceRendering:
    """A piece that is rendered when it is called; the same each time.

    Parameters
    ----------
    key : (person, stimulus, session, task)
        Of the piece.
    space : Sphere or Screen
        What degrees mean.
    windows : PublicWindows
        When pieces are.
    t_ns : array of int64
        Times of the samples of its window.
    law : pair of arrays of float64
        Of readings and of the eye that renders, as `ClockRender` has them.
    slot_x, slot_y : array, shape (slots,)
        Where the path lies, in degrees.
    there : array of bool, shape (slots,)
        Whether it has a place.
    eye : int
        Random key of the eye.
    """

    key: RecordingKey
    space: Space
    windows: PublicWindows
    t_ns: Ints = field(repr=False)
    law: tuple[Floats, Floats] = field(repr=False)
    slot_x: Floats = field(repr=False)
    slot_y: Floats = field(repr=False)
    there: Bools = field(repr=False)
    eye: int

    def __call__(self) -> Recording:
        """The piece."""
        n = len(self.t_ns)
        x, y, valid = np.empty((1, n)), np.empty((1, n)), np.empty((1, n), dtype=np.bool_)
        show(
            np.ascontiguousarray(self.slot_x)[None],
            np.ascontiguousarray(self.slot_y)[None],
            self.there[None],
            self.windows.slot,
            *self.law,
            np.array([self.eye], dtype=np.uint64),
            x,
            y,
            valid,
        )
        person, stimulus, session, task = self.key
        return Recording(
            person,
            stimulus,
            self.t_ns,
            x[0],
            y[0],
            valid[0],
            space=self.space,
            rate_hz=self.windows.rate_hz,
            session=session,
            task=task,
        )


_NAMED = 3


@dataclass(frozen=True, eq=False)
class Crowd:
    """Recordings of one stimulus under one task, in the order of their keys; the space of the
    release, and the windows where pieces lie.
    """

    items: tuple[Recording | Handle, ...]
    space: Space
    windows: PublicWindows


@dataclass(frozen=True)
class _Known:
    """What is known of a recording before it is read."""

    person: str
    space: Space
    rate_hz: float
    seconds: Fraction


def crowds_of(mechanism: Mosaic, data: Cohort) -> list[Crowd]:
    """The crowds of a cohort, sorted by stimulus and task; recordings are loaded one at a time.

    Raises
    ------
    ParameterError, DataError
        See :meth:`Mosaic.release_with_origins`.
    """
    if not isinstance(data, Cohort):
        checks.refuse(
            mechanism.name,
            "data",
            "a Cohort",
            data,
            "Put recordings into one with gazeveil.Cohort(recordings).",
        )
    by_stimulus: dict[tuple[str, str], list[Recording | Handle]] = {}
    for item in sorted(data.items, key=lambda i: i.key):
        by_stimulus.setdefault((item.stimulus, item.task), []).append(item)
    _refuse_small(mechanism, by_stimulus)
    known = {item.key: _known(mechanism, item) for item in data.items}
    one_kind_of_space((key, k.space) for key, k in known.items())
    rate_hz = (
        float(np.median([k.rate_hz for k in known.values()]))
        if mechanism.clock_hz is None
        else float(mechanism.clock_hz)
    )
    crowds = []
    for (stimulus, _), items in sorted(by_stimulus.items()):
        own = [known[item.key] for item in items]
        windows = _windows(mechanism, stimulus, own, rate_hz)
        crowds.append(Crowd(tuple(items), common_space([k.space for k in own]), windows))
    return crowds


def _refuse_small(
    mechanism: Mosaic, by_stimulus: dict[tuple[str, str], list[Recording | Handle]]
) -> None:
    small = [
        f"'{stimulus}' ({len({i.person for i in items})})"
        for (stimulus, _), items in sorted(by_stimulus.items())
        if len({i.person for i in items}) < mechanism.crowd
    ]
    if not by_stimulus:
        raise DataError(f"{mechanism.name} needs recordings, and this cohort has none.")
    if small:
        more = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
        raise DataError(
            f"{mechanism.name} with crowd = {mechanism.crowd} needs at least {mechanism.crowd}"
            f" people for every stimulus. Too few saw {', '.join(small[:_NAMED])}{more}. Leave"
            " these stimuli out, or choose a smaller crowd. Nothing was released."
        )


def _known(mechanism: Mosaic, item: Recording | Handle) -> _Known:
    recording = item if isinstance(item, Recording) else item.load()
    if not recording.rate_hz > 0:
        raise DataError(
            f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            " Nothing was released."
        )
    rate_hz = recording.rate_hz if mechanism.clock_hz is None else float(mechanism.clock_hz)
    steps = steps_of(recording, rate_hz, None)[1]
    seconds = Fraction(steps) / Fraction(repr(rate_hz))
    return _Known(recording.person, recording.space, recording.rate_hz, seconds)


def _windows(
    mechanism: Mosaic, stimulus: str, known: list[_Known], rate_hz: float
) -> PublicWindows:
    # By person: a person with many long recordings would be alone in the last windows. All pieces
    # there would be made of that one person's readings.
    longest: dict[str, Fraction] = {}
    for k in known:
        longest[k.person] = max(k.seconds, longest.get(k.person, k.seconds))
    common_s = sorted(longest.values(), reverse=True)[mechanism.crowd - 1]
    duration_s = common_s if mechanism.duration_s is None else Fraction(mechanism.duration_s)
    slot = mechanism.reader.clock(rate_hz).length
    windows = PublicWindows.of(
        rate_hz, slot, Fraction(mechanism.piece_s), Fraction(mechanism.gap_s), duration_s
    )
    if windows.count == 0 or windows.duration_s > common_s + slot / Fraction(repr(rate_hz)):
        enough = f"recordings of stimulus '{stimulus}' by {mechanism.crowd} people"
        raise DataError(
            f"{mechanism.name} cuts pieces of {float(mechanism.piece_s):g} s out of"
            f" {float(duration_s):g} s, and {enough} last no longer than {float(common_s):g} s."
            " Choose shorter pieces or a shorter duration_s. Nothing was released."
        )
    return windows
