"""`gazeveil advise`: which mechanism for which purpose, from what was measured."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, console, say, write_json

NAME = "advise"
HELP = """Rank mechanisms for a purpose: promise, what is kept, what attackers find, the command.

Example: `gazeveil advise --purpose events --people 24 --kind screen`

Purposes: maps, aoi, events, samples, ml, teaching. The figures were measured on real recordings of
the same kind (GazeCom for screens, EyeNavGS for headsets): yours differ, so `gazeveil publish`
attacks your own release. First what keeps the purpose, of that what attackers get least from.
Pieces (mosaic) need 12 viewers of each stimulus, and nobody can be followed from piece to piece."""


def command(
    purpose: Annotated[
        str,
        typer.Option("--purpose", metavar="maps|aoi|events|samples|ml|teaching", help="What for."),
    ],
    people: Annotated[int, typer.Option("--people", "-n", min=1, help="How many people.")],
    kind: Annotated[
        str, typer.Option("--kind", "-k", metavar="screen|vr", help="Screens or headsets.")
    ] = "screen",
    json_file: JsonOption = None,
) -> None:
    """Give advice."""
    from gazeveil.release.advice import PURPOSES, advise
    from gazeveil.release.advice.pages import as_dict, attack, kept, notes
    from gazeveil.release.advice.rows import command_of

    advice = advise(purpose, people, kind)
    kinds = {"one name for each person": advice.usable, "a name for each piece": advice.pieces}
    for words, rows in kinds.items():
        if not rows:
            continue
        table = Table(
            title=f"For {PURPOSES[purpose]}, {people} people, {words}",
            title_justify="left",
            box=SIMPLE_HEAD,
        )
        for name in ("", "mechanism", "promise", "what is kept", "strongest attacker"):
            table.add_column(name, overflow="fold")
        for rank, row in enumerate(rows, start=1):
            name = f"{row.mechanism.partition(':')[0]}\n{row.words}"
            table.add_row(str(rank), name, row.promise, kept(row), attack(row))
        console().print(table)
        for rank, row in enumerate(rows, start=1):
            say(f"{rank}: {command_of(row)}")
        for name, note in notes(rows).items():
            say(f"{name}: {note}")
    if not advice.usable and not advice.pieces:
        say("Nothing that was measured keeps this purpose with so few people.")
    if advice.useless:
        say(f"Of no use for this, worse or hardly better than {advice.useless[0].reference_words}:")
    for row in advice.useless:
        say(f"- {row.mechanism}: {kept(row)}")
    for row in advice.too_few:
        say(f"With at least {row.least_people} people: {row.mechanism}, {kept(row)}.")
    write_json(json_file, as_dict(advice))
