"""`gazeveil demo`: a simulated cohort, inspected, with its events and what its features give away, on the embedded default."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gazeveil.cli import inspect
from gazeveil.cli.arguments import track
from gazeveil.cli.figures import draw_overview
from gazeveil.errors import DataError
from gazeveil.gaze.simulate import simulate
from gazeveil.io.parquet import INDEX, write
from gazeveil.io.registry import read

NAME = "demo"
HELP = """Simulate a cohort, look at it, and draw it: the tour on the embedded default, without any data of yours.

Example: `gazeveil demo --out demo`"""

_SEED = 2026


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the recordings and the pictures.")] = Path("demo"),
) -> None:
    """Run the tour."""
    console = Console()
    for name, cohort in (
        ("headset", simulate(12, 4, 30.0, 120.0, task="free-viewing", seed=_SEED)),
        ("reading", simulate(12, 3, 30.0, 250.0, task="reading", seed=_SEED)),
    ):
        folder = out / name
        _clear(folder)
        console.rule(f"{name}: simulated people, {cohort[0].task}")
        write(cohort, folder, progress=partial(track, total=len(cohort), what="Simulating"))
        written = read(folder)
        summary = inspect.show(written, rows=4)
        draw_overview(written, summary, out / f"{name}.png")
        console.print(f"Picture: {out / name}.png    Recordings: {folder}", highlight=False)
    console.rule()
    console.print("Next: gazeveil inspect YOUR_RECORDINGS --plot overview.png", highlight=False)


def _clear(folder: Path) -> None:
    """Remove what an earlier demo wrote, and nothing else."""
    if not folder.exists():
        return
    if not (folder / INDEX).is_file():
        raise DataError(f"{folder} exists and was not written by the demo. Choose another folder with --out.")
    shutil.rmtree(folder)
