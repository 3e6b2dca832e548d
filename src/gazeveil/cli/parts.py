"""What `gazeveil evaluate` and `gazeveil reproduce` share: their options, and the run of a study of
several parts with the published values beside ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import console, say, write_json
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
    part: str | None = None,
    have_data: bool = False,
) -> Results:
    """Run a study of parts, part by part, and print what it found beside the published figures."""
    from gazeveil.papers.series import run, shorter
    from gazeveil.papers.study_file import read

    plan = shorter(read(path, quick).only(part, have_data), **counts)
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


#: How a rate is shown; see :func:`rate_words`.
RATE_COLUMNS = ("found", "95 %", "chance", "p")


def show(results: Results) -> None:
    """Print what the strongest attacker gets of every release, the sentences of the summary, and
    what could not be computed.
    """
    from gazeveil.evaluation.report import headline
    from gazeveil.evaluation.report.findings import Findings
    from gazeveil.evaluation.report.labels import percent
    from gazeveil.evaluation.report.summary import FOOTNOTE, called_safe

    findings = Findings(results)
    if findings.attacked:
        table = rate_table(f"The {findings.strongest} on each release", "release", "best of all")
        for release in findings.attacked:
            shown, worst = release.shown, release.worst
            if shown is not None and worst is not None:
                best = f"{percent(worst.value)} {worst.attack} {worst.scenario}"
                numbers = {n: None if v != v else v for n, v in vars(shown).items()}  # NaN
                table.add_row(release.label, best, *rate_words(numbers))
        console().print(table)
        say(FOOTNOTE)
    for sentence in filter(None, (called_safe(findings), *headline(results))):
        say(sentence)
    _show_missing(results)


def say_called_safe(results: Results) -> None:
    """Print how many releases of all parts the RBF network alone would have called safe."""
    from gazeveil.evaluation.report.findings import strongest_of

    counts = results.called_safe()
    if not counts["releases"]:
        return
    tried = results.strongest_against()["tried"].unique().sort().to_list()
    several = f"{tried[0]} to {tried[-1]}" if len(tried) > 1 else str(tried[0])
    strongest = strongest_of(several, str(results.study.get("battery") or ""))
    say(
        f"Over all parts the RBF network alone would have called {counts['called_safe']} of"
        f" {counts['releases']} releases safe where the {strongest} recognises people."
    )


def _show_missing(results: Results) -> None:
    """Print what could not be computed, and what was left out."""
    reasons: dict[str, int] = {}
    for failure in results.failures:
        reasons[failure["sentence"]] = reasons.get(failure["sentence"], 0) + 1
    for sentence, count in reasons.items():
        say(f"{count} cell{'s' if count > 1 else ''} could not be computed: {sentence}")
    # What would only repeat another figure stands in study.json alone: nothing is missing for it.
    left_out: Any = results.study.get("left_out", [])
    missing = left_out[: len(left_out) - int(str(results.study.get("repeats", 0)))]
    if missing:
        more = f" ({len(missing) - 1} more in study.json)" if len(missing) > 1 else ""
        say(f"Left out: {missing[0]}{more}")


def rate_table(title: str, *columns: str) -> Table:
    """A table of rates that fits a narrow terminal; figures are never folded."""
    table = Table(
        title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True
    )
    for column in (*columns, *RATE_COLUMNS):
        table.add_column(
            column,
            justify="right" if column in RATE_COLUMNS else "left",
            overflow="fold",
            no_wrap=column in RATE_COLUMNS,
        )
    return table


def rate_words(row: dict[str, Any]) -> tuple[str, ...]:
    """A rate as people and share, interval, guessing and test."""
    interval = "" if row["low"] is None else f"{100 * row['low']:.0f}-{100 * row['high']:.0f} %"
    p = row["p_value"]
    rate = f"{round(row['value'] * row['n'], 1):g}/{row['n']} {100 * row['value']:3.0f} %"
    return (
        rate,
        interval,
        f"{100 * row['chance']:.1f} %",
        "" if p is None else ("<.0001" if p < 1e-4 else f"{p:.2g}"),
    )


def figures(results: Results) -> dict[str, object]:
    """The results as JSON has them."""
    return {
        "study": {k: v for k, v in results.study.items() if k != "times"},
        "strongest": results.strongest().to_dicts(),
        "strongest_against": results.strongest_against().to_dicts(),
        "called_safe": results.called_safe(),
        "results": results.frame.to_dicts(),
        "guarantees": list(results.guarantees),
        "failures": list(results.failures),
    }
