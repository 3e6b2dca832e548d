"""One-to-one matching: whoever holds a whole release knows that no two of its people are the same.

Names are given so that the sum of scores is the largest (the assignment problem), instead of to
each person alone.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Scores
from gazeveil.attacks.denoiser import standardised_scores


def matching_credit(scores: Scores, seed: int) -> Floats:
    """1 where the assignment gives a probe its true name, 0 where not; one value per probe.

    Parameters
    ----------
    scores : Scores
        One row per person of the release.
    seed : int
        Of the order in which people are put: among assignments of the same sum it decides, so
        that equal scores are a guess.

    Notes
    -----
    Scores of a row count from its mean, so that a probe that is like everybody has no say.
    """
    from scipy.optimize import linear_sum_assignment

    if not scores.probes or not scores.known:
        return np.zeros(len(scores.probes))
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(scores.probes)), rng.permutation(len(scores.known))
    values = standardised_scores(scores.values)
    values = (values - values.mean(axis=1, keepdims=True))[np.ix_(rows, columns)]
    probe, name = linear_sum_assignment(values, maximize=True)
    credit = np.zeros(len(scores.probes))
    for row, column in zip(rows[probe].tolist(), columns[name].tolist(), strict=True):
        credit[row] = float(scores.probes[row] == scores.known[column])
    return credit
