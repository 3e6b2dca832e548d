"""Histograms of a table's features in which every person weighs the same, and samples of them.

What a release of marginals takes for public about a table, and the table it makes of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.sequences.recordings import Sequences, task_of

#: Parts of the weight 1 that each person has in a histogram.
PARTS = 1 << 16


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows of a table with the numbers of their people and tasks.

    Parameters
    ----------
    person, task : array of int64, shape (rows,)
        Whose, and of which task.
    codes : array of int64, shape (rows, features)
        Bins; -1 where not measured.
    people, tasks : int
        How many there are.
    """

    person: Ints
    task: Ints
    codes: Ints
    people: int
    tasks: int

    @classmethod
    def of(cls, seqs: Sequences, codes: Ints, people: list[str], tasks: list[str]) -> BinnedRows:
        """The rows of a table, recording by recording."""
        person, task = ({name: i for i, name in enumerate(names)} for names in (people, tasks))
        whose = np.repeat([person[key[0]] for key in seqs.keys], seqs.lengths)
        which = np.repeat([task[task_of(key)] for key in seqs.keys], seqs.lengths)
        return cls(whose, which, codes[seqs.order], len(people), len(tasks))

    def weights(self, bins: int) -> Ints:
        """Histograms in which each person weighs at most :data:`PARTS`, shape (tasks, features,
        bins): whole numbers, rounded down.
        """
        features = self.codes.shape[1]
        total = np.zeros((self.tasks, features, bins), dtype=np.int64)
        order = np.argsort(self.person, kind="stable")
        ends = np.cumsum(np.bincount(self.person, minlength=self.people))
        for mine in np.split(order, ends[:-1]):
            codes, task = self.codes[mine], self.task[mine]
            place = (task[:, None] * features + np.arange(features)) * bins + codes
            own = np.bincount(place[codes >= 0], minlength=total.size).reshape(total.shape)
            total += own * PARTS // np.maximum(own.sum(axis=2, keepdims=True), 1)
        return total


def bin_codes(values: Floats, low: Floats, high: Floats, bins: int) -> Ints:
    """Bin of each value, min(B - 1, floor(B (x - low) / (high - low))), clamped; bin 0 where low
    equals high; -1 for NaN.
    """
    width = high - low
    with np.errstate(invalid="ignore"):
        scaled = np.divide(
            bins * (values - low),
            width,
            out=np.zeros_like(values),
            where=np.broadcast_to(width > 0, values.shape),
        )
        floored = np.clip(np.floor(scaled), 0, bins - 1)
    return np.where(np.isnan(values), -1, floored).astype(np.int64)


def histograms(codes: Ints, bins: int) -> Floats:
    """Counts per feature and bin, shape (features, bins)."""
    features = codes.shape[1]
    return (
        np.bincount((codes + np.arange(features) * bins).ravel(), minlength=features * bins)
        .reshape(features, bins)
        .astype(np.float64)
    )


def on_simplex(values: Floats) -> Floats:
    """The nearest probabilities, along the last axis (Held, Wolfe and Crowder 1974)."""
    falling = -np.sort(-values, axis=-1)
    over = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    last = (falling > over).sum(axis=-1, keepdims=True) - 1
    kept = np.maximum(values - np.take_along_axis(over, last, axis=-1), 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)


def sample_bins(pmf: Floats, rows: int, draw: np.random.Generator) -> Ints:
    """Independent bins for each feature, shape (rows, features)."""
    features, bins = pmf.shape
    out = np.empty((rows, features), dtype=np.int64)
    for feature in range(features):
        steps = np.cumsum(pmf[feature])
        # A last step below 1 by rounding must not open a bin of probability 0.
        steps[np.flatnonzero(pmf[feature])[-1] :] = 1.0
        out[:, feature] = np.searchsorted(steps, draw.random(rows), side="right")
    return np.minimum(out, bins - 1)


def inside(codes: Ints, low: Floats, high: Floats, bins: int, draw: np.random.Generator) -> Floats:
    """A uniform value inside each bin."""
    width = (high - low) / bins
    values: Floats = low + (codes + draw.random(codes.shape)) * width
    return np.clip(values, low + codes * width, np.minimum(low + (codes + 1) * width, high))


#: Stimulus, session and task.
Cell: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class PublicShape:
    """What is taken for public about a table.

    Parameters
    ----------
    people, tasks : list of str
        Sorted.
    cells : list of (stimulus, session, task)
        Sorted.
    most_tasks : int
        The largest number of tasks any person has.
    length, features : int
        Rows of each synthetic recording, and its columns.
    """

    people: list[str]
    tasks: list[str]
    cells: list[Cell]
    most_tasks: int
    length: int
    features: int

    @classmethod
    def of(cls, seqs: Sequences, length: int | None) -> PublicShape:
        """Of a table; without a length the longest recording's is taken."""
        tasks: dict[str, set[str]] = {}
        for key in seqs.keys:
            tasks.setdefault(key[0], set()).add(task_of(key))
        return cls(
            sorted(seqs.people),
            sorted(set.union(*tasks.values())),
            sorted({key[1:] for key in seqs.keys}),
            max(len(own) for own in tasks.values()),
            int(seqs.lengths.max()) if length is None else length,
            len(seqs.table.columns),
        )

    @property
    def candidates(self) -> int:
        """Synthetic vectors of all tasks."""
        return len(self.people) * len(self.cells) * self.length


def under_pseudonyms(
    table: FeatureTable, shape: PublicShape, synthetic: Mapping[Cell, Floats]
) -> FeatureTable:
    """Synthetic vectors of each cell, shape (people, length, features), under pseudonyms."""
    people = len(shape.people)
    names = [f"synthetic-{i + 1:0{len(str(people))}}" for i in range(people)]
    keys = Keys.of_recordings(
        [(name, *cell) for name in names for cell in shape.cells],
        [np.arange(shape.length, dtype=np.int64)] * (people * len(shape.cells)),
    )
    stacked = np.stack([synthetic[cell] for cell in shape.cells], axis=1)
    return FeatureTable(stacked.reshape(-1, shape.features), table.columns, keys, table.bounds)
