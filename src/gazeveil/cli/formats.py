"""`gazeveil formats`: every format by name, with one line of purpose."""

from __future__ import annotations

from gazeveil.cli.arguments import JsonOption
from gazeveil.cli.listing import print_list
from gazeveil.io.registry import REGISTRY

NAME = "formats"
HELP = """List formats that can be read.

Example: `gazeveil formats --json formats.json`"""


def command(json_file: JsonOption = None) -> None:
    """List formats."""
    print_list(REGISTRY, "Formats (gazeveil inspect PATH --format NAME)", json_file)
