"""The four classifiers of Bozkir et al. 2021, which ran in MATLAB, with scikit-learn: support
vectors, nearest neighbours, a tree, a forest.

Bozkir et al. 2021: RBF kernel with C = 1 and automatic kernel scale; CART with defaults; 10 trees;
11 neighbours with ties broken at random; features brought to mean 0 and variance 1 with the
training data's figures. MATLAB's kernel scale comes from a heuristic on random subsamples; here
`gamma="scale"` (one over features times variance) stands for it, and `gamma="features"` is
David-John et al.'s (2022) one over the number of features. On standardised data the two differ only
by features that never vary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Names of the classifiers.
CLASSIFIERS = ("svm", "knn", "tree", "forest")

#: Kernel widths of the support vector machine.
GAMMAS = ("scale", "features")

#: Neighbours of the nearest-neighbour rule.
NEIGHBOURS = 11

#: Trees of Bozkir et al.'s (2021) forest.
TREES = 10


def predict(
    classifier: str,
    train: NDArray[np.float64],
    labels: NDArray[np.str_],
    test: NDArray[np.float64],
    seed: int,
    gamma: str = "scale",
    trees: int = TREES,
) -> NDArray[np.str_]:
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
    known, asked = standardised(train, test)
    if classifier == "knn":
        return classes[_neighbours(known, codes, asked, len(classes), np.random.default_rng(seed))]
    model = _model(classifier, train.shape[1], seed, gamma, trees)
    model.fit(known, codes)
    found: NDArray[np.str_] = classes[model.predict(asked)]
    return found


def standardised(
    train: NDArray[np.float64], test: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides with the training side's mean taken off and divided by its deviation (ddof 0); NaN
    and constant features become 0.
    """
    seen = ~np.isnan(train)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, train, 0.0).sum(axis=0) / n
    deviation = np.sqrt((np.where(seen, train - mean, 0.0) ** 2).sum(axis=0) / n)
    # Rounding leaves a constant feature with a tiny deviation, and dividing by it would blow other
    # people's values up.
    varies = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    scale = np.where(varies, deviation, 1.0)
    sides = [np.where(np.isnan(x) | ~varies, 0.0, (x - mean) / scale) for x in (train, test)]
    return sides[0], sides[1]


def _model(classifier: str, features: int, seed: int, gamma: str, trees: int) -> Any:
    if classifier == "svm":
        from sklearn.svm import SVC

        return SVC(
            C=1.0,
            kernel="rbf",
            gamma="scale" if gamma == "scale" else 1.0 / features,
            cache_size=500,
        )
    if classifier == "tree":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(random_state=seed)
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=trees, random_state=seed, n_jobs=1)


def _neighbours(
    known: NDArray[np.float64],
    codes: NDArray[np.int64],
    asked: NDArray[np.float64],
    classes: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The class most of the nearest have; where several have as many, one of these at random."""
    from sklearn.neighbors import NearestNeighbors

    near = (
        NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(known)))
        .fit(known)
        .kneighbors(asked, return_distance=False)
    )
    votes = np.zeros((len(asked), classes))
    np.add.at(votes, (np.arange(len(asked))[:, None], codes[near]), 1.0)
    return most_votes(votes, rng)


def most_votes(votes: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The column with the largest whole number in each row; ties are broken at random."""
    return np.argmax(votes + 0.5 * rng.random(votes.shape), axis=1)
