"""What is publicly assumed about a feature's course, and the shrinkage it allows.

A transform mechanism has to decide how many coefficients to release and how far to shrink the noisy
ones. Both decisions must not look at the data. They look at a public model instead: a feature is a
level plus slow wiggles,

    x_t - midpoint = level + wiggle_t,   sd(level) = level_sd (hi - lo),   cov(wiggle_s, wiggle_t) =
    (wiggle_sd (hi - lo))**2 exp(-|s - t| / rows).

The default level is uniform over the range (sd = 1/sqrt(12)); wiggles are a twentieth of the range
and stay alike for 32 rows, because rows are sliding windows that share most of their samples (60
rows overlap in MPIIDPEye: windows of 30 s every 0.5 s). These are round numbers from how windows
are made, not from any recording.

Wiener shrinkage multiplies a noisy coefficient by s2 / (s2 + sigma2), its public variance over that
plus the noise: the linear estimate with the least expected error if the model is right. It acts on
what is released, so it costs no privacy whether the model is right or not.

The half spectrum of real signals in real coordinates: which there are, and the matrices there
and back.

Expected squared errors in closed form, for every number of coefficients at once: they replace
hundreds of noisy runs by cumulative sums.

All of them split into what is dropped (a reverse cumulative sum over coefficients) and what the
noise adds (a forward one). Derivations are in proofs/fpa.md, proofs/dcfpa.md and
proofs/dct-knorm.md.

The default number of released bins of a spectrum: the least expected error under the public model.

Transforms in whole numbers: the coefficients of a block of grid values, and how far two
neighbours can lie apart in them, exactly.

A real transform in floating point rounds, and a promise then has to bound every rounding of a
library's fast transform. Here there is nothing to bound: the rows of the transform are multiplied
by 2**bits and rounded to whole numbers once, which makes a public integer matrix. Its product with
a vector of whole numbers is a whole number, and because `bits` is chosen such that no partial sum
exceeds 2**53, the product of two float64 matrices gives it exactly, in whatever order the sums are
formed.

With A the ideal rows and |E| < 1 the rounding of the integer matrix 2**bits A + E, a difference d
of two vectors moves the D coefficients by at most

    2**bits |A d|_1 + D |d|_1   in L1,        2**bits |A d|_2 + sqrt(D) |d|_1   in L2.

Where the coefficients are finer than the noise needs, they are divided by 2**shift and rounded,
which adds at most 1 per coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.noise.exact import MOST_T
from gazeveil.privacy.tables.recordings import STEPS

Reals = Floats


#: Spread of a sequence's level about the public midpoint and of a value about the level, in units
#: of the public range, and rows after which the correlation of the wiggles has fallen to 1/e.
LEVEL_SD, WIGGLE_SD, ROWS_ALIKE = 0.289, 0.05, 32.0


def _autocovariance(n: int) -> Reals:
    """Covariance of the wiggles at distances 0 to n - 1."""
    return np.asarray(WIGGLE_SD**2 * np.exp(-np.arange(n) / ROWS_ALIKE), dtype=np.float64)


def public_covariance(n: int) -> Reals:
    """Covariance of a sequence about the midpoint, shape (n, n)."""
    apart = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    return np.asarray(LEVEL_SD**2 + _autocovariance(n)[apart], dtype=np.float64)


def public_cosine(n: int) -> Reals:
    """Variances of the n coefficients of the orthonormal DCT-II; exact, in O(n log n).

    With c the autocovariance, the variance of coefficient j > 0 is

        (1/n) [ c_0 n + 2 sum_tau (n - tau) c_tau cos(pi j tau / n) ] - (2 / (n sin(pi j / n)))
        sum_tau c_tau sin(pi j tau / n).

    Examples
    --------
    >>> public_cosine(100).round(4)[:3]
    array([8.4632, 0.0532, 0.0279])
    """
    c = _autocovariance(n)
    both, odd = np.zeros(2 * n), np.zeros(2 * n)
    both[:n], odd[1:n] = (n - np.arange(n)) * c, c[1:]
    spectrum = np.fft.rfft(both)[:n].real * 2 - n * c[0]
    sines = -np.fft.rfft(odd)[:n].imag
    out = spectrum / n
    out[1:] -= 2.0 * sines[1:] / (n * np.sin(np.pi * np.arange(1, n) / n))
    out[0] += n * LEVEL_SD**2
    return np.maximum(out, 0.0)


def public_fourier(n: int) -> Reals:
    """Expected |F_j|**2 of the unnormalised DFT, bins 0 to n // 2; exact, in O(n log n)."""
    c, tau = _autocovariance(n), np.arange(n)
    folded = (n - tau) * c
    folded[1:] += (tau * c[(n - tau) % n])[1:]
    out = np.fft.rfft(folded).real
    out[0] += (n * LEVEL_SD) ** 2
    return np.maximum(out, 0.0)


