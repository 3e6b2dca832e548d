"""Classic classifiers as attackers: random forest, SVM, k nearest neighbours, decision tree, LDA,
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

from gazeveil import checks
from gazeveil.arrays import Floats, Texts
from gazeveil.attacks.base import Scores, with_ties
from gazeveil.attacks.identify.event_attack import (
    EventAttack,
    Fitted,
    NamedRows,
    mean_scores,
    person_scores,
)
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError, NothingLeftError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.models.classifiers import Scaler, unfitted

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
        As in :class:`gazeveil.attacks.identify.event_attack.EventAttack`; at level `recording` the
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
