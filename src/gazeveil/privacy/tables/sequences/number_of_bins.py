"""How many bins of a spectrum are released where nobody gives a number: the least expected error
under the public model.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gazeveil.privacy.tables.sequences.closed_forms import (
    fpa_error,
    optimal_k,
    shrunk_fpa_error,
    sum_noise,
)
from gazeveil.privacy.tables.sequences.half_spectrum import fourier_rows, synthesis
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum, Reals


@lru_cache(maxsize=256)
def public_k(n: int, epsilon: float, spectrum: PublicSpectrum, shrink: bool) -> int:
    """The number of bins `corrected` releases where nobody gives one.

    It has the least expected error for sequences of the public model, so it depends on the block
    length, the budget of a block, the public spectrum and whether coefficients are shrunk, and on
    nothing else.
    """
    energy = spectrum.fourier(n)
    errors = (
        shrunk_fpa_error(energy, n, np.sqrt(n), epsilon)
        if shrink
        else fpa_error(energy, n, float(np.sqrt(n)), epsilon)
    )
    return int(optimal_k(errors))


def difference_rows(n: int, k: int) -> Reals:
    """Coefficients of the differences as a matrix on the values: row r times (I - shift)."""
    rows = fourier_rows(n, k)
    out = rows.copy()
    out[:, :-1] -= rows[:, 1:]
    return out


def _difference_coordinates(values: Reals) -> Reals:
    """The rows of all bins times each column, by the fast transform."""
    bins = np.fft.rfft(np.diff(values, axis=0, prepend=0.0), axis=0)
    return np.concatenate((bins.real, bins.imag[1 : len(values) - len(bins) + 1]))


@lru_cache(maxsize=256)
def public_difference_k(n: int, epsilon: float, spectrum: PublicSpectrum, shrink: bool) -> int:
    """The number of bins `dcfpa` releases where nobody gives one: least expected error under the
    public model, a function of public things alone.
    """
    many = n // 2 + 1
    covariance = spectrum.covariance(n)
    scale2 = n * (4 * n - 3) / epsilon**2  # times k: the squared scale of the noise, for range 1
    if shrink:
        tried = sorted({min(many, round(1.15**i) + min(i, 8)) for i in range(80)} | {1})
        left = [_left(covariance, difference_rows(n, k), 2.0 * scale2 * k) for k in tried]
        return tried[int(np.argmin(left))]
    sums = np.cumsum(synthesis(n, many), axis=0)
    together = _difference_coordinates(_difference_coordinates(covariance).T) * (sums.T @ sums)
    errors = _dropped(together, many) + scale2 * np.arange(1, many + 1) * np.cumsum(
        sum_noise(n)[:many]
    )
    return int(np.argmin(errors)) + 1


def _left(covariance: Reals, rows: Reals, noise: float) -> float:
    joint = covariance @ rows.T
    return -float(
        np.sum(joint * np.linalg.solve(rows @ joint + noise * np.eye(len(rows)), joint.T).T)
    )


def _dropped(together: Reals, many: int) -> Reals:
    """Sums over all pairs of coordinates of bins k and above, for k = 1 to `many`: each is the one
    before, less what bin k - 1 has with it and with itself.
    """
    # real parts of all bins come first, then imaginary parts from bin 1 on: sorted by bin, what is
    # dropped is a block at the end
    bins = np.concatenate((np.arange(many), np.arange(1, len(together) - many + 1)))
    order = np.argsort(bins, kind="stable")
    block = together[np.ix_(order, order)]
    each = np.triu(block, 1).sum(axis=1) + np.tril(block, -1).sum(axis=0) + np.diag(block)
    left = np.append(np.cumsum(each[::-1])[::-1], 0.0)
    return np.asarray(left[np.searchsorted(bins[order], np.arange(1, many + 1))], dtype=np.float64)
