"""Any delimited text with a time and a gaze column: CSV, TSV, semicolons, with a column map and
units.

Common column names are recognised (`t`, `time`, `timestamp`; `x`, `gaze_x`, `left_x`, ...), with or
without a unit in the name (`t_ms`, `x_deg`, `gaze x [px]`, `timestamp [ns]`). A name that says gaze
goes before one that does not: `x` and `y` beside `gaze_x` and `gaze_y`, or beside those of the
eyes, are a target or a mouse and not read. Where two columns fit the time or gaze equally (`t_ms`
and `timestamp_ms`, `x` and `pos_x`), `columns=` is asked for. A column or a unit that no name and
no option says is guessed where the values allow one answer alone, with a warning that says the
guess (:mod:`gazeveil.io.plain.guess`), and asked for otherwise; a name that says a unit which is
not read (`x_cm`, `x_arcmin`, `time_min`) is refused.

Rows of several people, stimuli, sessions, tasks or trials in one file give one recording each, in
order of first appearance. A trial is the stimulus where no column names one; where one does, the
second trial of a person with a stimulus has the session `1.2`. A column that is not used and looks
as if it separated recordings, or said which samples are lost, is asked about
(:mod:`gazeveil.io.plain.guess`).

A column of validity (`valid`, `left_validity`, `tracked`) has 1, yes, true or valid where a sample
is valid; one of losses (`blink`, `LEFT_IN_BLINK`, `trackloss`) where it is lost. Codes, such as
Tobii's of which 0 and 1 are valid, are named by `valid=`: a column that calls nearly all samples
that have gaze lost is pointed out, and codes that are not named are refused. A confidence or a
pupil of 0 is a lost sample.

Files are read in blocks of 8 MiB: their text is never in memory at once, and a table of many
recordings is parsed once (:mod:`gazeveil.io.plain.rows`).

Options
-------
columns : mapping of role to column name; the roles are :data:`gazeveil.io.plain.roles.ROLES`
optional : the same for columns that a file need not have
ignore : names of columns that are not to be used and not to be asked about; `*` for all that are
    not named by another option
valid : codes that mean valid in columns of validity, such as [0, 1] of Tobii's
metadata : mapping of what recordings say of themselves, such as `frame`
rows : mapping of column to word: rows of other words are no samples
time_unit : `s`, `ms`, `us`, `ns`, `100ns`; `frame`, with `frame_interval_s`
rate_hz : samples per second; gives the times where no column has them, and parts samples that a
    coarse clock gives one time
frame_interval_s : seconds per frame where the time column counts frames: a number, a mapping of
    stimulus to number, or a JSON file of one
unit : one of :data:`gazeveil.io.plain.layout.UNITS`; `vector` is a direction of three components,
    x right, y up, z forward, of any length (`vector-openxr`: z backward); one of no length is lost
y_axis : `down` (default; of directions and latitudes `up`) or `up`, where the file's y grows
    upwards
x_axis : `right` (default) or `left`, for directions
space : `screen` or `sphere`, for degrees, radians and fractions
screen : the :class:`~gazeveil.gaze.geometry.Screen` that pixels and fractions are of
assumed : true where that screen is a guess
panorama : (width_px, height_px) of the equirectangular picture, for `unit="equirect"`
missing : a number that stands for a lost sample (or several), such as -1; an empty list where none
    does
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
from functools import partial
from pathlib import Path

import polars as pl

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import KEY_NAMES, Doubt, Recording
from gazeveil.io.parsing.naming import OPTIONS, Names, NamingOptions, naming_options
from gazeveil.io.parsing.table import listed
from gazeveil.io.plain.guess import first_doubts, guess_columns, guess_layout
from gazeveil.io.plain.layout import LAYOUT_OPTIONS, Layout, chosen_columns, plan_layout
from gazeveil.io.plain.roles import KEY_ROLES, has_gaze, recognise, spellings, squeezed
from gazeveil.io.plain.rows import Part, Spooled, recording_of, spool, survey_of, whole
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import Format, Guess, Scrub
from gazeveil.io.source import Head, read_bytes

#: Size from which the rows of a single recording are set aside, as it is and zipped: bytes; and
#: rows from which a recording is given in pieces.
LARGE_BYTES, LARGE_ZIPPED_BYTES, LARGE_ROWS = 32 << 20, 4 << 20, 1 << 20


def sniff(head: Head) -> bool:
    """Delimited text with a recognisable time, x and y."""
    cells = head.cells
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
    chosen = chosen_columns(options)
    present = spellings(rows.names)
    missing = next((c for c in chosen.values() if squeezed(c) not in present), None)
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
    return guess_layout([FirstRows.at(f, options) for f in files], options)


def describe(path: Path, options: Mapping[str, object]) -> dict[str, object]:
    """Columns, units and separator of a file, from the options and its own names."""
    rows = _first_rows(path, options)
    layout = plan_layout(rows, options)
    return {
        "columns": dict(layout.columns),
        "unused": layout.unused,
        "time_unit": layout.time_unit,
        "unit": layout.unit,
        "y_axis": layout.y_axis,
        "separator": rows.separator,
    }


def doubts(path: Path, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about the first rows of a file, and about all rows of a table of many recordings."""
    rows = FirstRows.at(path, options)
    if not rows.is_headed:
        return []
    layout = plan_layout(rows, options)
    found = first_doubts(rows, layout, options)
    if not _is_keyed(layout):
        return found
    parts, several = spool(path, layout)
    session = layout.column("session")
    count = len({dict(zip(KEY_ROLES, part, strict=True))["session"] for part in parts})
    if session is not None and count > 1 and not {"person"} & {*dict(layout.columns), *options}:
        sentence = (
            f"'{session}' of {path.name} has {count} values, and no column names the person. If"
            f" each is a participant, say columns={{'person': '{session}'}}."
        )
        found.append(Doubt("person", sentence, f'[columns]\nperson = "{session}"'))
    for role, words in zip(KEY_ROLES, zip(*parts, strict=True), strict=True):
        if "" in words and any(words):
            sentence = (
                f"'{layout.column(role)}' of {path.name} is empty in some rows and not in others,"
                " which are read as recordings of their own. Fill the column in."
            )
            found.append(Doubt("person" if role == "person" else "session", sentence))
    return [*found, *several]


