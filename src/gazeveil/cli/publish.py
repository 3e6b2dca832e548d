"""`gazeveil publish`: from a folder of recordings to a release that can be uploaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil.cli.arguments import JsonOption, bar, print_table, read_cohort, say, track, write_json
from gazeveil.cli.protect import (
    ConfirmOption,
    InsteadOfOption,
    KeepOption,
    KeyFileOption,
    LedgerOption,
    ReleaseClusterOption,
    ResumeOption,
    ToOption,
    answered,
    ledger_and_workers,
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
published.publish.toml, which --from reads. The same file says all else: rates, lengths, stimuli,
signing, budgets (docs/reference/recipe.md)."""


def command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="IN", help="Recordings; where --from names them, OUT alone."),
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
            help="public-maps, public-events, public-samples, public-pieces, public-vr or"
            " public-features.",
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
        typer.Option("--from", metavar="FILE", help="A file of choices; options go before it."),
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option("--attacks", metavar="NAME", help="Attackers: quick, strong, all or none."),
    ] = None,
    keep: KeepOption = None,
    to: ToOption = None,
    key_file: KeyFileOption = None,
    confirm: ConfirmOption = False,
    ledger: LedgerOption = None,
    instead_of: InsteadOfOption = None,
    resume: ResumeOption = False,
    cluster: ReleaseClusterOption = None,
    json_file: JsonOption = None,
) -> None:
    """Publish recordings."""
    from gazeveil.privacy.publication.certificate import read_key
    from gazeveil.release.publishing import planned, publish
    from gazeveil.release.recipe import preset as preset_named
    from gazeveil.release.recipe import recipe_of

    presets = [] if compare is None else compare.split(",")
    if recipe_file is not None and out is None:
        path, out = None, path
    if mechanism_text is not None and preset is not None:
        raise ParameterError(
            "--mechanism and --preset both say how recordings are protected. Leave one of them"
            " out. `gazeveil advise` compares them.",
            name="--mechanism",
            got=mechanism_text,
        )
    named = presets[0] if presets else preset
    chosen = mechanism_text if named is None else preset_named(named).mechanism
    given: dict[str, dict[str, Any]] = {
        "input": {"path": path},
        "protect": {"mechanism": chosen},
        "publication": {"keep": keep, "to": to, "key_file": key_file},
        "attack": {"battery": battery},
        "run": {"ledger": ledger, "cluster": cluster},
    }
    recipe = recipe_of(given, recipe_file)
    if out is None and not plan_only and not presets:
        raise ParameterError("Name the folder to write: `gazeveil publish IN OUT`.", name="OUT")
    cohort = read_cohort(recipe.source, recipe.format, list(recipe.settings), recipe.screen)
    watcher = _watcher(recipe.source, confirm, plan_only)
    if presets:
        write_json(json_file, {"compared": _compared(recipe, presets, cohort, watcher)})
        return
    if plan_only or out is None:
        # A plan changes nothing, neither the ledger nor what an interrupted run left.
        plan = planned(recipe, cohort, watcher)
        write_json(json_file, {"plan": [list(line) for line in plan.lines]})
        return
    sign, budget = recipe.run.get("sign"), recipe.run.get("budget")
    charging, running = ledger_and_workers(
        out,
        recipe.run.get("ledger"),
        instead_of,
        None if budget is None else str(budget),
        recipe.run.get("workers"),
        recipe.run.get("cluster"),
        resume,
    )
    key = None if sign is None else read_key(Path(sign))
    done = publish(recipe, cohort, out, watcher, None, key, charging, running)
    say(f"Check it: `gazeveil verify {out} --against {recipe.source}`")
    write_json(json_file, done.description.to_dict())


def _compared(
    recipe: Recipe, presets: list[str], cohort: Cohort, watcher: Watcher
) -> list[dict[str, Any]]:
    """The table of several protections."""
    from gazeveil.release.publishing import compare

    rows = compare(recipe, presets, cohort, watcher)
    analyses = {a["analysis"]: a for row in rows for a in row.get("analyses", ())}
    heads = ["preset", "promise", "recognised"]
    heads += [f"{n} ({a['metric']}, {a['unit']}; without the data)" for n, a in analyses.items()]
    lines = []
    for row in (r for r in rows if "refused" not in r):
        own = {
            a["analysis"]: f"{a['value']}"
            + ("" if a["reference"] is None else f" ({a['reference']})")
            for a in row["analyses"]
        }
        first = (row["preset"], row["promise"], row["recognised"])
        lines.append((*first, *(own.get(name, "") for name in analyses)))
    print_table("Nothing was written", heads, lines)
    for row in (r for r in rows if "refused" in r):
        say(f"{row['preset']} cannot be done: {row['refused']}")
    return rows


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
