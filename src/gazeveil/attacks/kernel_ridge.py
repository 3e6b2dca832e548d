"""Ridge regression from vectors of recordings to people, plain or on a Gaussian kernel.

The penalty is chosen on the gallery alone: stimuli are held out in turn, and the penalty counts
under which people stand out most from the others in recordings of stimuli that were not learnt
from. One decomposition gives what every part of the stimuli would be told if it were held out, for
every penalty (the residuals of ridge regression without some rows follow from those with all).

The problem is solved in the smaller of its two forms, by features or by recordings; the kernel of
more than :data:`LANDMARKS` recordings is approximated through that many of them (Nystroem), so that
nothing grows faster than the number of recordings.

Covariance of few rows in many dimensions, after Ledoit and Wolf 2004 ("A well-conditioned
estimator for large-dimensional covariance matrices"), and the directions in which it is round.

Written out here because it is asked for some hundred times in a study: the sum of products that
says how far to shrink follows from the lengths of the rows, without a second product of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints

# Eigenvalues below this part of the largest count as this part.
_LEAST_WHITE = 1e-8


def shrunk_covariance(rows: Floats) -> tuple[Floats, float]:
    """Covariance of centred rows, drawn towards a multiple of the unit matrix.

    Parameters
    ----------
    rows : array of float64, shape (rows, features)
        Of mean 0.

    Returns
    -------
    covariance : array of float64, shape (features, features)
        The shrunk one.
    share : float
        How far it was drawn, from 0 to 1.
    """
    n, features = rows.shape
    plain = rows.T @ rows / n
    mean = float(np.trace(plain)) / features
    if features == 1:
        return plain, 0.0
    square = (rows**2).sum(axis=1)
    total = float((plain**2).sum())
    far = (total - features * mean * mean) / features
    error = min((float((square**2).sum()) / n - total) / (features * n), far)
    share = error / far if error > 0.0 else 0.0
    plain *= 1.0 - share
    plain[np.diag_indices(features)] += share * mean
    return plain, share


def whitened(rows: Floats, *sides: Floats) -> tuple[Floats, ...]:
    """Sides in coordinates in which the shrunk covariance of rows is the unit matrix; any such
    coordinates have the same angles.

    Parameters
    ----------
    rows : array of float64, shape (rows, features)
        Of mean 0.
    *sides : array of float64, shape (any, features)
        What is turned and stretched.
    """
    from scipy.linalg import cholesky, solve_triangular

    covariance, share = shrunk_covariance(rows)
    # No eigenvalue is below the share times their mean, or above their sum.
    if share > 10.0 * _LEAST_WHITE * len(covariance):
        root = cholesky(covariance, lower=True, check_finite=False)
        return tuple(
            solve_triangular(root, side.T, lower=True, check_finite=False).T for side in sides
        )
    values, axes = np.linalg.eigh(covariance)
    white = axes / np.sqrt(np.maximum(values, values.max() * _LEAST_WHITE))
    return tuple(side @ white for side in sides)


#: Penalties that are tried, as multiples of the mean squared length of a row.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

#: Parts into which the stimuli are dealt.
FOLDS = 8

#: Most recordings through which a kernel is approximated.
LANDMARKS = 1000

#: Most people on whom the penalty is chosen: more do not make the choice better.
MOST_PEOPLE = 64

_TINY = 1e-12

# Rows that are handled at one time where a copy of all of them would be large.
_BLOCK_ROWS = 1024

# Added to the kernel of landmarks, as a share of its trace: below it rounding decides.
_LEAST_EIGENVALUE = 1e-9


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """Whose the recordings of a gallery are, and which are held out together.

    Parameters
    ----------
    of : array of int64, shape (rows,)
        Which person each recording is of.
    people : int
        How many people there are.
    fold : array of int64, shape (rows,)
        In which part the stimulus of each recording is.
    """

    of: Ints
    people: int
    fold: Ints

    @property
    def targets(self) -> Floats:
        """1 for the person, 0 for the others, less the mean."""
        y = np.full((len(self.of), self.people), -1.0 / self.people)
        y[np.arange(len(self.of)), self.of] += 1.0
        return y

    def products(self, rows: Floats) -> Floats:
        """`rows.T @ self.targets`, shape (features, people), from the sums of people's rows: the
        targets of thousands of recordings and people would be the largest array of all.
        """
        sums = np.zeros((self.people, rows.shape[1]))
        for a in range(0, len(rows), _BLOCK_ROWS):
            own = self.of[a : a + _BLOCK_ROWS]
            order = np.argsort(own, kind="stable")
            starts = np.flatnonzero(np.diff(own[order], prepend=-1))
            part = rows[a : a + _BLOCK_ROWS][order]
            sums[own[order][starts]] += np.add.reduceat(part, starts, axis=0)
        sums -= sums.sum(axis=0) / self.people
        return sums.T

    def few(self, rows: Bools) -> TrainingLabels:
        """Those of the rows of the first people, and of so many people."""
        people = min(self.people, MOST_PEOPLE)
        return TrainingLabels(self.of[rows], people, self.fold[rows])


def fold_of(stimuli: Ints) -> Ints:
    """Parts of the stimuli, dealt in turn."""
    parts: Ints = stimuli % FOLDS
    return parts


def ridge_scores(gallery: Floats, probe: Floats, labels: TrainingLabels) -> Floats:
    """Scores of probe rows against people, shape (probe rows, people).

    Parameters
    ----------
    gallery, probe : array of float64, shape (rows, features)
        Standardised vectors.
    labels : TrainingLabels
        Of the gallery.
    """
    if len(gallery) <= gallery.shape[1]:
        return gram_scores(gallery @ gallery.T, probe @ gallery.T, labels)
    size = float(_square_lengths(gallery).mean())
    if size < _TINY:
        return np.zeros((len(probe), labels.people))
    some = _penalty_rows(labels)
    penalty = _penalty(_by_features(gallery[some]), labels.few(some), size)
    scores: Floats = probe @ _solved(gallery.T @ gallery, labels.products(gallery), penalty)
    return scores


def gram_scores(among: Floats, asked: Floats, labels: TrainingLabels) -> Floats:
    """As :func:`ridge_scores`, from inner products.

    Parameters
    ----------
    among : array of float64, shape (gallery rows, gallery rows)
        Products of the rows of the gallery.
    asked : array of float64, shape (probe rows, gallery rows)
        Products of the rows of the probe with them.
    labels : TrainingLabels
        Of the gallery.
    """
    size = float(np.trace(among)) / max(len(among), 1)
    if size < _TINY:
        return np.zeros((len(asked), labels.people))
    some = _penalty_rows(labels)
    part = among if some.all() else among[np.ix_(some, some)]
    penalty = _penalty(_by_rows(part), labels.few(some), size)
    scores: Floats = asked @ _solved(among.copy(), labels.targets, penalty)
    return scores


def kernel_scores(
    gallery: Floats,
    probe: Floats,
    labels: TrainingLabels,
    kinds: Sequence[slice | Bools] = (slice(None),),
) -> Floats:
    """Scores by ridge regression on the sum of Gaussian kernels.

    Parameters
    ----------
    gallery, probe : array of float64, shape (rows, features)
        Standardised vectors.
    labels : TrainingLabels
        Of the gallery.
    kinds : sequence of slices or arrays of bool, shape (features,)
        The columns of each kernel; one kernel of all of them by default.
    """
    if len(gallery) > LANDMARKS:
        return ridge_scores(*_features_of_kinds(gallery, probe, kinds), labels)
    among = np.zeros((len(gallery), len(gallery)))
    asked = np.zeros((len(probe), len(gallery)))
    for own in kinds:
        products = kernel_products(gallery[:, own], probe[:, own])
        among += products[0]
        asked += products[1]
    return gram_scores(among, asked, labels)


def _features_of_kinds(
    gallery: Floats, probe: Floats, kinds: Sequence[slice | Bools]
) -> tuple[Floats, Floats]:
    """:func:`kernel_features` of each kind, side by side."""
    share = len(kinds)
    if share == 1:
        return kernel_features(gallery[:, kinds[0]], probe[:, kinds[0]])
    # Filled in place: the features of all kinds and their concatenation would be there at once.
    first, second = (np.empty((len(side), LANDMARKS + share)) for side in (gallery, probe))
    used = 0
    for own in kinds:
        g, p = kernel_features(gallery[:, own], probe[:, own], share)
        end = used + g.shape[1]
        first[:, used:end], second[:, used:end] = g, p
        used = end
    return first[:, :used], second[:, :used]


def kernel_products(gallery: Floats, probe: Floats) -> tuple[Floats, Floats]:
    """A Gaussian kernel of the rows of the gallery with one another and of those of the probe with
    them; its width is the median distance within the gallery.

    The mean of the gallery identifies no person. It is subtracted, so that the penalty acts on
    differences alone.
    """
    among = _square_distances(gallery, gallery)
    width = _width(among)
    if width < _TINY:
        return np.zeros_like(among), np.zeros((len(probe), len(gallery)))
    among = _decayed(among, width)
    asked = _decayed(_square_distances(probe, gallery), width)
    middle = among.mean(axis=0)
    among += middle.mean() - middle - middle[:, None]
    asked += middle.mean() - middle - asked.mean(axis=1, keepdims=True)
    return among, asked


def kernel_features(gallery: Floats, probe: Floats, share: int = 1) -> tuple[Floats, Floats]:
    """Features whose inner products are those of :func:`kernel_products`, as far as landmarks show.

    Parameters
    ----------
    gallery, probe : array of float64, shape (rows, features)
        Standardised vectors.
    share : int
        Of how many kernels that are added this is one: all of them together have LANDMARKS.
    """
    from scipy.linalg import cholesky, solve_triangular

    count = min(len(gallery), max(1, LANDMARKS // share))
    # The same for every attacker, so that what one of them works out is the others' too.
    places = np.random.default_rng(0).choice(len(gallery), count, replace=False)
    chosen = gallery[np.sort(places)]
    among = _square_distances(chosen, chosen)
    width = _width(among)
    if width < _TINY:
        return np.zeros((len(gallery), 1)), np.zeros((len(probe), 1))
    among = _decayed(among, width)
    among[np.diag_indices_from(among)] += _LEAST_EIGENVALUE * len(among)
    root = cholesky(among, lower=True, check_finite=False)
    first, second = (_decayed(_square_distances(rows, chosen), width) for rows in (gallery, probe))
    middle = first.mean(axis=0)
    # All in place: with thousands of recordings each of these is a hundred megabytes.
    first -= middle
    second -= middle
    sides = (
        solve_triangular(root, rows.T, lower=True, overwrite_b=True, check_finite=False).T
        for rows in (first, second)
    )
    return next(sides), next(sides)


def margins(scores: Floats, own: Ints) -> Floats:
    """How far the right person stands out in each row: the score less the row's mean, in standard
    deviations of the row.
    """
    right = scores[np.arange(len(own)), own]
    return (right - scores.mean(axis=1)) / np.maximum(scores.std(axis=1), _TINY)


def _solved(gram: Floats, targets: Floats, penalty: float) -> Floats:
    """Weights for one penalty, by the Cholesky factor of the Gram matrix, which is overwritten."""
    from scipy.linalg import cho_factor, cho_solve

    gram[np.diag_indices_from(gram)] += penalty
    # The smallest penalty is far above rounding, so the factor exists. Of a symmetric matrix the
    # transposed one is the same, and in the order in which it can be overwritten.
    factor = cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
    weights: Floats = cho_solve(factor, targets, check_finite=False)
    return weights


def _penalty_rows(labels: TrainingLabels) -> Bools:
    """The rows on which the penalty is chosen."""
    some: Bools = labels.of < MOST_PEOPLE
    return some


# Rows in the directions of the eigenvectors of their Gram matrix, and its eigenvalues.
_Turned = tuple[Floats, Floats]


def _by_rows(products: Floats) -> _Turned:
    values, axes = np.linalg.eigh(products)
    values = np.maximum(values, 0.0)
    return axes * np.sqrt(values), values


def _by_features(rows: Floats) -> _Turned:
    if len(rows) <= rows.shape[1]:
        return _by_rows(rows @ rows.T)
    values, axes = np.linalg.eigh(rows.T @ rows)
    return rows @ axes, np.maximum(values, 0.0)


def _penalty(turned: _Turned, labels: TrainingLabels, size: float) -> float:
    """The penalty under which people stand out most in stimuli that were held out."""
    parts = [labels.fold == part for part in np.unique(labels.fold)]
    gains = np.zeros(len(PENALTIES))
    if len(parts) > 1:
        for i, penalty in enumerate(PENALTIES):
            scores = held_out_ridge(*turned, labels.targets, parts, penalty * size)
            gains[i] = margins(scores, labels.of).sum()
    # Without a second stimulus nothing tells penalties apart: the middle one.
    best = int(np.argmax(gains)) if gains.any() else len(PENALTIES) // 2
    return PENALTIES[best] * size


def held_out_ridge(
    turned: Floats, values: Floats, targets: Floats, parts: Sequence[Bools], penalty: float
) -> Floats:
    """What each part of the rows is told by a regression on the other rows.

    With H the matrix that makes predictions of targets, the residual of part F without its own
    targets is (1 - H_FF)^-1 times the residual with them.

    Parameters
    ----------
    turned : array of float64, shape (rows, directions)
        Rows in the directions of the eigenvectors of their Gram matrix.
    values : array of float64, shape (directions,)
        Its eigenvalues.
    targets : array of float64, shape (rows, people)
        What is predicted.
    parts : sequence of arrays of bool, shape (rows,)
        Each row is in one of them.
    penalty : float
        Above 0.
    """
    inverse = 1.0 / (values + penalty)
    rest = targets - turned @ (inverse[:, None] * (turned.T @ targets))
    scores = np.empty_like(targets)
    for part in parts:
        own = turned[part]
        without = np.eye(len(own)) - (own * inverse) @ own.T
        scores[part] = targets[part] - np.linalg.solve(without, rest[part])
    return scores


def _square_distances(a: Floats, b: Floats) -> Floats:
    square = a @ b.T
    square *= -2.0
    square += _square_lengths(a)[:, None]
    square += _square_lengths(b)
    return np.maximum(square, 0.0, out=square)


def _square_lengths(rows: Floats) -> Floats:
    """Squared length of each row, without the squares of all of them at once."""
    blocks = range(0, len(rows), _BLOCK_ROWS)
    return np.concatenate(
        [np.zeros(0), *((rows[a : a + _BLOCK_ROWS] ** 2).sum(axis=1) for a in blocks)]
    )


def _decayed(square: Floats, width: float) -> Floats:
    """exp(-square / width), in the same memory."""
    square /= -width
    return np.exp(square, out=square)


def _width(square: Floats) -> float:
    """The median of distances between different rows."""
    apart = square[np.triu_indices(len(square), 1)]
    return float(np.median(apart)) if len(apart) else 1.0
