"""`gazeveil check`: the conformance kit for a mechanism, format, attack, utility or tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import JsonOption, say, write_json

HELP = """\
On one of yours or ours; each check is printed. The exit code is 1 where a check fails, 2 for bad
input.

Examples: `gazeveil check lpa:epsilon=1`

`gazeveil check my_package.noise:MyNoise --kind mechanism`

`gazeveil check my-format --sample recording.txt`"""


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="A name, or module:attribute; parameters may follow, as in lpa:epsilon=1."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", "-k", help="mechanism, format, dataset, attack, utility or tracker."
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="PATH",
            help="A file or folder of the format; the format's own sample if not given.",
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Check a part."""
    from gazeveil.plugins import check

    results = check(name, kind, sample)
    for result in results:
        say(result)
    failed = sum(not result.passed for result in results)
    say(f"{name}: {len(results)} checks, {failed} failed.")
    write_json(
        json_file,
        {
            "name": name,
            "passed": failed == 0,
            "checks": [{"check": r.check, "problems": list(r.problems)} for r in results],
        },
    )
    if failed:
        raise typer.Exit(1)
