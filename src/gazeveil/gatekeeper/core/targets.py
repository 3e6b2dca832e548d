"""Targets of a selection: rectangles that an app draws, moved outward to the public grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gazeveil.gatekeeper.core.areas import Rectangle, covering, finite, widened
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gaze.grid import Grid

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
        middle = (x + width / 2, y + height / 2)
        known[target.name] = PlacedTarget(target.name, cells, *middle, since_ns)
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
