"""Prototypes of classes and activations around them: k-means per class, radial basis functions."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled

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
    rows, drawn = (np.concatenate(([0], np.cumsum(counts))).tolist() for counts in (sizes, most))
    centres, sigma = [], []
    for (a, b), (c, d) in zip(pairwise(rows), pairwise(drawn), strict=True):
        own = z[a:b]
        # Rows a rounding apart may leave a cluster without members: it is none.
        _, label, members = np.unique(
            _clusters(own, own[_first_centres(own, draws[c:d])]),
            return_inverse=True,
            return_counts=True,
        )
        # Means by plain sums: the centre of a cluster of one is that row to the last digit.
        sums = np.zeros((len(members), own.shape[1]))
        np.add.at(sums, label, own)
        centres.append(sums / members[:, None])
        far = np.sqrt(_squares(own - centres[-1][label]))
        sigma.append(np.bincount(label, far) / members)
    units = [len(found) for found in centres]
    return np.concatenate(centres), np.concatenate(sigma), np.repeat(np.arange(len(units)), units)


def _clusters(rows: Floats, centres: Floats) -> Ints:
    """The cluster of each row: Lloyd's algorithm until no row changes its cluster. An empty cluster
    takes the row farthest from its centre.
    """
    label = np.full(len(rows), -1)
    for _ in range(_ITERATIONS):
        squares = _squares(centres) - 2.0 * (rows @ centres.T)
        last, label = label, squares.argmin(axis=1)
        members = np.bincount(label, minlength=len(centres))
        if not members.all():
            far = _squares(rows - centres[label])
            for empty in np.flatnonzero(members == 0):
                row = int(np.where(members[label] > 1, far, -1.0).argmax())
                members[label[row]] -= 1
                label[row], far[row], members[empty] = empty, 0.0, 1
        if (label == last).all():
            break
        own = label == np.arange(len(centres))[:, None]
        centres = own.astype(np.float64) @ rows / members[:, None]
    return label


def _first_centres(rows: Floats, draws: Floats) -> list[int]:
    """k-means++: each next centre is a row drawn with probability proportional to its squared
    distance to the nearest centre so far; fewer where every row is a centre already.
    """
    chosen = [min(len(rows) - 1, int(draws[0] * len(rows)))]
    near = _squares(rows - rows[chosen[0]])
    for draw in draws[1:].tolist():
        total = np.cumsum(near)
        if not total[-1] > 0.0:
            break
        last = int(np.flatnonzero(near)[-1])
        chosen.append(min(int(np.searchsorted(total, draw * total[-1], side="right")), last))
        near = np.minimum(near, _squares(rows - rows[chosen[-1]]))
    return chosen


def _squares(steps: Floats) -> Floats:
    """Sum of the squares of each row; einsum writes no array of all squares."""
    return np.einsum("ij,ij->i", steps, steps)


def radial(z: Floats, centres: Floats, beta: Floats) -> Floats:
    """exp(-beta_i |z - centre_i|^2), shape (rows, units); what is not a number is 0.

    Parameters
    ----------
    z : array of float64, shape (rows, features)
    centres : array of float64, shape (units, features)
    beta : array of float64, shape (units,)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = z @ centres.T
        _finish(out, z, centres, _squares(z), _squares(centres), beta)
    return out


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
def _finish(
    out: Floats, z: Floats, centres: Floats, z_squared: Floats, centre_squared: Floats, beta: Floats
) -> None:
    """Turn products into activations, in place."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            both = z_squared[i] + centre_squared[j]
            square = both - 2.0 * out[i, j]
            if square < 1e-6 * both:
                # The difference of two large numbers has lost its digits: take the distance itself.
                square = 0.0
                for f in range(z.shape[1]):
                    d = z[i, f] - centres[j, f]
                    square += d * d
            power = -beta[j] * square
            # Below -745 the exponential is 0 in double precision; NaN fails the comparison.
            out[i, j] = math.exp(power) if power > -746.0 else 0.0


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
