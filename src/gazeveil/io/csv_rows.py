"""Rows of a delimited file as a Recording: units to degrees, lost samples marked.

Columns are taken from a parsed table piece by piece, so that a large file is never held as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.csv_layout import DEPTH_ROLES, GAZE_ROLES, VECTOR_UNITS, Layout
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import KeyedTable
from gazeveil.io.parsing.headset import unit
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.pupil import pupil_of
from gazeveil.io.parsing.table import UNIT_NS
from gazeveil.io.vendors.arff import WORDS

_EYES = ("", "left_", "right_")


@dataclass(frozen=True)
class GazeRows:
    """Columns of some rows of a file, in its own units.

    Parameters
    ----------
    numbers : mapping of str to array
        By role: gaze, pupils and confidence as the file has them, NaN where lost; `t` in
        nanoseconds, or in frames where the layout says so.
    flags : mapping of str to array of bool
        By role: `valid`, `left_valid`, `right_valid`.
    label : array of str, optional
        The label column.
    in_degrees : bool
        Whether gaze is in degrees of the space already.
    """

    t: Ints | Floats
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    flags: Mapping[str, Bools] = field(default_factory=dict)
    label: Texts | None = None
    in_degrees: bool = False

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, sheet: KeyedTable, rows: Ints | None, layout: Layout, before: int = 0) -> GazeRows:
        """Some rows of a table; `before` rows of the file come before the table."""
        at: Ints | slice = slice(None) if rows is None else rows
        roles = (*GAZE_ROLES, *DEPTH_ROLES, "pupil", "left_pupil", "right_pupil")
        numbers = {
            r: _lost(sheet.floats(c)[at], layout.missing)
            for r in roles
            if (c := layout.column(r)) is not None
        }
        confidence, label = layout.column("confidence"), layout.column("label")
        if confidence is not None:
            numbers["confidence"] = sheet.floats(confidence)[at]
        return cls(
            _times(sheet, layout, before)[at],
            numbers,
            {
                r: sheet.flags(c)[at]
                for r in ("valid", "left_valid", "right_valid")
                if (c := layout.column(r)) is not None
            },
            None if label is None else _labels(sheet, label)[at],
        )

    def placed(self, layout: Layout) -> GazeRows:
        """The rows with gaze in degrees, where the layout alone says of what space: piece by piece
        that takes less memory than at the end.
        """
        space = _known_space(layout)
        if space is None:
            return self
        numbers = dict(self.numbers)
        for eye in _EYES:
            if {f"{eye}x", f"{eye}y"} <= numbers.keys():
                numbers[f"{eye}x"], numbers[f"{eye}y"] = _place(
                    layout,
                    space,
                    numbers[f"{eye}x"],
                    numbers[f"{eye}y"],
                    numbers.pop(f"{eye}z", None),
                )
        return replace(self, numbers=numbers, in_degrees=True)

    @classmethod
    def joined(cls, parts: list[GazeRows]) -> GazeRows:
        """Rows one after another; the list is emptied, so that no column is held twice."""
        if len(parts) == 1:
            return parts.pop()
        t = np.concatenate([p.t for p in parts])
        numbers, flags = [dict(p.numbers) for p in parts], [dict(p.flags) for p in parts]
        labels, in_degrees = [p.label for p in parts if p.label is not None], parts[0].in_degrees
        parts.clear()
        return cls(
            t,
            {r: np.concatenate([n.pop(r) for n in numbers]) for r in tuple(numbers[0])},
            {r: np.concatenate([f.pop(r) for f in flags]) for r in tuple(flags[0])},
            np.concatenate(labels) if labels else None,
            in_degrees,
        )


def recording_of(
    path: Path, names: Names, layout: Layout, rows: GazeRows, space: Space | None = None
) -> Recording:
    """The recording that all rows of a file, or a piece of them, hold. `space` is what is known
    from an earlier piece.
    """
    found, space_assumed = _space(path, layout, rows.numbers)
    space = found if space is None else space
    gaze: dict[str, tuple[Floats, Floats]] = {}
    for eye in _EYES:
        if {f"{eye}x", f"{eye}y"} <= rows.numbers.keys():
            x, y = rows.numbers[f"{eye}x"], rows.numbers[f"{eye}y"]
            z = rows.numbers.get(f"{eye}z")
            gaze[eye] = (x, y) if rows.in_degrees else _place(layout, space, x, y, z)
    eyes = {eye: np.stack(gaze[eye], axis=1) for eye in ("left_", "right_") if eye in gaze}
    for eye, values in eyes.items():
        if f"{eye}valid" in rows.flags:
            values[~rows.flags[f"{eye}valid"]] = np.nan
    x_deg, y_deg = gaze.get("", (None, None))
    metadata: dict[str, object] = {"unit": layout.unit}
    if layout.assumed or space_assumed:
        metadata["assumed_geometry"] = True
    t_ns, rate_hz = _nanoseconds(path, names, layout, rows.t)
    return assemble(
        path,
        **vars(names),
        t_ns=t_ns,
        rate_hz=rate_hz,
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        left_deg=eyes.get("left_"),
        right_deg=eyes.get("right_"),
        valid=rows.flags.get("valid"),
        pupil=_pupil(rows.numbers),
        confidence=rows.numbers.get("confidence"),
        labels={} if rows.label is None else {"label": rows.label},
        metadata=metadata,
    )


def _lost(values: Floats, missing: tuple[float, ...]) -> Floats:
    return np.where(np.isin(values, missing), np.nan, values) if missing else values


def _times(sheet: KeyedTable, layout: Layout, before: int) -> Ints | Floats:
    """Times of all rows of a table: nanoseconds, frames, or row numbers where a rate gives them."""
    column = layout.column("t")
    if column is None:
        return np.arange(before, before + len(sheet), dtype=np.int64)
    if layout.time_unit == "frame":
        return sheet.floats(column)
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


def _nanoseconds(
    path: Path, names: Names, layout: Layout, t: Ints | Floats
) -> tuple[Ints, float | None]:
    """Times of a recording, and its rate where it was said."""
    if layout.column("t") is None and layout.rate_hz is not None:
        first = t[0] if len(t) else 0
        return np.round((t - first) * (1e9 / layout.rate_hz)).astype(np.int64), layout.rate_hz
    if layout.time_unit != "frame":
        return np.asarray(t, dtype=np.int64), layout.rate_hz
    interval = layout.frame_interval_s
    seconds = dict(interval).get(names.stimulus) if isinstance(interval, tuple) else interval
    if seconds is None:
        raise FormatError(
            path,
            f"nobody says how long a frame of stimulus '{names.stimulus}' is",
            "Add it to frame_interval_s.",
        )
    if not np.isfinite(t).all():
        row = int(np.flatnonzero(~np.isfinite(t))[0])
        raise FormatError(path, f"row {row + 1} has no frame number", "Mend or remove the line.")
    return np.round(t * (seconds * 1e9)).astype(np.int64), layout.rate_hz or 1 / seconds


def _pupil(numbers: Mapping[str, Floats]) -> Floats | None:
    sizes = [numbers[r] for r in ("pupil", "left_pupil", "right_pupil") if r in numbers]
    return sizes[0] if "pupil" in numbers else pupil_of(sizes)


def _labels(sheet: KeyedTable, column: str) -> Texts:
    labels = (
        sheet.table.column(column)
        .fill_null("undefined")
        .str.strip_chars()
        .str.to_lowercase()
        .replace({"": "undefined", **WORDS})
    )
    return labels.to_numpy().astype(np.str_)


def _known_space(layout: Layout) -> Space | None:
    """The space that a layout says; None where only the degrees themselves can tell."""
    if layout.space == "sphere":
        return Sphere()
    return (layout.screen or TYPICAL_SCREEN) if layout.space == "screen" else None


def _space(path: Path, layout: Layout, gaze: Mapping[str, Floats]) -> tuple[Space, bool]:
    """The space, and whether its screen is assumed."""
    known = _known_space(layout)
    if known is not None:
        return known, layout.space == "screen" and layout.screen is None
    # Degrees without a word about their space: only values that rule one of the two out decide.
    scale = 180 / np.pi if layout.unit == "rad" else 1.0
    values = [
        scale * np.concatenate([v for r, v in gaze.items() if r in GAZE_ROLES and r.endswith(axis)])
        for axis in "xy"
    ]
    low, high = ([float(f(v, initial=0.0)) for v in values] for f in (np.nanmin, np.nanmax))
    if min(low) < 0 and max(high) < 90 and min(low) > -90:
        return TYPICAL_SCREEN, True
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


def _place(
    layout: Layout, space: Space, x: Floats, y: Floats, z: Floats | None = None
) -> tuple[Floats, Floats]:
    """File units to degrees of the space; `z` is the third component of directions."""
    up = layout.y_axis == "up"
    if layout.unit in VECTOR_UNITS and z is not None:
        forward = z if layout.unit == "vector" else -z
        return Sphere().degrees(unit(np.stack((x, y if up else -y, forward), axis=1)))
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
    return x, y
