"""What attackers share that score single events (or windows): a mean per person, fused over
fixations and saccades.

Each table (fixations, saccades, or windows) gets a classifier of its own. A person's score in a
table is the mean score of the person's rows. Tables are fused by weights. David-John et al. 2021
weighs fixations and saccades 0.5/0.5, David-John et al. 2022 and 2023 0.4/0.6.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.attacks.base import Attack, Scores, with_ties
from gazeveil.errors import DataError, NothingLeftError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable

#: From rows, the number of the group of each, and how many groups there are, to the mean scores of
#: groups against the classes, shape (groups, classes).
MeanScores: TypeAlias = Callable[[Floats, Ints, int], Floats]

#: The people a classifier knows, in the order of the columns of its scores, and its scores.
Fitted: TypeAlias = tuple[Texts, MeanScores]

# Scores of rows against people that are held at one time: 64 MiB.
_BLOCK_SCORES = 1 << 23


@dataclass(frozen=True, kw_only=True)
class EventAttack(Attack):
    """An attacker that scores events or windows and averages.

    Parameters
    ----------
    weights : str
        Weight of fixations and of saccades, as `0.5/0.5`. A person without events of one kind is
        scored by the other; `1/0` scores fixations alone where there are some.
    train_events, test_events : int
        At most so many rows per person and table are learned from and asked about, drawn at random;
        0 takes all.
    balance : bool
        Whether all people weigh the same in learning, however many rows they have. Without it those
        with most rows are named too often.
    """

    weights: str = "0.5/0.5"
    train_events: int = 500
    test_events: int = 1000
    balance: bool = True

    def check(self) -> None:
        """Check the parameters."""
        checks.count(self.name, "train_events", self.train_events, 0)
        checks.count(self.name, "test_events", self.test_events, 0)
        parse_weights(self.name, self.weights)
        if not isinstance(self.balance, bool):
            checks.refuse(self.name, "balance", "True or False", self.balance)
        # Of this value, not of all of its class: windows are another table than events.
        self.store("needs", self.tables)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it looks at."""
        return "fixation", "saccade"

    def can(self, recording_set: RecordingSet) -> bool:
        """Whether a release holds one of the tables this attacker looks at."""
        return any(recording_set.has(name) for name in self.tables)

    @abstractmethod
    def learn(self, values: Floats, people: Texts, seed: int) -> Fitted:
        """Learn from rows with names, at least two people among them.

        Returns
        -------
        classes : array of str
            The people, in the order of the scores' columns.
        scores : callable
            As :data:`MeanScores`; NaN for a group without rows.
        """

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """As :meth:`Attack.identify`."""
        given = parse_weights(self.name, self.weights) if len(self.tables) == 2 else (1.0,)
        known, probes = gallery.persons, probe.persons
        parts, weights = [], []
        for i, (name, weight) in enumerate(zip(self.tables, given, strict=True)):
            if not (gallery.has(name) and probe.has(name)):
                continue
            rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
            tables = gallery.table(name), probe.table(name)
            part = self._score_table(*tables, known, probes, rng)
            if part is not None:
                parts.append(part)
                weights.append(weight)
        if not parts:
            raise NothingLeftError(
                f"Attack {self.name} has nothing to learn from: no {' and no '.join(self.tables)}"
                " of anybody in the gallery. Use more data."
            )
        return Scores(known, probes, with_ties(fuse_scores(parts, weights)))

    def _score_table(
        self,
        gallery: FeatureTable,
        probe: FeatureTable,
        known: tuple[str, ...],
        probes: tuple[str, ...],
        rng: np.random.Generator,
    ) -> Floats | None:
        """Scores of one table, shape (probes, known), NaN where there is nothing to go by; None
        where there is nothing to learn from.
        """
        train = shared_features(gallery, probe)
        test = shared_features(probe, gallery)
        train = train.where(subsample(train.people, self.train_events, rng))
        test = test.where(subsample(test.people, self.test_events, rng))
        if len(train.people) == 0:
            return None

        def learn(values: Floats, people: Texts) -> Fitted:
            return self.learn(values, people, int(rng.integers(2**31)))

        return person_scores(train, test, known, probes, learn)


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of features with the person each is of.

    Parameters
    ----------
    values : array of float64, shape (rows, features)
        Features; NaN where not measured.
    people : array of str, shape (rows,)
        Whose they are.
    """

    values: Floats
    people: Texts

    def where(self, rows: ArrayLike) -> NamedRows:
        """The rows a boolean mask or an index array picks."""
        picked = np.asarray(rows)
        return NamedRows(self.values[picked], self.people[picked])


def person_scores(
    train: NamedRows,
    test: NamedRows,
    known: Sequence[str],
    probes: Sequence[str],
    learn: Callable[[Floats, Texts], Fitted],
) -> Floats:
    """Learn from training rows, score test rows, and average per person.

    Returns
    -------
    array, shape (probes, known)
        NaN in the rows of those without test rows and in the columns of those nothing was learned
        of.
    """
    out = np.full((len(probes), len(known)), np.nan)
    if len(test.people) == 0:
        return out
    names, groups = np.unique(test.people, return_inverse=True)
    classes = np.unique(train.people)
    means = np.ones((len(names), 1))
    # One name is no choice: no classifier has to be asked.
    if len(classes) > 1:
        classes, scores = learn(train.values, train.people)
        means = scores(test.values, groups, len(names))
    rows = [probes.index(name) for name in names.tolist()]
    out[np.ix_(rows, [known.index(name) for name in classes.tolist()])] = means
    return out


def mean_scores(scores: Callable[[Floats], Floats], classes: int) -> MeanScores:
    """Mean scores of groups, by a function from rows to scores that takes any number of them."""

    def means(values: Floats, groups: Ints, count: int) -> Floats:
        sums = np.zeros((count, classes))
        # In blocks: scores of all rows against all people grow with the square of the people.
        step = max(1, _BLOCK_SCORES // classes)
        for a in range(0, len(values), step):
            np.add.at(sums, groups[a : a + step], scores(values[a : a + step]))
        return sums / np.bincount(groups, minlength=count)[:, None]

    return means


def fuse_scores(parts: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Weighted mean of scores over the parts that know something; 0 where none does.

    Parts of weight 0 count only for those about whom no other part knows anything.

    Examples
    --------
    >>> fuse_scores([np.array([[1.0, np.nan]]), np.array([[3.0, 5.0]])], [0.5, 0.5]).tolist()
    [[2.0, 5.0]]
    """
    stack = np.stack(parts)
    there = ~np.isnan(stack)
    weighed = np.asarray(weights, dtype=np.float64)[:, None, None] * there
    total = weighed.sum(axis=0)
    weighed = np.where(total > 0.0, weighed, there)
    total = weighed.sum(axis=0)
    return np.where(
        total > 0.0,
        (weighed * np.where(there, stack, 0.0)).sum(axis=0) / np.where(total > 0.0, total, 1.0),
        0.0,
    )


