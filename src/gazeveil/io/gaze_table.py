"""A recording as delimited text, with column names and units of one's choice: the inverse of
:mod:`gazeveil.io.plain.rows`.

By default `t_s`, `x_deg`, `y_deg` and `valid` (1 or 0), numbers in as many digits as bring the same
number back, an empty cell where there is no value. What else a recording holds gets columns of its
own: the eyes, pupil, confidence, head, eye in head and labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.table import UNIT_NS
from gazeveil.io.plain.layout import UNITS, VECTOR_UNITS

_DEFAULT = {
    "t": "t_s",
    "x": "x_deg",
    "y": "y_deg",
    "valid": "valid",
    "left_x": "left_x_deg",
    "left_y": "left_y_deg",
    "right_x": "right_x_deg",
    "right_y": "right_y_deg",
    "pupil": "pupil",
    "confidence": "confidence",
}
_OTHERS = {
    "head_deg": ("head_x_deg", "head_y_deg", "head_roll_deg"),
    "eye_in_head_deg": ("eye_in_head_x_deg", "eye_in_head_y_deg"),
}
_WORDS = {
    "t": "time from the first sample",
    "valid": "1 where there is gaze, 0 where it is lost",
    "pupil": "size of the pupil, in the tracker's unit",
    "confidence": "the tracker's confidence, 0 to 1",
    "head_x_deg": "direction of the head: longitude, straight ahead 180",
    "head_y_deg": "direction of the head: angle from the zenith",
    "head_roll_deg": "roll of the head, positive to the right",
    "eye_in_head_x_deg": "gaze in the head, to the right",
    "eye_in_head_y_deg": "gaze in the head, downwards",
}
_UNIT_WORDS = {"deg": "deg", "rad": "rad", "lonlat": "deg", "px": "px", "px-centred": "px"}


@dataclass(frozen=True)
class GazeTable:
    """Columns and units of delimited text.

    Parameters
    ----------
    columns : mapping of role to name
        Roles of :data:`gazeveil.io.plain.roles.ROLES`; others have names of their own.
    time_unit, unit, y_axis
        As the reader's options have them.
    panorama : (width_px, height_px), optional
        For `unit="equirect"`.
    missing : float, optional
        Written where a sample is lost; an empty cell by default.
    separator : str
        One character.
    """

    columns: Mapping[str, str] = field(default_factory=lambda: dict(_DEFAULT))
    time_unit: str = "s"
    unit: str = "deg"
    y_axis: str = "down"
    panorama: tuple[float, float] | None = None
    missing: float | None = None
    separator: str = ","

    @classmethod
    def of(cls, options: Mapping[str, object]) -> GazeTable:
        """The columns and units that were read with these options.

        Raises
        ------
        DataError
            For a layout that is read and not written: frames of stimuli, columns of single eyes
            without the line of sight.
        """
        said = options.get("columns")
        columns = {str(k): str(v) for k, v in said.items()} if isinstance(said, Mapping) else {}
        unit, time_unit = str(options.get("unit", "deg")), str(options.get("time_unit", "s"))
        if time_unit not in UNIT_NS or "t" not in columns:
            raise DataError("Times that count frames or follow from a rate are not written.")
        if unit in VECTOR_UNITS:
            raise DataError("Directions as vectors are not written. Choose parquet, csv or bids.")
        if unit not in UNITS or not {"x", "y"} <= columns.keys():
            raise DataError("Files with columns for single eyes alone are not written.")
        missing, size = options.get("missing"), options.get("panorama")
        first = missing[0] if isinstance(missing, list | tuple) and missing else missing
        return cls(
            columns,
            time_unit,
            unit,
            str(options.get("y_axis", "down")),
            (float(size[0]), float(size[1])) if isinstance(size, list | tuple) else None,
            float(first) if isinstance(first, int | float) else None,
            str(options.get("separator") or ","),
        )

    def options(self) -> dict[str, object]:
        """What a reader has to be told; the space of each recording is told apart from it."""
        columns = {r: self.columns[r] for r in ("t", "x", "y", "valid") if r in self.columns}
        told: dict[str, object] = {
            "columns": columns,
            "time_unit": self.time_unit,
            "unit": self.unit,
            "y_axis": self.y_axis,
        }
        if self.panorama is not None:
            told["panorama"] = list(self.panorama)
        if self.missing is not None:
            told["missing"] = [self.missing]
        if self.separator != ",":
            told["separator"] = self.separator
        return told

    def write(self, recording: Recording, path: Path) -> dict[str, dict[str, str]]:
        """Write a recording.

        Returns
        -------
        dict
            Column -> `description` and `unit`.
        """
        columns: dict[str, NDArray[np.generic]] = {self.columns["t"]: self._times(recording.t_ns)}
        about = {self.columns["t"]: {"description": _WORDS["t"], "unit": self.time_unit}}
        space, valid = recording.space, recording.valid
        eyes = {"": np.stack((recording.x_deg, recording.y_deg), axis=1)}
        eyes |= {
            f"{side}_": values
            for side, values in (("left", recording.left_deg), ("right", recording.right_deg))
            if values is not None
        }
        for eye, values in eyes.items():
            placed = self._placed(space, values[:, 0], values[:, 1])
            for axis, column in zip("xy", placed, strict=True):
                name = self._name(f"{eye}{axis}")
                columns[name] = self._lost(column, valid if not eye else None)
                about[name] = {"description": self._words(eye, axis, space), "unit": self._unit}
        if self.columns is not None and "valid" in self.columns:
            columns[self.columns["valid"]] = valid.astype(np.int8)
            about[self.columns["valid"]] = {"description": _WORDS["valid"], "unit": ""}
        for role, scalar in (("pupil", recording.pupil), ("confidence", recording.confidence)):
            if scalar is not None:
                columns[self._name(role)] = self._lost(scalar, None)
                about[self._name(role)] = {"description": _WORDS[role], "unit": ""}
        for channel, names in _OTHERS.items():
            several = getattr(recording, channel)
            if several is not None:
                columns |= {n: several[:, i] for i, n in enumerate(names)}
                about |= {n: {"description": _WORDS[n], "unit": "deg"} for n in names}
        for label, words in recording.labels.items():
            columns[f"label_{label}"] = words.astype(np.str_)
            about[f"label_{label}"] = {"description": f"kind of event, by {label}", "unit": ""}
        pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None)).write_csv(
            path, separator=self.separator
        )
        return about

    @property
    def _unit(self) -> str:
        return _UNIT_WORDS.get(self.unit, "1" if self.unit == "fraction" else "px")

    def _name(self, role: str) -> str:
        if role in self.columns:
            return self.columns[role]
        stem = _DEFAULT[role].removesuffix("_deg")
        return f"{stem}_{self.unit}" if stem != _DEFAULT[role] else stem

    def _words(self, eye: str, axis: str, space: Space) -> str:
        whose = f"gaze of the {eye[:-1]} eye" if eye else "gaze"
        if self.unit in ("deg", "rad") and isinstance(space, Sphere):
            where = "longitude, straight ahead 180" if axis == "x" else "angle from the zenith"
        elif self.unit in ("deg", "rad"):
            where = "angle from the centre of the screen, " + (
                "to the right" if axis == "x" else "downwards" if self.y_axis == "down" else "up"
            )
        else:
            where = f"{axis} as the reader's unit '{self.unit}' has it"
        return f"{whose}: {where}"

    def _times(self, t_ns: Ints) -> NDArray[np.generic]:
        scale = UNIT_NS[self.time_unit]
        return t_ns if scale == 1 else t_ns / scale

    def _lost(self, values: Floats, valid: Bools | None) -> Floats:
        lost = ~np.isfinite(values) if valid is None else ~valid | ~np.isfinite(values)
        if valid is not None and "valid" in self.columns:
            lost = ~np.isfinite(values)  # the flag says it; the value may stay
        return np.where(lost, np.nan if self.missing is None else self.missing, values)

    def _placed(self, space: Space, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Degrees of the space in the table's unit."""
        up = self.y_axis == "up"
        if self.unit in ("deg", "rad"):
            if up:
                y = 180.0 - y if isinstance(space, Sphere) else -y
            return (np.radians(x), np.radians(y)) if self.unit == "rad" else (x, y)
        if self.unit == "lonlat":
            return x - 180.0, 90.0 - y
        if isinstance(space, Sphere):
            wide, high = self.panorama if self.panorama is not None else (1.0, 1.0)
            y = y * high / 180.0
            return x * wide / 360.0, high - y if up else y
        assert isinstance(space, Screen)
        x, y = space.to_px(x, y)
        if self.unit == "px-centred":
            y = y - space.height_px / 2
            return x - space.width_px / 2, -y if up else y
        y = space.height_px - y if up else y
        return (x / space.width_px, y / space.height_px) if self.unit == "fraction" else (x, y)
