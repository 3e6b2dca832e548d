"""The columns of a table that a reader uses, as numbers and codes of words: of a large file the
text is in memory block by block and never at once (:mod:`gazeveil.io.parsing.blocks`).

A cell is parsed as it would be in the whole table. A cell that is no number is an error where the
column is asked for, as if it were parsed then, with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.parsing.blocks import is_cut, sheets
from gazeveil.io.parsing.delimited import KeyedTable, open_sheet
from gazeveil.io.parsing.table import UNIT_NS


def tables(path: Path, decimal: str | None) -> Iterator[KeyedTable]:
    """The file as one table, or in blocks if it is large."""
    empty = True
    if is_cut(path):
        for _, sheet in sheets(path, None, decimal, ""):
            empty = False
            yield sheet
    if empty:
        yield open_sheet(path, decimal=decimal)


@dataclass
class _Gathered:
    """One column while blocks come in."""

    parts: list[NDArray[Any]] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)
    error: FormatError | None = None

    def number(self, sheet: KeyedTable, name: str) -> None:
        if self.error is None:
            try:
                self.parts.append(sheet.table.floats(name))
            except FormatError as error:
                self.error, self.parts = error, []

    def time(self, sheet: KeyedTable, name: str, unit: str) -> None:
        if self.error is None:
            try:
                self.parts.append(sheet.table.times_ns(name, unit))
            except FormatError as error:
                self.error, self.parts = error, []

    def word(self, cells: pl.Series) -> None:
        for word in cells.unique(maintain_order=True).to_list():
            self.codes.setdefault(word, len(self.codes))
        coded = cells.replace_strict(self.codes, return_dtype=pl.Int32)
        self.parts.append(coded.to_numpy())


@dataclass(frozen=True)
class Columns:
    """Some columns of all rows.

    Parameters
    ----------
    header : KeyedTable
        Without rows: the names of all columns, those that are not kept too.
    rows : int
        How many there are.
    """

    header: KeyedTable
    rows: int
    _kept: dict[tuple[str, str], _Gathered]

    @classmethod
    def of(
        cls,
        found: Iterator[KeyedTable],
        choose: Callable[[Sequence[str]], Mapping[str, Sequence[str]]],
    ) -> Columns:
        """Gather columns of tables, of which there is one at least.

        Parameters
        ----------
        found : iterator of KeyedTable
            The rows of a file, in order.
        choose : callable
            From the names of all columns those to keep as `number`, `word`, `written` (whether
            there is a word at all), or as times in a unit: `s`, `ms`, `us`, `100ns` or `ns`.
        """
        first = next(found)
        wanted = choose(first.table.names)
        kept: dict[tuple[str, str], _Gathered] = {
            (kind, name): _Gathered() for kind, names in wanted.items() for name in names
        }
        header, rows = _without_rows(first), 0
        for sheet in chain([first], found):
            rows += len(sheet)
            for (kind, name), column in kept.items():
                if kind == "number":
                    column.number(sheet, name)
                elif kind in UNIT_NS:
                    column.time(sheet, name, kind)
                else:
                    cells = sheet.table.column(name).fill_null("").str.strip_chars()
                    if kind == "word":
                        column.word(cells)
                    else:
                        column.parts.append(cells.ne("").to_numpy())
        for column in kept.values():
            if len(column.parts) > 1:
                column.parts = [np.concatenate(column.parts)]
        return cls(header, rows, kept)

    def __len__(self) -> int:
        return self.rows

    def has(self, kind: str, name: str) -> bool:
        """Whether a column was kept as that."""
        return (kind, name) in self._kept

    def _one(self, kind: str, name: str) -> NDArray[Any]:
        column = self._kept[kind, name]
        if column.error is not None:
            raise column.error
        if not column.parts:
            return np.empty(0, dtype=np.int32 if kind == "word" else np.float64)
        return column.parts[0]

    def floats(self, name: str) -> Floats:
        """A column as numbers, NaN where missing."""
        result: Floats = np.asarray(self._one("number", name), dtype=np.float64)
        return result

    def times_ns(self, name: str, unit: str) -> Ints:
        """A column that was kept as times in a unit, in nanoseconds."""
        result: Ints = np.asarray(self._one(unit, name), dtype=np.int64)
        return result

    def written(self, name: str) -> Bools:
        """Where a column has a word."""
        result: Bools = np.asarray(self._one("written", name), dtype=np.bool_)
        return result

    def words(self, name: str) -> pl.Series:
        """A column as stripped text, empty where nothing is written."""
        codes = self._one("word", name)
        known = pl.Series(list(self._kept["word", name].codes), dtype=pl.String)
        return known.gather(pl.Series(codes, dtype=pl.UInt32))

    def groups(self, *columns: str | None) -> dict[tuple[str, ...], Ints]:
        """Rows that share the words in some columns, in order of first appearance; None stands for
        a column of empty words.
        """
        names = {f"{i}": name for i, name in enumerate(columns) if name is not None}
        if not self.rows or not names:
            return {tuple("" for _ in columns): np.arange(self.rows, dtype=np.int64)}
        frame = pl.DataFrame({i: self._one("word", name) for i, name in names.items()})
        grouped = frame.with_row_index("row").group_by(list(names), maintain_order=True)
        found = grouped.agg(pl.col("row"))
        known = {i: list(self._kept["word", name].codes) for i, name in names.items()}
        result = {}
        codes = found.select(list(names)).rows(named=True)
        for record, rows in zip(codes, found["row"], strict=True):
            said = {i: known[i][code] for i, code in record.items()}
            part = tuple(said.get(f"{i}", "") for i in range(len(columns)))
            result[part] = rows.to_numpy().astype(np.int64)
        return result


def _without_rows(sheet: KeyedTable) -> KeyedTable:
    table = sheet.table
    return replace(sheet, table=replace(table, frame=table.frame.clear(), lines=""))
