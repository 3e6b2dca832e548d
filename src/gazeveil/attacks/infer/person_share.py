"""How much of a person shows in a recording, without an attacker: the share of the variance between
people of the features of one half that is there again in the other half.

It is the intraclass correlation of the two halves, mean over the features of fixations and
saccades; the mean of each half over people is taken away first, since halves of a stimulus differ
for everybody. 0 where nothing of a person shows (below 0 by chance), 1 where nothing else does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.attacks.vectors.person_vectors import person_vectors
from gazeveil.errors import DataError
from gazeveil.features.columns import column_deviations
from gazeveil.features.recording_set import RecordingSet

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
