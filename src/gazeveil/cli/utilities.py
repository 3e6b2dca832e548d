"""`gazeveil utilities`: every utility by name, with one line of purpose."""

from __future__ import annotations

from gazeveil.cli.arguments import JsonOption
from gazeveil.cli.listing import print_list
from gazeveil.utility.registry import REGISTRY

NAME = "utilities"
HELP = """List utilities.

Example: `gazeveil utilities --json utilities.json`"""


def command(json_file: JsonOption = None) -> None:
    """List utilities."""
    print_list(REGISTRY, "Utilities (gazeveil evaluate -u NAME)", json_file)
