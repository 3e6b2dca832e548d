"""Expected squared errors in closed form, for every number of coefficients at once: they replace
hundreds of noisy runs by cumulative sums.

All of them split into what is dropped (a reverse cumulative sum over coefficients) and what the
noise adds (a forward one). Derivations are in proofs/fpa.md, proofs/dcfpa.md and
proofs/dct-knorm.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Ints
from gazeveil.privacy.tables.sequences.half_spectrum import halves
from gazeveil.privacy.tables.sequences.spectrum import Reals


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
