"""`gazeveil datasets`: the public datasets Gazeveil reads."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, console, say, write_json
from gazeveil.io.datasets import listing

NAME = "datasets"
HELP = """List public datasets that can be read.

`gazeveil inspect FOLDER` says whether a folder is one of them.

Example: `gazeveil datasets gazecom`"""


def command(
    name: Annotated[
        str | None, typer.Argument(help="A dataset's name; all datasets if not given.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """List datasets."""
    out = console()
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
