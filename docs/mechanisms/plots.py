"""Draw the plot of a mechanism's page: `python docs/mechanisms/plots.py NAME ...`, or all of them without a name.

Each `plot_<name>.py` beside this file has a function `draw(path)`; the picture goes to docs/figures/<name>.png.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
FIGURES = HERE.parent / "figures"


def main(names: list[str]) -> None:
    """Draw the named plots, or all."""
    sys.path.insert(0, str(HERE))
    FIGURES.mkdir(exist_ok=True)
    for name in names or sorted(p.stem.removeprefix("plot_").replace("_", "-") for p in HERE.glob("plot_*.py")):
        path = FIGURES / f"{name}.png"
        import_module("plot_" + name.replace("-", "_")).draw(path)
        print(f"{path} ({path.stat().st_size // 1024} KB)")


if __name__ == "__main__":
    main(sys.argv[1:])
