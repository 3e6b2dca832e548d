"""One vector per recording from its tables of events: mean and standard deviation of every event
feature, and rates.

Ren et al. 2024 classifies tasks from "gaze features" of I-VT events and does not say how they are
put together; this is the plain way. Rates are events per second of fixations and saccades together:
a release of tables has no samples to take the time from, and both sides of a comparison need one
definition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys

_KINDS = ("fixation", "saccade")


def recording_table(recording_set: RecordingSet) -> FeatureTable:
    """A table with one row per recording; one without events has rates of 0 and nothing else.

    Columns are `fixation_duration_mean`, `fixation_duration_sd` and so on for every column of both
    tables, then `fixation_rate_hz`, `saccade_rate_hz` and `saccades_per_fixation`. NaN stands for
    the mean of no event and the deviation of fewer than two.
    """
    tables = [recording_set.table(kind) for kind in _KINDS]
    found = [table.recordings() for table in tables]
    keys = list(recording_set.keys)
    none = np.empty(0, dtype=np.int64)
    columns = [
        f"{kind}_{name}_{what}"
        for kind, table in zip(_KINDS, tables, strict=True)
        for what in ("mean", "sd")
        for name in table.columns
    ]
    columns += ["fixation_rate_hz", "saccade_rate_hz", "saccades_per_fixation"]
    values = np.full((len(keys), len(columns)), np.nan)
    for row, key in enumerate(keys):
        parts, counts, time_s = [], [], 0.0
        for table, rows in zip(tables, found, strict=True):
            mine = table.values[rows.get(key, none)]
            parts += list(_mean_and_deviation(mine))
            counts.append(len(mine))
            if "duration" in table.columns:
                time_s += float(np.nansum(mine[:, table.columns.index("duration")]))
        rates = [n / time_s if time_s > 0 else (np.nan if n else 0.0) for n in counts]
        values[row] = np.concatenate(
            [*parts, rates, [counts[1] / counts[0] if counts[0] else np.nan]]
        )
    return FeatureTable(
        values, tuple(columns), Keys.of_recordings(keys, [np.zeros(1, dtype=np.int64)] * len(keys))
    )


def _mean_and_deviation(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    seen = ~np.isnan(values)
    n = seen.sum(axis=0)
    mean = np.where(n > 0, np.where(seen, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
    squares = (np.where(seen, values - np.where(n > 0, mean, 0.0), 0.0) ** 2).sum(axis=0)
    return mean, np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)
