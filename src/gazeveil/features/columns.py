"""Statistics of columns of which some values are unknown (NaN)."""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats


def column_means(values: Floats) -> Floats:
    """Mean over the first axis of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


def column_deviations(values: Floats) -> Floats:
    """Standard deviation (ddof 0) over the first axis of what is known; NaN where nothing is."""
    return np.sqrt(column_means((values - column_means(values)) ** 2))
