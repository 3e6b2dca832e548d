"""Rows to learn a class from: whose they are, of which recording, of which class, and which half of
the recording they lie in.

The class of a recording follows one rule (:func:`class_of`). By `stimulus` it is the stimulus's
name without the number at its end: `comic-1` and `comic_12` are `comic`, `textbook` is itself, and
a name that is nothing but a number stays as it is. By `task` it is the recording's task, and the
class by stimulus where no task is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import RecordingKey

#: Where the class of a recording is written.
LABELS = ("stimulus", "task")

_NUMBER = re.compile(r"[\s._-]*[0-9]+$")


def class_of(key: RecordingKey, label: str) -> str:
    """The class of a recording.

    Examples
    --------
    >>> key = ("p1", "comic-12", "1", "reading")
    >>> class_of(key, "stimulus"), class_of(key, "task")
    ('comic', 'reading')
    """
    if label == "task" and key[3]:
        return key[3]
    return _NUMBER.sub("", key[1]) or key[1]


def class_by(label: str) -> Callable[[RecordingKey, Ints], str]:
    """The class of a recording (:func:`class_of`) in the form :func:`rows_of` wants."""
    return lambda key, index: class_of(key, label)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a class.

    Parameters
    ----------
    values : array of float64, shape (rows, features)
        Features; NaN where not measured.
    columns : tuple of str
        Their names.
    labels, persons : array of str, shape (rows,)
        Class and person.
    recordings : array of int64, shape (rows,)
        Number of the recording.
    """

    values: Floats
    columns: tuple[str, ...]
    labels: Texts
    persons: Texts
    recordings: Ints

    def __len__(self) -> int:
        return len(self.values)

    def where(self, rows: ArrayLike) -> Rows:
        """The rows a boolean mask or an index array picks."""
        r = np.asarray(rows)
        return Rows(
            self.values[r], self.columns, self.labels[r], self.persons[r], self.recordings[r]
        )


def rows_of(
    table: FeatureTable,
    label: Callable[[RecordingKey, Ints], str | Texts],
    every: int = 1,
    part: Callable[[RecordingKey, Ints], Bools] | None = None,
) -> Rows:
    """The rows of a table that have a class and at least one measured feature.

    Parameters
    ----------
    table : FeatureTable
        Any table.
    label : callable
        The class of a recording, or of each of its rows, from its key and the rows' indices; an
        empty word for none.
    every : int
        Keep every n-th row of each recording, from the first on.
    part : callable, optional
        Which rows of a recording to keep before that, from its key and the rows' indices.
    """
    empty = np.empty(0, dtype=np.int64)
    picked: list[Ints] = [empty]
    labels: list[str] = []
    persons: list[str] = []
    recordings: list[Ints] = [empty]
    for number, (key, rows) in enumerate(table.recordings().items()):
        kept = rows[np.argsort(table.keys.index[rows], kind="stable")]
        if part is not None:
            kept = kept[part(key, table.keys.index[kept])]
        kept = kept[::every]
        classes = np.broadcast_to(
            np.asarray(label(key, table.keys.index[kept]), dtype=np.str_), kept.shape
        )
        good = (classes != "") & ~np.isnan(table.values[kept]).all(axis=1)
        picked.append(kept[good])
        labels += classes[good].tolist()
        persons += [key[0]] * int(good.sum())
        recordings.append(np.full(int(good.sum()), number))
    return Rows(
        table.values[np.concatenate(picked)],
        table.columns,
        np.array(labels, dtype=np.str_),
        np.array(persons, dtype=np.str_),
        np.concatenate(recordings),
    )


class HalfSplit:
    """Where the first half of every recording ends, by the number of its windows as recorded: a
    release may have more or fewer.

    Parameters
    ----------
    raw : RecordingSet
        As recorded; its windows say where the middle is. Recordings it does not have are cut in the
        middle of their own windows.
    gap : bool
        Leave out of the second half the windows that share samples with the first.
    """

    def __init__(self, raw: RecordingSet, gap: bool) -> None:
        table = raw.windows
        self.lengths = {
            key: int(table.keys.index[rows].max()) + 1 for key, rows in table.recordings().items()
        }
        p = raw.pipeline
        # Window i covers [i step, i step + window): the last one of the first half reaches into the
        # next ceil(window / step) - 1 starts.
        self.shared = math.ceil(p.window_s / p.step_s - 1e-9) - 1 if gap else 0

    def _middle(self, key: RecordingKey, index: Ints) -> int:
        return self.lengths.get(key, int(index.max()) + 1 if len(index) else 0) // 2

    def first(self, key: RecordingKey, index: Ints) -> Bools:
        """Windows of the first half."""
        return index < self._middle(key, index)

    def second(self, key: RecordingKey, index: Ints) -> Bools:
        """Windows of the second half."""
        return index >= self._middle(key, index) + self.shared


def aligned(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    """Both with the features they share, in the order of the training rows.

    Raises
    ------
    DataError
        If they share none.
    """
    if train.columns == test.columns:
        return train, test
    common = [name for name in train.columns if name in test.columns]
    if not common:
        raise DataError(
            "The tables to train and to test on have no feature in common. Release the same"
            " features on both sides."
        )
    sides = []
    for rows in (train, test):
        places = [rows.columns.index(name) for name in common]
        sides.append(
            Rows(rows.values[:, places], tuple(common), rows.labels, rows.persons, rows.recordings)
        )
    return sides[0], sides[1]
