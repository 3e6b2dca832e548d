"""What a release of marginals takes for public about a table, and the table it makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.sequences.recordings import Sequences, task_of

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
