"""Compiled draws of events from seed records, with the test of
:mod:`gazeveil.privacy.synthesis.events_pd.deniable_seeds`.

Kernels take random words from a position on and give the position after them, -1 if they did not
suffice.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import draw_laplace, laplace_scale
from gazeveil.privacy.randomness.rng import WordArray
from gazeveil.privacy.randomness.uniform import draw_below
from gazeveil.privacy.synthesis.events_pd.seed_density import SeedRecords, density, plausible

#: No synthetic fixation is shorter.
LEAST_FIXATION_S = 0.02


class Rule(NamedTuple):
    """Which records may seed an event, and when it passes; made with :meth:`of`.

    Parameters
    ----------
    k : int
        How many people must be plausible.
    width : float
        Of a cell in the natural logarithm.
    t, s : uint64
        The noise of the threshold has scale t / s, which is 1 / epsilon0.
    margin : int
        How far the middle of the threshold lies above k.
    attempts : int
        Most attempts for one event.
    window_s : float
        Records that begin within this many seconds of an event's time may seed it.
    nearest : bool
        Of these only each person's first from that time on, or their last where there is none.
    """

    k: int
    width: float
    t: np.uint64
    s: np.uint64
    margin: int
    attempts: int
    window_s: float
    nearest: bool

    @classmethod
    def of(
        cls,
        k: int,
        width: float,
        epsilon0: Fraction,
        margin: int,
        attempts: int,
        window_s: float,
        nearest: bool,
    ) -> Rule:
        """With the exact scale of the threshold's noise."""
        t, s = laplace_scale(1 / epsilon0)
        return cls(k, width, np.uint64(t), np.uint64(s), margin, attempts, window_s, nearest)


class EventTiming(NamedTuple):
    """How time goes on from one event to the next.

    Parameters
    ----------
    column : int
        Which of a fixation's values is the logarithm of its seconds.
    unit, middle : float
        That logarithm is middle + unit * value.
    lost_s : float
        What a fixation that never passed takes.
    between_s : float
        What lies between two fixations.
    """

    column: int
    unit: float
    middle: float
    lost_s: float
    between_s: float


class EventsSoFar(NamedTuple):
    """What :func:`fill` fills.

    Parameters
    ----------
    fixations, places, saccades : arrays, shape (n, numbers)
        NaN where an event never passed.
    counts : array of int64, shape (2,)
        Pairs of events, and attempts made.
    joint : array, shape (people,)
        Logarithm of the density of everything under each person, where one person seeds all.
    time_s : array, shape (1,)
        When the next pair begins.
    """

    fixations: Floats
    places: Floats
    saccades: Floats
    counts: Ints
    joint: Floats
    time_s: Floats


class _Workspace(NamedTuple):
    """Which records of each person may seed the event, and room for densities."""

    spans: Ints
    terms: Floats


