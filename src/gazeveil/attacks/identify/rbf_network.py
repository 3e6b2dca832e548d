"""The RBF network of :mod:`gazeveil.attacks.identify.radial_network` in scikit-learn's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gazeveil.arrays import Floats
from gazeveil.attacks.identify.radial_network import FLOOR, RadialNetwork


# scikit-learn has no types.
class RBFNetwork(ClassifierMixin, RadialNetwork, BaseEstimator):  # type: ignore[misc]
    """Two-stage radial basis function network with scikit-learn's shape.

    Parameters
    ----------
    prototypes : int
        Prototypes per class; a class with fewer different rows has as many as these.
    solver : {"auto", "pinv", "ridge", "reduced"}
        The pseudo-inverse; ridge with alpha = 1e-8 tr(A'A) / units; or few units for many classes,
        in single precision, with alpha = 1e-5 tr(A'A) / units. `auto` is the first up to 2,048
        units and the last above.
    floor : float
        A cluster's sigma is at least this part of the median sigma of its class: a cluster of one
        member has none of its own. In a class where all clusters have one member it is the median
        of all sigmas that are not 0, or where there is none the root of the number of features,
        which is how far rows are from their mean; else such a class would answer to its training
        rows alone. 0 leaves every sigma as it is, as the papers do.
    balance : bool
        Whether all classes weigh the same in the least squares problem, however many rows they
        have.
    max_iter : int
        Most iterations of k-means.
    random_state : int, RandomState or None
        For the first prototypes (k-means++).

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    mean_, scale_ : array, shape (features,)
        Training statistics; features that do not vary have scale 1.
    centres_ : array, shape (units, features)
        Prototypes of all classes, standardised.
    centre_class_ : array of int, shape (units,)
        Which class each prototype is of.
    sigma_, beta_ : array, shape (units,)
        Spread and precision of each prototype.
    weights_ : array, shape (units, classes)
        W.
    n_iter_ : int
        Iterations of k-means in the class that needed most.
    solved_by_ : str
        `cholesky`, `svd`, `ridge` or `reduced`.

    Notes
    -----
    A feature that is missing (NaN) counts as its training mean. Activations that are not a number
    become 0.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> RBFNetwork(prototypes=1).fit(X, ["a", "a", "b", "b"]).predict([[0.2], [0.9]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        prototypes: int = 32,
        *,
        solver: str = "auto",
        floor: float = FLOOR,
        balance: bool = False,
        max_iter: int = 100,
        random_state: object = None,
    ) -> None:
        super().__init__(
            prototypes,
            solver=solver,
            floor=floor,
            balance=balance,
            max_iter=max_iter,
            random_state=random_state,
        )

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn needs to know: NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def decision_function(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Scores of rows against classes, shape (rows, classes); with two classes, as scikit-learn
        has it, the second minus the first, shape (rows,).
        """
        scores = self.scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803
        """The class with the largest score."""
        scores = self.scores(X)
        winners: NDArray[np.generic] = self.classes_[scores.argmax(axis=1)]
        return winners

    def _checked(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[Any]]:  # noqa: N803
        values, targets = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(targets)
        return values, targets

    def _checked_rows(self, X: ArrayLike) -> Floats:  # noqa: N803
        check_is_fitted(self)
        rows: Floats = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        return rows

    def _uniform(self, count: int) -> Floats:
        drawn: Floats = check_random_state(self.random_state).random_sample(count)
        return drawn
