"""A list of registered parts: name and one line of purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from gazeveil.cli.arguments import console, write_json
from gazeveil.registry import Registry


def print_list(registry: Registry[Any], title: str, json_file: Path | None) -> None:
    """Print all parts of a registry, and write them as JSON where a file is named."""
    rows = [{"name": name, "summary": registry.summary(name)} for name in registry.names()]
    table = Table(title=title, title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("purpose", overflow="fold")
    for row in rows:
        table.add_row(row["name"], row["summary"])
    console().print(table)
    write_json(json_file, rows)
