"""The public level of a device: how coarse the places and times are that any app can learn.

One level holds for the whole device, never for one app: apps that compare their answers see one
grid and one clock. Android XR knows two permissions, `EYE_TRACKING_COARSE` and `EYE_TRACKING_FINE`,
and does not say what coarse removes; here it is stated:

=========  ===========  ======  ==================  ========
level      place grid   ticks   smallest area side  tiles
=========  ===========  ======  ==================  ========
`coarse`   5 degrees    100 ms  10 degrees          8 x 4
`fine`     1 degree     10 ms   2 degrees           36 x 18
=========  ===========  ======  ==================  ========

The grid is :class:`~gazeveil.gaze.grid.Grid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gaze.grid import Grid

__all__ = ["LEVELS", "Grid", "Level", "level_of"]


@dataclass(frozen=True)
class Level:
    """How coarse everything is.

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
        store = object.__setattr__
        store(
            self, "resolution_deg", checks.positive("Level", "resolution_deg", self.resolution_deg)
        )
        store(self, "tick_ms", checks.count("Level", "tick_ms", self.tick_ms))
        store(
            self, "least_side_deg", checks.positive("Level", "least_side_deg", self.least_side_deg)
        )
        if self.least_side_deg < self.resolution_deg:
            checks.refuse("Level", "least_side_deg", "at least resolution_deg", self.least_side_deg)
        if not isinstance(self.tiles, tuple | list) or len(self.tiles) != 2:
            checks.refuse("Level", "tiles", "two counts, columns and rows", self.tiles)
        store(
            self,
            "tiles",
            (
                checks.count("Level", "tiles", self.tiles[0]),
                checks.count("Level", "tiles", self.tiles[1]),
            ),
        )


#: The levels by name.
LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "coarse": Level(),
        "fine": Level(
            resolution_deg=1.0, tick_ms=10, least_side_deg=2.0, tiles=(36, 18), name="fine"
        ),
    }
)


def level_of(level: Level | str) -> Level:
    """A level, or the one of that name."""
    return (
        level
        if isinstance(level, Level)
        else LEVELS[checks.one_of("Gatekeeper", "level", level, LEVELS)]
    )