def shared_features(table: FeatureTable, other: FeatureTable) -> NamedRows:
    """Rows of a table in the features it shares with another (in the order of names); rows without
    any known feature are left out.
    """
    both = sorted(set(table.columns) & set(other.columns))
    if not both:
        raise DataError(
            "The two sides of the attack share no feature. Release the same tables on both sides."
        )
    at = {name: i for i, name in enumerate(table.columns)}
    values = table.values[:, [at[name] for name in both]]
    return NamedRows(values, table.keys.person).where(~np.isnan(values).all(axis=1))


def subsample(people: Texts, most: int, rng: np.random.Generator) -> Ints:
    """Places of at most `most` rows of each person, drawn at random and in order; all of them for
    0.
    """
    if most == 0 or len(people) == 0:
        return np.arange(len(people))
    order = np.argsort(people, kind="stable")
    starts = np.flatnonzero(np.append(True, people[order][1:] != people[order][:-1]))
    groups = np.split(order, starts[1:])
    kept = [g if len(g) <= most else rng.choice(g, most, replace=False) for g in groups]
    return np.sort(np.concatenate(kept))


def parse_weights(owner: str, text: object) -> tuple[float, float]:
    """Weights of fixations and saccades from a text such as `0.4/0.6`.

    Examples
    --------
    >>> parse_weights("rbfn", "0.4/0.6")
    (0.4, 0.6)
    """
    allowed = (
        "two numbers of at least 0 that are not both 0, for fixations and saccades, such as 0.5/0.5"
    )
    pieces = text.split("/") if isinstance(text, str) else []
    try:
        first, second = (float(p) for p in pieces)
    except ValueError:
        checks.refuse(owner, "weights", allowed, text)
    if not (np.isfinite([first, second]).all() and min(first, second) >= 0 and first + second > 0):
        checks.refuse(owner, "weights", allowed, text)
    return first, second
