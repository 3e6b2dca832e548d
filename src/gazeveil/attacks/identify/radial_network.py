"""A radial basis function network for classification, in two stages (George and Routray 2016, as
David-John et al. 2021, 2022 and 2023 use it).

1. Features are standardised with training statistics.
2. k-means on the events of each class gives its prototypes mu_i; sigma_i is the mean distance of a
   cluster's members to its centre, beta_i = 1 / (2 (sigma_i + 1e-5)^2).
3. phi_i(x) = exp(-beta_i |x - mu_i|^2); the weights W are the least squares solution of phi(X) W =
   Y with Y one-hot.
4. Scores are phi(x) W: not bounded, and not probabilities.

W is that of MATLAB's `pinv` (singular values up to max(rows, units) eps times the largest count as
zero). Where the normal equations are well conditioned they are solved by Cholesky and refined
twice, which costs a tenth of the singular value decomposition and agrees with it far below 1e-6;
else a blocked QR decomposition and a decomposition of its small factor do the same without that
condition.

Both form a matrix of units times units, and units are classes times prototypes: time grows with the
cube of the classes. Above :data:`MOST_UNITS` units `auto` therefore takes `reduced`: at most so
many units over all classes, shared out evenly (k-means finds fewer and wider clusters), single
precision, and a ridge of :data:`REDUCED_RIDGE`. Its time and memory grow with the
rows alone. Of the ways that were measured (prototypes drawn at random, rows in their place, wider
or narrower ones) fewer clusters kept most of the rate.

Prototypes of classes and activations around them: k-means per class, radial basis functions.

The papers' attacker: two radial basis function networks, one of fixations and one of saccades
(George and Routray 2016; David-John et al. 2021 and 2022, Ren et al. 2024,
David-John et al. 2023).

A person's score is the mean
score of the person's events, fused over the two kinds. `table="windows"` is the form
David-John et al. 2022 gives for reading: one network on the 52 window features.

`reading="published"` is the papers' training to the letter: all events of everybody, so that who
has most events weighs most, the pseudo-inverse, and no floor under a cluster's sigma. The default
draws at most so many events of each person and gives everybody the same weight, which finds far
more people where numbers of events differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.attacks.identify.classic import EventAttack, Fitted
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.models.classifiers import Scaler

# Most iterations of k-means.
_ITERATIONS = 100


def find_prototypes(
    z: Floats, sizes: Ints, most: Ints, draws: Floats
) -> tuple[Floats, Floats, Ints]:
    """k-means of each class.

    Parameters
    ----------
    z : array of float64, shape (rows, features)
        Rows in order of their class.
    sizes : array of int64, shape (classes,)
        Rows of each class.
    most : array of int64, shape (classes,)
        Clusters wanted of each class; a class with fewer different rows has fewer.
    draws : array of float64, shape (most.sum(),)
        Uniform numbers in [0, 1), one for each first centre.

    Returns
    -------
    centres : array of float64, shape (units, features)
        Means of the clusters, those of all classes one under the other.
    sigma : array of float64, shape (units,)
        Mean distance of a cluster's members to its centre.
    of_class : array of int64, shape (units,)
        Number of the class.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rows, drawn = (np.concatenate(([0], np.cumsum(counts))).tolist() for counts in (sizes, most))
    centres, sigma = [], []
    # Threads of small fits wait for each other longer than they work.
    with threadpool_limits(limits=1, user_api="openmp"):
        for (a, b), (c, d) in zip(pairwise(rows), pairwise(drawn), strict=True):
            own = z[a:b]
            first = own[_first_centres(own, draws[c:d])]
            model = KMeans(len(first), init=first, n_init=1, max_iter=_ITERATIONS, tol=0).fit(own)
            # Rows a rounding apart may leave a cluster without members: it is none.
            _, label, members = np.unique(model.labels_, return_inverse=True, return_counts=True)
            # Means by plain sums: the centre of a cluster of one is that row to the last digit.
            sums = np.zeros((len(members), own.shape[1]))
            np.add.at(sums, label, own)
            centres.append(sums / members[:, None])
            far = np.sqrt(((own - centres[-1][label]) ** 2).sum(axis=1))
            sigma.append(np.bincount(label, far) / members)
    units = [len(found) for found in centres]
    return np.concatenate(centres), np.concatenate(sigma), np.repeat(np.arange(len(units)), units)


