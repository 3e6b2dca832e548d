"""`gazeveil evaluate`: run a study and say what attackers get and what analysts keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from gazeveil.cli.arguments import FormatOption, JsonOption, ScreenOption, SetOption, console, options, write_json
from gazeveil.cli.parts import is_of_parts, run_parts
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluate.results import Results
    from gazeveil.evaluate.study import Study

NAME = "evaluate"
HELP = """Attack protected recordings and measure what they are still good for: a study from a file, or a quick one on recordings.

A study that was stopped goes on where it was when it is started again with the same folder.

Examples: `gazeveil evaluate study.toml --out results/`

`gazeveil evaluate recordings/ -m gaussian:sigma_deg=5 -a linkage -u saliency --out results/`"""

#: How a rate is shown; see :func:`rate_words`.
RATE_COLUMNS = ("found", "95 %", "chance", "p")

WorkersOption = Annotated[int | None, typer.Option("--workers", "-w", min=1, help="Processes; one per core if not given.", show_default=False)]


def command(
    path: Annotated[Path, typer.Argument(help="A study (.toml), or a file or folder of recordings.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results, the report and the finished cells.")] = Path("evaluation"),
    mechanisms: Annotated[
        list[str] | None, typer.Option("--mechanism", "-m", metavar="NAME:PARAMETER=VALUE,...", help="See `gazeveil mechanisms`.", show_default=False)
    ] = None,
    attacks: Annotated[list[str] | None, typer.Option("--attack", "-a", metavar="NAME:...", help="linkage and rbfn by default.", show_default=False)] = None,
    utilities: Annotated[list[str] | None, typer.Option("--utility", "-u", metavar="NAME:...", help="E.g. saliency, aoi, signal.", show_default=False)] = None,
    scenarios: Annotated[
        list[str] | None, typer.Option("--scenario", metavar="TRAIN/TEST", help="raw/private and private/private by default.", show_default=False)
    ] = None,
    repetitions: Annotated[int | None, typer.Option("--repetitions", "-r", help="Draws of split and noise; 10 by default.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Everything random follows from it; 0 by default.", show_default=False)] = None,
    split: Annotated[str | None, typer.Option("--split", help="stimulus (default), halves or session.", show_default=False)] = None,
    train: Annotated[float | None, typer.Option("--train", help="Share of stimuli to learn from; 0.75 by default.", show_default=False)] = None,
    events: Annotated[list[str] | None, typer.Option("--events", help="redetected (default), carried, or both.", show_default=False)] = None,
    tables: Annotated[str | None, typer.Option("--tables", help="What table mechanisms protect: events (default) or windows.", show_default=False)] = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    workers: WorkersOption = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://10.0.0.1:8786.", show_default=False)] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html and its pictures.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="The short form of a study with parts: fewer people and repetitions.")] = False,
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
    counts: dict[str, Any] = {k: v for k, v in (("repetitions", repetitions), ("seed", seed)) if v is not None}
    if cluster is not None and workers is not None:
        raise ParameterError("--workers and --cluster exclude one another: a cluster has workers of its own.", name="--workers", got=workers)
    executor = cluster if cluster is not None else workers
    if is_of_parts(path):
        from gazeveil.evaluate.papers.page import write

        results = run_parts(path, out, quick, said, counts, executor)
        where = write(results, out) if report else None
    else:
        results = _plain(path, out, quick, said, counts, executor)
        where = results.report(out) if report else None
    Console(highlight=False, soft_wrap=True).print(f"Results: {out}" + (f"    Report: {where}" if where is not None else ""), markup=False)
    write_json(json_file, figures(results))


def _plain(path: Path, out: Path, quick: bool, said: dict[str, Any], counts: dict[str, Any], executor: str | int | None) -> Results:
    """Run a study of one cohort and show what it found."""
    if quick:
        raise ParameterError(f"--quick is the short form of a study with parts, and {path} has none. Use --repetitions.", name="--quick", got=quick)
    study = _study(path, said, counts)
    from gazeveil.evaluate.run import run

    with bar("Computing cells") as progress:
        results = run(study, out, executor, progress)
    show(results)
    return results


def _study(path: Path, said: dict[str, Any], counts: dict[str, Any]) -> Study:
    from gazeveil.evaluate.api import DEFAULT_ATTACKS
    from gazeveil.evaluate.sources import Files
    from gazeveil.evaluate.study import Study

    if path.suffix.lower() == ".toml":
        if said:
            name = next(iter(said))
            raise ParameterError(f"The study {path} says its {name} itself: edit the file, or give recordings instead of a study.", name=name, got=said[name])
        return replace(Study.read(path), **counts)
    given = options(said.pop("set", None), said.pop("screen", None), {"path": "the argument PATH", "format": "--format", "screen": "--screen"})
    source = Files(str(path), said.pop("format", None), given)
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
    if "attacks" not in lists and "utilities" not in lists:
        lists["attacks"] = DEFAULT_ATTACKS
    return Study(source, **lists, **counts)


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the remaining time, on standard error; nothing where that is not a terminal."""
    screen = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        before = [-1, -1]

        def update(done: int, total: int) -> None:
            if total != before[1] or done < before[0]:
                # A study begins: cells that were there already took no time, so the clock starts at them.
                progress.reset(task, total=total, completed=done)
            before[:] = done, total
            progress.update(task, completed=done, total=total)

        yield update


