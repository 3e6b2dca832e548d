"""Evidence: one kind of vectors of both sides, with what judges them.

Attackers that add up several kinds weigh each by how well it knows people of the gallery from
stimuli that were held out (:mod:`gazeveil.attacks.evidence`).

What attackers worked out about a pair of recording sets, for other attackers who ask the same.

`fusion` adds up what `steps` and `rocket` say, and all of them are run on the same sets: each
judgement is made once and forgotten with the sets.

Scores of the gallery's own people on stimuli that were held out: by these an attacker chooses,
without the probe, how far to trust each kind of evidence.

Sums of several scores, weighed by how well each knows people of the gallery from stimuli that
were held out.

The weights maximise the probability that a softmax of the sum gives to the right person, over the
held-out decisions, with a penalty that keeps weights near one another where there is little to
learn from. Nothing of the probe enters.

One-to-one matching: an attacker with a whole release knows that its people are all different.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores, standardised_scores
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors

T = TypeVar("T")

_Of = WeakKeyDictionary[RecordingSet, dict[str, Any]]
_KEPT: WeakKeyDictionary[RecordingSet, _Of] = WeakKeyDictionary()


def remembered(gallery: RecordingSet, probe: RecordingSet, name: str, make: Callable[[], T]) -> T:
    """The value of `make()`, which is called once for each gallery, probe (the gallery again for
    what is about it alone) and name, which says all that the value depends on beside the sets. An
    error is raised again each time.
    """
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary()).setdefault(probe, {})
    if name not in kept:
        kept[name] = make()
    value: T = kept[name]
    return value


def forget_pairs() -> None:
    """Drop cached results about a pair of sets that is not used again. Results about a gallery
    alone stay as long as the gallery does.
    """
    # Lists of references are made in one step, whatever threads do beside.
    for held in _KEPT.keyrefs():
        gallery = held()
        pairs = None if gallery is None else _KEPT.get(gallery)
        for other in [] if pairs is None else pairs.keyrefs():
            probe = other()
            if pairs is not None and probe is not None and probe is not gallery:
                pairs.pop(probe, None)


#: From vectors of a gallery and of a probe to scores of people.
Matcher = Callable[[RecordingVectors, RecordingVectors], Scores]

#: Parts into which stimuli are dealt; each costs one more training.
PARTS = 4

#: Most people on whom evidence is weighed: more do not make the weights better.
MOST_PEOPLE = 60


def held_out_scores(gallery: RecordingVectors, matcher: Matcher) -> tuple[Floats, Ints]:
    """Standardised scores of held-out decisions by one kind of evidence. Decisions follow from the
    keys, so that those of several kinds are the same.

    Returns
    -------
    scores : array of float64, shape (decisions, people)
        Empty where the gallery has one stimulus or fewer than three people.
    own : array of int64, shape (decisions,)
        The right person of each decision.
    """
    everybody = sorted(set(gallery.persons.tolist()))[:MOST_PEOPLE]
    used = np.isin(gallery.persons, everybody)
    part = np.unique(gallery.stimuli, return_inverse=True)[1] % PARTS
    held_out: list[Floats] = []
    own: list[Ints] = []
    for k in np.unique(part[used]):
        asked, learnt = used & (part == k), used & (part != k)
        persons = gallery.persons
        both = sorted(set(persons[asked].tolist()) & set(persons[learnt].tolist()))
        if len(both) < 3:
            continue
        rows = np.isin(persons, both)
        columns = np.searchsorted(everybody, both)
        # A candidate that is not eligible scores far below all others.
        wide = np.full((len(both), len(everybody)), -10.0)
        try:
            scores = matcher(gallery.where(learnt & rows), gallery.where(asked & rows))
            wide[:, columns] = standardised_scores(scores.values)
        except DataError:
            # Evidence that these stimuli do not carry identifies no candidate.
            wide[:, columns] = 0.0
        held_out.append(wide)
        own.append(columns)
    if not own:
        return np.zeros((0, len(everybody))), np.empty(0, dtype=np.int64)
    return np.concatenate(held_out), np.concatenate(own).astype(np.int64)


#: Strength of the pull towards equal weights, in held-out decisions.
_PULL = 0.5


def fusion_weights(held_out: Sequence[Floats], own: Ints) -> Floats:
    """Weights of several scores, at least 0.

    Parameters
    ----------
    held_out : sequence of arrays of float64, shape (decisions, people)
        Standardised scores of each kind for the same decisions.
    own : array of int64, shape (decisions,)
        The right person of each.

    Returns
    -------
    array of float64, shape (kinds,)
        Equal weights where there are no decisions.
    """
    from scipy.optimize import minimize

    kinds = len(held_out)
    if kinds < 2 or len(own) == 0:
        return np.ones(kinds)
    stack = np.stack(held_out)
    rows = np.arange(len(own))

    def loss(weights: Floats) -> tuple[float, Floats]:
        total = np.tensordot(weights, stack, axes=1)
        total -= total.max(axis=1, keepdims=True)
        odds = np.exp(total)
        whole = odds.sum(axis=1)
        value = float((np.log(whole) - total[rows, own]).sum())
        excess = odds / whole[:, None]
        excess[rows, own] -= 1.0
        slope = np.tensordot(stack, excess, axes=([1, 2], [0, 1]))
        centred = weights - weights.mean()
        return value + _PULL * float(centred @ centred), slope + 2 * _PULL * centred

    found = minimize(
        loss, np.full(kinds, 1.0 / kinds), jac=True, method="L-BFGS-B", bounds=[(0.0, 20.0)] * kinds
    )
    weights: Floats = np.asarray(found.x, dtype=np.float64)
    return weights if weights.sum() > 0 else np.ones(kinds)


def fused(parts: Sequence[Floats], weights: Floats) -> Floats:
    """The weighed sum of standardised scores."""
    return sum(
        (w * standardised_scores(p) for w, p in zip(weights, parts, strict=True)),
        np.zeros_like(parts[0]),
    )


@dataclass(frozen=True, eq=False)
class Evidence:
    """One kind of evidence about two recording sets. The name, with the sets, says everything about
    the judgement; `vectors` gives those of both sides, worked out on first use; `matcher` judges
    them.
    """

    name: str
    gallery: RecordingSet
    probe: RecordingSet
    vectors: Callable[[], tuple[RecordingVectors, RecordingVectors]]
    matcher: Matcher

    def scores(self) -> Scores:
        """The judgement about the probe, made once."""
        return remembered(
            self.gallery, self.probe, self.name, lambda: self.matcher(*self.vectors())
        )

    def held_out(self) -> tuple[Floats, Ints]:
        """Score held-out stimuli of the gallery, once for all probes."""
        return remembered(
            self.gallery,
            self.gallery,
            f"held out {self.name}",
            lambda: held_out_scores(self.vectors()[0], self.matcher),
        )


def weighed_sum(kinds: Sequence[Evidence], nothing: str) -> Scores:
    """The sum of standardised scores of all kinds that can judge, each with its weight. `nothing`
    is what to say where no kind can.

    Raises
    ------
    DataError
        If no kind can judge.
    """
    judged: list[tuple[Evidence, Scores]] = []
    for kind in kinds:
        try:
            judged.append((kind, kind.scores()))
        except DataError:
            # A release may leave no events, or paths that are too short: then the others judge.
            continue
    if not judged:
        raise DataError(nothing)
    weights = np.ones(1)
    if len(judged) > 1:
        held_out = [kind.held_out() for kind, _ in judged]
        weights = fusion_weights([scores for scores, _ in held_out], held_out[0][1])
    values = fused([scores.values for _, scores in judged], weights)
    return Scores(judged[0][1].known, judged[0][1].probes, values.round(9))


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
