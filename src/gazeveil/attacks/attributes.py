"""Attribute inference: gender, age or anything else known about people, guessed from their gaze.

Nobody is guessed by an attacker who has seen them: for every person the attacker learns from all others (leave one person out), however many
recordings a person has, because recordings of one person in training and test would turn recognition into a guess of the attribute.

The attacker is a ridge regression on portraits (:mod:`gazeveil.attacks.portraits`) whose strength of shrinkage is chosen, inside each fold, by
its closed leave-one-out error; classes are regressed on as 0 or 1. All of that but the attribute itself is computed once, so
a permutation test (attributes dealt out anew among people) costs little and is exact at its number of draws.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.attacks.portraits import Portraits, centred, portraits
from gazeveil.attacks.result import ERROR, AttackResult, bootstrap, rate_result
from gazeveil.attacks.separation import area, area_interval
from gazeveil.errors import DataError
from gazeveil.features.material import Material

Reals = NDArray[np.float64]

#: Shrinkage tried, in units of the mean variance of a person's portrait.
SHRINKAGE = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)

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
        Classes: `accuracy` (chance is the largest class), and `auc` where there are two. Numbers: `r2` against the mean of the others (chance
        0), `mae` in the attribute's unit (chance is the error of that mean), and `auc` of the upper against the lower half.
    people : tuple of str
        Who was guessed.
    guesses : array
        The class or number guessed of each.
    left_out : int
        People with recordings of whom the attribute is not known, or whose class has no other member.
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
    train: Material,
    test: Material,
    attribute: str,
    seed: int,
    features: str = "narrow",
    people: Mapping[str, Mapping[str, object]] | None = None,
    draws: int = 999,
) -> Inferred:
    """Guess an attribute of every person.

    Parameters
    ----------
    train : Material
        What the attacker learns from, with attributes; the person asked about is left out each time.
    test : Material
        The release in question: what the attacker sees of the person. May be the same material.
    attribute : str
        `gender`, `age`... as in `material.people`.
    seed : int
        Of the permutation test and the intervals.
    features : {"narrow", "wide", "path"}
        As in :func:`gazeveil.attacks.vectors.recording_vectors`.
    people : mapping, optional
        Where the attributes are; default those of `train`, and of `test` for people who have none there.
    draws : int
        Permutations.

    Raises
    ------
    DataError
        If fewer than six people with recordings on both sides have the attribute, or all have the same.
    """
    known = people if people is not None else {**dict(test.people), **{p: a for p, a in train.people.items() if a}}
    learned, seen = portraits(centred(train, features)), portraits(centred(test, features))
    shared = tuple(c for c in learned.columns if c in set(seen.columns))
    learned, seen = learned.select(shared), seen.select(shared)
    both = [p for p in seen.people if p in set(learned.people)]
    given = {p: _value(attribute, p, known.get(p, {}).get(attribute)) for p in both}
    told = {p: v for p, v in given.items() if v is not None}
    numeric = bool(told) and all(isinstance(v, float) for v in told.values())
    if not numeric:
        sizes = {v: [str(o) for o in told.values()].count(str(v)) for v in map(str, told.values())}
        told = {p: v for p, v in told.items() if sizes[str(v)] > 1}
    names = tuple(sorted(told))
    if len(names) < FEWEST or len({str(v) for v in told.values()}) < 2:
        raise DataError(
            f"Guessing '{attribute}' needs at least {FEWEST} people with recordings on both sides who have it, and two different values."
            f" Got {len(names)} people with {len({str(v) for v in told.values()})}."
        )
    folds = _Folds.of(learned, seen, names)
    draws = checks.count("infer", "draws", draws)
    left_out = len(both) - len(names)
    if numeric:
        return _numbers(attribute, names, np.array([told[p] for p in names], dtype=np.float64), folds, seed, draws, left_out)
    return _classes(attribute, names, np.array([str(told[p]) for p in names]), folds, seed, draws, left_out)


def _value(attribute: str, person: str, value: object) -> float | str | None:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise DataError(f"The {attribute} of person '{person}' must be text or a finite number. Got {value!r}.")


@dataclass(frozen=True, eq=False)
class _Folds:
    """One left-out person per fold, prepared up to the attribute: guesses are then linear in it.

    Parameters
    ----------
    hats : array of float64, shape (people, shrinkages, people - 1)
        Row that turns the others' centred attributes into the guess.
    residual : array of float64, shape (people, shrinkages, people - 1, people - 1)
        Turns them into their own leave-one-out errors inside the fold.
    """

    hats: Reals
    residual: Reals

    @classmethod
    def of(cls, learned: Portraits, seen: Portraits, names: tuple[str, ...]) -> _Folds:
        n = len(names)
        x = learned.values[[learned.people.index(p) for p in names]]
        y = seen.values[[seen.people.index(p) for p in names]]
        hats = np.empty((n, len(SHRINKAGE), n - 1))
        residual = np.empty((n, len(SHRINKAGE), n - 1, n - 1))
        for i in range(n):
            others = np.delete(x, i, axis=0)
            z, scale = _standard(others)
            asked = np.where(np.isfinite(y[i]), (y[i] - scale[0]) / scale[1], 0.0)
            gram = z @ z.T
            unit = max(float(np.trace(gram)) / (n - 1), 1e-12)
            for j, amount in enumerate(SHRINKAGE):
                inverse = np.linalg.inv(gram + amount * unit * np.eye(n - 1))
                hats[i, j] = (z @ asked) @ inverse
                # Leave-one-out errors of ridge: (inverse y)_m / inverse_mm.
                residual[i, j] = inverse / np.diag(inverse)[:, None]
        return cls(hats, residual)

    def scores(self, targets: Reals) -> Reals:
        """Guesses as deviations from the others' mean, shape (people, outputs), for targets of that shape."""
        n = len(targets)
        out = np.empty_like(targets)
        for i in range(n):
            others = np.delete(targets, i, axis=0)
            others = others - others.mean(axis=0)
            errors = ((self.residual[i] @ others) ** 2).sum(axis=(1, 2))
            out[i] = self.hats[i, int(np.argmin(errors))] @ others
        return out


