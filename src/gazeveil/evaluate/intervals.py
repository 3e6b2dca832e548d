"""Intervals a study draws: over people for rates, over repetitions or parts for everything else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def paired(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean difference of two figures per person, by Student's t; (NaN, NaN) for fewer than two people."""
    from scipy.stats import t

    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    n = len(difference)
    if n < 2:
        return float("nan"), float("nan")
    half = float(t.ppf(0.975, n - 1)) * float(difference.std(ddof=1)) / n**0.5
    return float(difference.mean()) - half, float(difference.mean()) + half
