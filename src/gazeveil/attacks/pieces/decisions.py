"""Re-identification of pieces: one decision per piece, one figure per person.

Controls of a figure about pieces: what it would be if it said nothing, or the opposite.

A rate below chance level is no privacy: an attacker with inverted scores is above it. With names of
pieces permuted among the viewers of a window, every attacker must fall to chance level. The share
of permutations that do as well as the attacker is a test without further assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.attacks.matching import matching_credit
from gazeveil.attacks.result import beaten_by
from gazeveil.features.recording_set import PieceWindow


@dataclass(frozen=True, eq=False)
class PieceDecisions:
    """An attacker's decisions about the pieces of each person.

    Parameters
    ----------
    people : tuple of str
        Who was asked about.
    scores : Scores
        One row per piece; `probes` are the people whose the pieces are (the truth).
    credit, matched : array of float64, shape (people,)
        Share of a person's pieces that get the right name, each by itself and where all names of a
        window are given at once; chance level for a person without pieces.
    answers : tuple of str or None
        The name that most of a person's pieces get; None where two are as frequent.
    beaten_by : tuple of int or None
        How many others score above the person, mean over pieces, rounded; None for a person without
        pieces or not learnt.
    """

    people: tuple[str, ...]
    scores: Scores
    credit: Floats
    matched: Floats
    answers: tuple[str | None, ...]
    beaten_by: tuple[int | None, ...]


def decide_pieces(
    scores: Scores,
    owners: Mapping[str, str],
    windows: Mapping[str, PieceWindow],
    people: tuple[str, ...],
    seed: int,
) -> PieceDecisions:
    """Judge scores of pieces.

    Parameters
    ----------
    scores : Scores
        One row per piece, `probes` are the pieces' names.
    owners : mapping of piece to person
        The truth.
    windows : mapping of piece to PieceWindow
        Each viewer of a stimulus has one piece per window, so that its names can be given one to
        one.
    people : tuple of str
        Who is asked about.
    seed : int
        Of ties in matching.
    """
    own = tuple(owners[name] for name in scores.probes)
    truth = Scores(scores.known, own, scores.values)
    matched = np.zeros(len(own))
    groups: dict[tuple[str, int], list[int]] = {}
    for row, name in enumerate(scores.probes):
        groups.setdefault(windows[name][:2], []).append(row)
    for rows in groups.values():
        part = Scores(scores.known, tuple(own[r] for r in rows), scores.values[rows])
        matched[rows] = matching_credit(part, seed)
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    best = values == values.max(axis=1, keepdims=True)
    named = [scores.known[int(np.argmax(b))] if b.sum() == 1 else None for b in best]
    above = beaten_by(truth)
    mine = {p: np.array([i for i, o in enumerate(own) if o == p], dtype=np.int64) for p in people}
    guess = 1.0 / max(len(scores.known), 1)
    credit = truth.credit()

    def mean(values: Floats) -> Floats:
        return np.array(
            [float(values[mine[p]].mean()) if len(mine[p]) else guess for p in people],
            dtype=np.float64,
        )

    known = set(scores.known)
    return PieceDecisions(
        people,
        truth,
        mean(credit),
        mean(matched),
        tuple(_most([named[i] for i in mine[p].tolist()]) for p in people),
        tuple(
            round(float(above[mine[p]].mean())) if len(mine[p]) and p in known else None
            for p in people
        ),
    )


def _most(names: list[str | None]) -> str | None:
    counted = Counter(n for n in names if n is not None).most_common(2)
    if not counted or (len(counted) > 1 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]


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
