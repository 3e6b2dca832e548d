"""What the picture of a mechanism's page shows, said by the mechanism itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: Drawings that several mechanisms share, and `own`: the module of `drawings` named like it.
DRAWINGS = ("streams", "features", "population", "own")

#: What is drawn, as (label, mechanism, colour).
Lines: TypeAlias = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class PlotRecipe:
    """A drawing and the releases in it; `docs/reference/mechanisms/recipes.py` draws them.

    Parameters
    ----------
    drawing : str
        One of :data:`DRAWINGS` (gaze over time and in space, one feature and its expected error,
        one person and where a population looks), or `module:function`, which takes a path.
    releases : tuple of (label, mechanism, colour)
        Mechanisms as `name:parameter=value,...`, or `:parameter=value,...` for the one whose recipe
        this is; colours as matplotlib has them.
    errors : tuple of (label, mechanism, colour)
        For `features`: mechanisms without epsilon, whose error is drawn against it.
    """

    drawing: str
    releases: Lines = ()
    errors: Lines = ()

    def of(self, name: str) -> PlotRecipe:
        """The recipe with the mechanism's name where a text leaves it out."""

        def named(lines: Lines) -> Lines:
            return tuple((a, name + text if text[0] == ":" else text, c) for a, text, c in lines)

        return PlotRecipe(self.drawing, named(self.releases), named(self.errors))
