"""Expected squared errors in closed form, for every number of coefficients at once: they replace
hundreds of noisy runs by cumulative sums.

All of them split into what is dropped (a reverse cumulative sum over coefficients) and what the
noise adds (a forward one). Derivations are in proofs/fpa.md, proofs/dcfpa.md and
proofs/dct-knorm.md.

The default number of released bins of a spectrum: the least expected error under the public model.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.privacy.tables.sequences.spectrum import (
    PublicSpectrum,
    Reals,
    fourier_rows,
    halves,
    synthesis,
)


def fpa_error(energy: Reals, n: int, delta_2: float | Reals, epsilon: float) -> Reals:
    """Expected squared error of FPA for every k, by one reverse and one forward cumulative sum.

    Parameters
    ----------
    energy : array of float64, shape (..., n // 2 + 1)
        |F_j|**2 of the unnormalised half spectrum (about the midpoint in the corrected reading).
    n : int
        Values of the sequence.
    delta_2 : float or array broadcastable to energy[..., 0]
        L2 sensitivity.
    epsilon : float
        Budget of the sequence.

    Returns
    -------
    array of float64, shape (..., n // 2 + 1)
        Entry k - 1 is E |X~ - X|**2 with k bins.

    Examples
    --------
    >>> fpa_error(np.array([16.0, 4.0, 0.0]), 4, 1.0, 1.0).tolist()
    [4.0, 20.0, 36.0]
    """
    omega, nu = halves(n)
    weighted = omega * energy / n
    dropped = np.zeros_like(weighted)
    dropped[..., :-1] = np.cumsum(weighted[..., :0:-1], axis=-1)[..., ::-1]
    k = np.arange(1, n // 2 + 2)
    return dropped + np.asarray(delta_2)[..., None] ** 2 / epsilon**2 * (k * np.cumsum(nu))


def fpa_real_error(energy: Reals, n: int, delta_2: float | Reals, epsilon: float) -> Reals:
    """The same for `published-real`, whose one-sided inverse also halves every amplitude but DC and
    Nyquist.
    """
    omega, nu = halves(n)
    halved = np.where(omega == 2.0, 0.5, 0.0) * energy / n
    weighted = omega * energy / n
    dropped = np.zeros_like(weighted)
    dropped[..., :-1] = np.cumsum(weighted[..., :0:-1], axis=-1)[..., ::-1]
    k = np.arange(1, n // 2 + 2)
    return (
        dropped
        + np.cumsum(halved, axis=-1)
        + np.asarray(delta_2)[..., None] ** 2
        / epsilon**2
        * (k * np.cumsum(np.where(nu == 8.0, 1.0, 2.0)))
    )


def optimal_k(errors: Reals) -> Ints:
    """The k with the least error, along the last axis."""
    return np.argmin(errors, axis=-1) + 1


def shrunk_fpa_error(energy: Reals, n: int, delta_2: float, epsilon: float) -> Reals:
    """Expected squared error for every k if the energy is right and the coefficients are shrunk by
    :func:`bin_weights`.
    """
    omega, _ = halves(n)
    out = np.empty(len(energy))
    part = energy / omega
    for k in range(1, len(energy) + 1):
        noise = 2.0 * n * k * delta_2**2 / epsilon**2
        left = part[:k] * noise / (part[:k] + noise)
        out[k - 1] = (np.sum(omega[:k] ** 2 * left) + np.sum(omega[k:] * energy[k:])) / n
    return out


def dcfpa_error(
    spectra: NDArray[np.complex128], n: int, delta_2: float | Reals, epsilon: float
) -> Reals:
    """Expected squared error of the running sum of a noisy difference signal, for every k.

    The running sum of exp(i w t) is a exp(i w t) + b with a = 1 / (1 - exp(-i w)) and b = 1 / (1 -
    exp(i w)). What is dropped is thus a periodic signal and a constant, which are orthogonal, and
    both are reverse cumulative sums.

    Parameters
    ----------
    spectra : array of complex128, shape (..., n // 2 + 1)
        Half spectrum of the difference signal, unnormalised.
    n : int
        Values of the chunk.
    delta_2 : float or array broadcastable to spectra[..., 0]
        L2 sensitivity of difference signals.
    epsilon : float
        Budget of the chunk.

    Returns
    -------
    array of float64, shape (..., n // 2 + 1)
        Entry k - 1 is the expected squared error of the chunk with k bins.
    """
    omega, _ = halves(n)
    turn = np.exp(2j * np.pi * np.arange(1, n // 2 + 1) / n)
    slow, level = 1 / (1 - turn.conj()), 1 / (1 - turn)
    spread, shift = np.zeros(spectra.shape), np.zeros(spectra.shape)
    after = spectra[..., 1:]
    spread[..., 1:] = omega[1:] * np.abs(after * slow) ** 2 / n
    shift[..., 1:] = omega[1:] * (after * level).real / n
    dropped = np.zeros(spectra.shape)
    dropped[..., :-1] = (
        np.cumsum(spread[..., :0:-1], axis=-1) + n * np.cumsum(shift[..., :0:-1], axis=-1) ** 2
    )[..., ::-1]
    k = np.arange(1, n // 2 + 2)
    return dropped + np.asarray(delta_2)[..., None] ** 2 / epsilon**2 * (
        n * k * np.cumsum(sum_noise(n))
    )


def sum_noise(n: int) -> Reals:
    """Squared error that Laplace noise of scale 1 on one bin of the differences leaves in their
    running sum, bins 0 to n // 2.
    """
    omega, _ = halves(n)
    out = np.empty(n // 2 + 1)
    out[0] = (n + 1) * (2 * n + 1) / (3 * n)
    half_angle = np.pi * np.arange(1, n // 2 + 1) / n
    out[1:] = omega[1:] ** 2 / (n * np.sin(half_angle) ** 2)
    return out


@lru_cache(maxsize=256)
def public_k(n: int, epsilon: float, spectrum: PublicSpectrum, shrink: bool) -> int:
    """Compute the default number of bins of `corrected`.

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
    """Compute the default number of bins of `dcfpa`: the least expected error under the public
    model. It is a function of public values alone.
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
