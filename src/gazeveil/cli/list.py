"""`gazeveil list`: mechanisms, attacks, utilities, formats and datasets, with a line each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from gazeveil import checks
from gazeveil.cli.arguments import JsonOption, console, say, write_json
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.registry import Registry

HELP = """\
Give the name of a mechanism or dataset to see more of it. A mechanism of a paper has two readings:
`published`, to the letter, and `corrected`, the smallest change that makes its promise true.

Example: `gazeveil list mechanisms lpa`"""


def command(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="mechanisms, attacks, utilities, formats or datasets."),
    ],
    name: Annotated[
        str | None, typer.Argument(help="One mechanism or dataset; all if not given.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """List parts."""
    checks.one_of("gazeveil list", "KIND", kind, KINDS)
    if name is not None and kind not in ("mechanisms", "datasets"):
        raise ParameterError(f"`gazeveil list {kind}` takes no name. Leave it out.", name="name")
    KINDS[kind](name, json_file)


def _mechanisms(name: str | None, json_file: Path | None) -> None:
    from gazeveil.privacy import registry

    names = registry.mechanisms() if name is None else (registry.get(name).name,)
    rows = [row for n in names for row in _rows(n)]
    plain = Console(highlight=False)
    plain.print(f"[bold]{'name':<22} {'kind':<8} paper[/bold], purpose, and for each reading:")
    plain.print(f"  {'reading':<20} {'promise':<44} status")
    last = ""
    for row in rows:
        if row["name"] != last:
            plain.print(f"[bold]{row['name']:<22}[/bold] {row['kind']:<8} {_short(row['paper'])}")
            plain.print(f"  {row['summary']}", markup=False, soft_wrap=True)
            last = row["name"]
        promise = (
            "no promise"
            if row["definition"] == "none"
            else f"{row['definition']} per {row['unit']}"
        )
        plain.print(
            f"  {row['reading']:<20} {promise:<44}"
            f" {row['status'] if row['definition'] != 'none' else ''}".rstrip()
        )
    if name is not None:
        plain.print(f"Parameters: {_parameters(name)}")
        for row in rows:
            if row["words"]:
                plain.print(f"{row['reading']}: {row['words']}")
        plain.print(f"Paper: {rows[0]['paper']}")
        plain.print((registry.get(name).__doc__ or "").split("\n\n")[0].strip())
    write_json(json_file, [{**row, "parameters": _parameters(row["name"])} for row in rows])


def _attacks(name: str | None, json_file: Path | None) -> None:
    from gazeveil.attacks.infer.kinds import KINDS as INFERRED
    from gazeveil.attacks.registry import BATTERIES, REGISTRY, battery

    _print_list(REGISTRY, "Attacks (gazeveil attack -a NAME)", json_file)
    title = "Kinds (gazeveil attack --kind KIND)"
    table = Table("kind", "purpose", title=title, title_justify="left")
    for kind, attack in sorted(INFERRED.items()):
        table.add_row(kind, attack.summary)
    console().print(table)
    title = "Batteries (--attacks BATTERY)"
    table = Table("battery", "attackers", title=title, title_justify="left")
    for each in BATTERIES:
        table.add_row(each, "\n".join(battery(each)) or "nobody attacks")
    console().print(table)


def _utilities(name: str | None, json_file: Path | None) -> None:
    from gazeveil.utility.registry import REGISTRY

    _print_list(REGISTRY, "Utilities (gazeveil evaluate -u NAME)", json_file)


def _formats(name: str | None, json_file: Path | None) -> None:
    from gazeveil.io.registry import REGISTRY

    _print_list(REGISTRY, "Formats (gazeveil inspect PATH --format NAME)", json_file)


def _datasets(name: str | None, json_file: Path | None) -> None:
    from gazeveil.io.registry import describe, entry

    entries = describe() if name is None else [entry(name)]
    if name is None:
        title = "Public datasets (gazeveil list datasets NAME tells more)"
        table = Table(title=title, title_justify="left")
        for column in ("format", "dataset", "licence", "layout"):
            table.add_column(column, overflow="fold")
        for listed in entries:
            table.add_row(listed.format, listed.title, listed.licence, listed.layout)
        console().print(table)
    else:
        for listed in entries:
            say(listed.text())
    write_json(json_file, [listed.to_dict() for listed in entries])


def _print_list(parts: Registry[Any], title: str, json_file: Path | None) -> None:
    """Print all parts of a registry, and write them as JSON where a file is named."""
    rows = [{"name": name, "summary": parts.summary(name)} for name in parts.names()]
    table = Table(title=title, title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("purpose", overflow="fold")
    for row in rows:
        table.add_row(row["name"], row["summary"])
    console().print(table)
    write_json(json_file, rows)


def _short(paper: str) -> str:
    """First author and year, where the text has them."""
    author, year = (
        re.search(r"\b[A-Z][a-z]+(?:-[A-Z][a-z]+)?", paper),
        re.search(r"\b(?:19|20)\d\d\b", paper),
    )
    return f"{author[0]} {year[0]}" if author and year else paper


def _rows(name: str) -> list[dict[str, str]]:
    from gazeveil.privacy import registry

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
    from gazeveil.privacy import registry

    parts = []
    for f in fields(registry.get(name)):
        if f.default is not MISSING:
            parts.append(f"{f.name}={f.default}")
        else:
            parts.append(f.name if f.default_factory is MISSING else f"{f.name}=...")
    return ", ".join(sorted(parts, key=lambda p: "=" in p))


KINDS: dict[str, Callable[[str | None, Path | None], None]] = {
    "mechanisms": _mechanisms,
    "attacks": _attacks,
    "utilities": _utilities,
    "formats": _formats,
    "datasets": _datasets,
}
