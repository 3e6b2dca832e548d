"""Tables on disk: features, heat maps, and events of many recordings.

A table of features is Parquet with the public bounds in the file's metadata, or CSV with the bounds
in a second file. Key columns come first (`person stimulus session task index`), then one column per
feature; a missing value is null. In CSV, bounds and counts stand in `<name>.bounds.json` beside the
table, because a CSV has no place for them. This floor knows only the parts of a table;
`gazeveil.features.FeatureTable.read` puts them together.

A map has one row per cell: `stimulus`, `row` and `column` of the cell from the top left, `x_deg`
and `y_deg` of its centre in the coordinates of recordings, `share` of looking, and `viewers` in the
cell before clipping and smoothing.

A table of people: age, gender and whatever else is known, one row each.

CSV, TSV or semicolons; the people's column is `person`, `participant_id` (as BIDS has it),
`participant`, `subject` or `id`. Cells that say nothing (`n/a`, empty) are left out, numbers become
numbers, everything else stays text.

A recording as delimited text, with column names and units of one's choice: the inverse of
:mod:`gazeveil.io.plain.rows`.

By default `t_s`, `x_deg`, `y_deg` and `valid` (1 or 0), numbers in as many digits as bring the same
number back, an empty cell where there is no value. What else a recording holds gets columns of its
own: the eyes, pupil, confidence, head, eye in head and labels.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.io.parsing.table import MISSING, UNIT_NS, listed, open_sheet
from gazeveil.io.plain.layout import UNITS, VECTOR_UNITS
from gazeveil.io.source import key, read_bytes
from gazeveil.registry import number_or_text

#: The key columns of a table.
KEYS = (*KEY_NAMES, "index")

_META = "gazeveil_features"


@dataclass(frozen=True)
class TableParts:
    """What is written and read: the arguments of a FeatureTable, its keys as a mapping of columns,
    what has no row, by reason.
    """

    values: Floats
    columns: tuple[str, ...]
    keys: Mapping[str, NDArray[np.generic]]
    bounds: Floats | None
    counts: Mapping[str, int]


def write_table(table: TableParts, path: str | Path) -> Path:
    """Write a feature table; the suffix `.parquet`, `.csv` or `.tsv` chooses the format. Floats are
    written without loss.

    Raises
    ------
    FormatError
        For another suffix, or a feature that is called like a key column.
    """
    place = Path(path)
    kind = table_suffix(place)
    frame = table_frame(table.values, table.columns, table.keys, place)
    note = json.dumps(
        {
            "bounds": (
                None
                if table.bounds is None
                else dict(zip(table.columns, table.bounds.tolist(), strict=True))
            ),
            "counts": dict(table.counts),
        }
    )
    _write(frame, place, kind, {_META: note})
    if kind != "parquet":
        _beside(place).write_text(note + "\n", encoding="utf-8")
    return place


def _write(frame: pl.DataFrame, place: Path, kind: str, about: dict[str, str]) -> None:
    """Write a frame as `parquet`, which alone has room for what is said of it, `csv` or `tsv`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        frame.write_parquet(place, metadata=about)
    else:
        frame.write_csv(place, separator="\t" if kind == "tsv" else ",")


def table_frame(
    values: Floats,
    columns: tuple[str, ...],
    keys: Mapping[str, NDArray[np.generic]],
    place: str | Path = "A feature table",
) -> pl.DataFrame:
    """Key columns, then one column per feature; what was not measured is null."""
    clash = [name for name in columns if name in KEYS]
    if clash:
        raise FormatError(
            place, f"the feature '{clash[0]}' has the name of a key column", "Rename the feature."
        )
    # A text column of no rows would otherwise have no type.
    series = [
        pl.Series(name, keys[name]).cast(pl.Int64 if name == "index" else pl.String)
        for name in KEYS
    ]
    series += [
        pl.Series(name, values[:, i].copy(), nan_to_null=True, dtype=pl.Float64)
        for i, name in enumerate(columns)
    ]
    return pl.DataFrame(series)


