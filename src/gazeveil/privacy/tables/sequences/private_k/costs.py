"""What each number of bins costs, in whole units, so that a private choice can be proved.

A unit is 2**-20 of n (range / 2)**2, the largest squared distance of a sequence from the midpoint.
Releasing k bins costs a recording

* what is dropped, the squared size of bins k and above: private. Rounded down to units, brought
  between 0 and 2**20 and never let rise with k, whatever floating point did: the proof needs no
  more (proofs/fpa-private-k.md);
* the noise of k bins: public. Shrinkage is not counted: what it takes from bins depends on how far
  the data are from the public model, which is not known.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.privacy.tables.sequences.half_spectrum import halves
from gazeveil.privacy.tables.sequences.recordings import STEPS
from gazeveil.privacy.tables.sequences.spectrum import Reals

#: Units of the largest squared distance from the midpoint: the spread of a recording's costs.
UNITS = 1 << 20

#: Candidates beyond the first eight grow by this factor: fewer of them are told apart more surely.
_GROWTH = 1.3

#: No public cost is counted beyond this many units.
_MOST_COST = float(1 << 40)


def public_costs(n: int, epsilon: float) -> Reals:
    """What the noise of k = 1, ..., n // 2 + 1 bins costs a recording, in units, for a budget of
    the noise.
    """
    _, nu = halves(n)
    spent = np.arange(1, n // 2 + 2) * np.cumsum(nu) / epsilon**2
    out: Reals = np.minimum(4.0 * UNITS * spent, _MOST_COST)
    return out


@lru_cache(maxsize=256)
def candidates(n: int, epsilon: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of bins that may be chosen, and the public cost of each in units.

    A number of bins that costs at least as many units more than a smaller one as any sequence could
    gain by it is never best, so it is no candidate. Everything here is public.
    """
    costs = public_costs(n, epsilon)
    many, tried = n // 2 + 1, {1}
    while max(tried) < many:
        tried.add(min(many, max(max(tried) + 1, round(max(tried) * _GROWTH))))
    kept = [k for k in sorted(tried) if costs[k - 1] - costs[:k].min() < UNITS]
    return tuple(kept), tuple(int(costs[k - 1]) for k in kept)


def dropped(blocks: Ints, bins: tuple[int, ...]) -> Ints:
    """Units that each block loses with so many bins, shape (blocks, candidates).

    Parameters
    ----------
    blocks : array of int64, shape (n, blocks)
        Whole numbers from 0 to :data:`~gazeveil.privacy.tables.sequences.recordings.STEPS`.
    bins : tuple of int
        Candidates, rising.
    """
    n = len(blocks)
    omega, _ = halves(n)
    spectra = np.fft.rfft(blocks - STEPS // 2, axis=0)
    energy = omega[:, None] * (spectra.real**2 + spectra.imag**2) / n
    tail = np.zeros((len(energy) + 1, blocks.shape[1]))
    tail[:-1] = np.cumsum(energy[::-1], axis=0)[::-1]
    share = tail[list(bins)].T / (n * (STEPS / 2) ** 2)
    units = np.clip(np.floor(share * UNITS), 0, UNITS).astype(np.int64)
    falling: Ints = np.minimum.accumulate(units, axis=1)
    return falling
