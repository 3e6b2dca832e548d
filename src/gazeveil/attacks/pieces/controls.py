"""Controls of a figure about pieces: what it would be if it said nothing, or the opposite.

A rate below guessing is no privacy: whoever turns the scores round has a rate above it. And where
names of pieces are dealt anew among the viewers of a window, every attacker must fall to guessing;
how often chance does as well as the attacker is a test that assumes nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores

#: How often names are dealt anew.
DEALS = 500


@dataclass(frozen=True)
class PieceControls:
    """Controls of an identification rate over pieces.

    Parameters
    ----------
    flipped : float
        The rate of the attacker who takes the least score for the largest, people weighing the
        same.
    dealt : float
        The mean rate where names are dealt anew within windows: guessing.
    """

    flipped: float
    dealt: float


def piece_controls(scores: Scores, windows: Sequence[Hashable], seed: int) -> PieceControls:
    """Work out the controls of scores with one row per piece; names are dealt within windows."""
    at = {person: i for i, person in enumerate(scores.known)}
    people = {person: i for i, person in enumerate(sorted(set(scores.probes)))}
    who = np.array([people[p] for p in scores.probes], dtype=np.int64)
    columns = np.array([at.get(p, -1) for p in people], dtype=np.int64)
    flipped = Scores(scores.known, scores.probes, -scores.values)
    rng = np.random.default_rng(seed)
    given = _given(scores)
    members: dict[Hashable, list[int]] = {}
    for row, window in enumerate(windows):
        members.setdefault(window, []).append(row)
    groups = [np.array(rows, dtype=np.int64) for rows in members.values()]
    rates = np.empty(DEALS)
    for i in range(DEALS):
        dealt = who.copy()
        for rows in groups:
            dealt[rows] = rng.permutation(who[rows])
        rates[i] = _rate(given, dealt, columns)
    return PieceControls(_rate(_given(flipped), who, columns), float(rates.mean()))


def _given(scores: Scores) -> Floats:
    """The share of each piece's decision that each known person gets."""
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    best = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
    return best / best.sum(axis=1, keepdims=True)


def _rate(given: Floats, who: Ints, columns: Ints) -> float:
    """Mean over people of the mean credit of their pieces."""
    column = columns[who]
    credit = np.where(column >= 0, given[np.arange(len(who)), column], 0.0)
    total = np.bincount(who, weights=credit, minlength=len(columns))
    return float(np.mean(total / np.maximum(np.bincount(who, minlength=len(columns)), 1)))
