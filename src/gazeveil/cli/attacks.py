"""`gazeveil attacks`: every attack by name, with one line of purpose."""

from __future__ import annotations

from rich.table import Table

from gazeveil.attacks.registry import REGISTRY
from gazeveil.cli.arguments import JsonOption, console
from gazeveil.cli.listing import print_list

NAME = "attacks"
HELP = """List attacks.

One line of purpose each; and the batteries, which are attacks that are run together.

Example: `gazeveil attacks --json attacks.json`"""


def command(json_file: JsonOption = None) -> None:
    """List attacks."""
    from gazeveil.attacks.battery import BATTERIES, battery
    from gazeveil.attacks.infer.kinds import KINDS

    print_list(REGISTRY, "Attacks (gazeveil attack -a NAME)", json_file)
    table = Table(
        "kind", "purpose", title="Kinds (gazeveil attack --kind KIND)", title_justify="left"
    )
    for kind, attack in sorted(KINDS.items()):
        table.add_row(kind, attack.summary)
    console().print(table)
    table = Table(
        "battery", "attackers", title="Batteries (--attacks BATTERY)", title_justify="left"
    )
    for name in BATTERIES:
        table.add_row(name, "\n".join(battery(name)) or "nobody attacks")
    console().print(table)
