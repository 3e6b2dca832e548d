"""One pass over a long table: its rows by role, parted into recordings and set aside.

A table of many recordings is parsed once, however many there are. The rows of each recording lie in
a scratch file as Arrow data, block by block; the file has no name and is gone with the process that
made it. Another process of the same machine reads the same file; on another machine the table is
parsed again.
"""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Ints
from gazeveil.gaze.facts import Doubt
from gazeveil.gaze.scratch import ScratchFile, ScratchReader
from gazeveil.io.parsing.table import Table, stamp
from gazeveil.io.plain.layout import Layout
from gazeveil.io.plain.roles import DEPTH_ROLES, GAZE_ROLES, KEY_ROLES, PUPIL_ROLES
from gazeveil.io.plain.rows import frame_of
from gazeveil.io.plain.survey import FileSurvey
from gazeveil.io.plain.text import sheets

#: Words of a recording in the columns of :data:`~gazeveil.io.plain.roles.KEY_ROLES`.
Part: TypeAlias = tuple[str, ...]

_NUMBERS = (*GAZE_ROLES, *DEPTH_ROLES, *PUPIL_ROLES, "confidence")


@dataclass(frozen=True)
class OnePass:
    """Rows of a file by role, block by block, with what a look at all of them finds."""

    path: Path
    layout: Layout
    survey: FileSurvey

    def blocks(self) -> Iterator[tuple[pl.DataFrame, list[tuple[Part, Ints]], dict[Part, int]]]:
        """Rows by role, the rows of each recording among them, and how many rows of each the
        option `rows` leaves out.
        """
        layout = self.layout
        types: dict[str, type[pl.DataType]]
        types = {n: pl.Float64 for r, n in layout.columns if r in _NUMBERS}
        clock = layout.column("t")
        if clock is not None:
            types |= {clock: pl.Int64 if layout.whole_times else pl.Float64}
        before = 0
        form = (layout.separator, layout.decimal, layout.comment if layout.comment_said else None)
        for sheet in sheets(self.path, *form, types, layout.table):
            frame = frame_of(sheet, layout, before)
            groups = sheet.groups(*(layout.column(r) for r in KEY_ROLES))
            kept = _kept(sheet, layout)
            left: dict[Part, int] = {}
            if kept is not None:
                left = {part: int(np.count_nonzero(~kept[rows])) for part, rows in groups}
                groups = [(part, rows[kept[rows]]) for part, rows in groups]
            if frame["t"].dtype == pl.Int64 and layout.column("t") is not None:
                self.survey.add(sheet.frame, frame["t"].to_numpy(), groups)
            before += len(sheet)
            yield frame, groups, left


def _kept(sheet: Table, layout: Layout) -> Bools | None:
    """The rows that the option `rows` asks for; None for all."""
    if not layout.rows:
        return None
    kept = np.ones(len(sheet), dtype=np.bool_)
    for column, word in layout.rows:
        cells = sheet.column(column).cast(pl.String).fill_null("").str.strip_chars()
        kept &= (cells == word).to_numpy()
    return kept


def whole(path: Path, layout: Layout) -> tuple[pl.DataFrame, int, list[Doubt]]:
    """All rows of a file that is one recording, how many rows are left out, and doubts."""
    table = OnePass(path, layout, FileSurvey(layout))
    frames, left_out = [], 0
    for frame, groups, left in table.blocks():
        frames.append(frame if not left else frame[groups[0][1]])
        left_out += sum(left.values())
    return pl.concat(frames), left_out, table.survey.doubts(path.name)


@dataclass(frozen=True)
class _Piece:
    """Rows of a recording in one block of a spool: the block's bytes, and which of its rows."""

    begin: int
    length: int
    first: int
    rows: int


@dataclass(frozen=True)
class Spooled:
    """One recording of a spool: the pieces of its rows, and how many rows were left out."""

    path: Path
    layout: Layout
    part: Part
    file: ScratchFile | ScratchReader
    name: str
    pieces: tuple[_Piece, ...]
    left_out: int = 0

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(piece.rows for piece in self.pieces)

    def frames(self) -> Iterator[pl.DataFrame]:
        """The rows, block by block."""
        here = self
        if isinstance(self.file, ScratchReader) and not Path(self.file.path).exists():
            # The process that made the spool is out of reach, on another machine say.
            here = spool(self.path, self.layout)[0][self.part]
        for piece in here.pieces:
            yield here._block(piece).slice(piece.first, piece.rows)

    def _block(self, piece: _Piece) -> pl.DataFrame:
        """A block; the last one is kept, because recordings of one block are asked for in turn."""
        global _held
        if _held is None or _held[:2] != (self.name, piece.begin):
            content = self.file.read(piece.begin, piece.length)
            _held = self.name, piece.begin, pl.read_ipc(io.BytesIO(content))
        return _held[2]


_held: tuple[str, int, pl.DataFrame] | None = None


def spool(path: Path, layout: Layout) -> tuple[Mapping[Part, Spooled], tuple[Doubt, ...]]:
    """The recordings of a table in order of their first rows, set aside, and doubts about all rows;
    kept until the next few tables, so that a table is parsed once.
    """
    return _spool(path, stamp(path), layout)


@lru_cache(maxsize=4)
def _spool(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> tuple[Mapping[Part, Spooled], tuple[Doubt, ...]]:
    file, name = _scratch(), uuid4().hex
    table = OnePass(path, layout, FileSurvey(layout))
    pieces: dict[Part, list[_Piece]] = {}
    left_out: dict[Part, int] = {}
    for frame, groups, left in table.blocks():
        order = np.concatenate([rows for _, rows in groups])
        if len(order) != frame.height or (np.diff(order) != 1).any():
            frame = frame[order]
        content = io.BytesIO()
        frame.write_ipc(content)
        begin, first = file.put(content.getbuffer()), 0
        for part, rows in groups:
            piece = _Piece(begin, content.getbuffer().nbytes, first, len(rows))
            pieces.setdefault(part, []).append(piece)
            left_out[part] = left_out.get(part, 0) + left.get(part, 0)
            first += len(rows)
    parts = {
        part: Spooled(path, layout, part, file, name, tuple(found), left_out[part])
        for part, found in pieces.items()
    }
    return parts, tuple(table.survey.doubts(path.name))


_last: weakref.ref[ScratchFile] | None = None


def _scratch() -> ScratchFile:
    """The scratch file in use, or a new one where the last is gone: tables that are read together
    share one, since open files are few.
    """
    global _last
    file = None if _last is None else _last()
    if file is None:
        file = ScratchFile()
        _last = weakref.ref(file)
    return file
