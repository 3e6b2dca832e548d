"""`gazeveil datasets`: the public datasets Gazeveil reads, and whether a folder is one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gazeveil.cli.arguments import JsonOption, write_json
from gazeveil.io.datasets import listing

NAME = "datasets"
HELP = """List the public datasets that can be read: publisher, licence, citation, folder layout. Give a path to check it.

Example: `gazeveil datasets gazecom downloads/gazecom`"""


def command(
    name: Annotated[str | None, typer.Argument(help="A dataset's name; all of them if not given.", show_default=False)] = None,
    path: Annotated[Path | None, typer.Argument(help="A folder to check against the layout.", show_default=False)] = None,
    json_file: JsonOption = None,
) -> None:
    """List datasets, or check a folder."""
    console = Console()
    if path is not None:
        report = listing.check(path, name)
        console.print(str(report), highlight=False)
        write_json(json_file, report.figures())
        return
    entries = listing.describe() if name is None else [listing.entry(name)]
    if name is None:
        table = Table(title="Public datasets (gazeveil datasets NAME tells more)", title_justify="left")
        for column in ("format", "dataset", "licence", "layout"):
            table.add_column(column, overflow="fold")
        for one in entries:
            table.add_row(one.format, one.title, one.licence, one.layout)
        console.print(table)
    else:
        for one in entries:
            console.print(one.text(), highlight=False)
    write_json(json_file, [one.figures() for one in entries])
