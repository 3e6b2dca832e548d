"""Which of several conditions can be told apart from their mean, when the same people were asked in
all of them and many are looked at at once.

If no condition differs, a person's outcomes may change places among the conditions: that is drawn,
person by person, and no law of the outcomes is assumed (Cochran's Q, 1950, with its distribution
drawn). Each condition's excess is divided by its standard deviation under these draws. The largest
excess of each draw is what the excesses are compared with (Westfall and Young 1993, "Resampling-
based multiple testing"), so that the chance of naming even one condition where none differs is at
most 5 %, however many there are.

The largest of several rates is too large by chance. `shrunk` moves the rates towards their mean by
the share of their spread that chance explains (by the method of moments): what to expect of the
same conditions and other people.

How much of a person shows in a recording, without an attacker: the share of the variance between
people of the features of one half that is there again in the other half.

It is the intraclass correlation of the two halves, mean over the features of fixations and
saccades; the mean of each half over people is taken away first, since halves of a stimulus differ
for everybody. 0 where nothing of a person shows (below 0 by chance), 1 where nothing else does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.result import ERROR
from gazeveil.attacks.vectors.kinds import person_vectors, recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_deviations, column_means

#: Numbers drawn at once: bounds the memory.
_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class ToldApart:
    """Conditions beside their mean.

    Parameters
    ----------
    excess : array of float64, shape (conditions,)
        Mean over people of a person's outcome less the person's mean over conditions.
    p_value : array of float64, shape (conditions,)
        Chance of so large an excess in any of the conditions if none differs; adjusted for their
        number.
    p_any : float
        Chance of so large a spread of all conditions if none differs.
    least_difference : float
        The smallest excess that could have been told apart here, median over conditions; NaN where
        no person's outcomes vary.
    shrunk : array of float64, shape (conditions,)
        Excess to expect with other people.
    """

    excess: Floats
    p_value: Floats
    p_any: float
    least_difference: float
    shrunk: Floats = field(repr=False)

    @property
    def count(self) -> int:
        """How many conditions are told apart from the mean."""
        return int((self.p_value <= ERROR).sum())


def told_apart(outcomes: Floats, seed: int, draws: int = 4999) -> ToldApart:
    """Compare conditions with their mean.

    Parameters
    ----------
    outcomes : array of float64, shape (conditions, people)
        NaN where a person was not asked.
    seed : int
        Of the draws.
    draws : int
        How many.

    Raises
    ------
    DataError
        For fewer than two conditions or two people.

    Examples
    --------
    All of ten people are found in the last condition alone.

    >>> apart = told_apart(np.repeat([[0.0], [0.0], [1.0]], 10, axis=1), seed=1)
    >>> apart.count, int(np.argmax(apart.excess))
    (1, 2)
    """
    own = np.asarray(outcomes, dtype=np.float64)
    if own.ndim != 2 or min(own.shape) < 2:
        raise DataError(
            f"Telling conditions apart needs at least two of them and two people. Got {own.shape}."
        )
    checks.count("told_apart", "draws", draws)
    deviations = np.where(np.isfinite(own), own - column_means(own)[None, :], 0.0)
    asked = np.isfinite(own)
    of_person = (deviations**2).sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    variance = np.where(asked, of_person[None, :], 0.0).sum(axis=1)
    n = np.maximum(asked.sum(axis=1), 1)
    scale = np.sqrt(np.where(variance > 0, variance, np.inf))
    z = deviations.sum(axis=1) / scale
    largest, spread = _under_exchange(deviations, asked, scale, seed, draws)
    # A draw that ties, but for the last digit of its sums, counts as one that did as well.
    as_large = (largest[None, :] >= np.abs(z)[:, None] - 1e-9).sum(axis=1)
    as_spread = int((spread >= float((z**2).sum()) - 1e-9).sum())
    critical = float(np.quantile(largest, 1 - ERROR))
    excess = deviations.sum(axis=1) / n
    varies = np.isfinite(scale)
    return ToldApart(
        excess,
        (1 + as_large) / (1 + draws),
        (1 + as_spread) / (1 + draws),
        float(np.median((critical * scale / n)[varies])) if varies.any() else math.nan,
        excess * _kept_share(z),
    )


def _under_exchange(
    deviations: Floats,
    asked: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    scale: Floats,
    seed: int,
    draws: int,
) -> tuple[Floats, Floats]:
    """The largest excess and the spread of the excesses of each draw, in standard deviations."""
    rng = np.random.default_rng(seed)
    largest, spread = np.empty(draws), np.empty(draws)
    step = max(1, _AT_ONCE // deviations.size)
    for begin in range(0, draws, step):
        many = min(step, draws - begin)
        total = np.zeros((many, len(deviations)))
        for person in range(deviations.shape[1]):
            there = np.flatnonzero(asked[:, person])
            values = np.broadcast_to(deviations[there, person], (many, len(there)))
            total[:, there] += rng.permuted(values, axis=1)
        z = total / scale[None, :]
        largest[begin : begin + many] = np.abs(z).max(axis=1)
        spread[begin : begin + many] = (z**2).sum(axis=1)
    return largest, spread


def _kept_share(z: Floats) -> float:
    """Share of the spread of the excesses that chance does not explain."""
    spread = float((z**2).sum())
    # If none differs each of them has variance 1.
    return max(0.0, 1.0 - len(z) / spread) if spread > 0 else 0.0


#: Fewest people of whom a feature must be known in both halves.
FEWEST = 4


def person_share(first: RecordingSet, second: RecordingSet) -> float:
    """Mean over features of the intraclass correlation of two halves of the same people's
    recordings.

    Returns
    -------
    float
        NaN where no feature is known of enough people in both halves.
    """
    try:
        early, late = (
            person_vectors(recording_vectors(half, "summary")) for half in (first, second)
        )
    except DataError:
        return math.nan
    people = sorted(set(early.people) & set(late.people))
    known = set(late.columns)
    shared = tuple(c for c in early.columns if c in known)
    a, b = (v.select(shared).values[[v.people.index(p) for p in people]] for v in (early, late))
    shares = list(correlations(a, b))
    return float(np.mean(shares)) if shares else math.nan


def correlations(first: Floats, second: Floats) -> Iterator[float]:
    """Intraclass correlation of each column that varies, over the people known in both.

    Examples
    --------
    >>> half = np.arange(6.0)[:, None]
    >>> [round(r, 9) for other in (half + 1, -half) for r in correlations(half, other)]
    [1.0, -1.0]
    """
    for i in range(first.shape[1]):
        both = np.isfinite(first[:, i]) & np.isfinite(second[:, i])
        pair = np.stack((first[both, i], second[both, i]), axis=1)
        if len(pair) < FEWEST or not (column_deviations(pair) > 1e-12).all():
            continue
        pair = pair - pair.mean(axis=0)
        own = pair.mean(axis=1, keepdims=True)
        between, rest = 2 * float((own**2).sum()), float(((pair - own) ** 2).sum())
        yield (between - rest) / (between + rest)
