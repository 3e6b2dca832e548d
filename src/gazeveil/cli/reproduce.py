"""`gazeveil reproduce`: the papers' experiments, which come with the package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil.cli.arguments import JsonOption, WorkersOption, bar, print_table, say, write_json
from gazeveil.cli.evaluate import (
    ClusterOption,
    OutOption,
    RepetitionsOption,
    executor_of,
    finish,
    run_parts,
    say_found,
)
from gazeveil.errors import GazeveilError, ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

#: Seconds that a part may take in `--all --quick`.
QUICK_LIMIT_S = 180.0

HELP = """\
With `--data DIR` the parts of the study whose files are there run, and no others; without it
recordings are those under `GAZEVEIL_DATA`, or simulated people where they are not there. `--part
LABEL` runs one part. `--list` names every table and figure of the five papers, the study that
repeats it and the recordings it needs; `--all` runs all of them and writes a page per paper.

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
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer people and repetitions; it grades nothing.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Repeat an experiment or all of them, or list what there is."""
    from gazeveil.papers.figures import study_path

    if sum((study is not None, listing, everything)) > 1:
        raise ParameterError(
            "A study, --list and --all exclude one another. Name one of them.", name="study"
        )
    if part is not None and study is None:
        raise ParameterError("--part needs a study. Name the study it is of.", name="--part")
    counts: dict[str, Any] = {} if repetitions is None else {"repetitions": repetitions}
    executor = executor_of(workers, cluster)
    with _data_in(data):
        if listing:
            _print_paper_places(json_file)
        elif everything:
            write_json(json_file, _run_all(out, quick, counts, executor))
        elif study is None:
            _print_studies(json_file)
        else:
            path = study_path(study)
            results, page = run_parts(path, out, counts, executor, quick, part, data is not None)
            finish(results, out, page, json_file)


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
    out: Path, quick: bool, counts: Mapping[str, int], executor: str | int | None
) -> dict[str, object]:
    """Every study of a paper, each in a folder of its own; one that fails stops no other."""
    from gazeveil.papers.figures import study_names, study_path
    from gazeveil.papers.page import published_rows, write_all
    from gazeveil.papers.study_file import read, run, shorter

    plans = {n: shorter(read(study_path(n), quick), **counts) for n in study_names()}
    runs: dict[str, Results] = {}
    for name, plan in plans.items():
        if not plan.paper:
            continue
        say(name)
        try:
            with bar("Computing cells") as progress:
                limit_s = QUICK_LIMIT_S if quick else None
                runs[name] = run(plan, out / name, executor, progress, limit_s)
        except GazeveilError as error:
            say(f"Not computed: {error}")
            continue
        say_found(runs[name])
    for page in write_all(runs, out):
        say(f"Page: {page}")
    say(f"Record: {out / 'record.json'}")
    return {name: published_rows(results) for name, results in runs.items()}


def _print_paper_places(json_file: Path | None) -> None:
    from gazeveil.papers.study_file import paper_places

    places = paper_places()
    rows = []
    for place in places:
        folders = ", ".join(f"{n} ({'yes' if here else 'no'})" for n, here in place.folders.items())
        studies = ", ".join(place.studies)
        rows.append((place.paper, place.location, str(place.figures), studies, folders or "none"))
    heads = ("paper", "where", "figures", "study", "recordings, and whether they are here")
    print_table("", heads, rows)
    say(
        f"{sum(p.figures for p in places)} published figures. Where recordings are not here, people"
        " are simulated and nothing that depends on recordings is graded."
    )
    write_json(json_file, [place.to_dict() for place in places])


def _print_studies(json_file: Path | None) -> None:
    from gazeveil.papers.figures import study_names, study_path
    from gazeveil.papers.study_file import read

    plans = {name: read(study_path(name)) for name in study_names()}
    rows = [
        {"study": n, "title": p.name, "parts": len(p.parts), "real": sum(x.real for x in p.parts)}
        for n, p in plans.items()
    ]
    heads = ("study", "title", "parts", "of them with recordings here")
    print_table("", heads, [[str(value) for value in row.values()] for row in rows])
    layouts = (line for plan in plans.values() for p in plan.parts for line in p.layouts)
    say("\n  ".join(["Folders of datasets, below --data:", *dict.fromkeys(layouts)]))
    write_json(json_file, rows)
