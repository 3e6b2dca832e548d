"""Files of areas of interest: boxes on stimuli, as people and datasets write them down.

TOML or JSON: `unit`, maybe `size_px = [width, height]`, and a list `area` of tables with
`stimulus`, `name`, `left`, `top`, `right`, `bottom`; the stimulus `*` (or none) means every
stimulus. CSV: one row per box with the same names as columns, or `x, y, width, height`, or `x_min,
y_min, x_max, y_max`; columns may end in `_px` or `_deg`, and one row may hold several boxes as
`aoi1_left ... aoi2_bottom`. A JSON file of scanpaths with a `target_bbox` per image (Interiors of
NeuroLIAA) gives the target boxes.

Units. `deg`: degrees of the space (sphere: x 0 to 360 from the left edge, y 0 to 180 from the top;
screen: from its centre, right and down). `px`: pixels from the top left corner of the stimulus,
which is taken to fill the space; `size_px` says how many there are, by default the screen's own.
`fraction`: 0 to 1 from the top left corner. `lonlat`: longitude -180 to 180 and latitude 90 (top)
to -90, as ET-DK2 counts.
"""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.parsing.kept import kept
from gazeveil.io.source import read_text

#: What the numbers of a box may mean.
UNITS = ("deg", "px", "fraction", "lonlat")

#: Stands for every stimulus.
EVERY = "*"

_EDGES = ("left", "top", "right", "bottom")

