"""`gazeveil reproduce`: the papers' experiments, which come with the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, WorkersOption, console, say, write_json
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
from gazeveil.errors import GazeveilError, ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

NAME = "reproduce"
HELP = """Repeat a paper's experiment and show ours beside the published figures; without a name,
list the studies.

Recordings are those under `--data` or `GAZEVEIL_DATA`, or simulated people where they are not
there. `--list` names every table and figure of the five papers, the study that repeats it and the
recordings it needs; `--all` runs all of them and writes one page.

Examples: `gazeveil reproduce --list`

`gazeveil reproduce davidjohn2021/fig4 --quick --out fig4/`

`gazeveil reproduce davidjohn2021/fig4 --data recordings/`

`gazeveil reproduce --all --quick --out papers/`"""


def command(
    study: Annotated[str | None, typer.Argument(help="E.g. davidjohn2021/fig4.")] = None,
    out: OutOption = Path("reproduction"),
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of the datasets; GAZEVEIL_DATA else."),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List every table and figure of the papers.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Run every study of a paper; one page over all.")
    ] = False,
    repetitions: RepetitionsOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    report: ReportOption = True,
    quick: QuickOption = False,
    json_file: JsonOption = None,
) -> None:
    """Repeat an experiment or all of them, or list what there is."""
    if sum((study is not None, listing, everything)) > 1:
        raise ParameterError(
            "A study, --list and --all exclude one another. Name one of them.", name="study"
        )
    counts = counts_of(repetitions, seed)
    with _data_in(data):
        if listing:
            _print_paper_places(json_file)
        elif everything:
            _run_all(out, quick, counts, executor_of(workers, cluster), report, json_file)
        elif study is None:
            _print_studies(json_file)
        else:
            from gazeveil.papers.catalogue import study_path

            executor = executor_of(workers, cluster)
            results = run_parts(study_path(study), out, quick, counts, executor)
            print_places(results, out, write_parts(results, out) if report else None, json_file)


@contextmanager
def _data_in(folder: Path | None) -> Iterator[None]:
    """Look for datasets in a folder; studies and their worker processes go by the environment."""
    if folder is None:
        yield
        return
    if not folder.is_dir():
        raise ParameterError(
            f"--data must be a folder that holds folders of datasets. Got '{folder}', which is no"
            " folder. See `gazeveil reproduce --list` for their names.",
            name="--data",
            got=str(folder),
        )
    before = os.environ.get("GAZEVEIL_DATA")
    os.environ["GAZEVEIL_DATA"] = str(folder.resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ["GAZEVEIL_DATA"]
        else:
            os.environ["GAZEVEIL_DATA"] = before


def _run_all(
    out: Path,
    quick: bool,
    counts: dict[str, int],
    executor: str | int | None,
    report: bool,
    json_file: Path | None,
) -> None:
    """Every study of a paper, each in a folder of its own; one that fails stops no other."""
    from gazeveil.papers.catalogue import study_names, study_path
    from gazeveil.papers.comparison.overview import write_overview
    from gazeveil.papers.study_file import read

    runs: dict[str, Results] = {}
    failures: dict[str, str] = {}
    for name in (n for n in study_names() if read(study_path(n)).paper):
        say(name)
        try:
            runs[name] = run_parts(study_path(name), out / name, quick, counts, executor)
            if report:
                write_parts(runs[name], out / name)
        except GazeveilError as error:
            failures[name] = str(error)
            say(f"Not computed: {error}")
    page = write_overview(runs, failures, out)
    say(f"Page: {page}    Record: {out / 'record.json'}")
    write_json(json_file, {n: r.study.get("published") for n, r in runs.items()})


def _print_paper_places(json_file: Path | None) -> None:
    from gazeveil.papers.comparison.inventory import paper_places

    places = paper_places()
    table = Table("paper", "where", "figures", "study", "recordings, and whether they are here")
    for place in places:
        folders = ", ".join(f"{n} ({'yes' if here else 'no'})" for n, here in place.folders.items())
        nothing = "none needed" if place.computed else "nothing here answers it"
        needs = folders or ("simulated" if place.measured else nothing)
        table.add_row(
            place.paper, place.location, str(place.figures), ", ".join(place.studies), needs
        )
    console().print(table)
    say(
        f"{sum(p.figures for p in places)} published figures: {sum(p.measured for p in places)} are"
        f" measured, {sum(p.computed for p in places)} need no recordings,"
        f" {sum(p.impossible for p in places)} cannot be answered here. Where recordings are not"
        " here, people are simulated and nothing that depends on recordings is graded."
    )
    write_json(json_file, [place.to_dict() for place in places])


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
