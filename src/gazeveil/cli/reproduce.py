"""`gazeveil reproduce`: the papers' experiments, which come with the package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from gazeveil import checks
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
    say_found,
    write_parts,
)
from gazeveil.cli.progress import bar
from gazeveil.errors import GazeveilError, ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results
    from gazeveil.papers.parts import MultiPartStudy

#: Seconds that a part may take in `--all --quick` where nothing else is said.
QUICK_LIMIT_S = 180.0

HELP = """\
With `--data DIR` the parts of the study whose files are there run, and no others; without it
recordings are those under `GAZEVEIL_DATA`, or simulated people where they are not there. `--part
LABEL` runs one part. `--list` names every table and figure of the five papers, the study that
repeats it and the recordings it needs; `--all` runs all of them and writes one page.

Examples: `gazeveil reproduce --list`

`gazeveil reproduce davidjohn2021/fig4 --quick --out fig4/`

`gazeveil reproduce davidjohn2021/fig4 --data recordings/ --part VR-EyeTracking`

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
    part: Annotated[
        str | None,
        typer.Option(
            "--part", metavar="LABEL", help="Run one part of the study, such as VR-EyeTracking."
        ),
    ] = None,
    repetitions: RepetitionsOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    report: ReportOption = True,
    quick: QuickOption = False,
    limit_s: Annotated[
        float | None,
        typer.Option(
            "--limit-s",
            metavar="SECONDS",
            help="Cut a part of a study after so long, and say what was cut; 180 with --all"
            " --quick, else none.",
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Repeat an experiment or all of them, or list what there is."""
    if sum((study is not None, listing, everything)) > 1:
        raise ParameterError(
            "A study, --list and --all exclude one another. Name one of them.", name="study"
        )
    if part is not None and study is None:
        raise ParameterError("--part needs a study. Name the study it is of.", name="--part")
    counts = counts_of(repetitions, seed)
    if limit_s is not None:
        checks.positive("reproduce", "--limit-s", limit_s)
    with _data_in(data):
        if listing:
            _print_paper_places(json_file)
        elif everything:
            if limit_s is None and quick:
                limit_s = QUICK_LIMIT_S
            executor = executor_of(workers, cluster)
            _run_all(out, quick, counts, executor, report, limit_s, json_file)
        elif study is None:
            _print_studies(json_file)
        else:
            from gazeveil.papers.catalogue import study_path

            executor = executor_of(workers, cluster)
            results = run_parts(
                study_path(study), out, quick, counts, executor, limit_s, part, data is not None
            )
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
    limit_s: float | None,
    json_file: Path | None,
) -> None:
    """Every study of a paper, each in a folder of its own; one that fails stops no other."""
    from gazeveil.papers.catalogue import study_names, study_path
    from gazeveil.papers.comparison.overview import write_overview
    from gazeveil.papers.series import shorter
    from gazeveil.papers.study_file import read

    plans = {n: shorter(read(study_path(n), quick), **counts) for n in study_names()}
    plans = {name: plan for name, plan in plans.items() if plan.paper}
    runs: dict[str, Results] = {}
    failures: dict[str, str] = {}
    with bar("Computing parts of studies") as progress:
        for name, found in _found(plans, out, executor, limit_s, progress):
            say(name)
            if isinstance(found, str):
                failures[name] = found
                say(f"Not computed: {found}")
                continue
            runs[name] = found
            say_found(found)
            if report:
                write_parts(found, out / name)
    runs = {name: runs[name] for name in plans if name in runs}
    page = write_overview(runs, failures, out)
    say(f"Page: {page}    Record: {out / 'record.json'}")
    write_json(json_file, {n: r.study.get("published") for n, r in runs.items()})


def _found(
    plans: Mapping[str, MultiPartStudy],
    out: Path,
    executor: str | int | None,
    limit_s: float | None,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[str, Results | str]]:
    """What each study found, or why nothing: on this machine part by part side by side, on a
    cluster one study after the other.
    """
    from gazeveil.papers.comparison.all_studies import run_all
    from gazeveil.papers.series import run
    from gazeveil.processes import cores

    if not isinstance(executor, str):
        try:
            yield from run_all(plans, out, executor or cores(), limit_s, progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"Stopped. Cells that are finished are kept in {out}: the same command goes on from"
                " there."
            ) from None
        return
    for name, plan in plans.items():
        try:
            yield name, run(plan, out / name, executor, progress, limit_s=limit_s)
        except GazeveilError as error:
            yield name, str(error)


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

    plans = {name: read(study_path(name)) for name in study_names()}
    rows = [
        {"study": n, "title": p.name, "parts": len(p.parts), "real": sum(x.real for x in p.parts)}
        for n, p in plans.items()
    ]
    table = Table("study", "title", "parts", "of them with recordings here")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console().print(table)
    layouts = (line for plan in plans.values() for p in plan.parts for line in p.layouts)
    say("\n  ".join(["Folders of datasets, below --data:", *dict.fromkeys(layouts)]))
    write_json(json_file, rows)
