"""One vector per recording: means, deviations and rates of its events.

:func:`summary_vectors` is what attackers compare (George and Routray 2016); :func:`recording_table`
is the same with other rates, for classifying tasks. Ren et al. 2024 classifies tasks from "gaze
features" of I-VT events and does not say how they are put together; this is the plain way.

Statistics of columns of which some values are unknown (NaN).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Bools, Floats, Ints, Texts, frozen, own_floats
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.recording import RecordingKey
from gazeveil.gaze.scratch import durations_s

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


#: The tables of events that are summarised.
_KINDS = ("fixation", "saccade")


@dataclass(frozen=True, eq=False)
class RecordingVectors:
    """One row per recording.

    Parameters
    ----------
    keys : sequence of (person, stimulus, session, task)
        Whose rows they are.
    values : array of float64, shape (recordings, features)
        The numbers; NaN where unknown, never infinite.
    columns : sequence of str
        One name per feature.
    blocks : sequence of str
        Which kind of feature each column is; attackers may judge kinds apart. One kind by default.
    """

    keys: tuple[RecordingKey, ...]
    values: Floats = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    blocks: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "blocks", tuple(self.blocks) or ("all",) * len(self.columns))
        values = own_floats(self.values)
        if values.shape != (len(self.keys), len(self.columns)):
            raise DataError(
                f"RecordingVectors need shape {(len(self.keys), len(self.columns))} (recordings,"
                f" features). Got {values.shape}."
            )
        if len(self.blocks) != len(self.columns):
            raise DataError(
                f"RecordingVectors need one block name per column, {len(self.columns)}. Got"
                f" {len(self.blocks)}."
            )
        if np.isinf(values).any():
            values = np.where(np.isinf(values), np.nan, values)
        object.__setattr__(self, "values", frozen(values))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def persons(self) -> Texts:
        """Whose each row is."""
        return np.array([key[0] for key in self.keys], dtype=np.str_)

    @property
    def stimuli(self) -> Texts:
        """What each row's person saw."""
        return np.array([key[1] for key in self.keys], dtype=np.str_)

    def where(self, rows: ArrayLike) -> RecordingVectors:
        """The rows a boolean mask or an index array picks."""
        places = np.arange(len(self))[np.asarray(rows)]
        return RecordingVectors(
            tuple(self.keys[i] for i in places.tolist()),
            frozen(self.values[places]),
            self.columns,
            self.blocks,
        )

    def select(self, columns: Sequence[str]) -> RecordingVectors:
        """Some columns, in the order asked for."""
        at = {name: i for i, name in enumerate(self.columns)}
        places = [at[name] for name in columns]
        first, count = (places[0] if places else 0), len(places)
        # Columns beside one another need no copy.
        beside = places == list(range(first, first + count))
        return RecordingVectors(
            self.keys,
            self.values[:, first : first + count]
            if beside
            else frozen(np.take(self.values, places, axis=1)),
            tuple(columns),
            tuple(self.blocks[i] for i in places),
        )

    def of_block(self, block: str) -> RecordingVectors:
        """The columns of one kind."""
        return self.select(
            [name for name, kind in zip(self.columns, self.blocks, strict=True) if kind == block]
        )


def summary_vectors(recording_set: RecordingSet) -> RecordingVectors:
    """Mean and standard deviation over events of each event feature, and events per second where
    there are samples.

    A recording without events of a kind has NaN in that kind's columns, and rate 0. Tables that
    were not released are left out.
    """
    kinds = [kind for kind in _KINDS if recording_set.has(kind)]
    if not kinds:
        raise DataError(
            "Summary vectors need a table of fixations or of saccades, and this release holds"
            " neither."
        )
    keys, cohort = recording_set.keys, recording_set.cohort
    lengths_s = None if cohort is None else np.array(durations_s(cohort))
    columns: list[str] = []
    parts: list[Floats] = []
    for kind in kinds:
        table = recording_set.table(kind)
        names, means, deviations, counts = _moments(kind, table, keys)
        columns += names
        parts += [means, deviations]
        if lengths_s is not None:
            columns.append(f"{kind}_rate")
            rate = np.where(lengths_s > 0, counts / np.maximum(lengths_s, 1e-9), np.nan)
            parts.append(rate[:, None])
    return RecordingVectors(keys, np.concatenate(parts, axis=1), tuple(columns))


def recording_table(recording_set: RecordingSet) -> FeatureTable:
    """A table with one row per recording; one without events has rates of 0 and nothing else.

    Columns are `fixation_duration_mean`, `fixation_duration_sd` and so on for every column of both
    tables, then `fixation_rate_hz`, `saccade_rate_hz` and `saccades_per_fixation`. NaN stands for
    the mean of no event and the deviation of fewer than two. Rates are events per second of
    fixations and saccades together: a release of tables has no samples to take the time from, and
    both sides of a comparison need one definition.
    """
    keys = recording_set.keys
    columns: list[str] = []
    parts: list[Floats] = []
    counts: list[Floats] = []
    time_s = np.zeros(len(keys))
    for kind in _KINDS:
        table = recording_set.table(kind)
        names, means, deviations, events = _moments(kind, table, keys)
        columns += names
        parts += [means, deviations]
        counts.append(events)
        if "duration" in table.columns:
            place = _rows_of(table, keys)
            known = (place >= 0) & ~np.isnan(table.column("duration"))
            np.add.at(time_s, place[known], table.column("duration")[known])
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = [np.where(n > 0, np.where(time_s > 0, n / time_s, np.nan), 0.0) for n in counts]
        per_fixation = np.where(counts[0] > 0, counts[1] / counts[0], np.nan)
    values = np.concatenate([*parts, np.stack([*rates, per_fixation], axis=1)], axis=1)
    columns += ["fixation_rate_hz", "saccade_rate_hz", "saccades_per_fixation"]
    index = [np.zeros(1, dtype=np.int64)] * len(keys)
    return FeatureTable(values, tuple(columns), Keys.of_recordings(keys, index))


def _moments(
    kind: str, table: FeatureTable, keys: Sequence[RecordingKey]
) -> tuple[list[str], Floats, Floats, Floats]:
    """Names of the columns of means and deviations, mean and standard deviation of every feature
    over the measured rows of each recording (NaN for none, the latter for one row), and rows of
    each.
    """
    place = _rows_of(table, keys)
    mine = place >= 0
    place, values = place[mine], table.values[mine]

    def summed(rows: Floats | Bools) -> Floats:
        # The sums of np.add.at, three times as fast.
        return np.stack([np.bincount(place, column, len(keys)) for column in rows.T], axis=1)

    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    n, total = summed(known), summed(filled)
    mean = np.where(n > 0, total / np.maximum(n, 1), np.nan)
    # Deviations are taken from the mean, not from the sum of squares: positions and velocities
    # would cancel there.
    squares = summed(np.where(known, filled - mean[place], 0.0) ** 2)
    deviation = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)
    names = [f"{kind}_{name}_{moment}" for moment in ("mean", "sd") for name in table.columns]
    return names, mean, deviation, np.bincount(place, minlength=len(keys)).astype(np.float64)


def _rows_of(table: FeatureTable, keys: Sequence[RecordingKey]) -> Ints:
    """Which recording each row of a table belongs to; -1 for none of them."""
    at = {key: i for i, key in enumerate(keys)}
    place = np.full(len(table), -1, dtype=np.int64)
    for key, rows in table.recordings().items():
        place[rows] = at.get(key, -1)
    return place
