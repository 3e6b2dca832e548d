"""Any delimited text with a time and a gaze column: CSV, TSV, semicolons, with a column map and
units.

Common column names are recognised (`t`, `time`, `timestamp`; `x`, `gaze_x`, `left_x`, ...), with or
without a unit in the name (`t_ms`, `x_deg`, `gaze x [px]`, `timestamp [ns]`). A name that says gaze
goes before one that does not: `x` and `y` beside `gaze_x` and `gaze_y`, or beside those of the
eyes, are a target or a mouse and not read. Where two columns fit the time or gaze equally (`t_ms`
and `timestamp_ms`, `x` and `pos_x`), `columns=` is asked for. A column or a unit that no name and
no option says is guessed where the values allow one answer alone, with a warning that says the
guess (:mod:`gazeveil.io.description.guess`), and asked for otherwise; a name that says a unit which
is not read (`x_cm`, `x_arcmin`, `time_min`) is refused. Rows of several people or stimuli in one
file give one recording each, in order of first appearance.

A column of validity (`valid`, `validity`, `left_valid`, ...) has 1, yes, true or valid where a
sample is valid and 0, no, false, invalid or nothing where it is lost. Tobii's codes, of which 0 is
valid, have to be written so first: a column that calls nearly all samples that have gaze lost is
pointed out, and codes above 1 are refused.

A file of more than 32 MiB (4 MiB zipped) is read in blocks of 4 MiB: its text is never in memory at
once, and of its rows those of one recording alone.

Options
-------
columns : mapping of role to column name; the roles are the keys of
    :data:`gazeveil.io.csv_layout.ROLES`
time_unit : `s`, `ms`, `us`, `ns`, `100ns`; `frame`, with `frame_interval_s`
rate_hz : samples per second; gives the times where no column has them
frame_interval_s : seconds per frame where the time column counts frames: a number, a mapping of
    stimulus to number, or a JSON file of one
unit : one of :data:`gazeveil.io.csv_layout.UNITS`; `vector` is a direction of three components,
    x right, y up, z forward, of any length (`vector-openxr`: z backward); one of no length is lost
y_axis : `down` (default; of directions `up`) or `up`, where the file's y grows upwards
space : `screen` or `sphere`, for degrees, radians and fractions
screen : the :class:`~gazeveil.gaze.geometry.Screen` that pixels and fractions are of
assumed : true where that screen is a guess
panorama : (width_px, height_px) of the equirectangular picture, for `unit="equirect"`
missing : a number that stands for a lost sample (or several), such as -1
separator, decimal, comment : as the file has them; found from it where not given; comments begin
    with `#`
person, stimulus, session, task, pattern : see :mod:`gazeveil.io.parsing.naming`

Files with the columns `target_id`, `tar_x`, `tar_y` are validation data as ETDQualitizer
(Niehorster et al.) lays them out: times in milliseconds, pixels from the centre of the screen. They
are read without options on the screen of its published example, and `metadata["assumed_geometry"]`
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from gazeveil.arrays import Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.csv_layout import (
    LAYOUT_OPTIONS,
    Layout,
    comment_of,
    has_gaze,
    plan_layout,
    recognise,
    separator_of,
)
from gazeveil.io.csv_rows import GazeRows, recording_of
from gazeveil.io.description.guess import Guess, guess_columns, guess_layout
from gazeveil.io.description.peek import FirstRows
from gazeveil.io.parsing.blocks import BlockPlace, is_cut, sheets
from gazeveil.io.parsing.delimited import KeyedTable, header_cells, key, open_sheet, stamp
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import listed
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_bytes


def sniff(head: Head) -> bool:
    """Delimited text with a recognisable time, x and y."""
    cells = header_cells(head)
    roles = recognise(cells)
    # A first row of numbers is no header, however many separators it has.
    return len(cells) >= 3 and "t" in roles and has_gaze(roles)


def why_not(head: Head, options: Mapping[str, object], guessing: bool) -> str:
    """Why a file is not of this format under these options; an empty text where it is. `guessing`
    allows columns of other names than those of `options`.
    """
    rows = FirstRows.of(head, options)
    if not rows.is_headed:
        return (
            "its first line has numbers where the names of columns should be"
            if len(rows.names) >= 3 and rows.cells
            else "not a table whose first line names its columns"
        )
    said = options.get("columns")
    chosen = {str(k): str(v) for k, v in said.items()} if isinstance(said, Mapping) else {}
    present = {key(n) for n in rows.names}
    missing = next((c for c in chosen.values() if key(c) not in present), None)
    if missing is not None:
        return f"there is no column '{missing}'"
    timed = options.get("rate_hz") is not None
    roles = {**recognise(rows.names), **chosen}
    if guessing:
        roles |= guess_columns(rows, roles, timed)
    if "t" not in roles and not timed:
        return f"no column of times among {listed(rows.names)}"
    return "" if has_gaze(roles) else f"no columns of gaze among {listed(rows.names)}"


def complete(files: Sequence[Path], options: Mapping[str, object]) -> Guess:
    """What the options and the names leave open and the values decide."""
    return guess_layout(files, options)


def describe(path: Path, options: Mapping[str, object]) -> dict[str, object]:
    """Columns, units and separator of a file, from the options and its own names."""
    rows = FirstRows.of(Head.of(path), options)
    layout = plan_layout(path, _column_names(path, options), options)
    return {
        "columns": dict(layout.columns),
        "time_unit": layout.time_unit,
        "unit": layout.unit,
        "separator": rows.separator,
    }


@lru_cache(maxsize=1)
def _open(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> tuple[KeyedTable, dict[tuple[str, ...], Ints]]:
    """The file and its rows by person, stimulus, session and task; kept until the next file, so
    that it is parsed once.
    """
    sheet = open_sheet(path, layout.separator, layout.decimal, layout.comment)
    return sheet, dict(_groups(sheet, layout))


def load(path: Path, names: Names, part: tuple[str, ...] | None, layout: Layout) -> Recording:
    """One recording of the file."""
    if _is_cut(path, layout):
        pieces = list(_large_rows(path, part, layout))
        return recording_of(path, names, layout, GazeRows.joined(pieces))
    sheet, parts = _open(path, stamp(path), layout)
    rows = parts[part] if part is not None else None
    return recording_of(path, names, layout, GazeRows.of(sheet, rows, layout))


def _is_cut(path: Path, layout: Layout) -> bool:
    """Whether a file is read in blocks; clocks that count from their smallest time are not."""
    return layout.time_unit != "100ns" and is_cut(path)


def _large_rows(path: Path, part: tuple[str, ...] | None, layout: Layout) -> Iterator[GazeRows]:
    """The rows of one recording of a large file, block by block."""
    wanted = None if part is None else _large_parts(path, stamp(path), layout)[part]
    before = 0
    for _, sheet in sheets(path, layout.separator, layout.decimal, layout.comment, wanted):
        rows = None if part is None else dict(_groups(sheet, layout)).get(part)
        if part is None or rows is not None:
            found = GazeRows.of(sheet, rows, layout, before).placed(layout)
            before += len(found)
            yield found


@lru_cache(maxsize=4)
def _large_parts(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> dict[tuple[str, ...], list[BlockPlace]]:
    """The recordings of a large file, and the blocks that hold rows of each."""
    found: dict[tuple[str, ...], list[BlockPlace]] = {}
    for place, sheet in sheets(path, layout.separator, layout.decimal, layout.comment):
        for part, _ in _groups(sheet, layout):
            found.setdefault(part, []).append(place)
    return found


def _groups(sheet: KeyedTable, layout: Layout) -> list[tuple[tuple[str, ...], Ints]]:
    return sheet.groups(*(layout.column(r) for r in KEY_NAMES))


def chunks(
    path: Path, names: Names, part: tuple[str, ...] | None, layout: Layout, size: int
) -> Iterator[Recording]:
    """The recording in pieces of at most `size` samples; space and rate are those of the first."""
    first: Recording | None = None
    for rows in _large_rows(path, part, layout):
        piece = recording_of(path, names, layout, rows, None if first is None else first.space)
        first = piece if first is None else first
        for start in range(0, max(len(piece), 1), size):
            yield piece.slice(start, start + size).with_(rate_hz=first.rate_hz)


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file, or per person, stimulus, session and task that its rows name."""
    naming = naming_options(**options)
    layout = plan_layout(path, _column_names(path, options), options)
    parts: Iterable[tuple[str, ...] | None] = [None]
    large = _is_cut(path, layout)
    if any(layout.column(r) is not None for r in KEY_NAMES):
        open_parts = _large_parts if large else _open_parts
        parts = open_parts(path, stamp(path), layout)
    handles = []
    for part in parts:
        names = naming.names(path, root, **dict(zip(KEY_NAMES, part or (), strict=False)))
        handle = names.handle(partial(load, path, names, part, layout), path)
        if large:
            handle = replace(handle, chunks=partial(chunks, path, names, part, layout))
        handles.append(handle)
    return handles


def _open_parts(path: Path, at: tuple[int, int], layout: Layout) -> dict[tuple[str, ...], Ints]:
    return _open(path, at, layout)[1]


def _column_names(path: Path, options: Mapping[str, object]) -> list[str]:
    head, comment, separator = Head.of(path), comment_of(options), separator_of(options)
    cells = header_cells(head, comment or "\0")
    if separator is not None:
        rows = (t for t in head.lines if t.strip() and not (comment and t.startswith(comment)))
        cells = [c.strip().strip('"') for c in next(rows, "").split(separator)]
    if not cells:
        read_bytes(path)
        raise FormatError(
            path,
            "its first line is not a header with separated column names",
            "Check the file, or say separator=.",
            1,
        )
    return cells


FORMAT = Format(
    "csv",
    "Delimited text with a column map (CSV, TSV, semicolons)",
    sniff,
    scan,
    LAYOUT_OPTIONS | OPTIONS,
    why_not=why_not,
    complete=complete,
    describe=describe,
)
