"""`gazeveil datasets`: the public datasets Gazeveil reads, and whether a folder is one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, console, say, write_json
from gazeveil.io import registry
from gazeveil.io.datasets import listing

NAME = "datasets"
HELP = """List the public datasets that can be read: publisher, licence, citation, folder layout.

Give a path, with or without a name, to check it; the exit code is 2 where something in it cannot be
read.

Example: `gazeveil datasets gazecom downloads/gazecom`"""


def command(
    name: Annotated[
        str | None, typer.Argument(help="A dataset's name, or a path; all datasets if not given.")
    ] = None,
    path: Annotated[
        Path | None, typer.Argument(help="A folder to check against the layout.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """List datasets, or check a folder."""
    out = console()
    if path is None and name is not None and name not in registry.names() and Path(name).exists():
        path, name = Path(name), None
    if path is not None:
        report = listing.check(path, name)
        say(report)
        write_json(json_file, report.to_dict())
        if not report.ok:
            raise typer.Exit(2)
        return
    entries = listing.describe() if name is None else [listing.entry(name)]
    if name is None:
        table = Table(
            title="Public datasets (gazeveil datasets NAME tells more)", title_justify="left"
        )
        for column in ("format", "dataset", "licence", "layout"):
            table.add_column(column, overflow="fold")
        for entry in entries:
            table.add_row(entry.format, entry.title, entry.licence, entry.layout)
        out.print(table)
    else:
        for entry in entries:
            say(entry.text())
    write_json(json_file, [entry.to_dict() for entry in entries])
