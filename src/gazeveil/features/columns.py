"""Statistics of columns of which some values are unknown (NaN)."""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats

_BLOCK_COLUMNS = 512


def column_means(values: Floats) -> Floats:
    """Mean over the first axis of what is known; NaN where nothing is."""
    unknown = np.isnan(values)
    if len(values) and not unknown.any():
        mean: Floats = values.sum(axis=0) / len(values)
        return mean
    n = len(values) - unknown.sum(axis=0)
    return np.where(n > 0, np.where(unknown, 0.0, values).sum(axis=0) / np.maximum(n, 1), np.nan)


def column_deviations(values: Floats) -> Floats:
    """Standard deviation (ddof 0) over the first axis of what is known; NaN where nothing is."""
    if values.shape[1] == 0:
        return np.zeros(0)
    # Some columns at a time: a copy of all of thousands of recordings is a hundred megabytes.
    parts = (values[:, a : a + _BLOCK_COLUMNS] for a in range(0, values.shape[1], _BLOCK_COLUMNS))
    return np.concatenate([_deviations(part) for part in parts])


def _deviations(values: Floats) -> Floats:
    away = values - column_means(values)
    return np.sqrt(column_means(np.square(away, out=away)))