def wiener(signal: Reals, noise: Reals | float) -> Reals:
    """Weights signal / (signal + noise) of variances; 0 where both are 0."""
    total = signal + noise
    return np.divide(signal, total, out=np.zeros_like(total), where=total > 0)


def dct(values: Reals, axis: int = -1) -> Reals:
    """Orthonormal DCT-II."""
    from scipy.fft import dct as scipy_dct

    out: Reals = scipy_dct(values, axis=axis, norm="ortho")
    return out


def idct(coefficients: Reals, axis: int = -1) -> Reals:
    """Inverse of :func:`dct`."""
    from scipy.fft import idct as scipy_idct

    out: Reals = scipy_idct(coefficients, axis=axis, norm="ortho")
    return out


def cosine_rows(n: int, places: Ints) -> Reals:
    """Rows of the orthonormal DCT-II."""
    # the angle is a whole number of quarter turns over n: reduced exactly before it becomes a float
    turns = np.outer(places, 2 * np.arange(n) + 1) % (4 * n) * (np.pi / (2 * n))
    return np.cos(turns) * np.sqrt(np.where(places == 0, 1.0, 2.0) / n)[:, None]


def coordinates(n: int, k: int) -> int:
    """Real numbers in k bins of a half spectrum: DC and Nyquist have no imaginary part."""
    return 2 * k - 1 - (1 if n % 2 == 0 and k == n // 2 + 1 else 0)


def fourier_rows(n: int, k: int) -> Reals:
    """Rows of the real transform: the real parts of bins 0..k-1, then the imaginary parts that are
    not 0 by symmetry.
    """
    turns = np.outer(np.arange(k), np.arange(n)) % n * (2 * np.pi / n)
    last = coordinates(n, k) - k + 1
    return np.concatenate((np.cos(turns), -np.sin(turns[1:last])))


def synthesis(n: int, k: int) -> Reals:
    """Columns that turn the real coordinates of k bins back into a
    signal, shape (n, coordinates).
    """
    rows = fourier_rows(n, k)
    weight = np.full(len(rows), 2.0 / n)
    weight[[0, k - 1] if n % 2 == 0 and k == n // 2 + 1 else [0]] = 1.0 / n
    return (rows * weight[:, None]).T


def halves(n: int) -> tuple[Reals, Reals]:
    """Omega and nu of the closed form, bins 0 to n // 2."""
    omega, nu = np.full(n // 2 + 1, 2.0), np.full(n // 2 + 1, 8.0)
    alone = [0, n // 2] if n % 2 == 0 and n > 1 else [0]
    omega[alone], nu[alone] = 1.0, 2.0
    return omega, nu


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
def public_k(n: int, epsilon: float, shrink: bool) -> int:
    """Compute the default number of bins of `corrected`.

    It has the least expected error for sequences of the public model, so it depends on the block
    length, the budget of a block and whether coefficients are shrunk, and on
    nothing else.
    """
    energy = public_fourier(n)
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
def public_difference_k(n: int, epsilon: float, shrink: bool) -> int:
    """Compute the default number of bins of `dcfpa`: the least expected error under the public
    model. It is a function of public values alone.
    """
    many = n // 2 + 1
    covariance = public_covariance(n)
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


#: Values of a block and differences of two of them are at most this large.
_MOST_BITS = 17


def bits_for(n: int) -> int:
    """Fractional bits of the integer matrix for blocks of `n` values."""
    return min(30, 53 - _MOST_BITS - max(1, math.ceil(math.log2(n))) if n > 1 else 30)


def coefficients(rows: Floats, blocks: Ints) -> Ints:
    """The integer transform of every block, exactly.

    Parameters
    ----------
    rows : array of float64, shape (coefficients, n)
        The ideal transform, entries within [-1, 1].
    blocks : array of int64, shape (n, blocks)
        Whole numbers of at most 2**17.
    """
    whole = rows * float(1 << bits_for(len(blocks)))
    np.rint(whole, out=whole)
    return (whole @ blocks.astype(np.float64)).astype(np.int64)


@dataclass(frozen=True)
class CoefficientGrid:
    """The grid the coefficients are rounded to.

    Parameters
    ----------
    bits, shift : int
        A coefficient in grid steps is the integer transform over 2**shift; one step is 2**(shift -
        bits) of the ideal transform.
    sensitivity : int
        How far two neighbours lie apart, in grid steps, rounding included.
    """

    bits: int
    shift: int
    sensitivity: int

    @property
    def step(self) -> float:
        """One grid step in units of the ideal transform."""
        return math.ldexp(1.0, self.shift - self.bits)

    def rounded(self, whole: Ints) -> Ints:
        """The integer transform on the grid: division by 2**shift, rounded, in integers."""
        return (whole + (1 << self.shift >> 1)) >> self.shift


def grid_l1(
    owner: str,
    n: int,
    dimension: int,
    apart_squared: int,
    apart_sum: int,
    epsilon: Fraction,
    most: int,
) -> CoefficientGrid:
    """The finest grid on which L1 sensitivity over epsilon is at most `most` steps.

    Parameters
    ----------
    owner : str
        For the message.
    n, dimension : int
        Values of a block, and coefficients.
    apart_squared : int
        Square of the largest L1 distance of the ideal coefficients of neighbours.
    apart_sum : int
        Largest L1 distance of two neighbouring blocks.
    epsilon : Fraction
        Budget of a block.
    most : int
        Largest scale the sampler takes.
    """
    bits = bits_for(n)
    fine = math.isqrt(apart_squared << (2 * bits)) + 1 + dimension * apart_sum
    return _grid(owner, bits, fine, dimension, epsilon, most)


def grid_l2(
    owner: str,
    n: int,
    dimension: int,
    apart_squared: int,
    apart_sum: int,
    epsilon: Fraction,
    most: int,
) -> CoefficientGrid:
    """The finest grid on which L2 sensitivity over epsilon is at most `most` steps; parameters as
    for :func:`grid_l1`.
    """
    bits = bits_for(n)
    root = math.isqrt(dimension) + 1
    fine = math.isqrt(apart_squared << (2 * bits)) + 1 + root * apart_sum
    return _grid(owner, bits, fine, root, epsilon, most)


def _grid(
    owner: str, bits: int, fine: int, rounding: int, epsilon: Fraction, most: int
) -> CoefficientGrid:
    shift = 0
    while (-(-fine >> shift) + rounding) / epsilon > most:
        shift += 1
        if fine >> shift < rounding:
            checks.refuse(
                owner,
                "epsilon",
                "large enough that its noise fits into 64-bit integers",
                epsilon,
                "Give a larger epsilon.",
            )
    return CoefficientGrid(bits, shift, fine if shift == 0 else -(-fine >> shift) + rounding)


def coarsening(n: int, epsilon: Fraction) -> int:
    """By how many powers of two the public grid is coarsened so that the sampler's whole numbers
    suffice; 0 for all usual budgets.
    """
    coarse = 0
    while n * (STEPS >> coarse) / epsilon > MOST_T:
        coarse += 1
        if STEPS >> coarse == 0:
            checks.refuse(
                "lpa",
                "epsilon",
                f"at least {n} / 2**40 for one feature of one recording of {n} rows",
                epsilon,
                "Give a larger epsilon.",
            )
    return coarse


def laplace_steps(n: int, epsilon: Fraction, coarse: int = 0) -> Fraction:
    """Scale of the noise in steps of the (coarsened) grid: the L1 sensitivity n (hi - lo) over
    epsilon.
    """
    return Fraction(n * (STEPS >> coarse)) / epsilon
