"""The precision level of a device: how coarse the places and times are that any app can learn.

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
