"""Covariance of few rows in many dimensions, after Ledoit and Wolf 2004 ("A well-conditioned
estimator for large-dimensional covariance matrices"), and the directions in which it is round.

Written out here because it is asked for some hundred times in a study: the sum of products that
says how far to shrink follows from the lengths of the rows, without a second product of matrices.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats

# Eigenvalues below this part of the largest count as this part.
_LEAST_EIGENVALUE = 1e-8


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
    if share > 10.0 * _LEAST_EIGENVALUE * len(covariance):
        root = cholesky(covariance, lower=True, check_finite=False)
        return tuple(
            solve_triangular(root, side.T, lower=True, check_finite=False).T for side in sides
        )
    values, axes = np.linalg.eigh(covariance)
    white = axes / np.sqrt(np.maximum(values, values.max() * _LEAST_EIGENVALUE))
    return tuple(side @ white for side in sides)