# Names by which tables call things; the first of each is ours.
_STIMULUS = (
    "stimulus",
    "stimuli",
    "image",
    "img",
    "image_name",
    "img_name",
    "image_index",
    "img_index",
    "img_id",
    "image_id",
    "file",
    "filename",
    "scene",
)
_NAME = ("name", "area", "aoi", "aoi_name", "aoi_id", "aoi_index", "label", "roi")
_BOX_NAMES = (
    _EDGES,
    ("x_min", "y_min", "x_max", "y_max"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("min_x", "min_y", "max_x", "max_y"),
    ("x0", "y0", "x1", "y1"),
    ("x1", "y1", "x2", "y2"),
)
_SIZE_NAMES = (
    ("x", "y", "width", "height"),
    ("left", "top", "width", "height"),
    ("x", "y", "w", "h"),
)
_MANY = re.compile(r"^(?:aoi|area|roi)_?(\d+)_(.+)$")
_REMEDY = "See the page on areas of interest for the columns that are known."


@dataclass(frozen=True)
class Area:
    """A box as a file has it.

    Parameters
    ----------
    stimulus : str
        What it lies on; :data:`EVERY` for all.
    name : str
        What it is.
    left, top, right, bottom : float
        Its edges in `unit`.
    unit : str
        One of :data:`UNITS`, or nothing where the file does not say.
    size_px : tuple of float, optional
        Width and height of the stimulus in pixels.
    """

    stimulus: str
    name: str
    left: float
    top: float
    right: float
    bottom: float
    unit: str = ""
    size_px: tuple[float, float] | None = None


def read_areas(path: str | Path) -> tuple[Area, ...]:
    """The boxes of a file; the kind goes by its ending (`.toml`, `.json`, else CSV), gzip or not.

    Raises
    ------
    FormatError
        For a file that cannot be read as areas.
    """
    return _read(Path(path))


@kept(8)
def _read(file: Path) -> tuple[Area, ...]:
    text = read_text(file)
    name = file.name.lower().removesuffix(".gz")
    if name.endswith(".toml"):
        try:
            areas = _from_object(file, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise FormatError(file, f"it is not TOML ({error})", "Mend the line.") from error
    elif name.endswith(".json"):
        try:
            areas = _from_object(file, json.loads(text))
        except (json.JSONDecodeError, RecursionError) as error:
            raise FormatError(
                file, "it is not whole JSON", "Copy it again; it was cut or edited."
            ) from error
    else:
        areas = _from_csv(file, text)
    if not areas:
        raise FormatError(
            file, "it holds no area", "Add one, with stimulus, name, left, top, right and bottom."
        )
    return areas


def _from_object(file: Path, content: object) -> tuple[Area, ...]:
    if not isinstance(content, dict):
        raise FormatError(
            file,
            "it holds a list or a value where an object was expected",
            "Put the boxes in a list named 'area'.",
        )
    if content and all(
        isinstance(entry, dict) and "target_bbox" in entry for entry in content.values()
    ):
        return tuple(_target(file, image, entry) for image, entry in content.items())
    listed = content.get("area")
    if not isinstance(listed, list) or not all(isinstance(box, dict) for box in listed):
        raise FormatError(
            file,
            "it has no list 'area' of boxes",
            "Write one [[area]] with stimulus, name, left, top, right and bottom per box.",
        )
    for key in content:
        if key not in ("area", "unit", "size_px"):
            raise FormatError(file, f"'{key}' is not known", "Known are area, unit and size_px.")
    areas = []
    for number, box in enumerate(listed, start=1):
        for key in box:
            if key not in (*_EDGES, "stimulus", "name", "unit", "size_px"):
                raise FormatError(
                    file,
                    f"'{key}' of area {number} is not known",
                    f"Known are stimulus, name, {', '.join(_EDGES)}, unit and size_px.",
                )
        where = f"area {number}"
        unit = _unit(file, box.get("unit", content.get("unit", "")))
        size = _size(file, box.get("size_px", content.get("size_px")))
        left, top, right, bottom = (_number(file, where, edge, box.get(edge)) for edge in _EDGES)
        stimulus, name = str(box.get("stimulus", EVERY)), str(box.get("name", where))
        areas.append(Area(stimulus, name, left, top, right, bottom, unit, size))
    return tuple(areas)


def _target(file: Path, image: str, entry: Mapping[str, object]) -> Area:
    box = entry["target_bbox"]
    if not isinstance(box, list) or len(box) != 4:
        raise FormatError(
            file,
            f"the target box of '{image}' has not 4 numbers",
            "Copy the file again from the publisher.",
        )
    top, left, bottom, right = (
        _number(file, f"the target box of '{image}'", "edge", v) for v in box
    )
    size = _size(file, [entry.get("image_width"), entry.get("image_height")])
    return Area(
        image, str(entry.get("target_object") or "target"), left, top, right, bottom, "px", size
    )


def _from_csv(file: Path, text: str) -> tuple[Area, ...]:
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    separator = max(",;\t", key=lines[0].count) if lines else ","
    try:
        header, *rows = [
            [cell.strip() for cell in cells]
            for cells in csv.reader(StringIO("\n".join(lines)), delimiter=separator)
        ] or [[]]
    except csv.Error as error:
        raise FormatError(file, f"it is no CSV ({error})", "Save it as CSV again.") from error
    header = [re.sub(r"[\s.\-]+", "_", cell.lower()) for cell in header]
    sets = _sets(file, header)
    stimulus = next((header.index(n) for n in _STIMULUS if n in header), None)
    areas: list[Area] = []
    for number, cells in enumerate(rows, start=2):
        if len(cells) != len(header):
            raise FormatError(
                file,
                f"row {number} has {len(cells)} cells where the header has {len(header)}",
                "Mend the row.",
            )
        row = dict(zip(header, cells, strict=True))
        stimulus_name = EVERY if stimulus is None else row[header[stimulus]] or EVERY
        for prefix, names, sized, suffix in sets:
            if prefix and not any(row[prefix + n + suffix] for n in names):
                continue  # an image may have fewer boxes than the table has room for
            where = f"row {number}"
            a, b, c, d = (
                _number(file, where, prefix + n + suffix, row[prefix + n + suffix]) for n in names
            )
            if sized:
                c, d = a + c, b + d
            unit = suffix[1:] or _unit(file, row.get("unit", ""))
            size = (
                _size(file, [row["width_px"], row["height_px"]])
                if "width_px" in row and "height_px" in row and not sized
                else None
            )
            name = prefix.rstrip("_") or next(
                (row[n] for n in _NAME if row.get(n)), f"area {len(areas) + 1}"
            )
            areas.append(Area(stimulus_name, name, a, b, c, d, unit, size))
    return tuple(areas)


def _sets(file: Path, header: list[str]) -> list[tuple[str, tuple[str, ...], bool, str]]:
    """(prefix, the four columns, whether the last two are a size, suffix) of each
    box a row holds.
    """
    sets: list[tuple[str, tuple[str, ...], bool, str]] = []
    for prefix in ["", *sorted({h[: m.start(2)] for h in header if (m := _MANY.match(h))})]:
        for names, sized in [*((n, False) for n in _BOX_NAMES), *((n, True) for n in _SIZE_NAMES)]:
            suffix = next(
                (s for s in ("", "_px", "_deg") if all(prefix + n + s in header for n in names)),
                None,
            )
            if suffix is not None:
                sets.append((prefix, names, sized, suffix))
                break
    if not sets:
        raise FormatError(
            file,
            f"its columns ({', '.join(header[:12])}) do not say where the boxes are",
            f"Name them {', '.join(_EDGES)}. {_REMEDY}",
        )
    return sets


def _number(file: Path, where: str, name: str, value: object) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(
            file,
            f"'{name}' of {where} is {'missing' if value in (None, '') else 'not a number'}",
            f"Each box needs {', '.join(_EDGES)}.",
        )
    return number


def _unit(file: Path, value: object) -> str:
    if value not in ("", *UNITS):
        raise FormatError(
            file, f"the unit '{value}' is not known", f"Write one of {', '.join(UNITS)}."
        )
    return str(value)


def _size(file: Path, value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise FormatError(
            file, "size_px is not a width and a height", "Write for example size_px = [4096, 2048]."
        )
    width, height = (
        _number(file, "size_px", n, v) for n, v in zip(("width", "height"), value, strict=True)
    )
    if not (width > 0 and height > 0):
        raise FormatError(
            file, "size_px must be above zero", "Write for example size_px = [4096, 2048]."
        )
    return width, height
