"""`gazeveil advise`: which mechanism for which purpose, from what was measured."""

from __future__ import annotations

from typing import Annotated

import typer

from gazeveil.cli.arguments import JsonOption, say, write_json

HELP = """\
Example: `gazeveil advise --purpose events --people 24 --kind screen`

Purposes: maps, aoi, events, samples, ml, teaching. The figures were measured on real recordings of
the same kind (GazeCom for screens, VR-EyeTracking for headsets): yours differ, so
`gazeveil publish` attacks your own release. Mechanisms that keep the purpose come first, and among
them those from which attackers get least."""


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
    from gazeveil.release.advice import KINDS, PURPOSES, advise, as_dict, card, kept, wrap

    advice = advise(purpose, people, kind)
    say(f"Purpose: {PURPOSES[purpose]}.\n{people} {KINDS[kind]}.")
    for row in (*advice.usable, *advice.pieces)[:1]:
        say(f"Measured on {row.data}. For {people} the chance level is {100 / people:.2g} %.")
    kinds = {
        "One pseudonym for each participant": advice.usable,
        "A pseudonym for each piece, so that no one can be followed": advice.pieces,
    }
    for title, rows in kinds.items():
        if rows:
            say(f"\n{title}\n")
        for rank, row in enumerate(rows, start=1):
            for line in card(row, rank):
                say(line)
    if not advice.usable and not advice.pieces:
        say("Nothing that was measured keeps this purpose with so few participants.")
    lines = [f"Of no use for this: {row.mechanism}, {kept(row)}" for row in advice.useless]
    lines += [
        f"From {row.least_people} participants: {row.mechanism}, {kept(row)}"
        for row in advice.too_few
    ]
    for line in lines:
        say("\n".join(wrap(line, "  ")))
    write_json(json_file, as_dict(advice))
