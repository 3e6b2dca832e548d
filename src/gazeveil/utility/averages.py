"""Averages of figures of recordings over people."""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Texts
from gazeveil.features.columns import column_means
from gazeveil.utility.base import UtilityResult


def over_people(
    metric: str,
    values: Floats,
    persons: Texts,
    note: str,
    better: str = "lower",
    chance: float = np.nan,
) -> UtilityResult:
    """Average over a person's recordings, then over features, then over people; people without a
    figure are left out of the value.
    """
    names = np.unique(persons).tolist()
    parts = np.array([float(column_means(column_means(values[persons == name]))) for name in names])
    lost = int(np.isnan(parts).sum())
    if lost:
        note += f"; {lost} of {len(parts)} people have no figure"
        names = [n for n, p in zip(names, parts.tolist(), strict=True) if not np.isnan(p)]
        parts = parts[~np.isnan(parts)]
    value = float(parts.mean()) if len(parts) else float("nan")
    return UtilityResult(metric, value, parts, "person", tuple(names), chance, better, note)
