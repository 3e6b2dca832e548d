"""Tables that games are played on: one feature between 0 and 1, 100 rows a recording."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.features.table import FeatureTable, Keys

#: Rows of a recording.
ROWS = 100

_CELLS_AT_ONCE = 4_000_000

Reals: TypeAlias = Floats


def table_of(patterns: Reals, names: list[str]) -> FeatureTable:
    """One person per pattern, one recording each; patterns have shape (people, rows)."""
    rows = np.arange(patterns.shape[1], dtype=np.int64)
    keys = Keys.of_recordings([(n, "s", "1", "") for n in names], [rows] * len(names))
    return FeatureTable(patterns.reshape(-1, 1), ("a",), keys, np.array([[0.0, 1.0]]))


def neighbours(k: int) -> list[FeatureTable]:
    """Two tables of k people at the midpoint but for the first, who is all 0 or all 1."""
    names = [f"p{i}" for i in range(k)]
    rest = np.full((k - 1, ROWS), 0.5)
    return [table_of(np.vstack((np.full((1, ROWS), end), rest)), names) for end in (0.0, 1.0)]


def batches(trials: int, cells: int) -> list[int]:
    """Trials in portions of a few million cells."""
    size = max(1, _CELLS_AT_ONCE // cells)
    return [min(size, trials - i) for i in range(0, trials, size)]
