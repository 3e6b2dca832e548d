"""Rectangles that an app draws, moved outward to the public place grid: areas of interest, and
targets, which may be chosen and may move.

Membership is decided between cells: an event is in an area if the middle of its cell is. So a
rectangle that shrinks, or a hundred that overlap, tell nothing below the grid. An area counts from
the tick at which it was registered; what was looked at before stays untold.

The precision level of a device: how coarse the places and times are that any app can learn.

One level holds for the whole device, never for one app: apps that compare their answers see one
grid and one clock. Android XR knows two permissions, `EYE_TRACKING_COARSE` and `EYE_TRACKING_FINE`,
and does not say what coarse removes; here it is stated:

=========  ===========  ======  ==================  ========
level      place grid   ticks   smallest area side  tiles
=========  ===========  ======  ==================  ========
`coarse`   5 degrees    100 ms  10 degrees          8 x 4
`fine`     1 degree     10 ms   2 degrees           36 x 18
=========  ===========  ======  ==================  ========

The grid is :class:`~gazeveil.gaze.geometry.Grid`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gaze.geometry import Grid


@dataclass(frozen=True)
class PrecisionLevel:
    """How coarse all is that any app can learn.

    Parameters
    ----------
    resolution_deg : float
        Least side of a cell of the place grid.
    tick_ms : int
        Step of the public clock.
    least_side_deg : float
        Smallest side of an area an app may register.
    tiles : (int, int)
        Columns and rows of the tiles.
    name : str
        For people.
    """

    resolution_deg: float = 5.0
    tick_ms: int = 100
    least_side_deg: float = 10.0
    tiles: tuple[int, int] = (8, 4)
    name: str = "coarse"

    def __post_init__(self) -> None:
        owner, store = type(self).__name__, object.__setattr__
        for name in ("resolution_deg", "least_side_deg"):
            store(self, name, checks.positive(owner, name, getattr(self, name)))
        store(self, "tick_ms", checks.count(owner, "tick_ms", self.tick_ms))
        if self.least_side_deg < self.resolution_deg:
            checks.refuse(owner, "least_side_deg", "at least resolution_deg", self.least_side_deg)
        if not isinstance(self.tiles, tuple | list) or len(self.tiles) != 2:
            checks.refuse(owner, "tiles", "two counts, columns and rows", self.tiles)
        store(self, "tiles", tuple(checks.count(owner, "tiles", count) for count in self.tiles))


#: The levels by name.
LEVELS: Mapping[str, PrecisionLevel] = MappingProxyType(
    {
        "coarse": PrecisionLevel(),
        "fine": PrecisionLevel(
            resolution_deg=1.0, tick_ms=10, least_side_deg=2.0, tiles=(36, 18), name="fine"
        ),
    }
)


def level_of(level: PrecisionLevel | str) -> PrecisionLevel:
    """A level, or the one of that name."""
    if isinstance(level, PrecisionLevel):
        return level
    return LEVELS[checks.one_of("Gatekeeper", "level", level, LEVELS)]


@dataclass(frozen=True)
class RegisteredArea:
    """Description of an area, for the app that owns it.

    Parameters
    ----------
    id : int
        Counts the app's own areas from 1.
    name : str
        As the app called it.
    x_deg, y_deg : float
        Left and upper edge, on the grid. On a sphere an area may go round at 360.
    width_deg, height_deg : float
        Sides, whole cells.
    since_ms : int
        Tick at which it was registered.
    """

    id: int
    name: str
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float
    since_ms: int = 0


@dataclass(frozen=True)
class Rectangle:
    """Cells of a grid: first row and column, how many of both."""

    row: int
    column: int
    rows: int
    columns: int
    all_columns: int

    def has(self, row: int, column: int) -> bool:
        """Whether a cell lies inside."""
        return (
            self.row <= row < self.row + self.rows
            and (column - self.column) % self.all_columns < self.columns
        )


def snap(
    grid: Grid,
    level: PrecisionLevel,
    x_deg: float,
    y_deg: float,
    width_deg: float,
    height_deg: float,
) -> Rectangle:
    """The smallest rectangle of whole cells that holds the one asked for.

    One that is smaller than the level allows is widened around its middle.

    Raises
    ------
    Denied
        With the code "area": not numbers, no sides, or outside the space.
    """
    asked = finite(x_deg, y_deg, width_deg, height_deg)
    if asked is None:
        raise Denied(
            "area",
            "An area is four finite numbers in degrees: x_deg, y_deg, width_deg, height_deg.",
        )
    least = level.least_side_deg
    if min(asked[2:]) <= 0:
        raise Denied("area", "Both sides of an area must be above 0.")
    cells = covering(grid, *widened(least, *asked))
    # A space smaller than the least side has one area: all of it.
    wide = cells.columns * grid.column_deg >= least - 1e-9 or cells.columns == grid.columns
    tall = cells.rows * grid.row_deg >= least - 1e-9 or cells.rows == grid.rows
    if cells.columns < 1 or cells.rows < 1 or not (wide and tall):
        raise Denied(
            "area",
            f"At least {least:g} degrees of both sides of an area must lie inside the space.",
        )
    return cells


def widened(
    least_deg: float, x_deg: float, y_deg: float, width_deg: float, height_deg: float
) -> tuple[float, float, float, float]:
    """A rectangle whose sides are at least so long, around the same middle."""
    wide, tall = max(width_deg, least_deg), max(height_deg, least_deg)
    return x_deg - (wide - width_deg) / 2, y_deg - (tall - height_deg) / 2, wide, tall


def finite(*degrees: float) -> tuple[float, ...] | None:
    """Numbers of an app as floats; None where one is no number of ordinary size."""
    try:
        values = tuple(map(float, degrees))
    except (TypeError, ValueError, OverflowError):
        return None
    return values if all(math.isfinite(v) and abs(v) <= 1e6 for v in values) else None


def covering(
    grid: Grid, x_deg: float, y_deg: float, width_deg: float, height_deg: float
) -> Rectangle:
    """The cells that hold a rectangle, as far as it lies in the space; none where it does not."""
    top, bottom = _outward(y_deg - grid.top_deg, height_deg, grid.row_deg)
    left, right = _outward(x_deg - grid.left_deg, width_deg, grid.column_deg)
    top, bottom = max(0, top), min(grid.rows, bottom)
    if grid.sphere:
        # Far from a turn of the sphere it is no place on it, but a page's word for elsewhere.
        columns = min(right - left, grid.columns) if abs(x_deg) <= 720 else 0
        left = 0 if columns == grid.columns else left % grid.columns
    else:
        left, right = max(0, left), min(grid.columns, right)
        columns = right - left
    return Rectangle(top, left, bottom - top, columns, grid.columns)


def _outward(start: float, side: float, step: float) -> tuple[int, int]:
    # A hair less than asked for: edges that come from the grid itself stay where they are.
    first = math.floor(start / step + 1e-9)
    return first, max(first + 1, math.ceil((start + side) / step - 1e-9))


def area_of(
    grid: Grid, rectangle: Rectangle, number: int, name: str, since_ms: int
) -> RegisteredArea:
    """The app's view of a rectangle."""
    return RegisteredArea(
        number,
        name,
        grid.left_deg + rectangle.column * grid.column_deg,
        grid.top_deg + rectangle.row * grid.row_deg,
        rectangle.columns * grid.column_deg,
        rectangle.rows * grid.row_deg,
        since_ms,
    )


