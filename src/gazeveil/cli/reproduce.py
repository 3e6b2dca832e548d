"""`gazeveil reproduce`: the papers' experiments, which come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, WorkersOption, console, write_json
from gazeveil.cli.parts import (
    ClusterOption,
    OutOption,
    QuickOption,
    RepetitionsOption,
    ReportOption,
    SeedOption,
    counts_of,
    executor_of,
    print_places,
    run_parts,
    write_parts,
)

NAME = "reproduce"
HELP = """Repeat a paper's experiment and show ours beside the published figures; without a name,
list the studies.

Recordings are those under `GAZEVEIL_DATA`, or simulated people where they are not there.

Examples: `gazeveil reproduce`

`gazeveil reproduce davidjohn2021/fig4 --quick --out fig4/`"""


def command(
    study: Annotated[str | None, typer.Argument(help="E.g. davidjohn2021/fig4.")] = None,
    out: OutOption = Path("reproduction"),
    repetitions: RepetitionsOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    report: ReportOption = True,
    quick: QuickOption = False,
    json_file: JsonOption = None,
) -> None:
    """Repeat an experiment, or list those there are."""
    if study is None:
        _print_studies(json_file)
        return
    from gazeveil.papers.catalogue import study_path

    executor = executor_of(workers, cluster)
    results = run_parts(study_path(study), out, quick, counts_of(repetitions, seed), executor)
    print_places(results, out, write_parts(results, out) if report else None, json_file)


def _print_studies(json_file: Path | None) -> None:
    from gazeveil.papers.catalogue import study_names, study_path
    from gazeveil.papers.study_file import read

    rows = []
    for name in study_names():
        plan = read(study_path(name))
        recorded = sum(part.real for part in plan.parts)
        rows.append({"study": name, "title": plan.name, "parts": len(plan.parts), "real": recorded})
    table = Table("study", "title", "parts", "of them with recordings here")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console().print(table)
    write_json(json_file, rows)
