"""Prototypes of classes and activations around them, compiled: k-means per class (k-means++ and
Lloyd), radial basis functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Clusters of all classes, one under the other.

    Parameters
    ----------
    centres : array of float64, shape (units, features)
        Means of the clusters.
    sigma : array of float64, shape (units,)
        Mean distance of a cluster's members to its centre.
    of_class : array of int64, shape (units,)
        Number of the class.
    iterations : int
        Of k-means, in the class that needed most.
    """

    centres: Floats
    sigma: Floats
    of_class: Ints
    iterations: int


def find_prototypes(
    z: Floats, sizes: Ints, most: Ints, draws: Floats, iterations: int
) -> Prototypes:
    """k-means of each class.

    Parameters
    ----------
    z : array of float64, shape (rows, features)
        Rows in order of their class, C-contiguous.
    sizes : array of int64, shape (classes,)
        Rows of each class.
    most : array of int64, shape (classes,)
        Clusters wanted of each class; a class with fewer different rows has fewer.
    draws : array of float64, shape (most.sum(),)
        Uniform numbers in [0, 1), one for each first centre.
    iterations : int
        Most iterations of Lloyd's algorithm.
    """
    units = int(most.sum())
    centres, sigma, of_class = (
        np.empty((units, z.shape[1])),
        np.empty(units),
        np.empty(units, dtype=np.int64),
    )
    used, longest = _all_classes(
        z,
        sizes.astype(np.int64),
        most.astype(np.int64),
        draws,
        iterations,
        centres,
        sigma,
        of_class,
    )
    return Prototypes(centres[:used], sigma[:used], of_class[:used], longest)


def radial(z: Floats, centres: Floats, beta: Floats) -> Floats:
    """exp(-beta_i |z - centre_i|^2), shape (rows, units); what is not a number is 0.

    Parameters
    ----------
    z : array of float64, shape (rows, features)
        Standardised rows.
    centres : array of float64, shape (units, features)
        Prototypes.
    beta : array of float64, shape (units,)
        Their precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = z @ centres.T
        _finish(out, z, centres, (z * z).sum(axis=1), (centres * centres).sum(axis=1), beta)
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


@compiled
def add_groups(
    sums: Floats, rows: NDArray[np.float32 | np.float64], groups: Ints, weights: Floats
) -> None:
    """Add rows, each times its weight, to the sums of their groups, in place and in double
    precision; those of one group are best beside one another.
    """
    for i in range(rows.shape[0]):
        total, weight = sums[groups[i]], weights[i]
        for j in range(rows.shape[1]):
            total[j] += weight * rows[i, j]


@compiled
def _distances(z: Floats, i: int, columns: Floats, k: int, out: Floats) -> None:
    """Squared distances of row i to the k centres that stand in the columns; over centres the loop
    runs in vector registers.
    """
    out[:k] = 0.0
    for f in range(z.shape[1]):
        value = z[i, f]
        row = columns[f]
        for c in range(k):
            d = value - row[c]
            out[c] += d * d


@compiled
def _first_centres(z: Floats, k: int, draws: Floats, columns: Floats, near: Floats) -> int:
    """k-means++: each next centre is a row drawn with probability proportional to its squared
    distance to the nearest so far; returns how many.
    """
    n, features = z.shape
    near[:n] = np.inf
    for c in range(k):
        if c == 0:
            pick = min(n - 1, int(draws[0] * n))
        else:
            total = 0.0
            for i in range(n):
                total += near[i]
            if not total > 0.0:
                return c  # every row is a centre already
            left = draws[c] * total
            pick = -1
            for i in range(n):
                if near[i] > 0.0:
                    pick = i
                    left -= near[i]
                    if left < 0.0:
                        break
        for f in range(features):
            columns[f, c] = z[pick, f]
        for i in range(n):
            square = 0.0
            for f in range(features):
                d = z[i, f] - z[pick, f]
                square += d * d
            near[i] = min(near[i], square)
    return k


@compiled
def _lloyd(
    z: Floats,
    k: int,
    iterations: int,
    columns: Floats,
    label: Ints,
    near: Floats,
    count: Ints,
    scratch: Floats,
) -> int:
    """Lloyd's algorithm until no row changes its cluster; an empty cluster takes the row farthest
    from its centre. Returns how many iterations it took.
    """
    n, features = z.shape
    for iteration in range(iterations):
        moved = False
        count[:k] = 0
        for i in range(n):
            _distances(z, i, columns, k, scratch)
            best = 0
            for c in range(1, k):
                if scratch[c] < scratch[best]:
                    best = c
            near[i] = scratch[best]
            moved = moved or label[i] != best
            label[i] = best
            count[best] += 1
        for c in range(k):
            if count[c] == 0:
                far = -1
                for i in range(n):
                    if count[label[i]] > 1 and (far < 0 or near[i] > near[far]):
                        far = i
                count[label[far]] -= 1
                label[far] = c
                near[far] = 0.0
                count[c] = 1
                moved = True
        if not moved:
            return iteration + 1
        columns[:, :k] = 0.0
        for i in range(n):
            c = label[i]
            for f in range(features):
                columns[f, c] += z[i, f]
        for f in range(features):
            for c in range(k):
                columns[f, c] /= count[c]
    return iterations


@compiled
def _all_classes(
    z: Floats,
    sizes: Ints,
    most: Ints,
    draws: Floats,
    iterations: int,
    centres: Floats,
    sigma: Floats,
    of_class: Ints,
) -> tuple[int, int]:
    """Fill centres, sigma and class of all units; returns how many there are, and the most
    iterations of a class.
    """
    features = z.shape[1]
    width = most.max()
    columns = np.empty((features, width))
    scratch = np.empty(width)
    count = np.empty(width, dtype=np.int64)
    near = np.empty(sizes.max())
    label = np.empty(sizes.max(), dtype=np.int64)
    used = start = drawn = longest = 0
    for code in range(len(sizes)):
        n = sizes[code]
        own = z[start : start + n]
        k = _first_centres(own, most[code], draws[drawn : drawn + most[code]], columns, near)
        label[:n] = -1
        longest = max(longest, _lloyd(own, k, iterations, columns, label, near, count, scratch))
        sigma[used : used + k] = 0.0
        for i in range(n):
            c = label[i]
            square = 0.0
            for f in range(features):
                d = own[i, f] - columns[f, c]
                square += d * d
            sigma[used + c] += math.sqrt(square)
        for c in range(k):
            sigma[used + c] /= count[c]
            of_class[used + c] = code
            for f in range(features):
                centres[used + c, f] = columns[f, c]
        used += k
        start += n
        drawn += most[code]
    return used, longest
