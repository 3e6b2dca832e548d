"""The half spectrum of real signals in real coordinates: which there are, and the matrices there
and back.
"""

from __future__ import annotations

import numpy as np

from gazeveil.privacy.tables.sequences.spectrum import Reals


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
