"""Attackers that score single events, windows or recordings by a classifier.

What attackers share that score single events (or windows): a mean per person, fused over
fixations and saccades.

Each table (fixations, saccades, or windows) gets a classifier of its own. A person's score in a
table is the mean score of the person's rows. Tables are fused by weights. David-John et al. 2021
weighs fixations and saccades 0.5/0.5, David-John et al. 2022 and 2023 0.4/0.6.

Classic classifiers as attackers: random forest, SVM, k nearest neighbours, decision tree, LDA,
gradient boosting (Bozkir et al. 2021; Schroeder et al. 2020).

At `level="event"` each event is classified and the probabilities are averaged per person, fused
over fixations and saccades; at `level="window"` the same is done with the 52 window features; at
`level="recording"` whole recordings are classified by means and deviations of their event features
and by rates of events.

Rows are standardised with training statistics. The classifiers are scikit-learn's, except LDA,
whose shrinkage survives people with one row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.attacks.base import Attack, Scores, with_ties
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError, NothingLeftError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.features.table import FeatureTable
from gazeveil.models.classifiers import Scaler, unfitted

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


#: The people a classifier knows, and a function from standardised rows to their scores.
Classified: TypeAlias = tuple[Texts, Callable[[Floats], Floats]]

#: What a row is.
LEVELS = ("event", "recording", "window")


@dataclass(frozen=True, kw_only=True)
class Classic(EventAttack):
    """A classifier of events, windows or recordings.

    Parameters
    ----------
    level : {"event", "recording", "window"}
        What a row is.
    weights, train_events, test_events, balance
        As in :class:`gazeveil.attacks.identify.classic.EventAttack`; at level `recording` the
        caps and weights do nothing.
    """

    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    level: str = "event"
    train_events: int = 200

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.one_of(self.name, "level", self.level, LEVELS)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it looks at."""
        return ("window",) if self.level == "window" else super().tables

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """As :meth:`Attack.identify`."""
        if self.level != "recording":
            return super().identify(gallery, probe, seed)
        train, test = (recording_vectors(side) for side in (gallery, probe))
        both = [name for name in train.columns if name in set(test.columns)]
        if not both:
            raise DataError(
                "The two sides of the attack share no feature of recordings. Release the same"
                " tables on both sides."
            )

        def with_events(vectors: RecordingVectors) -> NamedRows:
            values = vectors.select(both).values
            # Rates are known also of recordings without events: such a row says only that there was
            # nothing.
            some = ~np.isnan(values[:, [not name.endswith("_rate") for name in both]]).all(axis=1)
            return NamedRows(values, vectors.persons).where(some)

        rng = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        known = with_events(train)
        if len(known.people) == 0:
            raise NothingLeftError(
                f"Attack {self.name} has nothing to learn from: no recording of the gallery has"
                " events. Use more data."
            )
        part = person_scores(
            known,
            with_events(test),
            gallery.persons,
            probe.persons,
            lambda a, b: self.learn(a, b, int(rng.integers(2**31))),
        )
        return Scores(gallery.persons, probe.persons, with_ties(np.nan_to_num(part)))

    def learn(self, values: Floats, people: Texts, seed: int) -> Fitted:
        """Standardise and fit the classifier."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        scaler = Scaler.fit(values)
        # On busy machines the threads of small fits wait for each other many times longer than they
        # work.
        with threadpool_limits(limits=1, user_api="openmp"):
            classes, scorer = self.classifier(scaler.apply(values), people, seed)

        def scores(rows: Floats) -> Floats:
            with threadpool_limits(limits=1, user_api="openmp"):
                return scorer(scaler.apply(rows))

        return classes, mean_scores(scores, len(classes))

    @abstractmethod
    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Fit standardised rows of at least two people: the people, and a function from rows to
        their scores.
        """

    def even(self, model: Any, people: Texts) -> Classified:
        """The probabilities of a model as they would be had all people equally many rows, where
        there is balance.
        """
        rows_of_person = np.unique(people, return_counts=True)[1] if self.balance else 1.0

        def scores(rows: Floats) -> Floats:
            share = model.predict_proba(rows) / rows_of_person
            even: Floats = share / share.sum(axis=1, keepdims=True)
            return even

        return model.classes_, scores

    def fitted(self, classifier: str, z: Floats, people: Texts, seed: int, **options: Any) -> Any:
        """A classifier of :func:`gazeveil.models.classifiers.unfitted`, fitted."""
        weight = "balanced" if self.balance else None
        return unfitted(classifier, seed, class_weight=weight, **options).fit(z, people)


