"""Statistics of columns of which some values are unknown (NaN)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def column_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the first axis of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


def column_deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation (ddof 0) over the first axis of what is known; NaN where nothing is."""
    return np.sqrt(column_means((values - column_means(values)) ** 2))
