"""What `gazeveil evaluate` and `gazeveil reproduce` share: their options, and the run of a study of
several parts with the published values beside ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import say, write_json
from gazeveil.cli.printing import figures, say_called_safe, show
from gazeveil.cli.progress import bar
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gazeveil.evaluation.results import Results

OutOption = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for the results, the report and what is done so far."),
]
RepetitionsOption = Annotated[
    int | None, typer.Option("--repetitions", "-r", help="Draws of split and noise; 10 by default.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Everything random follows from it; 0 by default.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://10.0.0.1:8786."
    ),
]
ReportOption = Annotated[
    bool, typer.Option("--report/--no-report", help="Write report.html and its pictures.")
]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="Fewer people and repetitions, where the study has a short form."),
]


def executor_of(workers: int | None, cluster: str | None) -> str | int | None:
    """Who computes: a number of processes, or the address of a cluster."""
    if cluster is not None and workers is not None:
        raise ParameterError(
            "--workers and --cluster exclude one another: a cluster has workers of its own.",
            name="--workers",
            got=workers,
        )
    return cluster if cluster is not None else workers


def counts_of(repetitions: int | None, seed: int | None) -> dict[str, int]:
    """The numbers that replace those of a study."""
    counts = {"repetitions": repetitions, "seed": seed}
    return {name: value for name, value in counts.items() if value is not None}


def is_of_parts(path: Path) -> bool:
    """Whether a path is a study file with `[[part]]` tables."""
    if path.suffix.lower() != ".toml":
        return False
    from gazeveil.papers.study_file import has_parts

    return has_parts(path)


def run_parts(
    path: Path,
    out: Path,
    quick: bool,
    counts: Mapping[str, int],
    executor: str | int | None,
    limit_s: float | None = None,
) -> Results:
    """Run a study of parts, part by part, and print what it found beside the published figures."""
    from gazeveil.papers.series import run, shorter
    from gazeveil.papers.study_file import read

    plan = shorter(read(path, quick), **counts)
    with bar("Computing cells") as progress:
        results = run(plan, out, executor, progress, limit_s=limit_s)
    say_found(results)
    return results


def say_found(results: Results) -> None:
    """Print what a study of parts found beside the published figures, and what it could not
    compute.
    """
    from gazeveil.papers.comparison.failures import reason_lines
    from gazeveil.papers.comparison.lookup import parts
    from gazeveil.papers.published import lines
    from gazeveil.papers.series import of_part

    for line in lines(results):
        say(line)
    if not results.study.get("paper"):
        for label in parts(results):
            part_results = of_part(results, label)
            if part_results.frame.height:
                say(label)
                show(part_results)
        say_called_safe(results)
    for line in reason_lines(results):
        say(f"Not computed: {line}")


def write_parts(results: Results, out: Path) -> Path:
    """Write the page of a study of parts, with its pictures and a report of each part."""
    from gazeveil.papers.page import write

    return write(results, out)


def print_places(results: Results, out: Path, report: Path | None, json_file: Path | None) -> None:
    """Say where results and report are, and write the figures as JSON where a file is named."""
    say(f"Results: {out}" + (f"    Report: {report}" if report is not None else ""))
    write_json(json_file, figures(results))