@dataclass(frozen=True, kw_only=True)
class Forest(Classic):
    """Random forest (Schroeder et al. use 200 or 400 trees, Bozkir et al. 2021 10).

    Parameters
    ----------
    trees : int
        How many.
    level, weights, train_events, test_events, balance
        As in :class:`Classic`.
    """

    name: ClassVar[str] = "forest"

    trees: int = 200

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.count(self.name, "trees", self.trees)

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Fit the trees."""
        model = self.fitted("forest", z, people, seed, trees=self.trees)
        return model.classes_, model.predict_proba


@dataclass(frozen=True, kw_only=True)
class SVM(Classic):
    """Support vector machine with a Gaussian kernel, one against one; its scores are decision
    values, not probabilities.

    Parameters
    ----------
    C : float
        Cost of a row on the wrong side.
    gamma : {"scale", "auto"}
        Width of the kernel: 1 / (features x variance), or 1 / features as in David-John et al.
        2022.
    level, weights, train_events, test_events, balance
        As in :class:`Classic`.
    """

    name: ClassVar[str] = "svm"

    C: float = 1.0
    gamma: str = "scale"

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.positive(self.name, "C", self.C)
        checks.one_of(self.name, "gamma", self.gamma, ("scale", "auto"))

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Fit the machine."""
        model = self.fitted("svm", z, people, seed, cost=self.C, gamma=self.gamma)

        def scores(rows: Floats) -> Floats:
            values: Floats = model.decision_function(rows)
            return np.stack([-values, values], axis=1) if values.ndim == 1 else values

        return model.classes_, scores


@dataclass(frozen=True, kw_only=True)
class KNN(Classic):
    """k nearest neighbours; with balance, a neighbour counts the less the more rows its person has.

    Parameters
    ----------
    k : int
        How many neighbours; Bozkir et al. 2021 has 11.
    level, weights, train_events, test_events, balance
        As in :class:`Classic`.
    """

    name: ClassVar[str] = "knn"

    k: int = 11

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.count(self.name, "k", self.k)

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Keep the rows."""
        model = self.fitted("knn", z, people, seed, neighbours=min(self.k, len(z)))
        return self.even(model, people)


@dataclass(frozen=True, kw_only=True)
class Tree(Classic):
    """One decision tree (CART), grown to the end.

    Parameters
    ----------
    level, weights, train_events, test_events, balance
        As in :class:`Classic`.
    """

    name: ClassVar[str] = "tree"

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Grow the tree."""
        model = self.fitted("tree", z, people, seed)
        return model.classes_, model.predict_proba


@dataclass(frozen=True, kw_only=True)
class Boosting(Classic):
    """Gradient boosting of small trees on binned features.

    Parameters
    ----------
    rounds : int
        Trees per person.
    level, weights, train_events, test_events, balance
        As in :class:`Classic`.
    """

    name: ClassVar[str] = "boosting"

    rounds: int = 30

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.count(self.name, "rounds", self.rounds)

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Fit the trees; few rounds of small ones with large steps cost a fraction of
        scikit-learn's defaults.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            learning_rate=0.2,
            max_iter=self.rounds,
            max_leaf_nodes=15,
            # A leaf must be able to hold one person's rows where people have few.
            min_samples_leaf=max(
                1, min(20, int(np.unique(people, return_counts=True)[1].min()) // 2)
            ),
            early_stopping=False,
            random_state=seed,
        ).fit(z, people)
        # Weights of rows would make scikit-learn's binning ten times as slow, so balance is put
        # into the probabilities.
        return self.even(model, people)


@dataclass(frozen=True, kw_only=True)
class LDA(Classic):
    """Linear discriminant analysis with a shrunken covariance; its scores are log probabilities.

    Parameters
    ----------
    level, weights, train_events, test_events, balance
        As in :class:`Classic`; by default it looks at recordings.
    """

    name: ClassVar[str] = "lda"

    level: str = "recording"

    def classifier(self, z: Floats, people: Texts, seed: int) -> Classified:
        """Means of people, and one covariance within people."""
        classes, codes, counts = np.unique(people, return_inverse=True, return_counts=True)
        means = np.stack([z[codes == c].mean(axis=0) for c in range(len(classes))])
        covariance = within_covariance([z[codes == c] - means[c] for c in range(len(classes))])
        directions = np.linalg.lstsq(covariance, means.T, rcond=None)[0]
        offset = -0.5 * (means * directions.T).sum(axis=1)
        if not self.balance:
            offset = offset + np.log(counts / len(z))

        def scores(rows: Floats) -> Floats:
            values = rows @ directions + offset
            values -= values.max(axis=1, keepdims=True)
            logarithm: Floats = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
            return logarithm

        return classes, scores


def within_covariance(residuals: Sequence[Floats]) -> Floats:
    """Mean over people of their covariance, each shrunken towards a multiple of its diagonal
    (Ledoit and Wolf 2004).

    Parameters
    ----------
    residuals : sequence of array, shape (rows, features)
        The rows of each person minus the person's mean; people with one row say nothing of it.

    Returns
    -------
    array, shape (features, features)
        The identity matrix where no person has two different rows.
    """
    from sklearn.covariance import ledoit_wolf

    features = residuals[0].shape[1]
    total, weight = np.zeros((features, features)), 0
    for own in residuals:
        if len(own) < 2:
            continue
        # Shrinkage in units of the person's own spread, then back: features differ in how much they
        # vary within people.
        spread = own.std(axis=0)
        unit = np.where(spread > 0.0, spread, 1.0)
        shrunken, _ = ledoit_wolf(own / unit, assume_centered=True)
        total += len(own) * shrunken * unit[:, None] * unit[None, :]
        weight += len(own)
    return total / weight if weight and np.trace(total) > 0.0 else np.eye(features)
