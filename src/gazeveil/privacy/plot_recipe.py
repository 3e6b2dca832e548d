"""What the picture of a mechanism's page shows, said by the mechanism itself."""

from __future__ import annotations

from dataclasses import dataclass

#: Drawings that several mechanisms share, and `own`: the module of `drawings` named like it.
DRAWINGS = ("streams", "features", "population", "own")


@dataclass(frozen=True)
class PlotRecipe:
    """A drawing and the releases in it; `docs/reference/mechanisms/recipes.py` draws them.

    Parameters
    ----------
    drawing : str
        One of :data:`DRAWINGS` (gaze over time and in space, one feature and its expected error,
        one person and where a population looks), or `module:function`, which takes a path.
    releases : tuple of str
        Mechanisms as `name:parameter=value,...`, or `:parameter=value,...` for the one whose recipe
        this is.
    errors : tuple of str
        For `features`: mechanisms without epsilon, whose error is drawn against it.
    """

    drawing: str
    releases: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
