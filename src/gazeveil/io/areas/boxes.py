"""Areas of interest of a recording: boxes from a file (:mod:`gazeveil.io.areas.area_file`),
from the dataset, or a public grid.

A box is a rectangle in degrees of the recording's space. It holds its left and top edge but not its
right and bottom one, so boxes that touch share no point. On a sphere `left` may be larger than
`right`: such a box reaches over the seam at 0/360.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas.area_file import EVERY, UNITS, Area, read_areas


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
    """The boxes of a file (:func:`~gazeveil.io.areas.area_file.read_areas`) that lie on a stimulus,
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
