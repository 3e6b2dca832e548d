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
    options,
)
from gazeveil.cli.parts import (
    ClusterOption,
    OutOption,
    QuickOption,
    RepetitionsOption,
    ReportOption,
    SeedOption,
    counts_of,
    executor_of,
    is_of_parts,
    print_places,
    run_parts,
    show,
    write_parts,
)
from gazeveil.cli.progress import bar
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results
    from gazeveil.evaluation.study import Study

HELP = """\
The strong battery attacks unless somebody else is named; --no-attacks measures utilities alone. A
study that was stopped goes on where it was when it is started again with the same folder.

Examples: `gazeveil evaluate study.toml --out results/`

`gazeveil evaluate recordings/ -m gaussian:sigma_deg=5 -u saliency --out results/`"""


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
    seed: SeedOption = None,
    split: Annotated[
        str | None, typer.Option("--split", help="stimulus (default), halves or session.")
    ] = None,
    train: Annotated[
        float | None,
        typer.Option("--train", help="Share of stimuli to learn from; 0.75 by default."),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            metavar="redetected|carried",
            help="Events found again in the release (default), or those of the recordings. May be"
            " repeated.",
        ),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables", help="What table mechanisms protect: events (default) or windows."
        ),
    ] = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    report: ReportOption = True,
    with_raw: Annotated[
        bool,
        typer.Option(
            "--with-raw",
            help="Show a raw trace and names of people in the report, which is then not to be sent"
            " on.",
        ),
    ] = False,
    quick: QuickOption = False,
    json_file: JsonOption = None,
) -> None:
    """Run a study."""
    choices: dict[str, Any] = {
        "mechanisms": mechanisms,
        "attacks": _named(attacks, battery, no_attacks),
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
    chosen = {k: v for k, v in choices.items() if v not in (None, [])}
    counts = counts_of(repetitions, seed)
    executor = executor_of(workers, cluster)
    if path.suffix.lower() == ".toml" and chosen:
        name = next(iter(chosen))
        raise ParameterError(
            f"The study {path} says its {name} itself: edit the file, or give recordings instead of"
            " a study.",
            name=name,
            got=chosen[name],
        )
    if is_of_parts(path):
        results = run_parts(path, out, quick, counts, executor)
        page = write_parts(results, out) if report else None
    else:
        results = _plain(path, out, quick, chosen, counts, executor)
        page = results.report(out, with_raw) if report else None
    print_places(results, out, page, json_file)


def _named(attacks: list[str] | None, battery: str | None, nobody: bool) -> tuple[str, ...] | None:
    """Who is said to attack; None where nothing is said."""
    if not nobody:
        return attackers(attacks, battery) if attacks or battery is not None else None
    if attacks or battery not in (None, "none"):
        raise ParameterError(
            "--no-attacks says that nobody attacks, and somebody is named. Leave one of them out.",
            name="--no-attacks",
            got=attacks or battery,
        )
    return ("none",)


def _plain(
    path: Path,
    out: Path,
    quick: bool,
    chosen: dict[str, Any],
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
    study = _study(path, chosen, counts)
    from gazeveil.evaluation.run import run

    with bar("Computing cells") as progress:
        results = run(study, out, executor, progress)
    if study.paper:
        from gazeveil.papers.published import compare

        results.study["published"] = compare(results)
    show(results)
    return results


def _study(path: Path, chosen: dict[str, Any], counts: dict[str, Any]) -> Study:
    from gazeveil.evaluation.sources import Files
    from gazeveil.evaluation.study import Study

    if path.suffix.lower() == ".toml":
        return replace(Study.read(path), **counts)
    read_options = options(
        chosen.pop("set", None),
        chosen.pop("screen", None),
        {"path": "the argument PATH", "format": "--format", "screen": "--screen"},
    )
    source = Files(str(path), chosen.pop("format", None), read_options)
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in chosen.items()}
    lists.setdefault("attacks", attackers(None, None))
    return Study(source, **lists, **counts)