def show(results: Results) -> None:
    """Print the strongest attacker of every mechanism, the sentences of the summary, and what could not be computed."""
    from gazeveil.evaluate.report import headline
    from gazeveil.evaluate.report.wording import mechanism_label

    plain = console()
    best = results.worst_case()
    if best.height:
        table = rate_table("The strongest attacker of each mechanism", "mechanism", "attacker", "scenario")
        order = [str(m) for m in ("none", *(list(results.study.get("mechanisms", []))))]  # type: ignore[call-overload]
        rows = sorted(best.iter_rows(named=True), key=lambda r: _place(order, r))
        for row in rows:
            name = mechanism_label(row["mechanism"], row["reading"], row["parameters"]) + (", labels carried" if row["events"] == "carried" else "")
            table.add_row(name, row["attack"], row["scenario"], *rate_words(row))
        plain.print(table)
    words = Console(highlight=False, soft_wrap=True)
    for sentence in headline(results):
        words.print(sentence, markup=False)
    reasons: dict[str, int] = {}
    for failure in results.failures:
        reasons[failure["sentence"]] = reasons.get(failure["sentence"], 0) + 1
    for sentence, count in reasons.items():
        words.print(f"{count} cell{'s' if count > 1 else ''} could not be computed: {sentence}", markup=False)
    left_out = results.study.get("left_out", [])
    if isinstance(left_out, list) and left_out:
        words.print(f"Left out: {left_out[0]}" + (f" ({len(left_out) - 1} more in study.json)" if len(left_out) > 1 else ""), markup=False)


def rate_table(title: str, *columns: str) -> Table:
    """A table of rates that fits a narrow terminal; only the first two columns are ever folded."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    for place, column in enumerate((*columns, *RATE_COLUMNS)):
        table.add_column(column, justify="right" if column in RATE_COLUMNS else "left", overflow="fold", no_wrap=place > 1)
    return table


def rate_words(row: dict[str, Any]) -> tuple[str, ...]:
    """A rate as people and share, interval, guessing and test."""
    interval = "" if row["low"] is None else f"{100 * row['low']:.0f}-{100 * row['high']:.0f} %"
    p = row["p_value"]
    found = f"{round(row['value'] * row['n'], 1):g}/{row['n']} {100 * row['value']:3.0f} %"
    return found, interval, f"{100 * row['chance']:.1f} %", "" if p is None else ("<.0001" if p < 1e-4 else f"{p:.2g}")


def figures(results: Results) -> dict[str, object]:
    """The results as JSON has them."""
    return {
        "study": {k: v for k, v in results.study.items() if k != "times"},
        "strongest": results.strongest().to_dicts(),
        "results": results.frame.to_dicts(),
        "guarantees": list(results.guarantees),
        "failures": list(results.failures),
    }


def _place(order: list[str], row: dict[str, Any]) -> tuple[int, str]:
    from gazeveil.evaluate.results import mechanism_text

    text = mechanism_text(row["mechanism"], row["reading"], row["parameters"])
    return order.index(text) if text in order else len(order), row["events"]
