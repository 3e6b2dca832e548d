"""What utilities about areas of interest have in common: where their areas come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

from gazeveil import checks
from gazeveil.io.areas import UNITS, AreaLookup
from gazeveil.utility.base import Utility


@dataclass(frozen=True)
class AreaUtility(Utility):
    """Base of the utilities about areas of interest.

    Parameters
    ----------
    areas : str
        A file of boxes (TOML, JSON or CSV); `dataset` for those the recordings came with; empty for
        a public grid.
    rows, columns : int
        The grid; on a sphere it has 2 `columns` + 1 columns, so 3 x 3 means 3 x 7 tiles, with
        straight ahead in the middle of one.
    unit : str
        What the numbers of the file mean where it does not say: `deg` (default), `px`, `fraction`
        or `lonlat`.
    width_px, height_px : float
        Size of the stimuli in pixels where the file does not say; 0 for the screen's own.
    """

    files: ClassVar[tuple[str, ...]] = ("areas",)

    areas: str = ""
    rows: int = 3
    columns: int = 3
    unit: str = ""
    width_px: float = 0.0
    height_px: float = 0.0

    def check(self) -> None:
        """A path, counts, a unit, a size."""
        if not isinstance(self.areas, str):
            checks.refuse(self.name, "areas", "a file's path, 'dataset', or empty", self.areas)
        for field in ("rows", "columns"):
            self.store(field, checks.count(self.name, field, getattr(self, field)))
        if self.unit != "":
            checks.one_of(self.name, "unit", self.unit, UNITS)
        for field in ("width_px", "height_px"):
            self.store(field, checks.not_negative(self.name, field, getattr(self, field)))
        if (self.width_px > 0) != (self.height_px > 0):
            checks.refuse(
                self.name,
                "height_px" if self.width_px > 0 else "width_px",
                "given together with the other",
                0,
            )

    @property
    def lookup(self) -> AreaLookup:
        """Which areas lie on which recording."""
        size = (self.width_px, self.height_px) if self.width_px > 0 else None
        return AreaLookup(self.areas, self.rows, self.columns, self.unit, size)

    @property
    def where(self) -> str:
        """Where the areas come from, in words."""
        return (
            PurePath(self.areas).name
            or f"grid of {self.rows} x {self.columns} (x {2 * self.columns + 1} on a sphere)"
        )

    @staticmethod
    def no_areas(bare: set[str], lookup: AreaLookup) -> str:
        """The sentence where nothing could be compared: the areas lie elsewhere, or no recording is
        on both sides.
        """
        if bare:
            return (
                f"The areas lie on other stimuli ({lookup.named()}) than the recordings"
                f" ({', '.join(sorted(bare)[:5])}). Name the stimuli as the cohort does."
            )
        return (
            "The release shares no recording with the raw material, so areas of interest cannot be"
            " compared."
        )