def load(path: Path, names: Names, layout: Layout, spooled: Spooled | None) -> Recording:
    """One recording of a file."""
    if spooled is None and not _is_large(path):
        frame, left_out, found = whole(path, layout)
    else:
        spooled = spooled or _alone(path, layout)
        frame, left_out = pl.concat(list(spooled.frames())), spooled.left_out
        found = [] if _is_keyed(layout) else list(spool(path, layout)[1])
    return recording_of(
        path, names, layout, frame, survey_of([frame], layout), tuple(found), left_out
    )


def chunks(
    path: Path, names: Names, layout: Layout, spooled: Spooled | None, size: int
) -> Iterator[Recording]:
    """The recording in pieces of at most `size` samples; what stands for lost, and the rate, are
    those of the whole.
    """
    part = _alone(path, layout) if spooled is None else spooled
    survey = survey_of(part.frames(), layout)
    rate_hz: float | None = None
    for frame in part.frames():
        piece = recording_of(path, names, layout, frame, survey)
        rate_hz = piece.rate_hz if rate_hz is None else rate_hz
        for start in range(0, max(len(piece), 1), size):
            yield piece.slice(start, start + size).with_(rate_hz=rate_hz)


def _is_keyed(layout: Layout) -> bool:
    return any(layout.column(r) is not None for r in KEY_ROLES)


def _is_large(path: Path) -> bool:
    zipped = path.suffix.lower() == ".gz"
    return path.stat().st_size >= (LARGE_ZIPPED_BYTES if zipped else LARGE_BYTES)


def _alone(path: Path, layout: Layout) -> Spooled:
    """The one recording of a large file."""
    return next(iter(spool(path, layout)[0].values()))


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file, or per person, stimulus, session, task and trial that its rows
    name.
    """
    naming = naming_options(**options)
    layout = plan_layout(_first_rows(path, options), options)
    if not _is_keyed(layout):
        names = naming.names(path, root)
        return [_handle(path, names, layout, None, _is_large(path))]
    parts = spool(path, layout)[0]
    return [
        _handle(path, names, layout, parts[part], parts[part].rows >= LARGE_ROWS)
        for part, names in _named(path, root, naming, list(parts))
    ]


def _handle(
    path: Path, names: Names, layout: Layout, spooled: Spooled | None, large: bool
) -> Handle:
    arguments = (path, names, layout, spooled)
    handle = names.handle(partial(load, *arguments), path)
    facts = {**dict(layout.facts), **names.facts}
    return replace(handle, facts=facts, chunks=partial(chunks, *arguments) if large else None)


def _named(
    path: Path, root: Path, naming: NamingOptions, parts: Sequence[Part]
) -> Iterator[tuple[Part, Names]]:
    """The names of each recording. A trial is the stimulus where no column names one; else it
    counts how often a person met the stimulus.
    """
    met: dict[Part, int] = {}
    for part in parts:
        says = dict(zip(KEY_NAMES, part, strict=False))
        trial = part[-1]
        if trial and not says["stimulus"]:
            says["stimulus"] = trial
        elif trial:
            key = part[:-1]
            met[key] = met.get(key, 0) + 1
            if met[key] > 1:
                says["session"] = f"{says['session'] or 1}.{met[key]}"
        yield part, naming.names(path, root, **says)


def _first_rows(path: Path, options: Mapping[str, object]) -> FirstRows:
    rows = FirstRows.at(path, options)
    if not rows.names:
        read_bytes(path)
        raise FormatError(
            path,
            "its first line is not a header with separated column names",
            "Check the file, or say separator=.",
            1,
        )
    return rows


FORMAT = Format(
    "csv",
    "Delimited text with a column map (CSV, TSV, semicolons)",
    sniff,
    scan,
    LAYOUT_OPTIONS | OPTIONS,
    why_not=why_not,
    complete=complete,
    describe=describe,
    doubts=doubts,
    scrub=Scrub(columns={}),
)