def read_table_file(path: str | Path) -> TableParts:
    """Read what :func:`write_table` wrote; a table from elsewhere needs the five key columns and
    has no bounds.

    Raises
    ------
    FormatError
        For a file that is not such a table.
    """
    place = Path(path)
    kind = table_suffix(place)
    data = read_bytes(place)
    note = None
    try:
        if kind == "parquet":
            frame = pl.read_parquet(io.BytesIO(data))
            note = pl.read_parquet_metadata(io.BytesIO(data)).get(_META)
        else:
            frame = pl.read_csv(
                io.BytesIO(data), separator="\t" if kind == "tsv" else ",", infer_schema=False
            )
            if _beside(place).exists():
                note = _beside(place).read_text(encoding="utf-8")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FormatError(
            place,
            f"it cannot be read as a feature table ({str(error).splitlines()[0]})",
            "Check that the file is complete.",
        ) from error
    missing = [name for name in KEYS if name not in frame.columns]
    if missing:
        raise FormatError(
            place,
            f"there is no column '{missing[0]}'",
            "A feature table has the columns " + ", ".join(KEYS) + " and then features.",
        )
    if frame["index"].null_count():
        raise FormatError(place, "a row has no index", "Mend the file or write it again.")
    names = [name for name in frame.columns if name not in KEYS]
    try:
        values = np.stack(
            [frame[n].cast(pl.Float64).to_numpy().astype(np.float64) for n in names]
            or [np.empty(frame.height)],
            axis=1,
        )
        index = frame["index"].cast(pl.Int64).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise FormatError(
            place,
            f"a feature is not a number ({str(error).splitlines()[0]})",
            "Mend the file or write it again.",
        ) from error
    texts = [
        np.array(frame[n].cast(pl.String).fill_null("").to_list(), dtype=np.str_) for n in KEYS[:4]
    ]
    bounds, counts = _note(place, note, names)
    keys: dict[str, NDArray[np.generic]] = {
        **dict(zip(KEYS[:4], texts, strict=True)),
        "index": index,
    }
    return TableParts(values[:, : len(names)], tuple(names), keys, bounds, counts)


def _note(
    place: Path, note: str | None, names: list[str]
) -> tuple[Floats | None, Mapping[str, int]]:
    if note is None:
        return None, {}
    try:
        content = json.loads(note)
        bounds, counts = content["bounds"], {str(k): int(v) for k, v in content["counts"].items()}
        if bounds is None:
            return None, counts
        pairs = np.array([[float(v) for v in bounds[n]] for n in names]).reshape(-1, 2)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(place, "its bounds cannot be read", "Write the table again.") from error
    if not all(math.isfinite(v) for v in pairs.ravel()):
        raise FormatError(place, "its bounds are not finite", "Write the table again.")
    return pairs, counts


def _beside(place: Path) -> Path:
    return place.with_suffix(".bounds.json")


def table_suffix(place: Path, what: str = "a feature table") -> str:
    """`parquet`, `csv` or `tsv`; any other suffix is a FormatError that says what it was for."""
    kind = place.suffix.lower().lstrip(".")
    if kind not in ("parquet", "csv", "tsv"):
        raise FormatError(
            place, f"{what} cannot be a '{place.suffix}' file", "Use .parquet, .csv or .tsv."
        )
    return kind


#: What a map covers, its shares of looking and its noisy viewers, both rows x columns.
MapParts: TypeAlias = tuple[Space, Floats, Floats]


def write_maps(maps: Mapping[str, MapParts], path: Path) -> Path:
    """Write maps by stimulus; the suffix `.parquet`, `.csv` or `.tsv` chooses the format.

    Raises
    ------
    FormatError
        For another suffix.
    """
    suffix = table_suffix(path, "a table of maps")
    frame = pl.concat([_frame(stimulus, *parts) for stimulus, parts in maps.items()])
    _write(frame, path, suffix, {})
    return path


