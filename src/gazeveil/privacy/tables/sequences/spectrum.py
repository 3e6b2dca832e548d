"""What is publicly assumed about a feature's course, and the shrinkage it allows.

A transform mechanism has to decide how many coefficients to release and how far to shrink the noisy
ones. Both decisions must not look at the data. They look at a public model instead: a feature is a
level plus slow wiggles,

    x_t - midpoint = level + wiggle_t,   sd(level) = level_sd (hi - lo),   cov(wiggle_s, wiggle_t) =
    (wiggle_sd (hi - lo))**2 exp(-|s - t| / rows).

The default level is uniform over the range (sd = 1/sqrt(12)); wiggles are a twentieth of the range
and stay alike for 32 rows, because rows are sliding windows that share most of their samples (60
rows overlap in MPIIDPEye: windows of 30 s every 0.5 s). These are round numbers from how windows
are made, not from any recording, and each of them is a parameter.

Wiener shrinkage multiplies a noisy coefficient by s2 / (s2 + sigma2), its public variance over that
plus the noise: the linear estimate with the least expected error if the model is right. It acts on
what is released, so it costs no privacy whether the model is right or not.

The half spectrum of real signals in real coordinates: which there are, and the matrices there
and back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints

Reals = Floats


@dataclass(frozen=True)
class PublicSpectrum:
    """A public model of features, in units of the public range.

    Parameters
    ----------
    level_sd : float
        Spread of a sequence's level about the public midpoint.
    wiggle_sd : float
        Spread of a value about the level.
    rows : float
        Rows after which the correlation of the wiggles has fallen to 1/e.

    Examples
    --------
    >>> PublicSpectrum().cosine(100).round(4)[:3]
    array([8.4632, 0.0532, 0.0279])
    """

    level_sd: float = 0.289
    wiggle_sd: float = 0.05
    rows: float = 32.0

    def __post_init__(self) -> None:
        for name in ("level_sd", "wiggle_sd", "rows"):
            object.__setattr__(
                self, name, checks.positive("PublicSpectrum", name, getattr(self, name))
            )

    def __str__(self) -> str:
        return f"{self.level_sd:g}/{self.wiggle_sd:g}/{self.rows:g}"

    def autocovariance(self, n: int) -> Reals:
        """Covariance of the wiggles at distances 0 to n - 1."""
        return self.wiggle_sd**2 * np.exp(-np.arange(n) / self.rows)

    def covariance(self, n: int) -> Reals:
        """Covariance of a sequence about the midpoint, shape (n, n)."""
        apart = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
        return self.level_sd**2 + self.autocovariance(n)[apart]

    def cosine(self, n: int) -> Reals:
        """Variances of the n coefficients of the orthonormal DCT-II; exact, in O(n log n).

        With c the autocovariance, the variance of coefficient j > 0 is

            (1/n) [ c_0 n + 2 sum_tau (n - tau) c_tau cos(pi j tau / n) ] - (2 / (n sin(pi j / n)))
            sum_tau c_tau sin(pi j tau / n).
        """
        c = self.autocovariance(n)
        tau = np.arange(n)
        both = np.zeros(2 * n)
        both[:n] = (n - tau) * c
        spectrum = np.fft.rfft(both)[:n].real * 2 - n * c[0]
        odd = np.zeros(2 * n)
        odd[1:n] = c[1:]
        sines = -np.fft.rfft(odd)[:n].imag
        out = spectrum / n
        j = np.arange(1, n)
        out[1:] -= 2.0 * sines[1:] / (n * np.sin(np.pi * j / n))
        out[0] += n * self.level_sd**2
        return np.maximum(out, 0.0)

    def fourier(self, n: int) -> Reals:
        """Expected |F_j|**2 of the unnormalised DFT, bins 0 to n // 2; exact, in O(n log n)."""
        c = self.autocovariance(n)
        tau = np.arange(n)
        folded = (n - tau) * c
        folded[1:] += (tau * c[(n - tau) % n])[1:]
        out = np.fft.rfft(folded).real
        out[0] += (n * self.level_sd) ** 2
        return np.maximum(out, 0.0)


def as_spectrum(value: object) -> PublicSpectrum:
    """The spectrum a user meant: one of ours, the text `level_sd/wiggle_sd/rows`, or None for the
    default.
    """
    if value is None:
        return PublicSpectrum()
    if isinstance(value, PublicSpectrum):
        return value
    parts = value.split("/") if isinstance(value, str) else []
    if len(parts) != 3 or not all(part.replace(".", "", 1).isdigit() for part in parts):
        checks.refuse(
            "PublicSpectrum",
            "spectrum",
            "a PublicSpectrum or the text level_sd/wiggle_sd/rows, for instance '0.289/0.05/32'",
            value,
        )
    return PublicSpectrum(*(float(part) for part in parts))


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
    size = np.sqrt(np.where(places == 0, 1.0, 2.0) / n)
    return np.cos(turns) * size[:, None]


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
