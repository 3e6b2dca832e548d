"""Plausible deniability: whether k people could have been the seed of a synthetic record, decided
as printed or with a random threshold.

A generator makes a record y from a seed record. With p_a(y) the probability that person a's records
give y, a person is *plausible* for y and seed d if p_a(y) lies in the same cell of the grid
gamma**-(i+1) < p <= gamma**-i as p_d(y) (the privacy test of Bindschaedler, Shokri and Gunter 2017,
as the supplement of the 2023 datasets paper prints it). The test passes if at least k people, the
seed among them, are plausible.

* deterministic: passing flips from never to always where the count goes from k - 1 to k, so it is
  not differentially private.
* randomised: the threshold is k plus fresh integer noise, P(z) proportional to exp(-epsilon0 |z|).

The theorem about the randomised test speaks of released records. "Nothing was released" is not
covered by it: with one person who is like nobody else, a rejection has probability about 1/N, and
without that person almost none. So a rejected record is replaced by one made without a seed, and
with probability 1/N that happens anyhow, which hides the rejections. :func:`charge` has what it
costs; proofs/marginals.md has the proof.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.exact import TAIL_DELTA, discrete_laplace
from gazeveil.privacy.promise.conversions import raised
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, exact

#: Floats decide which cell of the grid a probability is in; this much more than gamma is charged
#: for what they may get wrong.
_SLACK = Fraction(1, 10**6)


def probability_cell(log_p: ArrayLike, gamma: Number) -> NDArray[np.float64]:
    """The whole number i with gamma**-(i+1) < p <= gamma**-i; NaN where p is 0,
    which is no cell.
    """
    logs = np.asarray(log_p, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        cells = np.floor(-logs / math.log(exact("probability_cell", "gamma", gamma, above=1)))
    return np.where(np.isneginf(logs), np.nan, cells)


def plausible_counts(
    log_p: NDArray[np.float64], seeds: NDArray[np.int64], gamma: Number
) -> NDArray[np.int64]:
    """How many people are plausible for each candidate, the seed among them.

    Parameters
    ----------
    log_p : array of float64, shape (candidates, people)
        Logarithm of the probability that each person's records give the candidate.
    seeds : array of int64, shape (candidates,)
        Whose record was the seed.
    gamma : number
        Above 1.
    """
    cells = probability_cell(log_p, gamma)
    mine = cells[np.arange(len(cells)), seeds]
    return np.asarray((cells == mine[:, None]).sum(axis=1), dtype=np.int64)


def deterministic_pass(counts: ArrayLike, k: int) -> NDArray[np.bool_]:
    """The test as printed: k people, the seed among them."""
    return np.asarray(np.asarray(counts) >= k, dtype=np.bool_)


def randomised_pass(counts: ArrayLike, k: int, epsilon0: Number, words: Words) -> NDArray[np.bool_]:
    """The test with a threshold of k plus fresh discrete Laplace noise of scale 1/epsilon0 for each
    candidate.
    """
    given = np.asarray(counts, dtype=np.int64)
    noise = discrete_laplace(
        1 / exact("randomised_pass", "epsilon0", epsilon0, above=0), given.size, words
    )
    return np.asarray(given.ravel() + noise >= k, dtype=np.bool_).reshape(given.shape)


def pass_probability(count: ArrayLike, k: int, epsilon0: Number) -> NDArray[np.float64]:
    """Probability that the randomised test passes with that count: P(z >= k - count), z discrete
    Laplace of scale 1/epsilon0.
    """
    a = math.exp(-float(exact("pass_probability", "epsilon0", epsilon0, above=0)))
    short = k - np.asarray(count, dtype=np.float64)
    return np.where(short > 0, a**short / (1 + a), 1 - a ** (1 - short) / (1 + a))


def charge(
    k: int, gamma: Number, epsilon0: Number, people: int, candidates: int, delta: Number
) -> tuple[Fraction, Fraction]:
    """What a number of candidates under the randomised test costs everything of one person: epsilon
    and delta, both rounded up.

    For each integer 1 <= t < k one candidate, replaced by a seedless record where it is rejected,
    and with probability 1/people anyhow, is (epsilon, delta)-DP with

        epsilon = max(epsilon0 + ln(1 + gamma/t), ln 2),   delta = P(z >= k - t) = exp(-epsilon0 (k
        - t)) / (1 + exp(-epsilon0)).

    All candidates are charged, passed or not. The largest t that keeps delta within its limit is
    taken.

    Raises
    ------
    ParameterError
        If no t does: k is too small for that many candidates.
    """
    n = checks.count("charge", "candidates", candidates)
    checks.count("charge", "people", people)
    e0, limit = (
        exact("charge", "epsilon0", epsilon0, above=0),
        exact("charge", "delta", delta, above=0),
    )
    a = math.exp(-float(e0))

    def at(t: int) -> Fraction:
        return Fraction(a ** (k - t) / (1 + a) * (1 + 1e-9)) * n + n * TAIL_DELTA

    fitting = [t for t in range(1, k) if at(t) <= limit]
    if not fitting:
        least = k + 1
        while at(1 + k - least) > limit:
            least += 1
        raise ParameterError(
            f"The randomised test of {n} candidates keeps delta within {float(limit):g} only for k"
            f" of at least {least} at epsilon0 = {e0}. Got k = {k} instead. Choose a larger k,"
            " epsilon0 or delta, or fewer rows.",
            name="k",
            got=k,
        )
    t = fitting[-1]
    wide = exact("charge", "gamma", gamma, above=1) * (1 + _SLACK)
    one = max(e0 + raised(math.log1p(float(wide) / t)), raised(math.log(2)))
    return n * one, at(t)
