"""Support vectors, nearest neighbours, a tree and a forest, with scikit-learn: for attackers who
name people, and for analysts who name documents and tasks.

Bozkir et al. 2021 ran these four in MATLAB: RBF kernel with C = 1 and automatic kernel scale; CART
with defaults; 10 trees; 11 neighbours with ties broken at random; features brought to mean 0 and
variance 1 with the training data's figures. MATLAB's kernel scale comes from a heuristic on random
subsamples; here `gamma="scale"` (one over features times variance) stands for it, and
`gamma="features"` is David-John et al.'s (2022) one over the number of features. On standardised
data the two differ only by features that never vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints, Texts

#: Names of the classifiers.
CLASSIFIERS = ("svm", "knn", "tree", "forest")

#: Kernel widths of the support vector machine, with scikit-learn's words for them.
GAMMAS = {"scale": "scale", "features": "auto"}

#: Neighbours of the nearest-neighbour rule.
NEIGHBOURS = 11

#: Trees of Bozkir et al.'s (2021) forest.
TREES = 10


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and scale of each feature of training rows.

    Parameters
    ----------
    mean, scale : array of float64, shape (features,)
        The scale is the standard deviation (ddof 0), and 1 for a feature that does not vary.
    varies : array of bool, shape (features,)
        Which features vary by more than rounding does.
    """

    mean: Floats
    scale: Floats
    varies: Bools

    @classmethod
    def fit(cls, values: Floats) -> Scaler:
        """Statistics of rows, each feature over the rows where it is known (not NaN); one that is
        never known has mean 0.
        """
        present = ~np.isnan(values)
        n = np.maximum(present.sum(axis=0), 1)
        # Divided first and scaled by the largest: sums and squares of very large values would
        # overflow.
        # In one array: of a thousand people every copy of their events is some 60 MB.
        apart = np.where(present, values, 0.0)
        apart /= n
        mean: Floats = apart.sum(axis=0)
        np.subtract(values, mean, out=apart)
        apart[~present] = 0.0
        largest = np.maximum(apart.max(axis=0, initial=0.0), -apart.min(axis=0, initial=0.0))
        unit = np.where(largest > 0.0, largest, 1.0)
        apart /= unit
        scale = unit * np.sqrt(np.square(apart, out=apart).sum(axis=0) / n)
        # Rounding leaves a constant feature with a tiny deviation, and dividing by it would blow
        # other people's values up.
        varies = scale > 1e-12 * np.abs(mean)
        return cls(mean, np.where(varies, scale, 1.0), varies)

    def apply(self, values: Floats) -> Floats:
        """The rows in units of the training rows; what is missing (NaN) counts as the training
        mean.
        """
        z = values - self.mean
        z /= self.scale
        z[np.isnan(z)] = 0.0
        return z


def unfitted(
    classifier: str,
    seed: int,
    *,
    cost: float = 1.0,
    gamma: str = "scale",
    neighbours: int = NEIGHBOURS,
    trees: int = TREES,
    class_weight: str | None = None,
) -> Any:
    """One of :data:`CLASSIFIERS` as scikit-learn has it: `cost` and `gamma` are SVC's, for `svm`;
    `neighbours` is for `knn`, `trees` for `forest`, `class_weight` for all but `knn`. The seed is
    of trees and of the order of features in them.
    """
    if classifier == "svm":
        from sklearn.svm import SVC

        return SVC(C=cost, gamma=gamma, class_weight=class_weight, cache_size=500)
    if classifier == "knn":
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(neighbours)
    if classifier == "tree":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(class_weight=class_weight, random_state=seed)
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, class_weight=class_weight, random_state=seed)


def predict(
    classifier: str,
    train: Floats,
    labels: Texts,
    test: Floats,
    seed: int,
    gamma: str = "scale",
    trees: int = TREES,
) -> Texts:
    """Learn classes from rows and name them for other rows.

    Parameters
    ----------
    classifier : str
        One of :data:`CLASSIFIERS`.
    train, test : array of float64, shape (rows, features)
        Features; NaN counts as the training mean, a feature that is constant in training as absent.
    labels : array of str, shape (train rows,)
        Classes; where there is only one, it is the answer to everything.
    seed : int
        For ties, trees and the order of features in them.
    gamma : str
        One of :data:`GAMMAS`, for `svm`.
    trees : int
        For `forest`.

    Returns
    -------
    array of str, shape (test rows,)

    Examples
    --------
    >>> train = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> labels = np.array(["a", "a", "b", "b"])
    >>> predict("tree", train, labels, np.array([[-1.0], [2.0]]), seed=0).tolist()
    ['a', 'b']
    """
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1 or len(test) == 0:
        return np.full(len(test), classes[0], dtype=labels.dtype)
    train_z, test_z = standardised(train, test)
    neighbours = min(NEIGHBOURS, len(train))
    model = unfitted(classifier, seed, gamma=GAMMAS[gamma], neighbours=neighbours, trees=trees)
    model.fit(train_z, codes)
    if classifier != "knn":
        predicted: Texts = classes[model.predict(test_z)]
        return predicted
    votes = np.zeros((len(test_z), len(classes)))
    nearest = model.kneighbors(test_z, return_distance=False)
    np.add.at(votes, (np.arange(len(test_z))[:, None], codes[nearest]), 1.0)
    return classes[most_votes(votes, np.random.default_rng(seed))]


def standardised(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Both sides with the training side's mean taken off and divided by its deviation (ddof 0); NaN
    and constant features become 0.
    """
    scaler = Scaler.fit(train)
    train_z, test_z = (np.where(scaler.varies, scaler.apply(x), 0.0) for x in (train, test))
    return train_z, test_z


def most_votes(votes: Floats, rng: np.random.Generator) -> Ints:
    """The column with the largest whole number in each row; ties are broken at random."""
    return np.argmax(votes + 0.5 * rng.random(votes.shape), axis=1)
