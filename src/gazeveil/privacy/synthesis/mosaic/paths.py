"""Paths of pieces, as places slot by slot, from the readings of a crowd."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.randomness.uniform import generator, shuffled
from gazeveil.privacy.synthesis.mosaic.readings import CrowdReadings, others_of
from gazeveil.privacy.synthesis.mosaic.stitching import NOBODY, followed

#: What the path of a piece is made of: the person's own readings; those of a few people, dealt anew
#: for every segment; or those of others alone, near the person's own.
PATHS = ("own", "exchange", "stitch")

#: Most others a path may follow; more are drawn from at random, so that time grows with the number
#: of viewers and not with its cube.
MOST_OTHERS = 64


@dataclass(frozen=True)
class PathLaw:
    """How paths are made.

    Parameters
    ----------
    paths : str
        One of :data:`PATHS`.
    b_deg, move_deg : float
        See :mod:`gazeveil.privacy.synthesis.mosaic.stitching`, in degrees.
    stay : float
        Probability of following the same viewer for another slot.
    among : int
        How many people exchange segments.
    segment : int
        Slots of a segment.
    """

    paths: str
    b_deg: float
    move_deg: float
    stay: float
    among: int
    segment: int


@dataclass(frozen=True, eq=False)
class WindowPaths:
    """The paths of all viewers in one window.

    Parameters
    ----------
    places : array, shape (viewers, slots, 3)
        As in :class:`CrowdReadings`.
    there : array of bool, shape (viewers, slots)
        False where no viewer of the stimulus has been seen at all.
    origins : array of int64, shape (viewers,)
        Whose recording each path was made for, everybody's once: of exchanged segments such that
        as many as can be are the owner's.
    """

    places: Floats = field(repr=False)
    there: Bools = field(repr=False)
    origins: Ints = field(repr=False)


def paths_in(readings: CrowdReadings, window: int, law: PathLaw, source: Source) -> WindowPaths:
    """The paths of one window, with fresh random numbers for every viewer, from a source for this
    window alone.
    """
    slots = readings.windows.slice(window)
    own, seen = readings.places[:, slots], readings.seen[:, slots]
    drawn, there = _stitched(readings, slots, law, source)
    origins = np.arange(len(own))
    if law.paths == "stitch":
        return WindowPaths(drawn, there, origins)
    # A slot without a reading is filled from the crowd, so that losses leave no trace.
    mixed = np.where(seen[:, :, None], own, drawn)
    if law.paths == "exchange":
        dealt, origins = _exchanged(len(own), own.shape[1], law, Words(source))
        mixed = np.take_along_axis(mixed, dealt[:, :, None], axis=0)
        there = np.take_along_axis(there | seen, dealt, axis=0)
        return WindowPaths(mixed, there, origins)
    return WindowPaths(mixed, there | seen, origins)


def _stitched(
    readings: CrowdReadings, slots: slice, law: PathLaw, source: Source
) -> tuple[Floats, Bools]:
    """A path for every viewer from the readings of others."""
    # Places are filled over the whole stimulus: the first slots of a window may be empty.
    places = np.ascontiguousarray(readings.filled[:, slots])
    usable = np.ascontiguousarray(readings.usable[:, slots])
    random = generator(source)
    drawn = np.zeros_like(places)
    there = np.zeros(usable.shape, dtype=np.bool_)
    for viewer in range(len(places)):
        others = others_of(readings.keys, viewer)
        if len(others) > MOST_OTHERS:
            others = random.permutation(others)[:MOST_OTHERS]
        path = followed(
            np.ascontiguousarray(readings.places[viewer, slots]),
            np.ascontiguousarray(readings.seen[viewer, slots]),
            places,
            usable,
            others,
            law.b_deg,
            law.stay,
            law.move_deg,
            readings.sphere,
            np.asarray(random.random(places.shape[1])),
        )
        there[viewer] = path != NOBODY
        drawn[viewer] = places[path, np.arange(len(path))]
    return drawn, there


def _exchanged(viewers: int, slots: int, law: PathLaw, words: Words) -> tuple[Ints, Ints]:
    """Who gives each slot of each path, shape (viewers, slots), and whose each path is: people are
    put together in groups, and the segments of a group are dealt anew for every segment.
    """
    groups = np.array_split(shuffled(viewers, words), max(1, viewers // law.among))
    dealt = np.empty((viewers, slots), dtype=np.int64)
    origins = np.empty(viewers, dtype=np.int64)
    for group in groups:
        for begin in range(0, slots, law.segment):
            given = group[shuffled(len(group), words)]
            dealt[group, begin : begin + law.segment] = given[:, None]
        origins[group] = group[_owners(dealt[group], group)]
    return dealt, origins


def _owners(dealt: Ints, group: Ints) -> Ints:
    """Whose each path of a group is: everybody has one, and paths hold as many slots of their
    owners as can be.
    """
    from scipy.optimize import linear_sum_assignment

    given = (dealt[:, :, None] == group).sum(axis=1)
    return np.asarray(linear_sum_assignment(given, maximize=True)[1], dtype=np.int64)


def dealt_names(viewers: int, words: Words) -> Ints:
    """A number from 0 to viewers - 1 for each viewer: every way to deal them is as likely as every
    other, whatever the data are.
    """
    return shuffled(viewers, words)