@compiled
def unit_uniform(word: np.uint64) -> float:
    """Uniform on (0, 1] in steps of 2**-53."""
    return (float(word >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled
def _fine(high: np.uint64, low: np.uint64) -> float:
    """Uniform on (0, 1] with 53 bits after the first one however small it is, so that its logarithm
    leaves no gaps down to 2**-53.
    """
    return (float(high >> np.uint64(11)) + unit_uniform(low)) * 2.0**-53


@compiled
def _on_grid(value: float) -> float:
    """The nearest multiple of 2**-20: coarse beside the steps of floats, so that which values are
    possible says nothing about where noise was added.
    """
    return math.floor(value * 1048576.0 + 0.5) / 1048576.0


@compiled
def _span(
    onset: Floats, first: int, last: int, at_s: float, window_s: float, nearest: bool
) -> tuple[int, int]:
    """The records of one person that may seed an event at a time."""
    lo, hi = first, last
    begin = at_s if nearest else at_s - window_s
    while lo < hi:
        middle = (lo + hi) // 2
        if onset[middle] < begin:
            lo = middle + 1
        else:
            hi = middle
    if nearest and lo == last and last > first and onset[last - 1] >= at_s - window_s:
        return last - 1, last
    stop = lo
    while stop < last and onset[stop] <= at_s + window_s and (stop == lo or not nearest):
        stop += 1
    return lo, stop


@compiled
def _moved(place: Floats, kappa: float, u: float, turn: float, out: Floats) -> None:
    """A place moved by the von Mises-Fisher law of that concentration (Ulrich 1984; in three
    dimensions in closed form).
    """
    w = 1.0 + math.log(u + (1.0 - u) * math.exp(-2.0 * kappa)) / kappa
    side = math.sqrt(max(1.0 - w * w, 0.0))
    # two directions across, the first from an axis that is far from the place
    ax, ay = (1.0, 0.0) if abs(place[0]) < 0.6 else (0.0, 1.0)
    bx, by, bz = -place[2] * ay, place[2] * ax, place[0] * ay - place[1] * ax
    n = math.sqrt(bx * bx + by * by + bz * bz)
    bx, by, bz = bx / n, by / n, bz / n
    cx = place[1] * bz - place[2] * by
    cy = place[2] * bx - place[0] * bz
    cz = place[0] * by - place[1] * bx
    p, q = side * math.cos(turn), side * math.sin(turn)
    out[0] = _on_grid(w * place[0] + p * bx + q * cx)
    out[1] = _on_grid(w * place[1] + p * by + q * cy)
    out[2] = _on_grid(w * place[2] + p * bz + q * cz)
    n = math.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    for i in range(3):
        out[i] /= n


@compiled
def _from_record(
    seeds: SeedRecords, lo: int, hi: int, words: WordArray, position: int, y: Floats, where: Floats
) -> int:
    """An event from one of some records, moved by noise."""
    size = seeds.values.shape[1]
    picked, position = draw_below(np.uint64(hi - lo), words, position)
    if position < 0 or position + 3 * ((size + 1) // 2) + 3 > len(words):
        return -1
    r = lo + np.int64(picked)
    for d in range(0, size, 2):
        radius = math.sqrt(-2.0 * math.log(_fine(words[position], words[position + 1])))
        turn = 2.0 * math.pi * unit_uniform(words[position + 2])
        position += 3
        y[d] = _on_grid(seeds.values[r, d] + radius * math.cos(turn))
        if d + 1 < size:
            y[d + 1] = _on_grid(seeds.values[r, d + 1] + radius * math.sin(turn))
    if seeds.kappa > 0.0:
        u = _fine(words[position], words[position + 1])
        turn = 2.0 * math.pi * unit_uniform(words[position + 2])
        _moved(seeds.place[r], seeds.kappa, u, turn, where)
        position += 3
    return position


@compiled
def _crowd_event(
    seeds: SeedRecords,
    rule: Rule,
    room: _Workspace,
    words: WordArray,
    position: int,
    y: Floats,
    where: Floats,
    counts: Ints,
) -> tuple[bool, int]:
    """Whether an event of a random person passed the test, in up to so many attempts."""
    people, spans = np.uint64(len(seeds.starts) - 1), room.spans
    for _ in range(rule.attempts):
        counts[1] += 1
        coin, position = draw_below(people, words, position)
        if position < 0:
            return False, -1
        chosen, position = draw_below(people, words, position)
        if position < 0:
            return False, -1
        noise, position = draw_laplace(rule.t, rule.s, words, position)
        if position < 0:
            return False, -1
        person, wanted = np.int64(chosen), max(np.int64(rule.k), rule.k + rule.margin + noise)
        lo, hi = spans[person, 0], spans[person, 1]
        if coin == np.uint64(0) or hi == lo or wanted > np.int64(people):
            continue
        position = _from_record(seeds, lo, hi, words, position, y, where)
        if position < 0:
            return False, -1
        if plausible(seeds, spans, person, wanted, rule.width, y, where, room.terms):
            return True, position
    return False, position


@compiled
def _own_event(
    seeds: SeedRecords,
    own: int,
    spans: Ints,
    words: WordArray,
    position: int,
    y: Floats,
    where: Floats,
    out: EventsSoFar,
) -> tuple[bool, int]:
    """Whether one person has an event there; its density under everybody goes into `out.joint`."""
    out.counts[1] += 1
    there = spans[own, 1] > spans[own, 0]
    if there:
        position = _from_record(seeds, spans[own, 0], spans[own, 1], words, position, y, where)
        if position < 0:
            return False, -1
    for a in range(len(seeds.starts) - 1):
        lo, hi = spans[a, 0], spans[a, 1]
        if not there:
            # Every person with a record there would have released some event.
            if hi > lo:
                out.joint[a] = -math.inf
        else:
            out.joint[a] += density(seeds, lo, hi, y, where) if hi > lo else -math.inf
    return there, position


@compiled
def _event(
    seeds: SeedRecords,
    at_s: float,
    rule: Rule,
    own: int,
    room: _Workspace,
    words: WordArray,
    position: int,
    y: Floats,
    where: Floats,
    out: EventsSoFar,
) -> tuple[bool, int]:
    """Whether there is an event at a time; the crowd's for a negative `own`."""
    for a in range(len(seeds.starts) - 1):
        room.spans[a, 0], room.spans[a, 1] = _span(
            seeds.onset_s, seeds.starts[a], seeds.starts[a + 1], at_s, rule.window_s, rule.nearest
        )
    if own < 0:
        return _crowd_event(seeds, rule, room, words, position, y, where, out.counts)
    return _own_event(seeds, own, room.spans, words, position, y, where, out)


@compiled
def fill(
    length_s: float,
    timing: EventTiming,
    fixations: SeedRecords,
    saccades: SeedRecords,
    rule: Rule,
    own: int,
    words: WordArray,
    out: EventsSoFar,
) -> tuple[int, bool]:
    """Events of a recording from where `out` stands: the position up to which words were used, and
    whether they sufficed.
    """
    counts, joint = out.counts, out.joint
    position, at_s, n = 0, out.time_s[0], counts[0]
    before = joint.copy()
    room = _Workspace(
        np.empty((len(fixations.starts), 2), dtype=np.int64),
        np.empty(max(len(fixations.onset_s), len(saccades.onset_s))),
    )
    f, p, z = np.empty(fixations.values.shape[1]), np.zeros(3), np.empty(saccades.values.shape[1])
    while at_s < 1.05 * length_s + 1.0 and n < len(out.fixations):
        when_s = min(at_s, length_s)
        begin, tried = position, counts[1]
        before[:] = joint
        passed, position = _event(fixations, when_s, rule, own, room, words, position, f, p, out)
        if position < 0:
            counts[1], joint[:] = tried, before
            return begin, False
        lasts = timing.lost_s
        if passed:
            out.fixations[n], out.places[n] = f, p
            lasts = max(math.exp(timing.middle + timing.unit * f[timing.column]), LEAST_FIXATION_S)
        passed, position = _event(saccades, when_s, rule, own, room, words, position, z, p, out)
        if position < 0:
            counts[1], joint[:] = tried, before
            return begin, False
        if passed:
            out.saccades[n] = z
        n += 1
        at_s += lasts + timing.between_s
        counts[0], out.time_s[0] = n, at_s
    return position, True
