"""`gazeveil list`: mechanisms, attacks, utilities, formats and datasets, with a line each."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil import checks
from gazeveil.cli.arguments import JsonOption, print_table, say, write_json
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.registry import Registry

HELP = """\
Give the name of a mechanism or dataset to see more of it. A mechanism of a paper has two readings:
`published`, to the letter, and `corrected`, the smallest change that makes its promise true.

Example: `gazeveil list mechanisms lpa`"""

KINDS = ("mechanisms", "attacks", "utilities", "formats", "datasets")


def command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(KINDS)}.")],
    name: Annotated[
        str | None, typer.Argument(help="One mechanism or dataset; all if not given.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """List parts."""
    checks.one_of("gazeveil list", "KIND", kind, KINDS)
    if name is not None and kind not in ("mechanisms", "datasets"):
        raise ParameterError(f"`gazeveil list {kind}` takes no name. Leave it out.", name="name")
    if kind == "mechanisms":
        rows: list[Any] = _mechanisms(name)
    elif kind == "datasets":
        rows = _datasets(name)
    elif kind == "formats":
        from gazeveil.io.registry import REGISTRY as FORMATS

        rows = _parts(FORMATS, "Formats (gazeveil inspect PATH --format NAME)")
    elif kind == "utilities":
        from gazeveil.utility.registry import REGISTRY as UTILITIES

        rows = _parts(UTILITIES, "Utilities (gazeveil evaluate -u NAME)")
    else:
        rows = _attacks()
    write_json(json_file, rows)


def _parts(parts: Registry[Any], title: str) -> list[dict[str, str]]:
    """Print all parts of a registry."""
    rows = [{"name": name, "summary": parts.summary(name)} for name in parts.names()]
    print_table(title, ("name", "purpose"), [tuple(row.values()) for row in rows])
    return rows


def _attacks() -> list[dict[str, str]]:
    from gazeveil.attacks.infer import KINDS as INFERRED
    from gazeveil.attacks.registry import BATTERIES, REGISTRY, battery

    rows = _parts(REGISTRY, "Attacks (gazeveil attack -a NAME)")
    kinds = [(kind, attack.summary) for kind, attack in sorted(INFERRED.items())]
    print_table("Kinds (gazeveil attack --kind KIND)", ("kind", "purpose"), kinds)
    batteries = [(name, "\n".join(battery(name)) or "nobody attacks") for name in BATTERIES]
    print_table("Batteries (--attacks BATTERY)", ("battery", "attackers"), batteries)
    return rows


def _datasets(name: str | None) -> list[dict[str, object]]:
    from gazeveil.io.registry import describe, entry

    if name is not None:
        listed = entry(name)
        say(listed.text())
        return [listed.to_dict()]
    title = "Public datasets (gazeveil list datasets NAME tells more)"
    rows = [(d.format, d.title, d.licence, d.layout) for d in describe()]
    print_table(title, ("format", "dataset", "licence", "layout"), rows)
    return [d.to_dict() for d in describe()]


def _mechanisms(name: str | None) -> list[dict[str, str]]:
    from gazeveil.privacy import registry

    listed = []
    for each in registry.mechanisms() if name is None else (registry.get(name).name,):
        made = registry.get(each)
        summary, parameters = registry.REGISTRY.summary(each), _parameters(made)
        author = re.search(r"\b[A-Z][a-z]+(?:-[A-Z][a-z]+)?", made.paper)
        year = re.search(r"\b(?:19|20)\d\d\b", made.paper)
        source = f"{author[0]} {year[0]}" if author and year else made.paper
        say(f"{each:<22} {made.kind:<8} {source}\n  {summary}")
        for reading, claim in made.claims.items():
            promise = f"{claim.definition} per {claim.unit}"
            promise = (
                "no promise" if claim.definition == "none" else f"{promise:<44} {claim.status}"
            )
            say(f"  {reading:<20} {promise}")
            listed.append(
                {
                    "name": each,
                    "kind": made.kind,
                    "reading": reading,
                    "definition": claim.definition,
                    "unit": claim.unit,
                    "status": claim.status,
                    "words": claim.detail,
                    "paper": made.paper,
                    "summary": summary,
                    "parameters": parameters,
                }
            )
        if name is not None:
            details = (f"{row['reading']}: {row['words']}" for row in listed if row["words"])
            said = (made.__doc__ or "").split("\n\n")[0].strip()
            for line in (f"Parameters: {parameters}", *details, f"Paper: {made.paper}", said):
                say(line)
    return listed


def _parameters(made: Any) -> str:
    """Those without a default first."""
    parts = []
    for f in fields(made):
        if f.default is not MISSING:
            parts.append(f"{f.name}={f.default}")
        else:
            parts.append(f.name if f.default_factory is MISSING else f"{f.name}=...")
    return ", ".join(sorted(parts, key=lambda p: "=" in p))