def _frame(stimulus: str, space: Space, shares: Floats, viewers: Floats) -> pl.DataFrame:
    rows, columns = shares.shape
    row, column = (index.ravel() for index in np.indices((rows, columns)))
    x_deg = (column + 0.5) * (space.width_deg / columns)
    y_deg = (row + 0.5) * (space.height_deg / rows)
    if isinstance(space, Screen):
        x_deg, y_deg = x_deg - space.width_deg / 2, y_deg - space.height_deg / 2
    parts = {"row": row, "column": column, "x_deg": x_deg, "y_deg": y_deg}
    parts |= {"share": shares.ravel(), "viewers": viewers.ravel()}
    return pl.DataFrame({"stimulus": [stimulus] * len(row), **parts})


def write_events(rows: Iterable[tuple[RecordingKey, Events]], path: Path) -> int:
    """Write events with the keys (person, stimulus, session, task) of their recordings, as
    `.parquet` or `.csv`; returns how many.
    """
    suffix = path.suffix.lower()
    if suffix not in {".parquet", ".csv"}:
        raise ParameterError(
            f"The '--out' option must name a .parquet or .csv file. Got '{path}' instead.",
            name="--out",
            got=str(path),
        )
    frames = []
    for names, events in rows:
        keys = dict(zip(KEY_NAMES, names, strict=True))
        frame = pl.DataFrame(events.columns()).with_columns(
            duration_s=pl.Series(events.duration_s), source=pl.lit(events.source)
        )
        frames.append(frame.select(*(pl.lit(v).alias(k) for k, v in keys.items()), pl.all()))
    table = pl.concat(frames, how="diagonal") if frames else pl.DataFrame()
    _write(table, path, suffix[1:], {})
    return table.height


_PERSON = (
    "person",
    "participant_id",
    "participant",
    "subject_id",
    "subject",
    "user_id",
    "user",
    "observer",
    "id",
)


def read_people(path: Path) -> dict[str, dict[str, object]]:
    """Person -> attributes.

    Raises
    ------
    FormatError
        Without a column that names people, or where one person has two rows.
    """
    table = open_sheet(path, comment="#")
    names = {key(n): n for n in reversed(table.names)}
    column = next((names[key(p)] for p in _PERSON if key(p) in names), None)
    if column is None:
        raise FormatError(
            path,
            f"no column names the people (columns: {listed(table.names)})",
            "Call one 'person' or 'participant_id'.",
            1,
        )
    people: dict[str, dict[str, object]] = {}
    for row, record in enumerate(table.frame.iter_rows(named=True)):
        person = (record[column] or "").strip()
        if not person:
            raise FormatError(
                path,
                "a row does not say whose it is",
                "Fill in the person or remove the line.",
                table.line_of(row),
            )
        if person in people:
            raise FormatError(
                path, f"person '{person}' has two rows", "Remove one of them.", table.line_of(row)
            )
        cells = {n: (c or "").strip() for n, c in record.items() if n != column}
        people[person] = {
            n.strip(): number_or_text(c) for n, c in cells.items() if c.lower() not in MISSING
        }
    return people


def people_suffix(path: Path) -> str:
    """`.csv` or `.tsv`; any other suffix is a FormatError."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv"):
        raise FormatError(
            path, f"a table of people cannot be a '{path.suffix}' file", "Use .csv or .tsv."
        )
    return suffix


def write_people(people: Mapping[str, Mapping[str, object]], path: Path) -> Path:
    """Write attributes of people as CSV, or TSV where the suffix says so.

    Raises
    ------
    FormatError
        For a suffix that is neither.
    """
    separator = "\t" if people_suffix(path) == ".tsv" else ","
    names = list(dict.fromkeys(name for attributes in people.values() for name in attributes))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["person", *names], delimiter=separator)
        table.writeheader()
        table.writerows({"person": person, **people[person]} for person in people)
    return path


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
