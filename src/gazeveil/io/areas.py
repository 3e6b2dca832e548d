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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.source import kept, read_text

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
            columns = [prefix + n + suffix for n in names]
            a, b, c, d = (_number(file, f"row {number}", n, row[n]) for n in columns)
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


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes on one stimulus, in degrees of its space.

    Parameters
    ----------
    names : tuple of str
        One per box.
    left_deg, top_deg, right_deg, bottom_deg : array of float64, shape (boxes,)
        Edges. On a sphere `left_deg` lies in [0, 360) and `right_deg` at most 360 beyond it.
    space : Sphere or Screen
        What the degrees mean.
    """

    names: tuple[str, ...]
    left_deg: Floats
    top_deg: Floats
    right_deg: Floats
    bottom_deg: Floats
    space: Space

    def __len__(self) -> int:
        return len(self.names)

    def hold(self, x_deg: ArrayLike, y_deg: ArrayLike) -> Bools:
        """Which places lie in which box, shape (places, boxes); NaN lies in none."""
        x, y = (
            np.asarray(x_deg, dtype=np.float64)[:, None],
            np.asarray(y_deg, dtype=np.float64)[:, None],
        )
        if isinstance(self.space, Sphere):
            across = np.mod(x - self.left_deg, 360.0) < self.right_deg - self.left_deg
        else:
            across = (x >= self.left_deg) & (x < self.right_deg)
        inside: Bools = across & (y >= self.top_deg) & (y < self.bottom_deg)
        return inside


def grid(space: Space, rows: int, columns: int) -> Boxes:
    """Equal boxes that cover the whole space, named `row 1, column 1` from the top left: equal in
    pixels on a screen, in degrees on a sphere.
    """
    down, across = np.linspace(0.0, 1.0, rows + 1), np.linspace(0.0, 1.0, columns + 1)
    areas = [
        Area(EVERY, f"row {i}, column {j}", left, top, right, bottom, "fraction")
        for i, (top, bottom) in enumerate(pairwise(down.tolist()), start=1)
        for j, (left, right) in enumerate(pairwise(across.tolist()), start=1)
    ]
    return place(areas, space)


def place(areas: Iterable[Area], space: Space) -> Boxes:
    """Boxes in degrees of a space.

    Raises
    ------
    DataError
        For a box that is empty there, or whose unit has no meaning there.
    """
    listed = tuple(areas)
    edges = np.array(
        [_in_degrees(a, space, a.unit or "deg") for a in listed], dtype=np.float64
    ).reshape(-1, 4)
    return Boxes(
        tuple(a.name for a in listed), edges[:, 0], edges[:, 1], edges[:, 2], edges[:, 3], space
    )


def _in_degrees(area: Area, space: Space, unit: str) -> tuple[float, float, float, float]:
    left, top, right, bottom = area.left, area.top, area.right, area.bottom
    who = f"Area '{area.name}' of stimulus '{area.stimulus}'"
    if unit == "px":
        size = area.size_px or (
            (space.width_px, space.height_px) if isinstance(space, Screen) else None
        )
        if size is None:
            raise DataError(
                f"{who} is given in pixels of a panorama whose size is not known. Say it: size_px ="
                " [width, height] in the file."
            )
        left, right, top, bottom = left / size[0], right / size[0], top / size[1], bottom / size[1]
    elif unit == "lonlat":
        if isinstance(space, Screen):
            raise DataError(
                f"{who} is given in longitude and latitude, but the recordings are on a screen."
                " Give it in px or deg."
            )
        left, right, top, bottom = left + 180.0, right + 180.0, 90.0 - top, 90.0 - bottom
    if unit in ("px", "fraction"):
        if isinstance(space, Screen):
            x, y = space.from_px(
                [left * space.width_px, right * space.width_px],
                [top * space.height_px, bottom * space.height_px],
            )
            left, right, top, bottom = float(x[0]), float(x[1]), float(y[0]), float(y[1])
        else:
            left, right, top, bottom = 360.0 * left, 360.0 * right, 180.0 * top, 180.0 * bottom
    if isinstance(space, Sphere):
        fits, allowed = (
            0 <= left <= 360 and 0 <= right <= 360 and top >= 0 and bottom <= 180,
            "x from 0 to 360 and y from 0 to 180 degrees",
        )
        # A box from 350 to 10 reaches over the seam.
        right += 360.0 if right < left else 0.0
    else:
        fits, allowed = (
            left > -90 and right < 90 and top > -90 and bottom < 90,
            "-90 to 90 degrees both ways",
        )
    if not (left < right and top < bottom):
        raise DataError(
            f"{who} is empty in the unit '{unit}': its left edge must lie left of its right one,"
            " its top edge above its bottom one."
        )
    if not fits:
        raise DataError(
            f"{who} reaches beyond {allowed}. If its numbers are no {unit}, say so: unit ="
            f" {', '.join(UNITS)}."
        )
    return left, top, right, bottom


def boxes_on(
    path: str,
    stimulus: str,
    space: Space,
    index: str = "",
    unit: str = "",
    size_px: tuple[float, float] | None = None,
) -> Boxes | None:
    """The boxes of a file (:func:`~gazeveil.io.areas.read_areas`) that lie on a stimulus,
    by its name or its number in the dataset; None where there are none. `unit` and `size_px` hold
    where the file does not say.
    """
    mine = [
        replace(a, unit=a.unit or unit, size_px=a.size_px or size_px)
        for a in _on(read_areas(path), stimulus, index)
    ]
    return place(mine, space) if mine else None


class AreaLookup:
    """Which boxes lie on which recording.

    Parameters
    ----------
    areas : str
        A file, `dataset` (the boxes the recordings came with: `metadata["target_box_deg"]`, or the
        file `metadata["aoi_file"]` of ET-DK2), or nothing: a grid.
    rows, columns : int
        The grid where there are no areas; on a sphere it has 2 `columns` + 1 columns, so that
        straight ahead lies in the middle of one.
    unit : str
        What the numbers of a file mean where it does not say: one of :data:`UNITS`, degrees where
        this is empty.
    size_px : tuple of float, optional
        Width and height of the stimuli in pixels, where the file does not say.
    """

    def __init__(
        self,
        areas: str = "",
        rows: int = 3,
        columns: int = 3,
        unit: str = "",
        size_px: tuple[float, float] | None = None,
    ) -> None:
        self.areas, self.rows, self.columns = areas, rows, columns
        self.unit, self.size_px = unit, size_px
        self._kept: dict[tuple[str, str, Space, str], Boxes | None] = {}

    def of(self, recording: Recording) -> Boxes | None:
        """The boxes of a recording as recorded; None where its stimulus has none."""
        space, source = recording.space, self.areas
        if source == "dataset":
            box = recording.metadata.get("target_box_deg")
            if isinstance(box, tuple) and len(box) == 4:
                left, top, right, bottom = (float(v) for v in box)
                return place(
                    [Area(recording.stimulus, "target", left, top, right, bottom, "deg")], space
                )
            source = str(recording.metadata.get("aoi_file", ""))
            if not source:
                raise DataError(
                    f"The {recording.title} came with no areas. Give a file with areas=, or leave"
                    " areas= out for a grid."
                )
        index = str(recording.metadata.get("image_index", ""))
        key = (source, recording.stimulus, space, index)
        if key not in self._kept:
            self._kept[key] = self._find(source, recording.stimulus, index, space)
        return self._kept[key]

    def _find(self, source: str, stimulus: str, index: str, space: Space) -> Boxes | None:
        if not source:
            # An odd number of columns: straight ahead, where people look most, must not lie on an
            # edge.
            columns = 2 * self.columns + 1 if isinstance(space, Sphere) else self.columns
            return grid(space, self.rows, columns)
        return boxes_on(source, stimulus, space, index, self.unit, self.size_px)

    def named(self) -> str:
        """The first stimuli a file names, for messages."""
        names = (
            list(dict.fromkeys(a.stimulus for a in read_areas(self.areas)))
            if self.areas not in ("", "dataset")
            else []
        )
        return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _on(areas: Iterable[Area], stimulus: str, index: str) -> Iterator[Area]:
    """The areas on a stimulus: by its name, else by its name without ending, else by its number in
    the dataset; and those on every one.
    """
    known = tuple(areas)
    names = {a.stimulus for a in known}
    stems = {_stem(n): n for n in names if n != EVERY}
    name = (
        stimulus
        if stimulus in names
        else stems.get(_stem(stimulus), index if index in names else "")
    )
    yield from (a for a in known if a.stimulus == EVERY or (name and a.stimulus == name))


def _stem(name: str) -> str:
    return re.sub(r"\.[a-z0-9]{2,4}$", "", name.strip().lower())
