"""The test of plausible deniability: whether k people could have been the seed of a synthetic
record or event (Bindschaedler, Shokri and Gunter 2017; David-John et al. 2023, section 2.2).

A generator makes y from a seed. With p_a(y) the probability that person a's data give y, person a
is *plausible* for y and the seed's person d if p_a(y) lies in the same cell of the grid

    gamma**-(i+1) < p <= gamma**-i

as p_d(y). The test passes if at least k people, the seed's among them, are plausible. Probabilities
are logarithms here, so products of hundreds of densities neither vanish nor overflow, and densities
may exceed 1. With gamma = 1 a cell would be a single number: it is then a band of
:data:`NARROWEST` in the logarithm.

* deterministic: passing flips from never to always where the count goes from k - 1 to k, so it is
  not differentially private.
* randomised: the threshold is k plus fresh integer noise, P(z) proportional to exp(-epsilon0 |z|).

The theorem about the randomised test is about released records. It does not cover a rejection: with
one outlying person it has probability about 1/N, and without that person almost none. So with
probability 1/N a record is rejected in any case, which hides the others. :func:`charge_candidates`
has the cost where a rejected record is replaced by one made without a seed (proofs/marginals.md),
:func:`charge_attempts` where rejections may be seen (proofs/event-synth-pd.md).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.exact import TAIL_DELTA, discrete_laplace
from gazeveil.privacy.promise.loss import raised
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, exact

#: Width of a cell in the natural logarithm where gamma is 1.
NARROWEST = 1e-9

#: What finite arithmetic may add to the delta of one attempt: noise far out, where floats have gaps
#: or densities count as 0.
FINITE_DELTA = Fraction(1, 1 << 50)

# Floats decide which cell a probability is in, for events after rounding to a grid: this much more
# than gamma is charged for what they may get wrong.
_CANDIDATE_SLACK, _ATTEMPT_SLACK = Fraction(1, 10**6), 1e-3


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


def deterministic_pass(counts: ArrayLike, k: int) -> Bools:
    """The test as printed: k people, the seed's among them."""
    return np.asarray(np.asarray(counts) >= k, dtype=np.bool_)


def randomised_pass(counts: ArrayLike, k: int, epsilon0: Number, words: Words) -> Bools:
    """The test with a threshold of k plus fresh discrete Laplace noise of scale 1/epsilon0 for each
    candidate.
    """
    people = np.asarray(counts, dtype=np.int64)
    scale = 1 / exact("randomised_pass", "epsilon0", epsilon0, above=0)
    noise = discrete_laplace(scale, people.size, words).reshape(people.shape)
    return np.asarray(people + noise >= k, dtype=np.bool_)


def pass_probability(count: ArrayLike, k: int, epsilon0: Number) -> Floats:
    """Probability that the randomised test passes with that count: P(z >= k - count), z discrete
    Laplace of scale 1/epsilon0.
    """
    a = math.exp(-float(exact("pass_probability", "epsilon0", epsilon0, above=0)))
    short = k - np.asarray(count, dtype=np.float64)
    return np.where(short > 0, a**short / (1 + a), 1 - a ** (1 - short) / (1 + a))


def charge_candidates(
    k: int, gamma: Number, epsilon0: Number, people: int, candidates: int, delta: Number
) -> tuple[Fraction, Fraction]:
    """What a number of candidates under the randomised test costs everything of one person: epsilon
    and delta, both rounded up.

    For each integer 1 <= t < k one candidate, replaced by a seedless record where it is rejected,
    and with probability 1/people anyhow, is (epsilon, delta)-DP with

        epsilon = max(epsilon0 + ln(1 + gamma/t), ln 2),
        delta = P(z >= k - t) = exp(-epsilon0 (k - t)) / (1 + exp(-epsilon0)).

    All candidates are charged, passed or not. The largest t that keeps delta within its limit is
    taken.

    Raises
    ------
    ParameterError
        If no t does: k is too small for that many candidates.
    """
    n = checks.count("charge", "candidates", candidates)
    checks.count("charge", "people", people)
    e0 = exact("charge", "epsilon0", epsilon0, above=0)
    limit = exact("charge", "delta", delta, above=0)
    a = math.exp(-float(e0))

    def delta_at(t: int) -> Fraction:
        return Fraction(a ** (k - t) / (1 + a) * (1 + 1e-9)) * n + n * TAIL_DELTA

    fitting = [t for t in range(1, k) if delta_at(t) <= limit]
    if not fitting:
        least = k + 1
        while delta_at(1 + k - least) > limit:
            least += 1
        raise ParameterError(
            f"The randomised test of {n} candidates keeps delta within {float(limit):g} only for k"
            f" of at least {least} at epsilon0 = {e0}. Got k = {k} instead. Choose a larger k,"
            " epsilon0 or delta, or fewer rows.",
            name="k",
            got=k,
        )
    t = fitting[-1]
    wide = exact("charge", "gamma", gamma, above=1) * (1 + _CANDIDATE_SLACK)
    epsilon = max(e0 + raised(math.log1p(float(wide) / t)), raised(math.log(2)))
    return n * epsilon, delta_at(t)


def charge_attempts(
    k: int, gamma: Number, epsilon0: Number, margin: int, attempts: int
) -> tuple[Fraction, Fraction]:
    """What a number of attempts costs everything of one person of a pool, although rejections may
    be seen: epsilon and delta, rounded up.

    An attempt draws a person uniformly from a pool of N, a record of theirs and an event y. It is
    rejected with probability 1/N in any case, and unless at least max(k, k + margin + z) people are
    plausible. Its outcome, y or a rejection, is (epsilon, delta)-DP with

        delta = P(z <= -margin) = exp(-epsilon0 margin) / (1 + exp(-epsilon0)),
        epsilon = max(epsilon0 + ln(1 + gamma/k), ln 2, -ln(1 - delta)).

    All attempts are charged.
    """
    n = checks.count("charge", "attempts", attempts, least=0)
    e0 = exact("charge", "epsilon0", epsilon0, above=0)
    a = math.exp(-float(e0))
    delta = a**margin / (1 + a) * (1 + 1e-9)
    wide = float(exact("charge", "gamma", gamma, least=1)) * (1 + _ATTEMPT_SLACK)
    # A delta of 1 holds whatever epsilon is: without noise and margin the step from k - 1 to k
    # people is seen for certain.
    step = raised(-math.log1p(-delta)) if delta < 1 else Fraction(0)
    epsilon = max(e0 + raised(math.log1p(wide / k)), raised(math.log(2)), step)
    return n * epsilon, n * (Fraction(delta) + FINITE_DELTA)
