"""`gazeveil publish`: from a folder of recordings to a release that can be uploaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import (
    SEEDED,
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    TestSeedOption,
    console,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import bar, track
from gazeveil.cli.publication_options import (
    CleanOption,
    ClusterOption,
    ConfirmOption,
    DurationsOption,
    InsteadOfOption,
    KeepOption,
    KeyFileOption,
    LedgerOption,
    RateOption,
    ResumeOption,
    ToOption,
    WorkersOption,
    answered,
    charging_of,
    publication_choices,
    running_of,
    show_questions,
)
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gazeveil.gaze.cohort import Cohort
    from gazeveil.release.publishing import Watcher
    from gazeveil.release.recipe import Recipe
    from gazeveil.release.stop_sign import OpenQuestion

HELP = """\
Example: `gazeveil publish recordings/ published/ -m gaussian:sigma_deg=3`

Example: `gazeveil publish recordings/ published/ --preset public-maps --plan`

The release has fresh pseudonyms, times from zero and one public rate. PRIVACY.md in it says what is
promised, what is not, and how many participants attackers recognised. Every choice is written to
published.publish.toml, which --from reads."""

#: Options of the first panel of the help.
EVERYDAY = (
    *("--preset", "--mechanism", "--compare", "--plan", "--attacks", "--keep", "--to"),
    *("--stimulus", "--key-file", "--confirm", "--help"),
)


def command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="IN", help="A file or a folder of recordings; not with --from."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="Folder to write; must not exist or be empty."),
    ] = None,
    mechanism_text: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="TEXT",
            help="A mechanism of `gazeveil list mechanisms` with its parameters.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="public-maps, public-events, public-samples, public-pieces or public-features.",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="PRESET,...",
            help="Try these presets and print one table; nothing is written.",
        ),
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Print what would be released, and stop.")
    ] = False,
    recipe_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Choices of an earlier publication."),
    ] = None,
    battery: Annotated[
        str,
        typer.Option("--attacks", metavar="NAME", help="Attackers: quick, strong, all or none."),
    ] = "strong",
    no_attack: Annotated[
        bool, typer.Option("--no-attack", help="The same as --attacks none.")
    ] = False,
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-r", help="Test releases that are attacked.")
    ] = 10,
    k: Annotated[
        int, typer.Option("--k", help="Participants who share each row of their table.")
    ] = 4,
    stimuli: Annotated[
        list[str] | None,
        typer.Option(
            "--stimulus",
            metavar="NAME",
            help="Stimulus or task whose name may be published (repeatable).",
        ),
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            "--table", metavar="NAME", help="Features for mechanisms on tables: events or windows."
        ),
    ] = "events",
    keep: KeepOption = None,
    to: ToOption = "parquet",
    rate_hz: RateOption = None,
    durations: DurationsOption = None,
    key_file: KeyFileOption = None,
    confirm: ConfirmOption = False,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            metavar="KEYFILE",
            help="Sign the certificate (key: `gazeveil verify --new-key`).",
        ),
    ] = None,
    ledger: LedgerOption = None,
    new_ledger: Annotated[
        Path | None,
        typer.Option("--new-ledger", metavar="FILE", help="Begin a ledger with this release."),
    ] = None,
    instead_of: InsteadOfOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="EPSILON",
            help="Most that a participant may lose over all releases.",
        ),
    ] = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    resume: ResumeOption = False,
    clean_first: CleanOption = False,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    seed: TestSeedOption = None,
    json_file: JsonOption = None,
) -> None:
    """Publish recordings."""
    presets = [] if compare is None else compare.split(",")
    from gazeveil.privacy.publication.signing import read_key
    from gazeveil.release.publishing import planned, publish
    from gazeveil.release.recipe import Recipe, read_recipe, with_choices
    from gazeveil.release.run import interrupted_names

    if recipe_file is not None:
        _refuse_both(recipe_file, mechanism_text, preset, out)
        recipe, target = read_recipe(recipe_file), path
        if key_file is not None:
            recipe = with_choices(recipe, key_file=key_file)
    else:
        if path is None:
            raise ParameterError("Name the recordings: `gazeveil publish IN OUT`.", name="IN")
        choices = publication_choices(keep, to, rate_hz, durations, key_file, default="common")
        allowed = None if stimuli is None else tuple(stimuli)
        recipe = Recipe(
            path,
            _mechanism(mechanism_text, presets[0] if presets else preset),
            replace(choices, k=k, stimuli=allowed),
            format_name,
            tuple(settings or ()),
            screen,
            table,
            "none" if no_attack else battery,
            repetitions,
        )
        target = out
    if target is None and not plan_only and not presets:
        raise ParameterError("Name the folder to write: `gazeveil publish IN OUT`.", name="OUT")
    _refuse_plan_and_clean(plan_only, clean_first)
    left = interrupted_names(target) if target is not None and clean_first else None
    running = running_of(target, workers, cluster, resume, clean_first)
    cohort = read_cohort(recipe.source, recipe.format, list(recipe.settings), recipe.screen)
    watcher = _watcher(recipe.source, confirm, plan_only)
    if presets:
        write_json(json_file, {"compared": _compared(recipe, presets, cohort, watcher)})
        return
    if plan_only or target is None:
        plan = planned(recipe, cohort, watcher)
        write_json(json_file, {"plan": [list(line) for line in plan.lines]})
        return
    key = None if sign is None else read_key(sign)
    if new_ledger is not None:
        ledger = _new_ledger(ledger, new_ledger)
    charging = charging_of(ledger, instead_of, budget) if seed is None else None
    if charging is not None and left is not None:
        charging.cancel(target, left)
    done = publish(recipe, cohort, target, watcher, seed, key, charging, running)
    if seed is not None:
        say(f"{SEEDED} Never publish it.")
    say(f"Check it: `gazeveil verify {target} --against {recipe.source}`")
    write_json(json_file, done.description.to_dict())


def _compared(
    recipe: Recipe, presets: list[str], cohort: Cohort, watcher: Watcher
) -> list[dict[str, Any]]:
    """The table of several protections."""
    from gazeveil.release.publishing import compare

    rows = compare(recipe, presets, cohort, watcher)
    analyses = {a["analysis"]: a for row in rows for a in row.get("analyses", ())}
    table = Table(title="Nothing was written", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("preset", "promise", "recognised"):
        table.add_column(heading)
    for name, one in analyses.items():
        table.add_column(f"{name} ({one['metric']}, {one['unit']}; without the data)")
    for row in rows:
        if "refused" not in row:
            own = {
                a["analysis"]: f"{a['value']}"
                + ("" if a["reference"] is None else f" ({a['reference']})")
                for a in row["analyses"]
            }
            told = (row["preset"], row["promise"], row["recognised"])
            table.add_row(*told, *(own.get(name, "") for name in analyses), end_section=True)
    console().print(table)
    for row in rows:
        if "refused" in row:
            say(f"{row['preset']} cannot be done: {row['refused']}")
    return rows


def _new_ledger(ledger: str | None, new_ledger: Path) -> str:
    """A ledger that begins now."""
    from gazeveil.privacy.publication.ledger import ReleaseLedger

    if ledger is not None:
        raise ParameterError(
            "--ledger goes on with a ledger and --new-ledger begins one. Leave one of them out.",
            name="--ledger",
            got=ledger,
        )
    return str(ReleaseLedger.create(new_ledger).path)


def _mechanism(text: str | None, preset: str | None) -> str:
    if (text is None) == (preset is None):
        raise ParameterError(
            "Say how recordings are protected, once: --mechanism NAME:PARAMETER=VALUE,... or"
            " --preset NAME. `gazeveil advise` compares them.",
            name="--mechanism",
            got=text,
        )
    if text is not None:
        return text
    from gazeveil.release.recipe import preset as preset_named

    return preset_named(str(preset)).mechanism


def _refuse_plan_and_clean(plan_only: bool, clean_first: bool) -> None:
    # A plan changes nothing. What an interrupted run left holds the names under which it was
    # charged: removed without a release that follows, its charge could not be taken back.
    if plan_only and clean_first:
        raise ParameterError(
            "--plan changes nothing, and --clean removes what an interrupted run left. Say one of"
            " them.",
            name="--clean",
        )


def _refuse_both(
    recipe_file: Path, mechanism_text: str | None, preset: str | None, out: Path | None
) -> None:
    given = {"--mechanism": mechanism_text, "--preset": preset, "OUT after IN": out}
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"{recipe_file} holds every choice, so {name} is one too many. Write `gazeveil"
                f" publish --from {recipe_file} OUT`.",
                name=name,
                got=str(value),
            )


def _watcher(source: Path, confirm: bool, plan_only: bool) -> Watcher:
    from gazeveil.release.publishing import Watcher

    def tell(step: str, sentence: str) -> None:
        say(f"{step:>9}  {sentence}")

    def each(items: Sequence[Any], words: str) -> Iterable[Any]:
        return track(items, len(items), words)

    def ask(questions: Sequence[OpenQuestion]) -> None:
        if not plan_only:
            answered(questions, source, confirm)
        elif questions:
            show_questions(questions)

    return Watcher(tell, each, bar, ask)
