"""`gazeveil evaluate`: run a study and say what attackers get and what analysts keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    WorkersOption,
    options,
    write_json,
)
from gazeveil.cli.parts import is_of_parts, run_parts
from gazeveil.cli.printing import figures, show
from gazeveil.cli.progress import bar
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results
    from gazeveil.evaluation.study import Study

NAME = "evaluate"
HELP = """Attack protected recordings and measure what they are still good for: a study from a
file, or a quick one on recordings.

A study that was stopped goes on where it was when it is started again with the same folder.

Examples: `gazeveil evaluate study.toml --out results/`

`gazeveil evaluate recordings/ -m gaussian:sigma_deg=5 -a linkage -u saliency --out results/`"""


def command(
    path: Annotated[
        Path,
        typer.Argument(
            help="A study (.toml), or a file or folder of recordings.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for the results, the report and the finished cells."
        ),
    ] = Path("evaluation"),
    mechanisms: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME:PARAMETER=VALUE,...",
            help="See `gazeveil mechanisms`.",
            show_default=False,
        ),
    ] = None,
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            "-a",
            metavar="NAME:...",
            help="linkage and rbfn by default.",
            show_default=False,
        ),
    ] = None,
    utilities: Annotated[
        list[str] | None,
        typer.Option(
            "--utility",
            "-u",
            metavar="NAME:...",
            help="E.g. saliency, aoi, signal.",
            show_default=False,
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="TRAIN/TEST",
            help="raw/private and private/private by default.",
            show_default=False,
        ),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            "--repetitions",
            "-r",
            help="Draws of split and noise; 10 by default.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Everything random follows from it; 0 by default.", show_default=False
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", help="stimulus (default), halves or session.", show_default=False),
    ] = None,
    train: Annotated[
        float | None,
        typer.Option(
            "--train", help="Share of stimuli to learn from; 0.75 by default.", show_default=False
        ),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events", help="redetected (default), carried, or both.", show_default=False
        ),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            help="What table mechanisms protect: events (default) or windows.",
            show_default=False,
        ),
    ] = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    workers: WorkersOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="A Dask scheduler, e.g. tcp://10.0.0.1:8786.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html and its pictures.")
    ] = True,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="The short form of a study with parts: fewer people and repetitions."
        ),
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Run a study."""
    given: dict[str, Any] = {
        "mechanisms": mechanisms,
        "attacks": attacks,
        "utilities": utilities,
        "scenarios": scenarios,
        "split": split,
        "train": train,
        "events": events,
        "tables": tables,
        "format": format_name,
        "set": settings,
        "screen": screen,
    }
    said = {k: v for k, v in given.items() if v not in (None, [])}
    counts: dict[str, Any] = {
        k: v for k, v in (("repetitions", repetitions), ("seed", seed)) if v is not None
    }
    if cluster is not None and workers is not None:
        raise ParameterError(
            "--workers and --cluster exclude one another: a cluster has workers of its own.",
            name="--workers",
            got=workers,
        )
    executor = cluster if cluster is not None else workers
    if is_of_parts(path):
        from gazeveil.papers.page import write

        results = run_parts(path, out, quick, said, counts, executor)
        where = write(results, out) if report else None
    else:
        results = _plain(path, out, quick, said, counts, executor)
        where = results.report(out) if report else None
    Console(highlight=False, soft_wrap=True).print(
        f"Results: {out}" + (f"    Report: {where}" if where is not None else ""), markup=False
    )
    write_json(json_file, figures(results))


def _plain(
    path: Path,
    out: Path,
    quick: bool,
    said: dict[str, Any],
    counts: dict[str, Any],
    executor: str | int | None,
) -> Results:
    """Run a study of one cohort and show what it found."""
    if quick:
        raise ParameterError(
            f"--quick is the short form of a study with parts, and {path} has none. Use"
            " --repetitions.",
            name="--quick",
            got=quick,
        )
    study = _study(path, said, counts)
    from gazeveil.evaluation.run import run

    with bar("Computing cells") as progress:
        results = run(study, out, executor, progress)
    show(results)
    return results


def _study(path: Path, said: dict[str, Any], counts: dict[str, Any]) -> Study:
    from gazeveil.evaluation.api import DEFAULT_ATTACKS
    from gazeveil.evaluation.sources import Files
    from gazeveil.evaluation.study import Study

    if path.suffix.lower() == ".toml":
        if said:
            name = next(iter(said))
            raise ParameterError(
                f"The study {path} says its {name} itself: edit the file, or give recordings"
                " instead of a study.",
                name=name,
                got=said[name],
            )
        return replace(Study.read(path), **counts)
    given = options(
        said.pop("set", None),
        said.pop("screen", None),
        {"path": "the argument PATH", "format": "--format", "screen": "--screen"},
    )
    source = Files(str(path), said.pop("format", None), given)
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
    if "attacks" not in lists and "utilities" not in lists:
        lists["attacks"] = DEFAULT_ATTACKS
    return Study(source, **lists, **counts)
