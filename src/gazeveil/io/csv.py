"""Any delimited text with a time and a gaze column: CSV, TSV, semicolons, with a column map and
units.

Common column names are recognised (`t`, `time`, `timestamp`; `x`, `gaze_x`, `left_x`, ...), with or
without a unit in the name (`t_ms`, `x_deg`, `gaze x [px]`, `timestamp [ns]`). A unit that no name
and no option says is asked for, never guessed. Rows of several people or stimuli in one file give
one recording each, in order of first appearance.

Options
-------
columns : mapping of role to column name; the roles are the keys of
    :data:`gazeveil.io.csv_layout.ROLES`
time_unit : `s`, `ms`, `us`, `ns`, `100ns`
unit : one of :data:`gazeveil.io.csv_layout.UNITS`
y_axis : `down` (default) or `up`, where the file's y grows upwards
space : `screen` or `sphere`, for degrees, radians and fractions
screen : the :class:`~gazeveil.gaze.geometry.Screen`, needed for pixels and fractions of it
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

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.csv_layout import (
    GAZE_ROLES,
    LAYOUT_OPTIONS,
    Layout,
    comment_of,
    has_gaze,
    plan_layout,
    recognise,
    separator_of,
)
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable, header_cells, open_sheet, stamp
from gazeveil.io.parsing.headset import mean_of_eyes
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import UNIT_NS
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_bytes
from gazeveil.io.vendors.arff import WORDS

# Stands in where degrees on a screen come without the screen: only its proportions to a viewer are
# used, for plots.
_ASSUMED_SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
#: Roles that tell recordings apart.
_KEY_ROLES = ("person", "stimulus", "session", "task")


def sniff(head: Head) -> bool:
    """Delimited text with a recognisable time, x and y."""
    cells = header_cells(head)
    roles = recognise(cells)
    # A first row of numbers is no header, however many separators it has.
    return len(cells) >= 3 and "t" in roles and has_gaze(roles)


@lru_cache(maxsize=1)
def _open(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> tuple[KeyedTable, dict[tuple[str, ...], Ints]]:
    """The file and its rows by person, stimulus, session and task; kept until the next file, so
    that it is parsed once.
    """
    sheet = open_sheet(path, layout.separator, layout.decimal, layout.comment)
    return sheet, dict(sheet.groups(*(layout.column(r) for r in _KEY_ROLES)))


def load(path: Path, names: Names, part: tuple[str, ...] | None, layout: Layout) -> Recording:
    """One recording of the file."""
    sheet, parts = _open(path, stamp(path), layout)
    rows = parts[part] if part is not None else np.arange(len(sheet), dtype=np.int64)
    gaze = {
        r: _lost(sheet.floats(c)[rows], layout.missing)
        for r in GAZE_ROLES
        if (c := layout.column(r)) is not None
    }
    space, space_assumed = _space(path, layout, gaze)
    placed = {
        eye: _place(layout, space, gaze[f"{eye}x"], gaze[f"{eye}y"])
        for eye in ("", "left_", "right_")
        if {f"{eye}x", f"{eye}y"} <= gaze.keys()
    }
    for eye in ("left_", "right_"):
        flag = layout.column(f"{eye}valid")
        if flag is not None and eye in placed:
            placed[eye][~sheet.flags(flag)[rows]] = np.nan
    flag = layout.column("valid")
    both = placed.get("")
    metadata: dict[str, object] = {"unit": layout.unit}
    if layout.assumed or space_assumed:
        metadata["assumed_geometry"] = True
    label, confidence = layout.column("label"), layout.column("confidence")
    return assemble(
        path,
        **vars(names),
        t_ns=_times(path, stamp(path), layout)[rows],
        space=space,
        x_deg=None if both is None else both[:, 0],
        y_deg=None if both is None else both[:, 1],
        left_deg=placed.get("left_"),
        right_deg=placed.get("right_"),
        valid=None if flag is None else sheet.flags(flag)[rows],
        pupil=_pupil(sheet, layout, rows),
        confidence=None if confidence is None else sheet.floats(confidence)[rows],
        labels={} if label is None else {"label": _labels(sheet, label)[rows]},
        metadata=metadata,
    )


def _lost(values: Floats, missing: tuple[float, ...]) -> Floats:
    return np.where(np.isin(values, missing), np.nan, values) if missing else values


@lru_cache(maxsize=1)
def _times(path: Path, at: tuple[int, int], layout: Layout) -> Ints:
    """Times of all rows; kept as the file is."""
    sheet, _ = _open(path, at, layout)
    column = layout.column("t")
    assert column is not None
    written = (
        sheet.table.column(column).str.strip_chars().cast(pl.Float64, strict=False).abs().max()
    )
    largest = written if isinstance(written, float) and np.isfinite(written) else 0.0
    too_large = largest * UNIT_NS[layout.time_unit] > 9.2e18
    if too_large and layout.time_unit != "100ns":
        raise FormatError(
            sheet.table.path,
            f"times as large as {largest:g} {layout.time_unit} are no times",
            f"Check time_unit='{layout.time_unit}'.",
        )
    return sheet.times_ns(column, unit=layout.time_unit, relative=too_large)


def _pupil(sheet: KeyedTable, layout: Layout, rows: Ints) -> Floats | None:
    sizes = [
        _lost(sheet.floats(c)[rows], layout.missing)
        for r in ("pupil", "left_pupil", "right_pupil")
        if (c := layout.column(r)) is not None
    ]
    if not sizes:
        return None
    return (
        sizes[0]
        if layout.column("pupil") is not None or len(sizes) == 1
        else mean_of_eyes(sizes[0], sizes[1])
    )


def _labels(sheet: KeyedTable, column: str) -> Texts:
    labels = (
        sheet.table.column(column)
        .fill_null("undefined")
        .str.strip_chars()
        .str.to_lowercase()
        .replace({"": "undefined", **WORDS})
    )
    return labels.to_numpy().astype(np.str_)


def _space(path: Path, layout: Layout, gaze: Mapping[str, Floats]) -> tuple[Space, bool]:
    """The space, and whether its screen is assumed."""
    if layout.space == "sphere":
        return Sphere(), False
    if layout.space == "screen":
        return layout.screen or _ASSUMED_SCREEN, layout.screen is None
    # Degrees without a word about their space: only values that rule one of the two out decide.
    scale = 180 / np.pi if layout.unit == "rad" else 1.0
    values = [
        scale * np.concatenate([v for r, v in gaze.items() if r.endswith(axis)]) for axis in "xy"
    ]
    low, high = ([float(f(v, initial=0.0)) for v in values] for f in (np.nanmin, np.nanmax))
    if min(low) < 0 and max(high) < 90 and min(low) > -90:
        return _ASSUMED_SCREEN, True
    if min(low) >= 0 and max(high) >= 90 and high[0] < 360 and high[1] < 180:
        return Sphere(), False
    if min(low) < -90 or high[0] >= 360 or high[1] >= 180:
        problem = (
            f"gaze runs from {low[0]:g} to {high[0]:g} (x) and from {low[1]:g} to {high[1]:g} (y),"
            " which cannot be degrees"
        )
        raise FormatError(
            path,
            problem,
            "If these are pixels, say unit='px' and give the screen; for longitude and latitude say"
            " unit='lonlat'.",
        )
    raise FormatError(
        path,
        "these degrees may be a screen's or a sphere's",
        "Say space='sphere', or space='screen' (with screen=Screen(...) if you know it).",
    )


def _place(layout: Layout, space: Space, x: Floats, y: Floats) -> Floats:
    """File units to degrees of the space, shape (n, 2)."""
    up = layout.y_axis == "up"
    if layout.unit in ("deg", "rad"):
        if layout.unit == "rad":
            x, y = np.degrees(x), np.degrees(y)
        if up:
            y = 180.0 - y if isinstance(space, Sphere) else -y
    elif layout.unit == "lonlat":
        # Latitude grows upwards by definition; `y_axis="up"` says no more than that.
        x, y = x + 180.0, 90.0 - y
    elif isinstance(space, Sphere):
        width, height = (
            layout.panorama
            if layout.unit == "equirect" and layout.panorama is not None
            else (1.0, 1.0)
        )
        x, y = 360.0 * x / width, 180.0 * (height - y if up else y) / height
    elif layout.unit == "px-centred":
        x, y = space.from_px(x + space.width_px / 2, (-y if up else y) + space.height_px / 2)
    else:
        if layout.unit == "fraction":
            x, y = x * space.width_px, y * space.height_px
        x, y = space.from_px(x, space.height_px - y if up else y)
    return np.stack((x, y), axis=1)


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file, or per person, stimulus, session and task that its rows name."""
    naming = naming_options(**options)
    layout = plan_layout(path, _column_names(path, options), options)
    parts: Iterable[tuple[str, ...] | None] = [None]
    if any(layout.column(r) is not None for r in _KEY_ROLES):
        parts = _open(path, stamp(path), layout)[1]
    handles = []
    for part in parts:
        names = naming.names(path, root, **dict(zip(_KEY_ROLES, part or (), strict=False)))
        handles.append(names.handle(partial(load, path, names, part, layout), path))
    return handles


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
)