#: Most targets of a selection.
MOST_TARGETS = 32

#: Longest name of a target.
LONGEST_NAME = 64


@dataclass(frozen=True)
class Target:
    """Something that an app draws and the wearer may choose.

    Parameters
    ----------
    name : str
        For the app itself, 1 to 64 characters; no two targets of a selection have the same.
    x_deg, y_deg : float
        Left and upper edge in degrees of the space; on a sphere x may go round.
    width_deg, height_deg : float
        Sides. The edges are moved outward to the public grid.
    """

    name: str
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


@dataclass(frozen=True)
class PlacedTarget:
    """A target on the grid: its cells, the middle it was asked for, and the session time from which
    fixations count for it.
    """

    name: str
    rectangle: Rectangle
    x_deg: float
    y_deg: float
    since_ns: int = 0


def moved(
    grid: Grid,
    placed: Sequence[PlacedTarget],
    targets: Sequence[Target],
    now_ns: int,
    least_deg: float = 0.0,
) -> tuple[PlacedTarget, ...]:
    """Targets of which some are at new places from now on; one that was moved out of the space is
    never hit. Sides are at least so long.

    Raises
    ------
    Denied
        With the code `parameter` for names that are not among them.
    """
    known = {target.name: target for target in placed}
    for target in targets:
        asked = finite(target.x_deg, target.y_deg, target.width_deg, target.height_deg)
        if target.name not in known or asked is None or min(asked[2:]) <= 0:
            reason = "A move names targets of the subscription, with four finite numbers each."
            raise Denied("parameter", reason)
        x, y, width, height = widened(least_deg, *asked)
        cells = covering(grid, x, y, width, height)
        was = known[target.name]
        since_ns = was.since_ns if cells == was.rectangle else now_ns
        known[target.name] = PlacedTarget(
            target.name, cells, x + width / 2, y + height / 2, since_ns
        )
    return tuple(known.values())


def place(grid: Grid, targets: Sequence[Target]) -> tuple[PlacedTarget, ...]:
    """Targets on the public grid.

    Raises
    ------
    Denied
        With the code `area` or `parameter`: too many or none, names that are no names or come
        twice, or sides that are no sides. One outside the space is never hit until it is moved.
    """
    if (
        not isinstance(targets, list | tuple)
        or not 1 <= len(targets) <= MOST_TARGETS
        or not all(isinstance(target, Target) for target in targets)
    ):
        raise Denied(
            "parameter",
            f"The targets of a selection are a list of 1 to {MOST_TARGETS} rectangles with names.",
        )
    names = [target.name for target in targets]
    readable = all(isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME for name in names)
    if not readable or len(set(names)) < len(names):
        raise Denied(
            "parameter",
            f"The names of targets are texts of 1 to {LONGEST_NAME} characters, each different from"
            " the others.",
        )
    return tuple(_placed(grid, target) for target in targets)


def _placed(grid: Grid, target: Target) -> PlacedTarget:
    asked = finite(target.x_deg, target.y_deg, target.width_deg, target.height_deg)
    if asked is None or min(asked[2:]) <= 0:
        raise Denied(
            "area",
            "A target is a name and four finite numbers in degrees: x_deg, y_deg, width_deg,"
            " height_deg, both sides above 0.",
        )
    x, y, width, height = asked
    return PlacedTarget(target.name, covering(grid, *asked), x + width / 2, y + height / 2)
