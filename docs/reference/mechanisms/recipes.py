"""Draw the picture of a mechanism's page: `python docs/reference/mechanisms/recipes.py NAME ...`,
or all of them without a name. The picture goes to docs/figures/<name>.png.

What is drawn is the mechanism's attribute `plot`. A mechanism whose drawing is `own` has a module
with a function `draw(path)` in `drawings`, named like it with `_` for `-`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from gazeveil.privacy.mechanism import PlotRecipe
from gazeveil.privacy.registry import BUILT_IN, get

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "figures"
sys.path.insert(0, str(HERE / "drawings"))

#: Drawings that several mechanisms share.
SHARED = {
    "streams": "stream_traces:draw_streams",
    "features": "traces:draw_pair",
    "population": "synthetic_traces:draw_synthesis",
}
#: Pictures of what is no mechanism of its own.
OTHERS = ("graded",)


def names() -> list[str]:
    """Everything that has a picture here."""
    return sorted([*BUILT_IN, *OTHERS])


def lines(name: str, texts: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """What is drawn, as (label, mechanism, colour); a text without a name is this mechanism's."""
    return tuple(
        (text[1:] or "default", name + text, f"C{i}")
        if text.startswith(":")
        else (text, text, f"C{i}")
        for i, text in enumerate(texts)
    )


def draw(name: str, path: Path) -> None:
    """Draw one picture."""
    recipe = PlotRecipe("own") if name in OTHERS else get(name).plot
    own = f"{name.replace('-', '_')}:draw" if recipe.drawing == "own" else recipe.drawing
    module, _, function = SHARED.get(recipe.drawing, own).partition(":")
    shown = [lines(name, texts) for texts in (recipe.releases, recipe.errors) if texts]
    getattr(import_module(module), function)(path, *shown)


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for each in sys.argv[1:] or names():
        picture = FIGURES / f"{each}.png"
        draw(each, picture)
        print(f"{picture} ({picture.stat().st_size // 1024} KB)")
