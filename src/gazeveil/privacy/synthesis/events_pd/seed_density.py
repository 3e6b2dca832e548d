"""Which people give a synthetic event a density in the same cell as its seed's: the part of
:mod:`gazeveil.privacy.synthesis.events_pd.deniable_seeds` that takes the time.

Almost every density is far from the edges of the cell in question, and then a density that is known
to a relative error of 1e-5 decides as the exact one would. :func:`_nearly` has it without a call of
exp, many records at a time; what lies near an edge is computed by :func:`density`. So the count is
that of the exact densities, always, and where cells are so narrow that nothing passes (gamma = 1)
all attempts still end soon.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled, fused
from gazeveil.privacy.plausible_deniability import cell

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
