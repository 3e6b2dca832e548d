"""Ridge regression from vectors of recordings to people, plain or on a Gaussian kernel.

The penalty is chosen on the gallery alone: stimuli are held out in turn, and the penalty counts
under which people stand out most from the others in recordings of stimuli that were not learnt
from. The problem is solved in the smaller of its two forms, by features or by recordings; the
kernel of more than :data:`LANDMARKS` recordings is approximated through that many of them
(Nystroem), so that nothing grows faster than the number of recordings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints

#: Penalties that are tried, as multiples of the mean squared length of a row.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

#: Parts into which the stimuli are dealt.
FOLDS = 8

#: Most recordings through which a kernel is approximated.
LANDMARKS = 1000

#: Most people on whom the penalty is chosen: more do not make the choice better.
MOST_PEOPLE = 64

_TINY = 1e-12


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

    def where(self, rows: Bools) -> TrainingLabels:
        """Some of the rows."""
        return TrainingLabels(self.of[rows], self.people, self.fold[rows])


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
    size = float((gallery**2).sum(axis=1).mean())
    if size < _TINY:
        return np.zeros((len(probe), labels.people))
    return _solved(gallery, labels.targets, probe, _penalty(gallery, labels, size))


def _solved(rows: Floats, targets: Floats, probe: Floats, penalty: float) -> Floats:
    """Ridge regression for one penalty, by the Cholesky factor of the smaller Gram matrix."""
    from scipy.linalg import cho_factor, cho_solve

    by_rows = len(rows) <= rows.shape[1]
    gram = rows @ rows.T if by_rows else rows.T @ rows
    gram[np.diag_indices_from(gram)] += penalty
    # The smallest penalty is far above rounding, so the factor exists.
    factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    right = cho_solve(factor, targets if by_rows else rows.T @ targets, check_finite=False)
    scores: Floats = probe @ (rows.T @ right) if by_rows else probe @ right
    return scores


def kernel_features(
    gallery: Floats, probe: Floats, seed: int, share: int = 1
) -> tuple[Floats, Floats]:
    """Features whose inner products are a Gaussian kernel of the rows; its width is the median
    distance within the gallery.

    Parameters
    ----------
    gallery, probe : array of float64, shape (rows, features)
        Standardised vectors.
    seed : int
        Chooses landmarks.
    share : int
        Of how many kernels that are added this is one: all of them together have LANDMARKS.
    """
    rng = np.random.default_rng(seed)
    chosen = gallery
    if len(gallery) > LANDMARKS:
        count = max(1, LANDMARKS // share)
        chosen = gallery[np.sort(rng.choice(len(gallery), count, replace=False))]
    among = _square_distances(chosen, chosen)
    apart = among[~np.eye(len(among), dtype=np.bool_)]
    width = float(np.median(apart)) if len(apart) else 1.0
    if width < _TINY:
        return np.zeros((len(gallery), 1)), np.zeros((len(probe), 1))
    values, axes = np.linalg.eigh(np.exp(-among / width))
    root = axes / np.sqrt(np.maximum(values, values.max() * 1e-9))
    first, second = (np.exp(-_square_distances(rows, chosen) / width) for rows in (gallery, probe))
    # The mean of the gallery carries nobody: without it the penalty acts on differences alone.
    middle = first.mean(axis=0)
    return (first - middle) @ root, (second - middle) @ root


def margins(scores: Floats, own: Ints) -> Floats:
    """How far the right person stands out in each row: the score less the row's mean, in standard
    deviations of the row.
    """
    right = scores[np.arange(len(own)), own]
    return (right - scores.mean(axis=1)) / np.maximum(scores.std(axis=1), _TINY)


def _penalty(rows: Floats, labels: TrainingLabels, size: float) -> float:
    """The penalty under which people stand out most in stimuli that were held out."""
    if labels.people > MOST_PEOPLE:
        some = labels.of < MOST_PEOPLE
        rows, labels = rows[some], TrainingLabels(labels.of[some], MOST_PEOPLE, labels.fold[some])
    gains = np.zeros(len(PENALTIES))
    for part in np.unique(labels.fold):
        out = labels.fold == part
        if out.all():
            continue
        solver = _Solver(rows[~out], labels.where(~out).targets, rows[out])
        for i, penalty in enumerate(PENALTIES):
            gains[i] += margins(solver.scores(penalty * size), labels.of[out]).sum()
    # Without a second stimulus nothing tells penalties apart: the middle one.
    best = int(np.argmax(gains)) if gains.any() else len(PENALTIES) // 2
    return PENALTIES[best] * size


class _Solver:
    """Ridge regression of one probe for any penalty, from one decomposition of the smaller Gram
    matrix.
    """

    def __init__(self, rows: Floats, targets: Floats, probe: Floats) -> None:
        by_rows = len(rows) <= rows.shape[1]
        gram = rows @ rows.T if by_rows else rows.T @ rows
        self._values, axes = np.linalg.eigh(gram)
        self._right = axes.T @ (targets if by_rows else rows.T @ targets)
        self._left = (probe @ rows.T if by_rows else probe) @ axes

    def scores(self, penalty: float) -> Floats:
        """Scores of the rows of the probe."""
        inverse = self._right / (np.maximum(self._values, 0.0) + penalty)[:, None]
        scores: Floats = self._left @ inverse
        return scores


def _square_distances(a: Floats, b: Floats) -> Floats:
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    return np.maximum(square, 0.0)
