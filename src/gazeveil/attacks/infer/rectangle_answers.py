"""Answers about rectangles as a Gatekeeper might give them: what the reconstruction attack asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools
from gazeveil.errors import DataError

#: Left, top, right, bottom, in degrees; y grows downwards.
Rectangle: TypeAlias = tuple[float, float, float, float]

#: A number, or handles that stay the same from answer to answer.
Answer: TypeAlias = float | Collection[Hashable]


def exact_answers(
    x_deg: ArrayLike, y_deg: ArrayLike, handles: bool = False, least_deg: float = 0.0
) -> Callable[[Rectangle], Answer]:
    """The answers of a Gatekeeper that takes every rectangle at its word, or widens those below a
    least side about their middle.
    """
    x, y = (np.asarray(a, dtype=np.float64) for a in (x_deg, y_deg))

    def answer(rectangle: Rectangle) -> Answer:
        left, top, right, bottom = rectangle
        more_x, more_y = (
            max(0.0, least_deg - (b - a)) / 2 for a, b in ((left, right), (top, bottom))
        )
        inside = (
            (x >= left - more_x)
            & (x < right + more_x)
            & (y >= top - more_y)
            & (y < bottom + more_y)
        )
        return _counted(inside, handles)

    return answer


def snapped_answers(
    x_deg: ArrayLike,
    y_deg: ArrayLike,
    area_deg: Rectangle,
    grid_deg: float,
    least_deg: float = 0.0,
    handles: bool = False,
) -> Callable[[Rectangle], Answer]:
    """The answers of a Gatekeeper that widens rectangles to the lines of a public grid (from the
    area's left top corner) and to a least side.
    """
    left, top, _, _ = checked_area(area_deg)
    grid = checks.positive("snapped_answers", "grid_deg", grid_deg)
    least = checks.not_negative("snapped_answers", "least_deg", least_deg)
    origin = np.array([left, top])
    x, y = (np.asarray(a, dtype=np.float64) for a in (x_deg, y_deg))
    cell = np.floor((np.stack((x, y), axis=1) - origin) / grid)

    def answer(rectangle: Rectangle) -> Answer:
        low = np.floor((np.array(rectangle[:2]) - origin) / grid + 1e-9)
        high = np.ceil((np.array(rectangle[2:]) - origin) / grid - 1e-9)
        high = np.maximum(high, low + max(1, math.ceil(least / grid - 1e-9)))
        inside = ((cell >= low) & (cell < high)).all(axis=1)
        return _counted(inside, handles)

    return answer


def _counted(inside: Bools, handles: bool) -> Answer:
    return np.flatnonzero(inside).tolist() if handles else int(np.count_nonzero(inside))


def checked_area(area_deg: Rectangle) -> Rectangle:
    """An area whose edges are numbers in order."""
    left, top, right, bottom = (checks.number("rebuild", "area_deg", v) for v in area_deg)
    if not (left < right and top < bottom):
        raise DataError(
            f"An area needs left < right and top < bottom. Got {(left, top, right, bottom)}."
        )
    return left, top, right, bottom
