"""`gazeveil evaluate`: run a study and say what attackers get and what analysts keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil.cli.arguments import (
    AttackOption,
    BatteryOption,
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    WorkersOption,
    attackers,
    bar,
    print_table,
    reading_options,
    say,
    write_json,
)
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gazeveil.evaluation.results import Results

HELP = """\
The strong battery attacks unless somebody else is named; --no-attacks measures utilities alone. A
study that was stopped goes on where it was when it is started again with the same folder. A study
file says all else: splits, shares, events, seeds, parts.

Examples: `gazeveil evaluate study.toml --out results/`

`gazeveil evaluate recordings/ -m gaussian:sigma_deg=5 -u saliency --out results/`"""

OutOption = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for the results, the report and what is done so far."),
]
RepetitionsOption = Annotated[
    int | None, typer.Option("--repetitions", "-r", help="Draws of split and noise; 10 by default.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://10.0.0.1:8786."
    ),
]


def command(
    path: Annotated[
        Path, typer.Argument(help="A study (.toml), or a file or folder of recordings.")
    ],
    out: OutOption = Path("evaluation"),
    mechanisms: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME:PARAMETER=VALUE,...",
            help="See `gazeveil list mechanisms`.",
        ),
    ] = None,
    attacks: AttackOption = None,
    battery: BatteryOption = None,
    no_attacks: Annotated[
        bool, typer.Option("--no-attacks", help="Nobody attacks; the same as --attacks none.")
    ] = False,
    utilities: Annotated[
        list[str] | None,
        typer.Option("--utility", "-u", metavar="NAME:...", help="E.g. saliency, aoi, signal."),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario", metavar="TRAIN/TEST", help="raw/private and private/private by default."
        ),
    ] = None,
    repetitions: RepetitionsOption = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    with_raw: Annotated[
        bool,
        typer.Option(
            "--with-raw",
            help="Show a raw trace and names of people in the report, which is then not to be sent"
            " on.",
        ),
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Run a study."""
    from gazeveil.evaluation.run import run
    from gazeveil.evaluation.sources import Files
    from gazeveil.evaluation.study import Study

    executor = executor_of(workers, cluster)
    named = _named(attacks, battery, no_attacks)
    counts: dict[str, Any] = {} if repetitions is None else {"repetitions": repetitions}
    chosen: dict[str, Any] = {
        "mechanisms": mechanisms,
        "attacks": named,
        "utilities": utilities,
        "scenarios": scenarios,
        "format": format_name,
        "set": settings,
        "screen": screen,
    }
    given = [name for name, value in chosen.items() if value]
    if path.suffix.lower() != ".toml":
        source = Files(str(path), format_name, reading_options(settings, screen))
        lists: dict[str, Any] = {n: tuple(v) for n in list(chosen)[:4] if (v := chosen[n])}
        lists.setdefault("attacks", attackers(None, None))
        study = Study(source, **lists, **counts)
    elif given:
        raise ParameterError(
            f"The study {path} says its {given[0]} itself: edit the file, or give recordings"
            " instead of a study.",
            name=given[0],
            got=chosen[given[0]],
        )
    elif _has_parts(path):
        results, page = run_parts(path, out, counts, executor)
        finish(results, out, page, json_file)
        return
    else:
        study = replace(Study.read(path), **counts)
    with bar("Computing cells") as progress:
        results = run(study, out, executor, progress)
    show(results)
    finish(results, out, results.report(out, with_raw), json_file)


def _named(named: list[str] | None, battery: str | None, nobody: bool) -> tuple[str, ...] | None:
    """The attackers of the options; None without any."""
    if not nobody:
        return attackers(named, battery) if named or battery is not None else None
    if named or battery not in (None, "none"):
        raise ParameterError(
            "--no-attacks says that nobody attacks, and somebody is named. Leave one of them out.",
            name="--no-attacks",
            got=named or battery,
        )
    return ("none",)


def executor_of(workers: int | None, cluster: str | None) -> str | int | None:
    """Who computes: a number of processes, or the address of a cluster."""
    if cluster is not None and workers is not None:
        raise ParameterError(
            "--workers and --cluster exclude one another: a cluster has workers of its own.",
            name="--workers",
            got=workers,
        )
    return cluster if cluster is not None else workers


def _has_parts(path: Path) -> bool:
    from gazeveil.papers.study_file import has_parts

    return has_parts(path)


def run_parts(
    path: Path,
    out: Path,
    counts: dict[str, Any],
    executor: str | int | None,
    quick: bool = False,
    part: str | None = None,
    have_data: bool = False,
) -> tuple[Results, Path]:
    """Run a study of parts, print what it found, and write its page."""
    from gazeveil.papers.page import write
    from gazeveil.papers.study_file import read, run_part, shorter, together

    plan = shorter(read(path, quick).only(part, have_data), **counts)
    runs = []
    for each in plan.parts:
        say(f"{each.label}: {each.source}.")
        with bar(f"Computing cells of {each.label}") as progress:
            runs.append(run_part(each, out, executor, progress))
        results = runs[-1].results
        if results is not None and not plan.paper and results.frame.height:
            say(each.label)
            show(results)
    results = together(plan, runs, out)
    say_found(results)
    return results, write({path.stem: results}, out)


def say_found(results: Results) -> None:
    """Print what a study of parts found beside the published figures, and what it could not
    compute.
    """
    from gazeveil.papers.grading import is_absent, summary
    from gazeveil.papers.page import published_rows, sections
    from gazeveil.papers.study_file import reason_lines

    rows = published_rows(results)
    if rows:
        held = [row for row in rows if not is_absent(row)]
        for place in sections(str(results.study["paper"]), held):
            for table in place.tables:
                print_table(place.title, table.header, table.rows)
        say(summary(rows))
    else:
        _say_called_safe(results)
    for line in reason_lines(results):
        say(f"Not computed: {line}")


def finish(results: Results, out: Path, report: Path, json_file: Path | None) -> None:
    """Say where results and report are, and write the figures as JSON where a file is named."""
    say(f"Results: {out}    Report: {report}")
    write_json(json_file, figures(results))


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
        rows = []
        for release in findings.attacked:
            shown, worst = release.shown, release.worst
            if shown is not None and worst is not None:
                best = f"{percent(worst.value)} {worst.attack} {worst.scenario}"
                numbers = {n: None if v != v else v for n, v in vars(shown).items()}  # NaN
                rows.append(((release.label, best), numbers))
        title = f"The {findings.strongest} on each release"
        print_rates(title, ("release", "best of all"), rows)
        say(FOOTNOTE)
    for sentence in filter(None, (called_safe(findings), *headline(results))):
        say(sentence)
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


def _say_called_safe(results: Results) -> None:
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


def print_rates(
    title: str, heads: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], dict[str, Any]]]
) -> None:
    """Print rates behind some texts: people and share, interval, guessing and test."""
    lines = []
    for texts, row in rows:
        interval = "" if row["low"] is None else f"{100 * row['low']:.0f}-{100 * row['high']:.0f} %"
        p = row["p_value"]
        rate = f"{round(row['value'] * row['n'], 1):g}/{row['n']} {100 * row['value']:3.0f} %"
        test = "" if p is None else "<.0001" if p < 1e-4 else f"{p:.2g}"
        lines.append((*texts, rate, interval, f"{100 * row['chance']:.1f} %", test))
    print_table(title, (*heads, "found", "95 %", "chance", "p"), lines, len(heads))


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
