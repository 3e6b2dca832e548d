"""Tables of a recording set; large ones lie in a scratch file until somebody looks at them.

Attackers look at a table a few times in a study and at their own vectors in between: with a
thousand people the tables of the sets that one of them holds would fill more memory than all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import frozen
from gazeveil.features.table import KEYS, FeatureTable, Keys
from gazeveil.gaze import scratch
from gazeveil.gaze.scratch import ScratchFile

# Where an array begins in a file, its shape and its type.
_Place = tuple[int, tuple[int, ...], np.dtype[Any]]


class TableShelf(MutableMapping[str, FeatureTable]):
    """Tables by name. Those it begins with stay in memory; one that is put in later stays there if
    it is not above :data:`gazeveil.gaze.scratch.IN_MEMORY` bytes.
    """

    def __init__(self, tables: Mapping[str, FeatureTable]) -> None:
        self._held: dict[str, FeatureTable | _TableAside] = (
            dict(tables._held) if isinstance(tables, TableShelf) else dict(tables)
        )
        # A table that somebody holds is not read a second time.
        self._read: WeakValueDictionary[str, FeatureTable] = WeakValueDictionary()

    def __setitem__(self, name: str, table: FeatureTable) -> None:
        arrays = (table.values, *(table.keys[key] for key in KEYS))
        size = sum(array.nbytes for array in arrays)
        self._held[name] = _TableAside(table) if size > scratch.IN_MEMORY else table
        self._read[name] = table

    def take(self, name: str, other: TableShelf) -> None:
        """The same table as another shelf has, wherever it lies."""
        self._held[name] = other._held[name]

    def __getitem__(self, name: str) -> FeatureTable:
        held = self._held[name]
        if isinstance(held, FeatureTable):
            return held
        table = self._read.get(name)
        if table is None:
            table = self._read[name] = held.read()
        return table

    def __delitem__(self, name: str) -> None:
        del self._held[name]
        self._read.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __len__(self) -> int:
        return len(self._held)

    # Another process gets the tables themselves: it may be on another machine.
    def __reduce__(self) -> tuple[type[TableShelf], tuple[dict[str, FeatureTable]]]:
        return TableShelf, (dict(self),)


class _TableAside:
    """A table in a scratch file of its own."""

    def __init__(self, table: FeatureTable) -> None:
        self._file = ScratchFile()
        self._values = self._put(table.values)
        self._keys = {key: self._put(table.keys[key]) for key in KEYS}
        # All that has no row for each event.
        self._columns, self._bounds, self._counts = table.columns, table.bounds, table.counts
        self._annotations = table.annotations

    def read(self) -> FeatureTable:
        """The table as it was."""
        keys = Keys(**{key: self._array(place) for key, place in self._keys.items()})
        values = frozen(self._array(self._values))
        return FeatureTable(
            values, self._columns, keys, self._bounds, self._counts, self._annotations
        )

    def _put(self, array: NDArray[Any]) -> _Place:
        return self._file.put_array(array), array.shape, array.dtype

    def _array(self, place: _Place) -> NDArray[Any]:
        return self._file.read_array(*place)
