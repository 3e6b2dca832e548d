"""One-to-one matching: an attacker with a whole release knows that its people are all different.

Names are given so that the sum of scores is the largest (the assignment problem), instead of to
each person alone.

Whether attackers who seem to fail name everybody consistently wrong: then names were exchanged
between the raw recordings and the copy, and people are recognised all the same.

A renaming (a person of the copy -> one name of the raw recordings, no name twice) is learnt from
the answers of some draws and counts for people whom it names in most answers of the others. Wrong
answers that are always the same agree with a renaming too, though no person was renamed. The worst
case gives each person one fixed name drawn at random. As many people then agree as there are
different names among them. The test is against that worst case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.base import Scores, standardised_scores


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


#: How often the test finds a renaming at most where there is none.
LEVEL = 0.02


@dataclass(frozen=True)
class Renaming:
    """People whose wrong name is the same one again and again.

    Parameters
    ----------
    renamed : int
        Their number.
    people : int
        All people.
    p : float
        How often as many would be found by chance at most.
    """

    renamed: int
    people: int
    p: float

    @property
    def found(self) -> bool:
        """Whether names seem to have been exchanged."""
        return self.p <= LEVEL


def find_renaming(draws: Sequence[int], people: Sequence[str], answers: Sequence[str]) -> Renaming:
    """Look for a renaming.

    Parameters
    ----------
    draws : sequence of int
        To which draw each answer belongs; two are needed.
    people : sequence of str
        Who was asked about, by the name in the copy.
    answers : sequence of str
        Whom the attacker named.

    Examples
    --------
    >>> people, shifted = "abcdefgh" * 3, "bcdefgha" * 3
    >>> draws = [0] * 8 + [1] * 8 + [2] * 8
    >>> find_renaming(draws, people, shifted).found, find_renaming(draws, people, people).found
    (True, False)
    """
    from scipy.optimize import linear_sum_assignment

    names = sorted({*people, *answers})
    index = {name: i for i, name in enumerate(names)}
    asked = np.array([index[p] for p in people], dtype=np.int64)
    named = np.array([index[a] for a in answers], dtype=np.int64)
    of_draw = np.asarray(draws, dtype=np.int64)
    agreed, total = np.zeros(len(names)), np.zeros(len(names))
    for draw in np.unique(of_draw).tolist():
        here = of_draw == draw
        counts = np.zeros((len(names), len(names)))
        np.add.at(counts, (asked[~here], named[~here]), 1.0)
        _, renamed = linear_sum_assignment(counts, maximize=True)
        learnt = counts[np.arange(len(names)), renamed] > 0
        wrong = learnt & (renamed != np.arange(len(names)))
        hit = (named[here] == renamed[asked[here]]) & wrong[asked[here]]
        np.add.at(agreed, asked[here], hit)
        np.add.at(total, asked[here], 1.0)
    n = len({*people})
    count = int(np.count_nonzero(agreed > total / 2))
    return Renaming(count, n, float(_different(n)[count:].sum()) if count else 1.0)


def _different(n: int) -> Floats:
    """How likely n names that are drawn at random from n are 0, 1, ... n different ones."""
    chance = np.zeros(n + 1)
    chance[0] = 1.0
    known = np.arange(n + 1) / n
    for _ in range(n):
        chance = chance * known + np.concatenate(([0.0], (chance * (1 - known))[:-1]))
    return chance
