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
def _moves(
    places: Floats,
    usable: Bools,
    others: Ints,
    slot: int,
    stay: float,
    move_deg: float,
    sphere: bool,
    out: Floats,
) -> None:
    """Probability of each step from the slot before, shape (others, others)."""
    m = len(others)
    for a in range(m):
        here, total, able = others[a], 0.0, 0
        for c in range(m):
            out[a, c] = 0.0
            if usable[others[c], slot]:
                able += 1
                away = _apart_deg(places[here, slot - 1], places[others[c], slot], sphere)
                out[a, c] = math.exp(-away / move_deg)
                total += out[a, c]
        kept = stay if usable[here, slot] else 0.0
        for c in range(m):
            if total > 0.0:
                out[a, c] *= (1.0 - kept) / total
            elif usable[others[c], slot]:
                # All are too far for a double: any of them.
                out[a, c] = (1.0 - kept) / able
        if kept > 0.0:
            out[a, a] += kept


@compiled
def _drawn(weights: Floats, uniform: float) -> int:
    total = 0.0
    for w in weights:
        total += w
    rest, last = uniform * total, -1
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
    others: Ints,
    b_deg: float,
    stay: float,
    move_deg: float,
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
        Where every viewer may be followed to.
    usable : array of bool, shape (viewers, slots)
        Whether a viewer may be followed.
    others : array of int64
        Who may be followed: never the person.
    b_deg, move_deg : float
        Lengths in degrees, see the module.
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
    slots, m = len(own), len(others)
    path = np.full(slots, NOBODY)
    if m == 0:
        return path
    forward, steps = np.zeros((slots, m)), np.empty((slots, m, m))
    for j in range(slots):
        nearest = np.inf
        for c in range(m):
            if own_seen[j] and usable[others[c], j]:
                nearest = min(nearest, _apart_deg(own[j], places[others[c], j], sphere))
        begun = j > 0 and forward[j - 1].sum() > 0.0
        if begun:
            _moves(places, usable, others, j, stay, move_deg, sphere, steps[j])
        for c in range(m):
            if usable[others[c], j]:
                prior = 1.0
                if begun:
                    # A viewer who cannot be reached is not impossible: slots are never left empty.
                    prior = _LEAST
                    for a in range(m):
                        prior += forward[j - 1, a] * steps[j, a, c]
                if own_seen[j]:
                    # Counted from the nearest, so that no distance is too large for a double.
                    away = _apart_deg(own[j], places[others[c], j], sphere) - nearest
                    prior *= max(math.exp(-away / b_deg), _LEAST)
                forward[j, c] = prior
        total = forward[j].sum()
        if total > 0.0:
            forward[j] /= total
    ahead = NOBODY
    for j in range(slots - 1, -1, -1):
        weights = forward[j].copy()
        if ahead != NOBODY and weights.sum() > 0.0:
            weights *= np.maximum(steps[j + 1, :, ahead], _LEAST)
        ahead = _drawn(weights, uniforms[j])
        if ahead != NOBODY:
            path[j] = others[ahead]
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
