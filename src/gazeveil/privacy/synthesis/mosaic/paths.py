"""Paths of pieces, as places slot by slot, from the readings of a crowd.

Paths drawn from the readings of others: forward filtering and backward sampling.

A path follows one other viewer at a time. From slot to slot it keeps following the same one with
probability `stay`, or moves on to any of them, the likelier the nearer the new one's place is to
where the path was (exp(-distance / move_deg)). In each slot the person's own reading says how
likely each of the others' readings is to stand for it (exp(-distance / b_deg)); a slot without a
reading says nothing, so that losses leave no trace. The path is one draw from the posterior of this
model, not its best explanation: two draws differ, and neither is the person's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.randomness.rng import Source, Words, generator, shuffled
from gazeveil.privacy.synthesis.mosaic.readings import CrowdReadings, others_of

#: Marks a slot without a viewer to follow.
NOBODY = -1

# Probability of what the model calls impossible.
_LEAST = 1e-100


@compiled
def _apart_deg(a: Floats, b: Floats, sphere: bool) -> float:
    square = (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
    if not sphere:
        return math.sqrt(square)
    # From the chord: exact for small angles, where the cosine is not.
    return math.degrees(2.0 * math.asin(min(0.5 * math.sqrt(square), 1.0)))


@compiled
def nearness(places: Floats, move_deg: float, sphere: bool) -> Floats:
    """How near the place of each viewer in a slot is to that of each in the slot before: exp(-
    distance / move_deg), shape (slots, viewers before, viewers).
    """
    m, slots = places.shape[:2]
    out = np.zeros((slots, m, m))
    for j in range(1, slots):
        for a in range(m):
            for c in range(m):
                away = _apart_deg(places[a, j - 1], places[c, j], sphere)
                out[j, a, c] = math.exp(-away / move_deg)
    return out


@compiled
def _moves(near: Floats, usable: Bools, stay: float, out: Floats) -> None:
    """Probability of each step from the slot before, shape (viewers, viewers)."""
    m = len(usable)
    for a in range(m):
        for c in range(m):
            out[a, c] = near[a, c] * usable[c]
        total, kept = _total(out[a]), stay if usable[a] else 0.0
        if total == 0.0:
            # All are too far for a double: any of them.
            out[a] = usable
            total = _total(out[a])
        out[a] *= (1.0 - kept) / total
        out[a, a] += kept


@compiled
def _total(weights: Floats) -> float:
    # Numba's own sum would bring scipy into every process that protects: 0.2 s.
    total = 0.0
    for w in weights:
        total += w
    return total


@compiled
def _drawn(weights: Floats, uniform: float) -> int:
    rest, last = uniform * _total(weights), -1
    for i in range(len(weights)):
        if weights[i] > 0.0:
            last = i
            rest -= weights[i]
            if rest < 0.0:
                return i
    return last


@compiled
def followed(
    own: Floats,
    own_seen: Bools,
    places: Floats,
    usable: Bools,
    near: Floats,
    b_deg: float,
    stay: float,
    sphere: bool,
    uniforms: Floats,
) -> Ints:
    """Whom a path follows in each slot of a window.

    Parameters
    ----------
    own : array, shape (slots, 3)
        Readings of the person.
    own_seen : array of bool, shape (slots,)
        Where there is one.
    places : array, shape (viewers, slots, 3)
        Where each viewer may be followed to.
    usable : array of bool, shape (slots, viewers)
        Whether a viewer may be followed: never the person.
    near : array, shape (slots, viewers, viewers)
        Of :func:`nearness`.
    b_deg : float
        Length in degrees, see the module.
    stay : float
        Probability of following the same viewer for another slot.
    sphere : bool
        Whether places are unit vectors.
    uniforms : array, shape (slots,)
        Random numbers in [0, 1).

    Returns
    -------
    array of int64, shape (slots,)
        Numbers of viewers; -1 where none of them can be followed.
    """
    slots, m = usable.shape
    path = np.full(slots, NOBODY)
    forward, steps, away = np.zeros((slots, m)), np.empty((slots, m, m)), np.zeros(m)
    for j in range(slots):
        nearest = np.inf
        for c in range(m):
            if own_seen[j] and usable[j, c]:
                away[c] = _apart_deg(own[j], places[c, j], sphere)
                nearest = min(nearest, away[c])
        begun = j > 0 and _total(forward[j - 1]) > 0.0
        # A viewer who cannot be reached is not impossible: slots are never left empty.
        forward[j] = _LEAST if begun else 1.0
        if begun:
            _moves(near[j], usable[j], stay, steps[j])
            for a in range(m):  # for all c at a time, and for each in this order
                for c in range(m):
                    forward[j, c] += forward[j - 1, a] * steps[j, a, c]
        for c in range(m):
            if not usable[j, c]:
                forward[j, c] = 0.0
            elif own_seen[j]:
                # Counted from the nearest, so that no distance is too large for a double.
                forward[j, c] *= max(math.exp(-(away[c] - nearest) / b_deg), _LEAST)
        total = _total(forward[j])
        if total > 0.0:
            forward[j] /= total
    ahead = NOBODY
    for j in range(slots - 1, -1, -1):
        weights = forward[j].copy()
        if ahead != NOBODY and _total(weights) > 0.0:
            weights *= np.maximum(steps[j + 1, :, ahead], _LEAST)
        ahead = _drawn(weights, uniforms[j])
        path[j] = ahead
    return path


#: What the path of a piece is made of: the person's own readings; those of a few people, dealt anew
#: for every segment; those of people who look near one another in that segment; or those of others
#: alone, near the person's own.
PATHS = ("own", "exchange", "near", "stitch")

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
        See :mod:`gazeveil.privacy.synthesis.mosaic.paths`, in degrees.
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
    if law.paths in ("exchange", "near"):
        dealt, origins = _exchanged(mixed, readings.sphere, law, Words(source))
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
    usable = np.ascontiguousarray(readings.usable[:, slots].T)
    random = generator(source)
    drawn, there = np.zeros_like(places), np.zeros(places.shape[:2], dtype=np.bool_)
    many = len(places) > MOST_OTHERS + 1
    # How near viewers are is the same for every path, unless each has a few of a large crowd.
    near = nearness(places[: 0 if many else None], law.move_deg, readings.sphere)
    crowd, followable = np.arange(len(places)), places
    for viewer in range(len(places)):
        others = others_of(readings.keys, viewer)
        able = np.zeros_like(usable)
        able[:, others] = usable[:, others]
        if many:
            few = len(others) <= MOST_OTHERS
            crowd = others if few else random.permutation(others)[:MOST_OTHERS]
            followable, able = places[crowd], np.ascontiguousarray(able[:, crowd])
            near = nearness(followable, law.move_deg, readings.sphere)
        path = followed(
            np.ascontiguousarray(readings.places[viewer, slots]),
            np.ascontiguousarray(readings.seen[viewer, slots]),
            followable,
            able,
            near,
            law.b_deg,
            law.stay,
            readings.sphere,
            np.asarray(random.random(places.shape[1])),
        )
        there[viewer] = path != NOBODY
        drawn[viewer] = followable[path, np.arange(len(path))]
    return drawn, there


def _exchanged(places: Floats, sphere: bool, law: PathLaw, words: Words) -> tuple[Ints, Ints]:
    """Who gives each slot of each path, shape (viewers, slots), and whose each path is: people are
    put together in groups, and the segments of a group are dealt anew for every segment. Groups of
    `near` are formed anew for every segment too.
    """
    viewers, slots = places.shape[:2]
    everybody = np.arange(viewers)
    near = law.paths == "near"
    groups = [everybody]
    if not near:
        groups = np.array_split(shuffled(viewers, words), max(1, viewers // law.among))
    dealt = np.empty((viewers, slots), dtype=np.int64)
    for segment in range(0, slots, law.segment):
        part = slice(segment, segment + law.segment)
        dealing = _near_groups(places[:, part], sphere, law) if near else groups
        for group in dealing:
            dealt[group, part] = group[shuffled(len(group), words)][:, None]
    origins = np.empty(viewers, dtype=np.int64)
    for group in groups:
        origins[group] = group[_owners(dealt[group], group)]
    return dealt, origins


def _near_groups(places: Floats, sphere: bool, law: PathLaw) -> list[Ints]:
    """People who look near one another in a segment: the nearest pairs first, then who is within
    `b_deg` of everybody in a group, up to `among` people. People without a neighbour stay alone.
    """
    apart = np.linalg.norm(places[:, None] - places[None], axis=3).mean(axis=2)
    if sphere:
        apart = np.degrees(2.0 * np.arcsin(np.minimum(0.5 * apart, 1.0)))
    free = np.ones(len(places), dtype=np.bool_)
    groups: list[Ints] = []
    for first in np.argsort((apart + 720.0 * np.eye(len(apart))).min(axis=1), kind="stable"):
        if not free[first]:
            continue
        group, free[first] = [int(first)], False
        while len(group) < law.among:
            farthest = np.where(free, apart[group].max(axis=0), np.inf)
            other = int(farthest.argmin())
            if not farthest[other] <= law.b_deg:
                break
            group.append(other)
            free[other] = False
        groups.append(np.array(group, dtype=np.int64))
    return groups


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
