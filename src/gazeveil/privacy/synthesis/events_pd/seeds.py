"""Compiled draws of events whose seed is a random person of a crowd, and the test of plausible
deniability: whether k people could have been the seed (Bindschaedler, Shokri and Gunter 2017;
David-John et al. 2023, section 2.2).

A generator makes y from a seed. With p_a(y) the probability that person a's data give y, person a
is *plausible* for y and the seed's person d if p_a(y) lies in the same cell of the grid

    gamma**-(i+1) < p <= gamma**-i

as p_d(y). The test passes if at least k people, the seed's among them, are plausible. Probabilities
are logarithms here, so products of hundreds of densities neither vanish nor overflow, and densities
may exceed 1. With gamma = 1 a cell would be a single number: it is then a band of :data:`NARROWEST`
in the logarithm.

Almost every density is far from the edges of the cell in question, and then a density that is known
to a relative error of 1e-5 decides as the exact one would. :func:`_nearly` has it without a call of
exp, many records at a time; what lies near an edge is computed by :func:`density`. So the count is
that of the exact densities, always, and where cells are so narrow that nothing passes (gamma = 1)
all attempts still end soon.

Kernels take random words from a position on and give the position after them, -1 if they did not
suffice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled, fused
from gazeveil.privacy.noise.exact import draw_laplace
from gazeveil.privacy.randomness.rng import WordArray, draw_below
from gazeveil.privacy.rational import Number, exact

#: Width of a cell in the natural logarithm where gamma is 1.
NARROWEST = 1e-9


def cell_width(gamma: Number) -> float:
    """Width of a cell in the natural logarithm: ln gamma, at least :data:`NARROWEST`.

    Raises
    ------
    ParameterError
        For gamma below 1.
    """
    return max(math.log(exact("cell_width", "gamma", gamma, least=1)), NARROWEST)


@compiled
def cell(log_p: float, width: float) -> float:
    """The cell of one probability; NaN where it is 0, which is no cell."""
    if not math.isfinite(log_p):
        return math.nan
    i = float(math.floor(-log_p / width))
    # The quotient is rounded; the bounds as they are written decide, the upper one included. Beyond
    # 2**52 cells are narrower than floats can tell.
    if abs(i) < 4503599627370496.0:
        while log_p > -i * width:
            i -= 1.0
        while log_p <= -(i + 1.0) * width:
            i += 1.0
    return i


@compiled
def _cells(log_p: Floats, width: float) -> Floats:
    out = np.empty(len(log_p))
    for j in range(len(log_p)):
        out[j] = cell(log_p[j], width)
    return out


def cells(log_p: Floats, width: float) -> Floats:
    """The whole number i with gamma**-(i+1) < p <= gamma**-i for each logarithm of a probability,
    shape as given; NaN for probability 0.
    """
    flat = np.ascontiguousarray(log_p, dtype=np.float64)
    return _cells(flat.ravel(), width).reshape(flat.shape)


def plausible_counts(log_p: Floats, seeds: Ints, width: float) -> Ints:
    """How many people are plausible for each candidate, the seed's among them; 0 where the seed
    itself gives it probability 0.

    Parameters
    ----------
    log_p : array of float64, shape (candidates, people)
        Logarithm of the probability that each person's data give the candidate.
    seeds : array of int64, shape (candidates,)
        Whose data were the seed.
    width : float
        Of a cell, see :func:`cell_width`.
    """
    at = cells(log_p, width)
    return np.asarray((at == at[np.arange(len(at)), seeds][:, None]).sum(axis=1), dtype=np.int64)


# Densities below exp(-this) count as 0; the law of the noise reaches them with a probability below
# 1e-20.
_FAINTEST = 60.0

# More than the logarithm of a fast density is off: _nearly is right to 3e-6.
_OFF = 1e-5

# On a sphere rounding is multiplied by kappa: beyond this (places to 0.006 degrees) it would show,
# and all is computed exactly.
_SHARPEST = 1e8

# Where the mean of the terms is smaller, some that count as 0 may be a part of it that matters: it
# is computed exactly.
_FAINT = math.exp(-40.0)


class SeedRecords(NamedTuple):
    """Events of one kind of all people of a pool; made with :meth:`of`.

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
    rows : array, shape (numbers + 3, records)
        Values and places once more, one row per number.
    """

    values: Floats
    place: Floats
    kappa: float
    onset_s: Floats
    starts: Ints
    rows: Floats

    @classmethod
    def of(
        cls, values: Floats, place: Floats, kappa: float, onset_s: Floats, starts: Ints
    ) -> SeedRecords:
        """Records as given."""
        rows = np.ascontiguousarray(np.concatenate((values.T, place.T)))
        return cls(values, place, kappa, onset_s, starts, rows)


@compiled
def density(seeds: SeedRecords, lo: int, hi: int, y: Floats, where: Floats) -> float:
    """Logarithm of the mean density of an event under some records, up to what is the same for
    all.
    """
    values, place, kappa = seeds.values, seeds.place, seeds.kappa
    total, size = 0.0, values.shape[1]
    for r in range(lo, hi):
        away = 0.0
        if kappa > 0.0:
            away = kappa * (
                1.0 - place[r, 0] * where[0] - place[r, 1] * where[1] - place[r, 2] * where[2]
            )
            if away > _FAINTEST:
                continue
        for d in range(size):
            step = y[d] - values[r, d]
            away += 0.5 * step * step
        if away < _FAINTEST:
            total += math.exp(-away)
    return math.log(total / (hi - lo)) if total > 0.0 else -math.inf


@fused
def _nearly(
    rows: Floats, kappa: float, lo: int, hi: int, y: Floats, where: Floats, terms: Floats
) -> float:
    """Mean of exp(-away) over some records, to a relative error of 3e-6 where it is at least
    _FAINT, and 0 only where no term counts.

    exp(-a) = exp(-a / 256)**256, the inner one by its series up to the sixth power. What the series
    leaves out is at most (a / 256)**7 / 5040, for a = 60 1e-8 of the value, and 256 times that for
    the power. Terms a little beyond the faintest are in it too: exp(-60) each, 2e-9 of a mean of
    exp(-40).
    """
    n, size = hi - lo, len(rows) - 3
    out = terms[:n]
    out[:] = 0.0
    for d in range(size):
        row, at = rows[d][lo:hi], y[d]
        for i in range(n):
            step = row[i] - at
            out[i] += step * step
    if kappa > 0.0:
        px, py, pz = rows[size][lo:hi], rows[size + 1][lo:hi], rows[size + 2][lo:hi]
        for i in range(n):
            out[i] += 2.0 * kappa * (1.0 - px[i] * where[0] - py[i] * where[1] - pz[i] * where[2])
    for i in range(n):
        a = 0.5 * out[i]
        x = -a * 0.00390625
        e = 1.0 + x * (
            1.0
            + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0)))))
        )
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        out[i] = e if a < _FAINTEST + 0.5 else 0.0
    total = 0.0
    for i in range(n):
        total += out[i]
    return total / n


@compiled
def plausible(
    seeds: SeedRecords,
    spans: Ints,
    seed: np.int64,
    minimum: np.int64,
    width: float,
    y: Floats,
    where: Floats,
    terms: Floats,
) -> bool:
    """Whether at least so many people, the seed's among them, give an event a density in the seed's
    cell.

    Parameters
    ----------
    seeds : SeedRecords
        Of all people.
    spans : array of int64, shape (people or more, 2)
        Which records of each person are asked.
    seed, minimum : int
        Who seeded the event, and how many are needed.
    width : float
        Of a cell in the natural logarithm.
    y, where : arrays
        The event: numbers and place.
    terms : array, shape (records,)
        Room.
    """
    people = len(seeds.starts) - 1
    i = cell(density(seeds, spans[seed, 0], spans[seed, 1], y, where), width)
    if math.isnan(i):
        return bool(minimum <= 1)
    # Outside of the outer edges a density is surely in another cell, inside of the inner ones
    # surely in this one.
    upper, lower, count = -i * width, -(i + 1.0) * width, 1
    top, high = math.exp(upper + _OFF), math.exp(upper - _OFF)
    low, bottom = math.exp(lower + _OFF), math.exp(lower - _OFF)
    for a in range(people):
        if count >= minimum or count + people - a < minimum:
            break
        lo, hi = spans[a, 0], spans[a, 1]
        if a == seed or hi == lo:
            continue
        sharp = seeds.kappa >= _SHARPEST
        p = high if sharp else _nearly(seeds.rows, seeds.kappa, lo, hi, y, where, terms)
        if p == 0.0:
            continue
        if p < _FAINT or bottom <= p <= low or high <= p <= top:
            count += cell(density(seeds, lo, hi, y, where), width) == i
        else:
            count += low < p < high
    return bool(count >= minimum)


#: No synthetic fixation is shorter.
LEAST_FIXATION_S = 0.02


class Rule(NamedTuple):
    """Which records may seed an event, and when it passes.

    Parameters
    ----------
    k : int
        How many people must be plausible.
    width : float
        Of a cell in the natural logarithm.
    t, s : uint64
        The noise of the threshold has scale t / s, which is 1 / epsilon0.
    attempts : int
        Most attempts for one event.
    window_s : float
        Records that begin within this many seconds of an event's time may seed it.
    """

    k: int
    width: float
    t: np.uint64
    s: np.uint64
    attempts: int
    window_s: float


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
    time_s : array, shape (1,)
        When the next pair begins.
    """

    fixations: Floats
    places: Floats
    saccades: Floats
    counts: Ints
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
def _span(onset: Floats, first: int, last: int, at_s: float, window_s: float) -> tuple[int, int]:
    """The records of one person that may seed an event at a time."""
    lo, hi = first, last
    while lo < hi:
        middle = (lo + hi) // 2
        if onset[middle] < at_s - window_s:
            lo = middle + 1
        else:
            hi = middle
    stop = lo
    while stop < last and onset[stop] <= at_s + window_s:
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
def _event(
    seeds: SeedRecords,
    at_s: float,
    rule: Rule,
    room: _Workspace,
    words: WordArray,
    position: int,
    y: Floats,
    where: Floats,
    counts: Ints,
) -> tuple[bool, int]:
    """Whether an event of a random person passed the test at a time, in up to so many attempts."""
    people, spans = np.uint64(len(seeds.starts) - 1), room.spans
    for a in range(len(seeds.starts) - 1):
        spans[a, 0], spans[a, 1] = _span(
            seeds.onset_s, seeds.starts[a], seeds.starts[a + 1], at_s, rule.window_s
        )
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
        person, wanted = np.int64(chosen), rule.k + max(np.int64(0), noise)
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
def fill(
    length_s: float,
    timing: EventTiming,
    fixations: SeedRecords,
    saccades: SeedRecords,
    rule: Rule,
    words: WordArray,
    out: EventsSoFar,
) -> tuple[int, bool]:
    """Events of a recording from where `out` stands: the position up to which words were used, and
    whether they sufficed.
    """
    counts = out.counts
    position, at_s, n = 0, out.time_s[0], counts[0]
    room = _Workspace(
        np.empty((len(fixations.starts), 2), dtype=np.int64),
        np.empty(max(len(fixations.onset_s), len(saccades.onset_s))),
    )
    f, p, z = np.empty(fixations.values.shape[1]), np.zeros(3), np.empty(saccades.values.shape[1])
    while at_s < 1.05 * length_s + 1.0 and n < len(out.fixations):
        when_s = min(at_s, length_s)
        begin, tried = position, counts[1]
        passed, position = _event(fixations, when_s, rule, room, words, position, f, p, counts)
        if position < 0:
            counts[1] = tried
            return begin, False
        lasts = timing.lost_s
        if passed:
            out.fixations[n], out.places[n] = f, p
            lasts = max(math.exp(timing.middle + timing.unit * f[timing.column]), LEAST_FIXATION_S)
        passed, position = _event(saccades, when_s, rule, room, words, position, z, p, counts)
        if position < 0:
            counts[1] = tried
            return begin, False
        if passed:
            out.saccades[n] = z
        n += 1
        at_s += lasts + timing.between_s
        counts[0], out.time_s[0] = n, at_s
    return position, True
