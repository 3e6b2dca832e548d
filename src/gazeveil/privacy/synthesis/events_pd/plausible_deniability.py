"""Plausible deniability of events: whether enough people could have been the seed of a synthetic
event (David-John et al. 2023 section 2.2).

A generator makes an event y from a seed event d with probability p_d(y). The test of David-John et
al. 2023 takes the cell i of the grid

    gamma**-(i+1) < p_d(y) <= gamma**-i

that p_d(y) lies in, counts the people other than the seed's who have an event a with p_a(y) in the
same cell, and passes if there are at least k - 1 of them. Probabilities are logarithms here, so
products of hundreds of densities neither vanish nor overflow, and densities may exceed 1. With
gamma = 1 a cell would be a single number: it is then a band of :data:`NARROWEST` in the logarithm.

Two families of densities are enough for David-John et al. 2023, and both are products of normals,
so all pairs of synthetic events and records come from one matrix product of sufficient statistics:
:func:`fixation_log_likelihoods` (t samples of a normal in x and y, rank 5) and
:func:`latent_log_likelihoods` (L latent numbers, rank 2 L + 1).

The randomised test has the threshold k plus fresh integer noise, P(z) proportional to exp(-epsilon0
|z|); :func:`charge` has what an attempt costs if its rejection may be seen, which the theorem of
Bindschaedler, Shokri and Gunter (2017) does not cover. :func:`joint_counts` is the test for whole
sequences.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.compiled import compiled
from gazeveil.privacy.promise.conversions import raised
from gazeveil.privacy.rational import Number, exact

#: Width of a cell in the natural logarithm where gamma is 1.
NARROWEST = 1e-9

#: What finite arithmetic may add to the delta of one attempt: noise far out, where floats have gaps
#: or densities count as 0.
FINITE_DELTA = Fraction(1, 1 << 50)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def width(gamma: Number) -> float:
    """Width of a cell in the natural logarithm: ln gamma, at least :data:`NARROWEST`.

    Raises
    ------
    ParameterError
        For gamma below 1.
    """
    return max(math.log(exact("width", "gamma", gamma, least=1)), NARROWEST)


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


def plausible_people(
    log_p: Floats, seed_log_p: Floats, seed_person: Ints, starts: Ints, width: float
) -> Ints:
    """How many people other than the seed's have an event in the cell of each candidate.

    Parameters
    ----------
    log_p : array, shape (candidates, records)
        Logarithm of the probability of each candidate under each record, the records of one person
        after those of another.
    seed_log_p : array, shape (candidates,)
        That under the candidate's own seed.
    seed_person : array of int64, shape (candidates,)
        Whose seed it was: an index into the people.
    starts : array of int64, shape (people + 1,)
        Where each person's records begin, and the end.
    width : float
        Of a cell, see :func:`width`.
    """
    mine = cells(seed_log_p, width)[:, None]
    upper, lower = -mine * width, -(mine + 1.0) * width
    same = (log_p > lower) & (log_p <= upper)
    having = np.flatnonzero(np.diff(starts) > 0)
    if len(having) == 0 or len(log_p) == 0:
        return np.zeros(len(log_p), dtype=np.int64)
    found = np.zeros((len(log_p), len(starts) - 1), dtype=np.bool_)
    found[:, having] = np.logical_or.reduceat(same, starts[:-1][having], axis=1)
    found[np.arange(len(found)), seed_person] = False
    return np.asarray(found.sum(axis=1), dtype=np.int64)


def fixation_log_likelihoods(statistics: Floats, fixations: Floats) -> Floats:
    """Logarithm of the density of each synthetic fixation under each record's normals, shape
    (synthetic, records).

    Parameters
    ----------
    statistics : array, shape (synthetic, 5)
        Number of samples, mean x, mean y, and mean squared deviations from these means, in degrees.
    fixations : array, shape (records, 4 or more)
        mu_x, mu_y, sigma_x, sigma_y in degrees.
    """
    n, mx, my, vx, vy = statistics.T
    # Around the mean of the records the squares stay small, and little is lost where large numbers
    # cancel.
    cx, cy = (float(fixations[:, i].mean()) if len(fixations) else 0.0 for i in (0, 1))
    mx, my = mx - cx, my - cy
    sums = np.column_stack((n, n * mx, n * (vx + mx**2), n * my, n * (vy + my**2)))
    ux, uy, sx, sy = fixations[:, 0] - cx, fixations[:, 1] - cy, fixations[:, 2], fixations[:, 3]
    constant = -np.log(2 * np.pi * sx * sy) - ux**2 / (2 * sx**2) - uy**2 / (2 * sy**2)
    return np.asarray(
        sums @ np.stack((constant, ux / sx**2, -1 / (2 * sx**2), uy / sy**2, -1 / (2 * sy**2))),
        dtype=np.float64,
    )


def latent_log_likelihoods(latent: Floats, mean: Floats, spread: Floats) -> Floats:
    """Logarithm of the density of latent numbers under each record's normals, shape (synthetic,
    records).

    Parameters
    ----------
    latent : array, shape (synthetic, L)
        Drawn latent numbers.
    mean, spread : arrays, shape (records, L)
        Means and standard deviations of the records.
    """
    constant = -(np.log(spread) + mean**2 / (2 * spread**2) + 0.5 * math.log(2 * math.pi)).sum(
        axis=1
    )
    known = np.column_stack((np.ones(len(latent)), latent, latent**2))
    return np.asarray(
        known @ np.column_stack((constant, mean / spread**2, -1 / (2 * spread**2))).T,
        dtype=np.float64,
    )


def joint_counts(log_likelihoods: Floats, width: float) -> Ints:
    """How many people, the seed among them, give each whole sequence a probability in the seed's
    cell.

    Parameters
    ----------
    log_likelihoods : array, shape (people, people)
        Row i: logarithm of the joint probability of everything drawn for person i, under each
        person's events.
    width : float
        Of a cell, see :func:`width`: for all events of a person together.
    """
    found = cells(log_likelihoods, width)
    return np.asarray((found == np.diag(found)[:, None]).sum(axis=1), dtype=np.int64)


def charge(
    k: int, gamma: Number, epsilon0: Number, margin: int, attempts: int
) -> tuple[Fraction, Fraction]:
    """What a number of attempts costs everything of one person of a pool, although rejections may
    be seen: epsilon and delta, rounded up.

    An attempt draws a person uniformly from a pool of N, a record of theirs and an event y. It is
    rejected with probability 1/N in any case, and unless at least max(k, k + margin + z) people are
    plausible. Its outcome, y or a rejection, is (epsilon, delta)-DP with

        delta = P(z <= -margin) = exp(-epsilon0 margin) / (1 + exp(-epsilon0)),
        epsilon = max(epsilon0 + ln(1 + gamma/k), ln 2, -ln(1 - delta)).

    All attempts are charged; proofs/event-synth-pd.md has the proof.
    """
    n = checks.count("charge", "attempts", attempts, least=0)
    e0 = exact("charge", "epsilon0", epsilon0, above=0)
    a = math.exp(-float(e0))
    delta = a**margin / (1 + a) * (1 + 1e-9)
    # Floats and a grid decide which cell a density is in: a little more than gamma is charged for
    # what they may get wrong, and a little delta for the tails.
    wide = float(exact("charge", "gamma", gamma, least=1)) * (1 + 1e-3)
    # A delta of 1 holds whatever epsilon is: without noise and margin the step from k - 1 to k
    # people is seen for certain.
    step = raised(-math.log1p(-delta)) if delta < 1 else Fraction(0)
    one = max(e0 + raised(math.log1p(wide / k)), raised(math.log(2)), step)
    return n * one, n * (Fraction(delta) + FINITE_DELTA)