def _standard(values: Reals) -> tuple[Reals, tuple[Reals, Reals]]:
    """Columns at mean 0 and variance 1, unmeasured ones at 0; with what was taken away and divided by."""
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / count)
    usable = spread > 1e-12 * np.maximum(np.abs(mean), 1.0)
    # A column that does not vary among the others says nothing of anybody: infinite scale makes it zero.
    scale = np.where(usable, spread, np.inf)
    return np.where(known, (values - mean) / scale, 0.0), (mean, scale)


def _classes(attribute: str, names: tuple[str, ...], labels: NDArray[np.str_], folds: _Folds, seed: int, draws: int, left_out: int) -> Inferred:
    kinds = np.unique(labels)
    onehot = (labels[:, None] == kinds).astype(np.float64)
    # How common each class is counts as known: the mean of the others alone would tell, by what is missing from it, who was left out.
    prior = onehot.mean(axis=0)
    scores = folds.scores(onehot)
    credit = _credit(scores + prior, onehot)
    chance = float(prior.max())
    protocol = f"{attribute} of {len(names)} people, one person left out, {left_out} without it"
    results = [rate_result("accuracy", float(credit.mean()), len(names), chance, protocol)]
    if len(kinds) == 2:
        positive = labels == kinds[1]
        value = area(scores[positive, 1], scores[~positive, 1])
        low, high = area_interval(value, int(positive.sum()), int((~positive).sum()))
        rng = np.random.default_rng(seed)
        null = []
        for _ in range(draws):
            order = rng.permutation(len(names))
            by_chance = folds.scores(onehot[order])
            null.append(area(by_chance[positive[order], 1], by_chance[~positive[order], 1]))
        words = f"{protocol}, '{kinds[1]}' against '{kinds[0]}', {draws} permutations"
        results.append(AttackResult("auc", value, low, high, len(names), 0.5, _p_value(value, null), words))
    return Inferred(attribute, tuple(results), names, kinds[np.argmax(scores + prior, axis=1)], left_out)


def _credit(scores: Reals, onehot: Reals) -> Reals:
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best * onehot).sum(axis=1) / best.sum(axis=1), dtype=np.float64)


def _numbers(attribute: str, names: tuple[str, ...], values: Reals, folds: _Folds, seed: int, draws: int, left_out: int) -> Inferred:
    n = len(values)
    others = (values.sum() - values) / (n - 1)
    scores = folds.scores(values[:, None])[:, 0]
    guesses = others + scores
    upper = values > np.median(values)
    halves = bool(upper.any())  # the median may be the largest value
    rng = np.random.default_rng(seed)
    null_r2, null_area = [], []
    for _ in range(draws):
        order = rng.permutation(n)
        by_chance = folds.scores(values[order, None])[:, 0]
        null_r2.append(_explained(values[order] - others[order], by_chance))
        if halves:
            null_area.append(area(by_chance[upper[order]], by_chance[~upper[order]]))
    protocol = f"{attribute} of {n} people, one person left out, {left_out} without it, {draws} permutations"
    r2 = _explained(values - others, scores)
    again = [_explained((values - others)[rows], scores[rows]) for rows in rng.integers(n, size=(2000, n))]
    low, high = np.nanquantile(again, [ERROR / 2, 1 - ERROR / 2])
    errors = np.abs(values - guesses)
    nothing = float(np.abs(values - others).mean())
    words = protocol + ", bootstrap over people"
    results = [
        AttackResult("r2", r2, float(low), float(high), n, 0.0, _p_value(r2, null_r2), words),
        AttackResult("mae", float(errors.mean()), *bootstrap(errors, seed), n, nothing, math.nan, words),
    ]
    if halves:
        value = area(scores[upper], scores[~upper])
        edges = area_interval(value, int(upper.sum()), int((~upper).sum()))
        results.append(AttackResult("auc", value, *edges, n, 0.5, _p_value(value, null_area), f"{protocol}, above {np.median(values):g} or not"))
    return Inferred(attribute, tuple(results), names, guesses, left_out)


def _explained(truth: Reals, guesses: Reals) -> float:
    """Share of the squared deviations from the others' mean that guesses of these deviations explain."""
    whole = float((truth**2).sum())
    return math.nan if whole == 0 else 1 - float(((truth - guesses) ** 2).sum()) / whole


def _p_value(value: float, null: list[float]) -> float:
    return (1 + sum(v >= value - 1e-12 for v in null)) / (1 + len(null))
