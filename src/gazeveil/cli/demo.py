"""`gazeveil demo`: the tour on the embedded default: simulate, inspect, protect samples and features, and audit two promises."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gazeveil.cli import inspect
from gazeveil.cli.arguments import track
from gazeveil.cli.figures import draw_overview, draw_protected
from gazeveil.errors import DataError
from gazeveil.features import window_features
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.simulate import simulate
from gazeveil.io.parquet import INDEX, write
from gazeveil.io.registry import read
from gazeveil.privacy.audit.run import audit
from gazeveil.privacy.registry import mechanism

NAME = "demo"
HELP = """Simulate people, look at them, protect them, and audit what that promises: the tour on the embedded default, without any data of yours.

Example: `gazeveil demo --out demo`"""

_SEED = 2026
_STREAMS = ("gaussian:sigma_deg=3", "kaleido-uniform:epsilon=10,w=60,r_deg=2")
_TABLES = ("dct-knorm:epsilon=10", "k-same-select:k=4")
_AUDITS = ("lpa:epsilon=1", "exponential-dp:epsilon=1,reading=published")


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for the recordings and the pictures.")] = Path("demo"),
) -> None:
    """Run the tour."""
    console = Console(highlight=False)
    headset = _cohort(console, out, "headset", simulate(12, 4, 30.0, 120.0, task="free-viewing", seed=_SEED))
    reading = _cohort(console, out, "reading", simulate(12, 3, 30.0, 250.0, task="reading", seed=_SEED))
    console.rule("samples, protected one at a time")
    recording = headset[0]
    releases = [mechanism(text).release(recording) for text in _STREAMS]
    for release in releases:
        console.print(f"{release.guarantee}\n")
    draw_protected(recording, [(text, release.data) for text, release in zip(_STREAMS, releases, strict=True)], out / "protected.png")
    console.print(f"Picture: {out / 'protected.png'}")
    console.rule("features, protected as a table")
    table = window_features(reading, window_s=10.0, step_s=0.5)
    for text in _TABLES:
        console.print(f"{mechanism(text).release(table).guarantee}\n")
    console.rule("promises, attacked")
    for text in track(_AUDITS, len(_AUDITS), "Auditing"):
        console.print(f"{audit(text, trials=20_000)}\n")
    console.rule()
    console.print("Next: gazeveil inspect YOUR_RECORDINGS --plot overview.png")


def _cohort(console: Console, out: Path, name: str, cohort: Cohort) -> Cohort:
    folder = out / name
    _clear(folder)
    console.rule(f"{name}: simulated people, {cohort[0].task}")
    write(cohort, folder, progress=partial(track, total=len(cohort), what="Simulating"))
    written = read(folder)
    summary = inspect.show(written, rows=4)
    draw_overview(written, summary, out / f"{name}.png")
    console.print(f"Picture: {out / name}.png    Recordings: {folder}")
    return written


def _clear(folder: Path) -> None:
    """Remove what an earlier demo wrote, and nothing else."""
    if not folder.exists():
        return
    if not (folder / INDEX).is_file():
        raise DataError(f"{folder} exists and was not written by the demo. Choose another folder with --out.")
    shutil.rmtree(folder)
