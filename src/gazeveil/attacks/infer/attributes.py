"""Attribute inference: predict gender, age or another attribute of a person from gaze.

Leave-one-person-out: the attribute of each person is predicted by an attacker trained on all
others. With recordings of one person in training and test, recognition of the person would give the
attribute.

The attacker is a ridge regression on person vectors
(:mod:`gazeveil.attacks.vectors.kinds`), the mean of a weak, a middle and a strong
shrinkage; classes are regressed on as 0 or 1. Choosing one shrinkage inside each fold by the
attributes of the others would push guesses away from the truth where nothing shows (areas around
0.42 instead of 0.5). How boldly a guess leaves the mean, or the largest class, is chosen inside
each fold, by the closed leave-one-out guesses about the others; that does not change the order of
guesses. All but the attribute itself is computed once, so a permutation test (attributes dealt out
anew among people) costs little.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Texts
from gazeveil.attacks.curves import roc_area, roc_area_interval
from gazeveil.attacks.result import ERROR, AttackResult, mean_interval, rate_result
from gazeveil.attacks.vectors.kinds import PersonVectors, centred, person_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_deviations, column_means

#: Shrinkages, in units of the mean square of a person vector; the middle one fits an attribute half
#: of which shows in gaze.
SHRINKAGES = (1.0, 0.1, 10.0)

#: Factors tried on guesses.
BOLDNESS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Fewest people an attribute is guessed for.
FEWEST = 6


@dataclass(frozen=True, eq=False)
class Inferred:
    """What an attacker guesses of one attribute.

    Parameters
    ----------
    attribute : str
        Which.
    results : tuple of AttackResult
        Classes: `accuracy` (chance is the largest class), and `auc` where there are two. Numbers:
        `r2` against the mean of the others (chance 0), `mae` in the attribute's unit (chance is the
        error of that mean), `correlation`, and `auc` of the upper against the lower half.
    people : tuple of str
        Who was guessed.
    guesses : array
        The class or number guessed of each.
    left_out : int
        People with recordings of whom the attribute is not known, or whose class has no other
        member.
    """

    attribute: str
    results: tuple[AttackResult, ...]
    people: tuple[str, ...]
    guesses: NDArray[np.generic] = field(repr=False)
    left_out: int

    def result(self, metric: str) -> AttackResult:
        """One of the results, by metric."""
        by_name = {r.metric: r for r in self.results}
        return by_name[checks.one_of("Inferred.result", "metric", metric, by_name)]


def infer(
    train: RecordingSet,
    test: RecordingSet,
    attribute: str,
    seed: int,
    features: str = "summary",
    people: Mapping[str, Mapping[str, object]] | None = None,
    draws: int = 999,
) -> Inferred:
    """Guess an attribute of every person.

    Parameters
    ----------
    train : RecordingSet
        What the attacker learns from, with attributes; the person asked about is left out each
        time.
    test : RecordingSet
        The release in question: what the attacker sees of the person. May be the same material.
    attribute : str
        `gender`, `age`... as in `recording_set.people`.
    seed : int
        Of the permutation test and the intervals.
    features : {"summary", "extended", "trajectory"}
        As in :func:`gazeveil.attacks.vectors.kinds.recording_vectors`.
    people : mapping, optional
        Where the attributes are; default those of `train`, and of `test` for people who have none
        there.
    draws : int
        Permutations.

    Raises
    ------
    DataError
        If fewer than six people with recordings on both sides have the attribute, or all have the
        same.
    """
    attributes_of = (
        people
        if people is not None
        else {**dict(test.people), **{p: a for p, a in train.people.items() if a}}
    )
    learned, seen = (person_vectors(centred(side, features)) for side in (train, test))
    shared = tuple(c for c in learned.columns if c in set(seen.columns))
    learned, seen = learned.select(shared), seen.select(shared)
    both = [p for p in seen.people if p in set(learned.people)]
    entries = {p: _value(attribute, p, attributes_of.get(p, {}).get(attribute)) for p in both}
    truth = {p: v for p, v in entries.items() if v is not None}
    numeric = bool(truth) and all(isinstance(v, float) for v in truth.values())
    if not numeric:
        sizes = {v: [str(o) for o in truth.values()].count(v) for v in map(str, truth.values())}
        truth = {p: v for p, v in truth.items() if sizes[str(v)] > 1}
    names = tuple(sorted(truth))
    if len(names) < FEWEST or len({str(v) for v in truth.values()}) < 2:
        raise DataError(
            f"Guessing '{attribute}' needs at least {FEWEST} people with recordings on both sides"
            f" who have it, and two different values. Got {len(names)} people with"
            f" {len({str(v) for v in truth.values()})}."
        )
    folds = _Folds.of(learned, seen, names)
    draws = checks.count("infer", "draws", draws)
    left_out = len(both) - len(names)
    if numeric:
        values = np.array([truth[p] for p in names], dtype=np.float64)
        return _numbers(attribute, names, values, folds, seed, draws, left_out)
    labels = np.array([str(truth[p]) for p in names])
    return _classes(attribute, names, labels, folds, seed, draws, left_out)


def _value(attribute: str, person: str, value: object) -> float | str | None:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise DataError(
        f"The {attribute} of person '{person}' must be text or a finite number. Got {value!r}."
    )


@dataclass(frozen=True, eq=False)
class _Folds:
    """One left-out person per fold, prepared up to the attribute: guesses are then linear in it.

    Parameters
    ----------
    hats : array of float64, shape (people, people - 1)
        Row that turns the others' centred attributes into the guess.
    inner : array of float64, shape (people, people - 1, people - 1)
        Turns them into leave-one-out guesses about the others themselves.
    """

    hats: Floats
    inner: Floats

    @classmethod
    def of(cls, learned: PersonVectors, seen: PersonVectors, names: tuple[str, ...]) -> _Folds:
        n = len(names)
        x = learned.values[[learned.people.index(p) for p in names]]
        y = seen.values[[seen.people.index(p) for p in names]]
        hats = np.empty((len(SHRINKAGES), n, n - 1))
        inner = np.empty((len(SHRINKAGES), n, n - 1, n - 1))
        for i in range(n):
            z, scale = _standard(np.delete(x, i, axis=0))
            # Person vectors are centred among all people of their material. Taking the others' mean
            # away here would bring the left-out person's own training vector in, because the
            # others' mean is its opposite.
            query = np.where(np.isfinite(y[i]), y[i] / scale, 0.0)
            gram = z @ z.T
            unit = max(float(np.trace(gram)) / (n - 1), 1e-12)
            for j, amount in enumerate(SHRINKAGES):
                inverse = np.linalg.inv(gram + amount * unit * np.eye(n - 1))
                hats[j, i] = (z @ query) @ inverse
                # Leave-one-out errors of ridge are (inverse y)_m / inverse_mm; the guess is what is
                # left of y_m.
                inner[j, i] = np.eye(n - 1) - inverse / np.diag(inverse)[:, None]
        # Guesses of all shrinkages at the scale of the first; no attribute has a part in it.
        size = np.linalg.norm(hats, axis=2).mean(axis=1)
        share = size[0] / np.where(size > 0, size, np.inf) / len(SHRINKAGES)
        return cls(np.einsum("j,jim->im", share, hats), np.einsum("j,jimk->imk", share, inner))

    def scores(self, targets: Floats) -> Floats:
        """Guesses as deviations from the others' mean, shape (people, outputs), for targets of that
        shape.
        """
        # Row i of the square matrix is the hat of person i with 0 at its own place.
        square = np.zeros((len(targets), len(targets)))
        square[~np.eye(len(targets), dtype=np.bool_)] = self.hats.reshape(-1)
        means = (targets.sum(axis=0) - targets) / (len(targets) - 1)
        return np.asarray(
            square @ targets - square.sum(axis=1, keepdims=True) * means, dtype=np.float64
        )

    def bold(self, targets: Floats, loss: Callable[[Floats, Floats], float]) -> Floats:
        """For each person the factor on guesses that would have served best among the others; the
        largest of equals.
        """
        chosen = np.empty(len(targets))
        for i in range(len(targets)):
            others = np.delete(targets, i, axis=0)
            guesses = self.inner[i] @ (others - others.mean(axis=0))
            losses = [loss(factor * guesses, others) for factor in BOLDNESS]
            chosen[i] = max(
                f for f, value in zip(BOLDNESS, losses, strict=True) if value <= min(losses) + 1e-12
            )
        return chosen


def _standard(values: Floats) -> tuple[Floats, Floats]:
    """Columns at mean 0 and variance 1, unmeasured ones at 0; with what they were divided by."""
    mean, spread = column_means(values), column_deviations(values)
    usable = spread > 1e-12 * np.maximum(np.abs(mean), 1.0)
    # A column that does not vary among the others says nothing of anybody: infinite scale makes it
    # zero.
    scale = np.where(usable, spread, np.inf)
    return np.nan_to_num((values - mean) / scale), scale


def _classes(
    attribute: str,
    names: tuple[str, ...],
    labels: Texts,
    folds: _Folds,
    seed: int,
    draws: int,
    left_out: int,
) -> Inferred:
    kinds = np.unique(labels)
    onehot = (labels[:, None] == kinds).astype(np.float64)
    # How common each class is counts as known: the mean of the others alone would tell, by what is
    # missing from it, who was left out.
    prior = onehot.mean(axis=0)
    scores = folds.scores(onehot)
    factor = folds.bold(
        onehot, lambda guesses, others: -float(_credit(guesses + prior, others).mean())
    )
    weighed = prior + factor[:, None] * scores
    protocol = f"{attribute} of {len(names)} people, one person left out, {left_out} without it"
    accuracy, most = float(_credit(weighed, onehot).mean()), float(prior.max())
    results = [rate_result("accuracy", accuracy, len(names), most, protocol)]
    if len(kinds) == 2:
        positive = labels == kinds[1]
        value = roc_area(scores[positive, 1], scores[~positive, 1])
        low, high = roc_area_interval(value, int(positive.sum()), int((~positive).sum()))
        rng = np.random.default_rng(seed)
        null = []
        for _ in range(draws):
            order = rng.permutation(len(names))
            by_chance = folds.scores(onehot[order])[:, 1]
            null.append(roc_area(by_chance[positive[order]], by_chance[~positive[order]]))
        tested = f"{protocol}, '{kinds[1]}' against '{kinds[0]}', {draws} permutations"
        results.append(
            AttackResult("auc", value, low, high, len(names), 0.5, _p_value(value, null), tested)
        )
    return Inferred(attribute, tuple(results), names, kinds[np.argmax(weighed, axis=1)], left_out)


def _credit(scores: Floats, onehot: Floats) -> Floats:
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best * onehot).sum(axis=1) / best.sum(axis=1), dtype=np.float64)


def _numbers(
    attribute: str,
    names: tuple[str, ...],
    values: Floats,
    folds: _Folds,
    seed: int,
    draws: int,
    left_out: int,
) -> Inferred:
    n = len(values)
    others = (values.sum() - values) / (n - 1)
    scores = folds.scores(values[:, None])[:, 0]
    factor = folds.bold(
        values[:, None], lambda guesses, truth: float(((truth - truth.mean() - guesses) ** 2).sum())
    )
    bold = factor * scores
    errors = np.abs(values - others - bold)
    upper = values > np.median(values)
    rng = np.random.default_rng(seed)
    null_correlation, null_area = _permuted(folds, values, upper, rng, draws)
    r2, correlation = _bootstrapped(values, others, bold, scores, rng)
    protocol = f"{attribute} of {n} people, one person left out, {left_out} without it"
    resampled, tested = f"{protocol}, bootstrap over people", f"{protocol}, {draws} permutations"
    r = _correlation(scores, values)
    p_value = _p_value(r, null_correlation)
    explained, mean_error = _explained(values - others, bold), float(np.abs(values - others).mean())
    mae = (float(errors.mean()), *mean_interval(errors))
    results = [
        AttackResult("r2", explained, *r2, n, 0.0, math.nan, resampled),
        AttackResult("mae", *mae, n, mean_error, math.nan, f"{protocol}, interval over people"),
        AttackResult(
            "correlation", r, *correlation, n, 0.0, p_value, f"{tested}, bootstrap over people"
        ),
    ]
    if upper.any():  # the median may be the largest value
        value = roc_area(scores[upper], scores[~upper])
        edges = roc_area_interval(value, int(upper.sum()), int((~upper).sum()))
        p_value = _p_value(value, null_area)
        above = f"{tested}, above {np.median(values):g} or not"
        results.append(AttackResult("auc", value, *edges, n, 0.5, p_value, above))
    return Inferred(attribute, tuple(results), names, others + bold, left_out)


def _permuted(
    folds: _Folds, values: Floats, upper: Bools, rng: np.random.Generator, draws: int
) -> tuple[list[float], list[float]]:
    """Correlations, and areas of the upper against the lower half, after permutations of the
    attribute among people; no areas where the upper half is empty.
    """
    correlations, areas = [], []
    for _ in range(draws):
        order = rng.permutation(len(values))
        scores = folds.scores(values[order, None])[:, 0]
        correlations.append(_correlation(scores, values[order]))
        if upper.any():
            areas.append(roc_area(scores[upper[order]], scores[~upper[order]]))
    return correlations, areas


def _bootstrapped(
    values: Floats, others: Floats, bold: Floats, scores: Floats, rng: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % intervals over people of the share explained and of the correlation."""
    draw = rng.integers(len(values), size=(2000, len(values)))
    r2 = [_explained((values - others)[r], bold[r]) for r in draw]
    correlations = [_correlation(scores[r], values[r]) for r in draw]
    (a, b), (c, d) = (
        np.nanquantile(drawn, [ERROR / 2, 1 - ERROR / 2]).tolist() for drawn in (r2, correlations)
    )
    return (a, b), (c, d)


def _correlation(first: Floats, second: Floats) -> float:
    """Pearson's, 0 where one of them does not vary."""
    a, b = first - first.mean(), second - second.mean()
    size = math.sqrt(float((a**2).sum()) * float((b**2).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0


def _explained(truth: Floats, guesses: Floats) -> float:
    """Share of the squared deviations from the others' mean that guesses of these deviations
    explain.
    """
    whole = float((truth**2).sum())
    return math.nan if whole == 0 else 1 - float(((truth - guesses) ** 2).sum()) / whole


def _p_value(value: float, null: list[float]) -> float:
    return (1 + sum(v >= value - 1e-12 for v in null)) / (1 + len(null))
