"""`gazeveil mechanisms`: every mechanism with its paper, its readings, its unit and what its promise is worth."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, write_json
from gazeveil.privacy import registry

NAME = "mechanisms"
HELP = """List the mechanisms: kind, paper, readings, unit and status of each promise. Give a name to see its parameters.

Example: `gazeveil mechanisms lpa`"""


def command(
    name: Annotated[str | None, typer.Argument(help="One mechanism; all of them if not given.", show_default=False)] = None,
    json_file: JsonOption = None,
) -> None:
    """List mechanisms."""
    names = registry.mechanisms() if name is None else (registry.get(name).name,)
    rows = [row for n in names for row in _rows(n)]
    table = Table(title="Mechanisms", title_justify="left")
    for column in ("name", "kind", "reading", "promise", "unit", "status", "paper"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(row[c] for c in ("name", "kind", "reading", "definition", "unit", "status", "paper")))
    console = Console()
    console.print(table)
    if name is not None:
        console.print(f"Parameters: {_parameters(name)}", highlight=False)
        for row in rows:
            if row["words"]:
                console.print(f"{row['reading']}: {row['words']}", highlight=False)
        console.print((registry.get(name).__doc__ or "").split("\n\n")[0].strip(), highlight=False)
    write_json(json_file, [{**row, "parameters": _parameters(row["name"])} for row in rows])


def _rows(name: str) -> list[dict[str, str]]:
    cls = registry.get(name)
    return [
        {"name": name, "kind": cls.kind, "reading": r, "definition": c.definition, "unit": c.unit, "status": c.status, "words": c.words, "paper": cls.paper}
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
