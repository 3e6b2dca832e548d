"""A FeatureTable: rows of numbers that say whose they are and between which public bounds they lie.

The bounds are public constants (physiology and tracker limits), never a dataset's own range; values
are not clipped to them here, that is the mechanism's first step. NaN means "not measured" and may
stand in tables that come from files; the features Gazeveil computes itself are always finite.
Infinity is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts, frozen, own_floats
from gazeveil.errors import DataError
from gazeveil.gaze.exchange import Tabular
from gazeveil.gaze.recording import KEY_NAMES, RecordingKey

if TYPE_CHECKING:
    import polars as pl

#: Names of the key columns.
KEYS = (*KEY_NAMES, "index")


class EmptyTableWarning(UserWarning):
    """A table of features has no row."""


@dataclass(frozen=True, eq=False)
class Keys:
    """Which recording each row comes from, and which event or window of it the row is.

    Parameters
    ----------
    person, stimulus, session, task : array of str, shape (rows,)
        The recording.
    index : array of int64, shape (rows,)
        Place of the event among the recording's events, or number of the window.
    """

    person: Texts
    stimulus: Texts
    session: Texts
    task: Texts
    index: Ints

    def __post_init__(self) -> None:
        for name in KEYS:
            values = np.asarray(getattr(self, name))
            column = np.array(values, dtype=np.int64 if name == "index" else np.str_)
            if column.ndim != 1:
                raise DataError(
                    f"Key column '{name}' of a FeatureTable needs one dimension. Got shape"
                    f" {column.shape}."
                )
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        lengths = {len(self[name]) for name in KEYS}
        if len(lengths) > 1:
            raise DataError(
                f"Key columns of a FeatureTable need one length. Got lengths {sorted(lengths)}."
            )

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        column: NDArray[np.generic] = getattr(self, checks.one_of("Keys", "name", name, KEYS))
        return column

    def where(self, rows: ArrayLike) -> Keys:
        """The rows a boolean mask or an index array picks."""
        picked = (
            np.asarray(rows) if len(np.atleast_1d(rows)) else np.empty(0, dtype=np.int64)
        )  # an empty list has no type
        return Keys(**{name: self[name][picked] for name in KEYS})

    @classmethod
    def of_recordings(cls, recordings: Sequence[RecordingKey], indices: Sequence[Ints]) -> Keys:
        """Keys of rows that come recording by recording: one (person, stimulus, session, task) and
        one array of indices per recording.
        """
        counts = [len(i) for i in indices]
        person, stimulus, session, task = (
            np.repeat(np.array([r[k] for r in recordings], dtype=np.str_), counts) for k in range(4)
        )
        return cls(
            person, stimulus, session, task, np.concatenate([*indices, np.empty(0, dtype=np.int64)])
        )


@dataclass(frozen=True, eq=False)
class FeatureTable(Tabular):
    """Rows of features with keys and public bounds; nothing in it can be changed in place.

    Parameters
    ----------
    values : array of float64, shape (rows, features)
        The numbers; NaN where not measured.
    columns : sequence of str
        One name per feature, all different.
    keys : Keys
        Whose rows they are.
    bounds : array of float64, shape (features, 2), optional
        Public lower and upper bound of each feature; None where they are not stated.
    counts : mapping of str to int
        What has no row, by reason (for instance events that are too short).
    annotations : mapping of str to array of float64, shape (rows,)
        What is known of each row and is no feature, such as what an annotator saw. Mechanisms,
        attackers and files do not get it.

    Examples
    --------
    >>> keys = Keys(["a", "b"], ["clip", "clip"], ["1", "1"], ["", ""], [0, 0])
    >>> table = FeatureTable([[0.2], [0.3]], ("duration",), keys, [[0.0, 5.0]])
    >>> table.select(people="b").values.tolist()
    [[0.3]]
    """

    values: Floats = field(repr=False)
    columns: tuple[str, ...]
    keys: Keys = field(repr=False)
    bounds: Floats | None = field(default=None, repr=False)
    counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    annotations: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "columns", tuple(self.columns))
        for name in self.columns:
            if not isinstance(name, str):
                checks.refuse("FeatureTable", "columns", "names (text)", name)
        if len(set(self.columns)) < len(self.columns):
            twice = next(n for n in self.columns if self.columns.count(n) > 1)
            raise DataError(
                f"Columns of a FeatureTable need different names. Got '{twice}' more than once."
            )
        values = np.ascontiguousarray(own_floats(self.values))
        shape = (len(self.keys), len(self.columns))
        if values.shape != shape:
            raise DataError(
                f"values of a FeatureTable need shape {shape} (rows of keys, columns). Got"
                f" {values.shape}."
            )
        if np.isinf(values).any():
            row, column = (int(i[0]) for i in np.nonzero(np.isinf(values)))
            raise DataError(
                f"Row {row} of feature '{self.columns[column]}' is infinite. Write NaN where a"
                " feature was not measured."
            )
        store(self, "values", frozen(values))
        if self.bounds is not None:
            bounds = np.array(self.bounds, dtype=np.float64, order="C")
            if bounds.shape != (len(self.columns), 2):
                raise DataError(
                    f"bounds of a FeatureTable need shape {(len(self.columns), 2)}. Got"
                    f" {bounds.shape}."
                )
            for name, (low, high) in zip(self.columns, bounds.tolist(), strict=True):
                _check_bound(name, (low, high))
            store(self, "bounds", frozen(bounds))
        store(self, "counts", MappingProxyType({str(k): int(v) for k, v in self.counts.items()}))
        store(self, "annotations", MappingProxyType(self._checked_annotations()))

    def _checked_annotations(self) -> dict[str, Floats]:
        checked = {
            str(name): frozen(np.array(column, dtype=np.float64))
            for name, column in self.annotations.items()
        }
        for name, column in checked.items():
            if column.shape != (len(self.keys),):
                raise DataError(
                    f"The annotation '{name}' of a FeatureTable needs one number per row,"
                    f" {len(self.keys)} in all. Got shape {column.shape}."
                )
        return checked

    # Pickling: mapping proxies cannot be pickled, and worker processes get tables.
    def __reduce__(self) -> tuple[type[FeatureTable], tuple[object, ...]]:
        plain = dict(self.counts), dict(self.annotations)
        return FeatureTable, (self.values, self.columns, self.keys, self.bounds, *plain)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        people, recordings = len(np.unique(self.keys.person)), len(self.recordings())
        bounds = "public bounds" if self.bounds is not None else "no bounds"
        return (
            f"FeatureTable({len(self)} rows, {len(self.columns)} features, {recordings} recordings,"
            f" {people} people, {bounds})"
        )

    def column(self, name: str) -> Floats:
        """The values of one feature."""
        return self.values[:, self._place("FeatureTable.column", name)]

    def bound(self, name: str) -> tuple[float, float]:
        """The public bounds of one feature.

        Raises
        ------
        DataError
            If the table has none.
        """
        place = self._place("FeatureTable.bound", name)
        if self.bounds is None:
            raise DataError(
                "This table has no public bounds. Give them with table.with_bounds({name: (low,"
                " high), ...})."
            )
        return float(self.bounds[place, 0]), float(self.bounds[place, 1])

    def with_bounds(self, bounds: Mapping[str, tuple[float, float]] | None) -> FeatureTable:
        """The same rows with other public bounds.

        Parameters
        ----------
        bounds : mapping of feature to (low, high), or None
            Features that are not named keep theirs; a table without bounds needs all of them. None
            takes the bounds away. Say only what is known without looking at the data: a range taken
            from the data is a secret of the data.
        """
        if bounds is None:
            return replace(self, bounds=None)
        if not isinstance(bounds, Mapping):
            checks.refuse(
                "FeatureTable.with_bounds", "bounds", "a mapping of feature to (low, high)", bounds
            )
        new = np.full((len(self.columns), 2), np.nan) if self.bounds is None else self.bounds.copy()
        for name, pair in bounds.items():
            new[self._place("FeatureTable.with_bounds", name)] = _check_bound(name, pair)
        left = [n for n, low in zip(self.columns, new[:, 0].tolist(), strict=True) if np.isnan(low)]
        if left:
            checks.refuse(
                "FeatureTable.with_bounds",
                "bounds",
                "a bound for every feature, because this table has none yet",
                dict(bounds),
                f"'{left[0]}' is missing.",
            )
        return replace(self, bounds=new)

    def where(self, rows: ArrayLike) -> FeatureTable:
        """The rows a boolean mask or an index array picks."""
        picked = (
            np.asarray(rows) if len(np.atleast_1d(rows)) else np.empty(0, dtype=np.int64)
        )  # an empty list has no type
        kept = {name: column[picked] for name, column in self.annotations.items()}
        return replace(
            self, values=frozen(self.values[picked]), keys=self.keys.where(picked), annotations=kept
        )

    def select(
        self,
        columns: Iterable[str] | str | None = None,
        people: Iterable[str] | str | None = None,
        stimuli: Iterable[str] | str | None = None,
    ) -> FeatureTable:
        """Some features, of some people, for some stimuli; features come in the order asked for.

        Raises
        ------
        ParameterError
            For a name that is not in the table.
        """
        rows = np.ones(len(self), dtype=np.bool_)
        for name, wanted, column in (
            ("people", people, self.keys.person),
            ("stimuli", stimuli, self.keys.stimulus),
        ):
            if wanted is None:
                continue
            known = set(np.unique(column).tolist())
            names = [checks.one_of("FeatureTable.select", name, n, known) for n in _listed(wanted)]
            rows &= np.isin(column, names)
        picked = self if rows.all() else self.where(rows)
        if columns is None:
            return picked
        places = [self._place("FeatureTable.select", c) for c in _listed(columns)]
        bounds = None if self.bounds is None else self.bounds[places]
        return FeatureTable(
            picked.values[:, places],
            tuple(self.columns[p] for p in places),
            picked.keys,
            bounds,
            self.counts,
            picked.annotations,
        )

    def drop(self, columns: Iterable[str] | str) -> FeatureTable:
        """The table without some features."""
        dropped = {self._place("FeatureTable.drop", c) for c in _listed(columns)}
        return self.select(columns=[n for p, n in enumerate(self.columns) if p not in dropped])

    def complete(self) -> FeatureTable:
        """The rows in which every feature was measured; the others
        are counted under `incomplete`.
        """
        whole = ~np.isnan(self.values).any(axis=1)
        counts = {
            **self.counts,
            "incomplete": self.counts.get("incomplete", 0) + int(np.count_nonzero(~whole)),
        }
        return replace(self.where(whole), counts=counts)

    def recordings(self) -> dict[RecordingKey, Ints]:
        """Row numbers of each recording (person, stimulus, session, task), in order of first
        appearance.
        """
        if len(self) == 0:
            return {}
        # A row starts a run where any key differs from the row before; runs of one recording are
        # then joined.
        parts = [self.keys[name] for name in KEY_NAMES]
        cut = np.zeros(len(self), dtype=np.bool_)
        cut[0] = True
        for part in parts:
            cut[1:] |= part[1:] != part[:-1]
        starts = np.flatnonzero(cut)
        ends = np.append(starts[1:], len(self))
        runs: dict[RecordingKey, list[Ints]] = {}
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
            person, stimulus, session, task = (str(part[a]) for part in parts)
            runs.setdefault((person, stimulus, session, task), []).append(np.arange(a, b))
        return {key: np.concatenate(rows) for key, rows in runs.items()}

    @classmethod
    def concat(cls, tables: Iterable[FeatureTable]) -> FeatureTable:
        """Tables with the same features one under the other; counts are added, annotations are kept
        where all have them.

        Raises
        ------
        DataError
            Without tables, or if features or bounds differ.
        """
        parts = list(tables)
        if not parts:
            raise DataError("FeatureTable.concat needs at least one table.")
        first = parts[0]
        counts: dict[str, int] = {}
        for part in parts:
            if part.columns != first.columns:
                differing = sorted(set(part.columns) ^ set(first.columns)) or ["their order"]
                raise DataError(
                    "FeatureTable.concat needs tables with the same features. They differ in"
                    f" {differing[0]}. Use select(columns=...) first."
                )
            same = (
                part.bounds is None
                if first.bounds is None
                else part.bounds is not None and np.array_equal(part.bounds, first.bounds)
            )
            if not same:
                raise DataError(
                    "FeatureTable.concat needs tables with the same public bounds. Use with_bounds"
                    " first."
                )
            for name, n in part.counts.items():
                counts[name] = counts.get(name, 0) + n
        keys = Keys(**{name: np.concatenate([p.keys[name] for p in parts]) for name in KEYS})
        values = np.concatenate([p.values for p in parts])
        annotations = {
            name: np.concatenate([p.annotations[name] for p in parts])
            for name in first.annotations
            if all(name in p.annotations for p in parts)
        }
        return cls(values, first.columns, keys, first.bounds, counts, annotations)

    def write(self, path: str | Path) -> Path:
        """Write the table with its bounds; the suffix `.parquet`, `.csv` or `.tsv` chooses the
        format.
        """
        from gazeveil.io.tables_file import TableParts, write_table

        keys = {name: self.keys[name] for name in KEYS}
        return write_table(
            TableParts(self.values, self.columns, keys, self.bounds, self.counts), path
        )

    @classmethod
    def read(cls, path: str | Path) -> FeatureTable:
        """Read what :meth:`write` wrote."""
        from gazeveil.io.tables_file import read_table_file

        parts = read_table_file(path)
        keys = Keys(**parts.keys)  # type: ignore[arg-type]
        return cls(parts.values, parts.columns, keys, parts.bounds, parts.counts)

    def to_polars(self) -> pl.DataFrame:
        """Key columns `person stimulus session task index`, then one column per feature, null where
        not measured. Bounds, counts and annotations are no columns.
        """
        from gazeveil.io.tables_file import table_frame

        return table_frame(self.values, self.columns, {name: self.keys[name] for name in KEYS})

    @classmethod
    def from_frame(
        cls, frame: object, bounds: Mapping[str, tuple[float, float]] | ArrayLike | None = None
    ) -> FeatureTable:
        """A table from a data frame, as :meth:`to_polars` makes one.

        Parameters
        ----------
        frame : polars, pandas or Arrow data frame
            The five key columns; every other column is a feature.
        bounds : mapping of feature to (low, high), or array of shape (features, 2), optional
            Public bounds. Say only what is known without looking at the data.

        Raises
        ------
        DataError
            In one sentence, for a missing key or a feature that is no number.

        Examples
        --------
        >>> keys = Keys(["a"], ["clip"], ["1"], [""], [0])
        >>> table = FeatureTable([[0.2]], ("duration",), keys, [[0.0, 5.0]])
        >>> again = FeatureTable.from_frame(table.to_polars(), {"duration": (0.0, 5.0)})
        >>> again.column("duration").tolist(), again.bound("duration")
        ([0.2], (0.0, 5.0))
        """
        from gazeveil.io.adapters.frames import table_parts

        parts = table_parts(frame)
        keys = Keys(**parts.keys)  # type: ignore[arg-type]
        if isinstance(bounds, Mapping):
            return cls(parts.values, parts.columns, keys).with_bounds(bounds)
        limits = None if bounds is None else np.asarray(bounds, dtype=np.float64)
        return cls(parts.values, parts.columns, keys, limits)

    def _place(self, owner: str, name: object) -> int:
        return self.columns.index(
            checks.one_of(
                owner, "columns" if owner.endswith("select") else "name", name, self.columns
            )
        )


def _listed(names: Iterable[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _check_bound(name: str, pair: object) -> tuple[float, float]:
    allowed = "two finite numbers, the lower one first"
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        checks.refuse("FeatureTable", f"bounds['{name}']", allowed, pair)
    low, high = (checks.number("FeatureTable", f"bounds['{name}']", v) for v in pair)
    if not low < high:
        checks.refuse("FeatureTable", f"bounds['{name}']", allowed, (low, high))
    return low, high