def _first_centres(rows: Floats, draws: Floats) -> list[int]:
    """k-means++: each next centre is a row drawn with probability proportional to its squared
    distance to the nearest centre so far; fewer where every row is a centre already.
    """
    chosen = [min(len(rows) - 1, int(draws[0] * len(rows)))]
    near = ((rows - rows[chosen[0]]) ** 2).sum(axis=1)
    for draw in draws[1:].tolist():
        total = np.cumsum(near)
        if not total[-1] > 0.0:
            break
        last = int(np.flatnonzero(near)[-1])
        chosen.append(min(int(np.searchsorted(total, draw * total[-1], side="right")), last))
        near = np.minimum(near, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
    return chosen


def radial(z: Floats, centres: Floats, beta: Floats) -> Floats:
    """exp(-beta_i |z - centre_i|^2), shape (rows, units); what is not a number is 0.

    Parameters
    ----------
    z : array of float64, shape (rows, features)
    centres : array of float64, shape (units, features)
    beta : array of float64, shape (units,)
    """
    from scipy.spatial.distance import cdist

    out: Floats = cdist(z, centres, "sqeuclidean")
    with np.errstate(over="ignore", invalid="ignore"):
        # In place; the larger of NaN and 0 is 0.
        return np.fmax(np.exp(np.multiply(out, -beta, out=out), out=out), 0.0, out=out)


def radial_single(z: Floats, centres: Floats, beta: Floats) -> NDArray[np.float32]:
    """As :func:`radial`, in single precision: relative errors of about beta |z|^2 1e-7, and what is
    below exp(-40) is 0.
    """
    # Squares of what is cut here would overflow; no activation is left so far out.
    rows, units = (np.clip(v, -1e6, 1e6).astype(np.float32) for v in (z, centres))
    out: NDArray[np.float32] = rows @ units.T
    precision = np.minimum(beta, 1e20).astype(np.float32)
    _finish_single(out, (rows * rows).sum(axis=1), (units * units).sum(axis=1), precision)
    return out


@compiled
def _finish_single(
    out: NDArray[np.float32],
    rows_squared: NDArray[np.float32],
    units_squared: NDArray[np.float32],
    beta: NDArray[np.float32],
) -> None:
    """Turn products into activations in single precision, in place and in one pass."""
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(out.shape[1]):
            square = np.float32(-2.0) * row[j] + rows_squared[i] + units_squared[j]
            square = np.float32(0.0) if square < np.float32(0.0) else square
            row[j] = square * -beta[j]
        for j in range(out.shape[1]):
            # Smaller ones would be denormal numbers in products, which processors are slow with;
            # NaN fails the comparison.
            row[j] = math.exp(row[j]) if row[j] > np.float32(-40.0) else np.float32(0.0)


def add_groups(sums: Floats, rows: NDArray[np.float32 | np.float64], groups: Ints) -> None:
    """Add rows to the sums of their groups, in place and in double precision; rows of one group are
    beside one another.
    """
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sums[groups[starts]] += np.add.reduceat(rows, starts, axis=0, dtype=np.float64)


#: How W is found.
SOLVERS = ("auto", "pinv", "reduced")

#: `auto` is `pinv` up to this many units (64 people of 32 prototypes), and `reduced` above, which
#: has at most so many, and at least one for each class.
MOST_UNITS = 2048

#: The most units of `pinv`: its matrix of units times units then takes 2 GiB.
LARGEST_UNITS = 16384

#: Added to every sigma, in standard deviations.
SIGMA_PLUS = 1e-5

#: Least sigma of a cluster, as a part of the median sigma of its class.
FLOOR = 0.01

#: Ridge of `reduced`, whose sums are in single precision: this times the mean diagonal of the
#: normal equations.
REDUCED_RIDGE = 1e-5

# Activations of training rows are kept up to this size and made again beyond it, in blocks.
_KEPT_BYTES = 1 << 28
_BLOCK_BYTES = 1 << 26

# Normal equations square the condition number: refined solutions are good to about eps times this
# squared, here 1e-10 of the weights.
_LARGEST_CONDITION = 1e6


class RadialNetwork:
    """Two-stage radial basis function network.

    Parameters
    ----------
    prototypes : int
        Prototypes per class; a class with fewer different rows has as many as these.
    solver : {"auto", "pinv", "reduced"}
        The pseudo-inverse; or few units for many classes, in single precision, by ridge with
        alpha = 1e-5 tr(A'A) / units. `auto` is the first up to 2,048 units and the second above.
    floor : float
        A cluster's sigma is at least this part of the median sigma of its class: a cluster of one
        member has none of its own. In a class where all clusters have one member it is the median
        of all sigmas that are not 0, or where there is none the root of the number of features,
        which is how far rows are from their mean; else such a class would answer to its training
        rows alone. 0 leaves every sigma as it is, as the papers do.
    balance : bool
        Whether all classes weigh the same in the least squares problem, however many rows they
        have.
    random_state : int or None
        For the first prototypes (k-means++).

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    centres_ : array, shape (units, features)
        Prototypes of all classes, standardised.
    centre_class_ : array of int, shape (units,)
        Which class each prototype is of.
    sigma_, beta_ : array, shape (units,)
        Spread and precision of each prototype.
    weights_ : array, shape (units, classes)
        W.
    solved_by_ : str
        `cholesky`, `svd` or `reduced`.

    Notes
    -----
    A feature that is missing (NaN) counts as its training mean. Activations that are not a number
    become 0.
    """

    classes_: NDArray[Any]
    centres_: Floats

    def __init__(
        self,
        prototypes: int = 32,
        *,
        solver: str = "auto",
        floor: float = FLOOR,
        balance: bool = False,
        random_state: Any = None,
    ) -> None:
        self.prototypes, self.solver, self.floor = prototypes, solver, floor
        self.balance, self.random_state = balance, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 scikit-learn's name
        """Find the prototypes and the weights.

        Parameters
        ----------
        X : array, shape (rows, features)
            Finite or NaN.
        y : array, shape (rows,)
            Classes.

        Raises
        ------
        DataError
            If `pinv` would have more than 16,384 units.
        """
        values, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
        self.classes_, codes = np.unique(targets, return_inverse=True)
        self._scaler = Scaler.fit(values)
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=len(self.classes_))
        most = np.minimum(sizes, self.prototypes)
        self._reduced = _is_reduced(self.solver, int(most.sum()))
        if self._reduced:
            most = np.minimum(most, max(1, MOST_UNITS // len(sizes)))
        draws = np.random.RandomState(self.random_state).random_sample(int(most.sum()))
        by_class = self._scaler.apply(values[order])
        self.centres_, sigma, self.centre_class_ = find_prototypes(by_class, sizes, most, draws)
        self.sigma_ = _floored(sigma, self.centre_class_, self.floor, values.shape[1])
        self.beta_ = 1.0 / (2.0 * (self.sigma_ + SIGMA_PLUS) ** 2)
        rows = len(values)
        root = np.sqrt(rows / (len(sizes) * sizes[codes])) if self.balance else np.ones(rows)
        if self._reduced:
            self._solve_reduced(by_class, codes[order], root[order])
        else:
            self._solve(self._scaler.apply(values), codes, root)
        return self

    def scores(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Scores of rows against classes, shape (rows, classes), however many classes there are."""
        z = self._standardised(X)
        return np.concatenate(
            [self._activations(z[a:b]) @ self.weights_ for a, b in self._blocks(len(z))]
        )

    def mean_scores(self, X: ArrayLike, groups: ArrayLike, count: int) -> Floats:  # noqa: N803
        """Mean scores of groups of rows, shape (count, classes); NaN for a group without rows.

        Activations are averaged before they meet the weights: the scores of single rows are not
        formed.

        Parameters
        ----------
        X : array, shape (rows, features)
            Finite or NaN.
        groups : array of int, shape (rows,)
            The group of each row, from 0.
        count : int
            How many groups there are.
        """
        z, codes = self._standardised(X), np.asarray(groups)
        order = np.argsort(codes, kind="stable")
        z, codes = z[order], codes[order]
        sums = np.zeros((count, len(self.centres_)))
        for a, b in self._blocks(len(z)):
            add_groups(sums, self._activations(z[a:b]), codes[a:b])
        sizes = np.bincount(codes, minlength=count)
        scores: Floats = sums @ self.weights_ / np.maximum(sizes, 1)[:, None]
        scores[sizes == 0] = np.nan
        return scores

    def _standardised(self, X: ArrayLike) -> Floats:  # noqa: N803
        return self._scaler.apply(np.asarray(X, dtype=np.float64))

    def _activations(self, z: Floats) -> NDArray[np.float32 | np.float64]:
        return (radial_single if self._reduced else radial)(z, self.centres_, self.beta_)

    def _blocks(self, rows: int) -> list[tuple[int, int]]:
        step = max(1, _BLOCK_BYTES // (8 * len(self.centres_)))
        return [(a, min(a + step, rows)) for a in range(0, rows, step)]

    def _solve(self, z: Floats, codes: Ints, root: Floats) -> None:
        """W by the normal equations where they are good enough, else by QR and SVD; both sides of
        row i are multiplied by root[i].
        """
        from scipy.linalg import cho_factor, cho_solve
        from scipy.linalg.lapack import dpocon

        units, classes = len(self.centres_), len(self.classes_)
        y = np.zeros((len(z), classes))
        y[np.arange(len(z)), codes] = root
        spans = self._blocks(len(z))

        def weighed(a: int, b: int) -> Floats:
            phi = radial(z[a:b], self.centres_, self.beta_)
            phi *= root[a:b, None]
            return phi

        cached = [weighed(a, b) for a, b in spans] if 8 * len(z) * units <= _KEPT_BYTES else None

        def rows() -> Iterator[tuple[Floats, Floats]]:
            for i, (a, b) in enumerate(spans):
                yield (cached[i] if cached is not None else weighed(a, b)), y[a:b]

        gram, right = np.zeros((units, units)), np.zeros((units, classes))
        for phi, target in rows():
            gram += phi.T @ phi
            right += phi.T @ target
        try:
            factor = cho_factor(gram, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            factor = None
        if (
            factor is not None
            and dpocon(factor[0], float(np.abs(gram).sum(axis=0).max()), uplo="L")[0]
            * _LARGEST_CONDITION**2
            >= 1.0
        ):
            weights = cho_solve(factor, right, check_finite=False)
            for _ in range(2):
                step = np.zeros_like(right)
                for phi, target in rows():
                    step += phi.T @ (target - phi @ weights)
                weights += cho_solve(factor, step, check_finite=False)
            self.weights_, self.solved_by_ = weights, "cholesky"
            return
        self.weights_, self.solved_by_ = _by_svd(rows(), units, classes, len(z)), "svd"

    def _solve_reduced(self, z: Floats, codes: Ints, root: Floats) -> None:
        """W by ridge, of rows in order of their class; blocks of activations are in single
        precision, their sums in double.
        """
        from scipy.linalg import cho_factor, cho_solve
        from scipy.linalg.blas import ssyrk

        units, classes = len(self.centres_), len(self.classes_)
        # Of the Gram matrix the lower triangle is enough; to fill the other one, as a plain product
        # does, takes a tenth of the time.
        gram, right = np.zeros((units, units), order="F"), np.zeros((classes, units))
        for a, b in self._blocks(len(z)):
            phi = self._activations(z[a:b])
            phi *= root[a:b, None].astype(np.float32)
            gram += ssyrk(1.0, phi.T, lower=True)
            add_groups(right, phi * root[a:b, None], codes[a:b])
        diagonal, mean, ridge = np.diag_indices(units), np.trace(gram) / units, REDUCED_RIDGE
        own = gram[diagonal].copy()
        while True:
            gram[diagonal] = own + ridge * mean
            try:
                factor = cho_factor(gram, lower=True, check_finite=False)
                break
            except np.linalg.LinAlgError:
                # Rounding of single precision can outweigh the ridge where units repeat each other.
                ridge *= 10.0
        self.weights_ = cho_solve(factor, right.T, check_finite=False)
        self.solved_by_ = "reduced"


def _is_reduced(solver: str, units: int) -> bool:
    """Whether this many units are reduced; refuses what does not fit into memory."""
    if solver == "pinv" and units > LARGEST_UNITS:
        raise DataError(
            f"The solver 'pinv' of the RBF network takes at most {LARGEST_UNITS:,} units"
            f" (people times prototypes), and there are {units:,}: their matrix would take"
            f" {units**2 / (1 << 27):,.0f} GiB. Use solver=reduced, fewer people or fewer"
            " prototypes."
        )
    return solver == "reduced" or (solver == "auto" and units > MOST_UNITS)


def _by_svd(rows: Iterator[tuple[Floats, Floats]], units: int, classes: int, n: int) -> Floats:
    """The least squares solution of least norm, from the triangular factor of [phi, y] that is
    gathered block by block.
    """
    from scipy.linalg import lstsq, qr

    triangle = np.empty((0, units + classes))
    for phi, target in rows:
        stacked = np.concatenate([triangle, np.concatenate([phi, target], axis=1)])
        triangle = qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][: units + classes]
    weights: Floats = lstsq(
        triangle[:units, :units],
        triangle[:units, units:],
        cond=max(n, units) * np.finfo(np.float64).eps,
    )[0]
    return weights


def _floored(sigma: Floats, of_class: Ints, floor: float, features: int) -> Floats:
    """Sigma with the floor of its class."""
    if floor == 0.0:
        return sigma
    some = sigma[sigma > 0.0]
    overall = float(np.median(some)) if len(some) else float(np.sqrt(features))
    out = sigma.copy()
    for code in np.unique(of_class):
        own = of_class == code
        out[own] = (
            np.maximum(sigma[own], floor * np.median(sigma[own])) if sigma[own].any() else overall
        )
    return out


READINGS = ("published", "corrected")

#: What the published reading sets.
PUBLISHED: Mapping[str, object] = MappingProxyType(
    {"train_events": 0, "test_events": 0, "balance": False, "solver": "pinv"}
)


@dataclass(frozen=True, kw_only=True)
class RBFN(EventAttack):
    """RBF networks on events or windows.

    Parameters
    ----------
    prototypes : int
        Per person and kind; 32 in the code David-John et al. 2021 builds on.
    solver : {"auto", "pinv", "reduced"}
        How the output weights are found. `auto` is the papers' pseudo-inverse up to 2,048
        prototypes over all people (64 people of 32), and `reduced` above, which has at most so
        many and whose time grows with the recordings alone.
    table : {"events", "windows"}
        Two networks on fixations and saccades, or one on windows; the caps of events then hold for
        windows.
    weights, train_events, test_events, balance
        As in :class:`gazeveil.attacks.identify.classic.EventAttack`.
    reading : {"published", "corrected"}
        `published` sets what :data:`PUBLISHED` says and takes sigma as it is; `weights` stay the
        caller's, because the papers differ in them.

    Examples
    --------
    >>> str(RBFN(weights="0.4/0.6"))
    'rbfn:weights=0.4/0.6'
    >>> RBFN(reading="published").balance
    False
    """

    name: ClassVar[str] = "rbfn"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    prototypes: int = 32
    solver: str = "auto"
    table: str = "events"
    reading: str = "corrected"

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.count(self.name, "prototypes", self.prototypes)
        checks.one_of(self.name, "solver", self.solver, SOLVERS)
        checks.one_of(self.name, "table", self.table, ("events", "windows"))
        if checks.one_of(self.name, "reading", self.reading, READINGS) == "published":
            self._store_published()

    def _store_published(self) -> None:
        defaults = {f.name: f.default for f in fields(self)}
        for name, value in PUBLISHED.items():
            given = getattr(self, name)
            if given not in (value, defaults[name]):
                checks.refuse(
                    self.name,
                    name,
                    f"{value} where reading is 'published', which is the papers' own",
                    given,
                    "Leave it out, or leave out the reading.",
                )
            self.store(name, value)

    def __str__(self) -> str:
        """The command line's form, without what the reading sets."""
        name, _, parameters = super().__str__().partition(":")
        own = parameters.split(",")
        if self.reading == "published":
            own = [p for p in own if p not in {f"{k}={v}" for k, v in PUBLISHED.items()}]
        return f"{name}:{','.join(own)}" if parameters else name

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it looks at."""
        return super().tables if self.table == "events" else ("window",)

    def learn(self, values: Floats, people: Texts, seed: int) -> Fitted:
        """Fit one network."""
        network = RadialNetwork(
            self.prototypes,
            solver=self.solver,
            floor=0.0 if self.reading == "published" else FLOOR,
            balance=self.balance,
            random_state=seed,
        )
        network.fit(values, people)
        return network.classes_, network.mean_scores
