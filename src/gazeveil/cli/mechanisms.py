"""`gazeveil mechanisms`: every mechanism with its paper, its readings, its unit and what its
promise is worth.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Annotated

import typer
from rich.console import Console

from gazeveil.cli.arguments import JsonOption, write_json
from gazeveil.privacy import registry

NAME = "mechanisms"
HELP = """List mechanisms and their promises.

Give a name to see its parameters. A mechanism of a paper has two readings: `published`, to the
letter, and `corrected`, the smallest change that makes its promise true.

Example: `gazeveil mechanisms lpa`"""


def command(
    name: Annotated[
        str | None, typer.Argument(help="One mechanism; all of them if not given.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """List mechanisms."""
    names = registry.mechanisms() if name is None else (registry.get(name).name,)
    rows = [row for n in names for row in _rows(n)]
    console = Console(highlight=False)
    console.print(f"[bold]{'name':<22} {'kind':<8} paper[/bold], purpose, and for each reading:")
    console.print(f"  {'reading':<20} {'promise':<44} status")
    last = ""
    for row in rows:
        if row["name"] != last:
            console.print(f"[bold]{row['name']:<22}[/bold] {row['kind']:<8} {_short(row['paper'])}")
            console.print(f"  {row['summary']}", markup=False, soft_wrap=True)
            last = row["name"]
        promise = (
            "no promise"
            if row["definition"] == "none"
            else f"{row['definition']} per {row['unit']}"
        )
        console.print(
            f"  {row['reading']:<20} {promise:<44}"
            f" {row['status'] if row['definition'] != 'none' else ''}".rstrip()
        )
    if name is not None:
        console.print(f"Parameters: {_parameters(name)}")
        for row in rows:
            if row["words"]:
                console.print(f"{row['reading']}: {row['words']}")
        console.print(f"Paper: {rows[0]['paper']}")
        console.print((registry.get(name).__doc__ or "").split("\n\n")[0].strip())
    write_json(json_file, [{**row, "parameters": _parameters(row["name"])} for row in rows])


def _short(paper: str) -> str:
    """First author and year, where the text has them."""
    author, year = (
        re.search(r"\b[A-Z][a-z]+(?:-[A-Z][a-z]+)?", paper),
        re.search(r"\b(?:19|20)\d\d\b", paper),
    )
    return f"{author[0]} {year[0]}" if author and year else paper


def _rows(name: str) -> list[dict[str, str]]:
    cls = registry.get(name)
    return [
        {
            "name": name,
            "kind": cls.kind,
            "reading": r,
            "definition": c.definition,
            "unit": c.unit,
            "status": c.status,
            "words": c.detail,
            "paper": cls.paper,
            "summary": registry.REGISTRY.summary(name),
        }
        for r, c in cls.claims.items()
    ]


def _parameters(name: str) -> str:
    parts = []
    for f in fields(registry.get(name)):
        if f.default is not MISSING:
            parts.append(f"{f.name}={f.default}")
        else:
            parts.append(f.name if f.default_factory is MISSING else f"{f.name}=...")
    return ", ".join(sorted(parts, key=lambda p: "=" in p))
