"""One vector per recording: what attackers that look at whole recordings compare.

`narrow` is the mean and the standard deviation over events of the fixation and saccade features
(George and Routray 2016), and the rates of events; it needs tables only, so it also reads releases
that hold no samples. `wide` (:mod:`gazeveil.attacks.identify.extended`) and `path`
(:mod:`gazeveil.attacks.identify.path`) need samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable

#: Kinds of vectors.
FEATURES = ("narrow", "wide", "path")

#: (person, stimulus, session, task).
Key: TypeAlias = tuple[str, str, str, str]

#: The tables of events that narrow vectors read.
_TABLES = ("fixation", "saccade")


# Attackers with and without a front end ask for the vectors of the same material: they are made
# once, and forgotten with it.
_KEPT: WeakKeyDictionary[RecordingSet, dict[str, Vectors]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Vectors:
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

    keys: tuple[Key, ...]
    values: NDArray[np.float64] = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    blocks: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "blocks", tuple(self.blocks) or ("all",) * len(self.columns))
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(self.keys), len(self.columns)):
            raise DataError(
                f"Vectors need shape {(len(self.keys), len(self.columns))} (recordings, features)."
                f" Got {values.shape}."
            )
        if len(self.blocks) != len(self.columns):
            raise DataError(
                f"Vectors need one block name per column, {len(self.columns)}. Got"
                f" {len(self.blocks)}."
            )
        values[np.isinf(values)] = np.nan
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def persons(self) -> NDArray[np.str_]:
        """Whose each row is."""
        return np.array([key[0] for key in self.keys], dtype=np.str_)

    @property
    def stimuli(self) -> NDArray[np.str_]:
        """What each row's person saw."""
        return np.array([key[1] for key in self.keys], dtype=np.str_)

    def where(self, rows: ArrayLike) -> Vectors:
        """The rows a boolean mask or an index array picks."""
        places = np.arange(len(self))[np.asarray(rows)]
        return Vectors(
            tuple(self.keys[i] for i in places.tolist()),
            self.values[places],
            self.columns,
            self.blocks,
        )

    def select(self, columns: Sequence[str]) -> Vectors:
        """Some columns, in the order asked for."""
        at = {name: i for i, name in enumerate(self.columns)}
        places = [at[name] for name in columns]
        return Vectors(
            self.keys, self.values[:, places], tuple(columns), tuple(self.blocks[i] for i in places)
        )

    def of_block(self, block: str) -> Vectors:
        """The columns of one kind."""
        return self.select(
            [name for name, kind in zip(self.columns, self.blocks, strict=True) if kind == block]
        )


_MODULES = {"wide": "gazeveil.attacks.identify.extended", "path": "gazeveil.attacks.identify.path"}


def recording_vectors(recording_set: RecordingSet, features: str = "narrow") -> Vectors:
    """Vectors of the recordings of a recording set, in the order of `recording_set.keys`.

    Parameters
    ----------
    recording_set : RecordingSet
        Samples or tables.
    features : {"narrow", "wide", "path"}
        Means and standard deviations of event features; about 250 features; or the path of 0.2 s
        averages of position.

    Raises
    ------
    DataError
        If the recording set lacks what the features are made of.
    """
    checks.one_of("recording_vectors", "features", features, FEATURES)
    kept = _KEPT.setdefault(recording_set, {})
    if features not in kept:
        if features == "narrow":
            kept[features] = narrow(recording_set)
        elif recording_set.cohort is None:
            raise DataError(
                f"{features.capitalize()} vectors need samples, and this release holds tables only."
                " Use features='narrow'."
            )
        else:
            kept[features] = import_module(_MODULES[features]).vectors(recording_set)
    return kept[features]


def narrow(recording_set: RecordingSet) -> Vectors:
    """Mean and standard deviation over events of each event feature, and events per second where
    there are samples.

    A recording without events of a kind has NaN in that kind's columns, and rate 0. Tables that
    were not released are left out.
    """
    kinds = [name for name in _TABLES if recording_set.has(name)]
    if not kinds:
        raise DataError(
            "Narrow vectors need a table of fixations or of saccades, and this release holds"
            " neither."
        )
    keys = recording_set.keys
    at = {key: i for i, key in enumerate(keys)}
    columns: list[str] = []
    parts: list[NDArray[np.float64]] = []
    durations = (
        None
        if recording_set.cohort is None
        else np.array([r.duration_s for r in recording_set.cohort])
    )
    for kind in kinds:
        table = recording_set.table(kind)
        means, deviations, counts = _moments(table, at)
        columns += [f"{kind}_{name}_mean" for name in table.columns] + [
            f"{kind}_{name}_sd" for name in table.columns
        ]
        parts += [means, deviations]
        if durations is not None:
            columns.append(f"{kind}_rate")
            parts.append(
                np.where(durations > 0, counts / np.maximum(durations, 1e-9), np.nan)[:, None]
            )
    return Vectors(keys, np.concatenate(parts, axis=1), tuple(columns))


def _moments(
    table: FeatureTable, at: dict[Key, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of every column over the measured rows of each recording (NaN for
    none, the latter for one row), and rows of each.
    """
    place = np.full(len(table), -1, dtype=np.int64)
    for key, rows in table.recordings().items():
        place[rows] = at.get(key, -1)
    mine = place >= 0
    place, values = place[mine], table.values[mine]
    shape = (len(at), values.shape[1])
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    n, total = np.zeros(shape), np.zeros(shape)
    np.add.at(n, place, known)
    np.add.at(total, place, filled)
    mean = np.where(n > 0, total / np.maximum(n, 1), np.nan)
    # Deviations are taken from the mean, not from the sum of squares: positions and velocities
    # would cancel there.
    squares = np.zeros(shape)
    np.add.at(squares, place, np.where(known, filled - mean[place], 0.0) ** 2)
    deviation = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)
    return mean, deviation, np.bincount(place, minlength=len(at)).astype(np.float64)
