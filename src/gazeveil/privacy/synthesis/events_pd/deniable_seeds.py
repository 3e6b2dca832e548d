"""Synthetic events whose seed is a random person of a crowd, each with a randomised test of
plausible deniability.

The people who saw one stimulus are a *pool* of N. At a time of a synthetic recording an event is
drawn as follows, in up to so many attempts:

1. with probability 1/N the attempt is rejected in any case;
2. a person is drawn uniformly from the pool, and one of their *records* around that time,
   uniformly; who has none there is a rejection;
3. the event is the record moved by normal noise of a public size (its place on a sphere by the von
   Mises-Fisher law), rounded to a public grid;
4. with p_a the density that person a's records there would have given, averaged over them, the
   people are counted whose p_a lies in the cell of the drawn person's. The event passes if there
   are at least max(k, k + margin + z) of them, z fresh discrete Laplace noise of scale 1/epsilon0.

The floor k is there because of the attempts: without it, noise would let events pass that fewer
than k people could have seeded, if only one tried often enough. Nothing here knows for whom a
recording is made, so all names get recordings of one law: proofs/event-synth-pd.md.

:func:`draw` can also take all records from one person, without the test of single events; it then
adds up the logarithm of the density of everything it drew under each person of the pool, for a test
of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import draw_laplace, laplace_scale
from gazeveil.privacy.randomness.rng import Source, WordArray
from gazeveil.privacy.randomness.uniform import draw_below
from gazeveil.privacy.synthesis.events_pd.seed_density import density, plausible, turned

#: No synthetic fixation is shorter.
LEAST_FIXATION_S = 0.02

# Random words that a fixation and a saccade take together, and some more.
_WORDS = 80

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeedRecords:
    """Events of one kind of all people of a pool.

    Parameters
    ----------
    values : array, shape (records, numbers)
        What describes an event, in units of the noise's standard deviation; one person's records
        after another's, each in order of time.
    place : array, shape (records, 3)
        Unit vectors of places on a sphere; without a meaning where `kappa` is 0.
    kappa : float
        Concentration of the noise of places; 0 where places are among the values or there are none.
    onset_s : array, shape (records,)
        When each event begins.
    starts : array of int64, shape (people + 1,)
        Where each person's records begin, and the end.
    """

    values: Floats = field(repr=False)
    place: Floats = field(repr=False)
    kappa: float
    onset_s: Floats = field(repr=False)
    starts: Ints = field(repr=False)

    @property
    def people(self) -> int:
        """How many."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class Rule:
    """Which records may seed an event, and when it passes.

    Parameters
    ----------
    k : int
        How many people must be plausible.
    width : float
        Of a cell in the natural logarithm.
    epsilon0 : Fraction
        One over the scale of the threshold's noise.
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
    epsilon0: Fraction
    margin: int
    attempts: int
    window_s: float
    nearest: bool


@dataclass(frozen=True)
class EventTiming:
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


@dataclass(frozen=True, eq=False)
class Drawn:
    """Events of one synthetic recording, fixations and saccades in turn.

    Parameters
    ----------
    fixations, saccades : arrays, shape (n, numbers)
        Values as in :class:`SeedRecords`; rows of NaN are events that never passed.
    places : array, shape (n, 3)
        Places on a sphere.
    attempts : int
        How many were made.
    joint : array, shape (people,)
        Where all records were one person's: logarithm of the density of everything under each
        person.
    """

    fixations: Floats = field(repr=False)
    places: Floats = field(repr=False)
    saccades: Floats = field(repr=False)
    attempts: int
    joint: Floats = field(repr=False)


class _Seeds(NamedTuple):
    """:class:`SeedRecords` for the kernels, with the values turned for the density."""

    values: Floats
    place: Floats
    kappa: float
    rows: Floats
    onset: Floats
    starts: Ints


class _Test(NamedTuple):
    """:class:`Rule` for the kernels; the noise of the threshold has scale t / s."""

    k: int
    margin: int
    width: float
    attempts: int
    window_s: float
    nearest: bool
    t: np.uint64
    s: np.uint64


class _Timing(NamedTuple):
    """:class:`EventTiming` for the kernels."""

    column: int
    unit: float
    middle: float
    lost_s: float
    between_s: float


class _Out(NamedTuple):
    """What is filled: events, their number and that of attempts, densities, and the time."""

    fixations: Floats
    places: Floats
    saccades: Floats
    numbers: Ints
    joint: Floats
    time_s: Floats


def most_events(length_s: float, clock: EventTiming) -> int:
    """Most fixations that a recording of that length can hold, and most saccades."""
    return int((1.05 * length_s + 1.0) / (LEAST_FIXATION_S + clock.between_s)) + 2


def draw(
    fixations: SeedRecords,
    saccades: SeedRecords,
    rule: Rule,
    clock: EventTiming,
    length_s: float,
    source: Source,
    own: int = -1,
) -> Drawn:
    """Events for one recording.

    Parameters
    ----------
    fixations, saccades : SeedRecords
        Of the same pool.
    rule : Rule
        Which events may be released.
    clock : EventTiming
        How time goes on.
    length_s : float
        How long the recording is; a little more is drawn, because saccades differ in length.
    source : Source
        Random words.
    own : int
        The one person whose records are taken, without a test; -1 for the crowd.
    """
    t, s = laplace_scale(1 / rule.epsilon0)
    room = most_events(length_s, clock)
    resting, moving = (
        _Seeds(r.values, r.place, r.kappa, turned(r.values, r.place), r.onset_s, r.starts)
        for r in (fixations, saccades)
    )
    test = _Test(
        rule.k,
        rule.margin,
        rule.width,
        rule.attempts,
        rule.window_s,
        rule.nearest,
        np.uint64(t),
        np.uint64(s),
    )
    timing = _Timing(clock.column, clock.unit, clock.middle, clock.lost_s, clock.between_s)
    # Enough for some attempts per event; what is drawn does not depend on how many are taken at
    # once.
    words = source.take(
        4096
        + int(
            _WORDS
            * (1.05 * length_s + 1.0)
            / (min(math.exp(clock.middle), clock.lost_s) + clock.between_s)
        )
    )
    f, p, z = (
        np.full((room, n), np.nan) for n in (fixations.values.shape[1], 3, saccades.values.shape[1])
    )
    numbers, joint = np.zeros(2, dtype=np.int64), np.zeros(fixations.people)
    out = _Out(f, p, z, numbers, joint, np.zeros(1))
    while True:
        position, enough = _fill(length_s, timing, resting, moving, test, own, words, out)
        if enough:
            words[:] = 0  # used bits must not linger in memory
            n = int(numbers[0])
            return Drawn(f[:n], p[:n], z[:n], int(numbers[1]), joint)
        # The pair of events that ran out of words begins again with the same ones, and more after
        # them.
        more = source.take(len(words))
        both = np.concatenate((words[position:], more))
        words[:], more[:] = 0, 0
        words = both


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
    cx, cy, cz = (
        place[1] * bz - place[2] * by,
        place[2] * bx - place[0] * bz,
        place[0] * by - place[1] * bx,
    )
    p, q = side * math.cos(turn), side * math.sin(turn)
    out[0], out[1], out[2] = (
        _on_grid(w * place[0] + p * bx + q * cx),
        _on_grid(w * place[1] + p * by + q * cy),
        _on_grid(w * place[2] + p * bz + q * cz),
    )
    n = math.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    for i in range(3):
        out[i] /= n


@compiled
def _event(
    seeds: _Seeds,
    at_s: float,
    test: _Test,
    own: int,
    words: WordArray,
    position: int,
    spans: Ints,
    terms: Floats,
    y: Floats,
    where: Floats,
    numbers: Ints,
    joint: Floats,
) -> tuple[bool, int]:
    """One event: whether it passed, and the position after the words it took, -1 if they did not
    suffice.
    """
    people, size = len(seeds.starts) - 1, seeds.values.shape[1]
    for a in range(people):
        spans[a, 0], spans[a, 1] = _span(
            seeds.onset, seeds.starts[a], seeds.starts[a + 1], at_s, test.window_s, test.nearest
        )
    for _ in range(test.attempts if own < 0 else 1):
        numbers[1] += 1
        b, wanted, coin = np.int64(own), np.int64(0), np.uint64(1)
        if own < 0:
            coin, position = draw_below(np.uint64(people), words, position)
            if position < 0:
                return False, -1
            chosen, position = draw_below(np.uint64(people), words, position)
            if position < 0:
                return False, -1
            noise, position = draw_laplace(test.t, test.s, words, position)
            if position < 0:
                return False, -1
            b, wanted = np.int64(chosen), max(np.int64(test.k), test.k + test.margin + noise)
        lo, hi = spans[b, 0], spans[b, 1]
        if coin == np.uint64(0) or hi == lo or wanted > people:
            continue
        picked, position = draw_below(np.uint64(hi - lo), words, position)
        if position < 0 or position + 3 * ((size + 1) // 2) + 3 > len(words):
            return False, -1
        r = lo + np.int64(picked)
        for d in range(0, size, 2):
            radius, turn = (
                math.sqrt(-2.0 * math.log(_fine(words[position], words[position + 1]))),
                2.0 * math.pi * unit_uniform(words[position + 2]),
            )
            position += 3
            y[d] = _on_grid(seeds.values[r, d] + radius * math.cos(turn))
            if d + 1 < size:
                y[d + 1] = _on_grid(seeds.values[r, d + 1] + radius * math.sin(turn))
        if seeds.kappa > 0.0:
            _moved(
                seeds.place[r],
                seeds.kappa,
                _fine(words[position], words[position + 1]),
                2.0 * math.pi * unit_uniform(words[position + 2]),
                where,
            )
            position += 3
        if own >= 0:
            for a in range(people):
                joint[a] += (
                    density(
                        seeds.values, seeds.place, seeds.kappa, spans[a, 0], spans[a, 1], y, where
                    )
                    if spans[a, 1] > spans[a, 0]
                    else -math.inf
                )
            return True, position
        if plausible(
            seeds.values,
            seeds.place,
            seeds.kappa,
            seeds.rows,
            spans,
            people,
            b,
            wanted,
            test.width,
            y,
            where,
            terms,
        ):
            return True, position
    if own >= 0:
        # Nothing there: whoever has a record there would have shown something.
        for a in range(people):
            if spans[a, 1] > spans[a, 0]:
                joint[a] = -math.inf
    return False, position


@compiled
def _fill(
    length_s: float,
    timing: _Timing,
    fixations: _Seeds,
    saccades: _Seeds,
    test: _Test,
    own: int,
    words: WordArray,
    out: _Out,
) -> tuple[int, bool]:
    """Events of a recording from where `out.numbers` and `out.time_s` stand: the position up to
    which words were used, and whether they sufficed.
    """
    numbers, joint = out.numbers, out.joint
    position, at_s, n = 0, out.time_s[0], numbers[0]
    before = joint.copy()
    spans = np.empty((len(fixations.starts), 2), dtype=np.int64)
    terms = np.empty(max(len(fixations.onset), len(saccades.onset)))
    f, p, z = np.empty(fixations.values.shape[1]), np.zeros(3), np.empty(saccades.values.shape[1])
    while at_s < 1.05 * length_s + 1.0 and n < len(out.fixations):
        when_s = min(at_s, length_s)
        begin, tried = position, numbers[1]
        before[:] = joint
        passed, position = _event(
            fixations, when_s, test, own, words, position, spans, terms, f, p, numbers, joint
        )
        if position < 0:
            numbers[1], joint[:] = tried, before
            return begin, False
        lasts = timing.lost_s
        if passed:
            out.fixations[n], out.places[n] = f, p
            lasts = max(math.exp(timing.middle + timing.unit * f[timing.column]), LEAST_FIXATION_S)
        passed, position = _event(
            saccades, when_s, test, own, words, position, spans, terms, z, p, numbers, joint
        )
        if position < 0:
            numbers[1], joint[:] = tried, before
            return begin, False
        if passed:
            out.saccades[n] = z
        n += 1
        at_s += lasts + timing.between_s
        numbers[0], out.time_s[0] = n, at_s
    return position, True
