"""The inventory as a table: one row per kind, with what will happen to it."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import console, say
from gazeveil.release.inventory import Finding, Inventory

_SHOWN_FIELDS = 3


def show_inventory(found: Inventory) -> None:
    """Print what recordings say beside gaze."""
    table = Table(
        title="Beside the gaze",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("kind", no_wrap=True)
    table.add_column("fields", overflow="fold", min_width=21, max_width=26)
    table.add_column("files", justify="right")
    table.add_column("example", overflow="ellipsis", no_wrap=True, max_width=13)
    for title in ("in a release", "by scrub"):
        table.add_column(title, overflow="fold", max_width=10)
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for row in found.summary():
        groups.setdefault((row.kind, row.in_release, row.in_scrub), []).append(row)
    for (kind, released, scrubbed), rows in groups.items():
        files = {f.file for f in found.of(kind)}
        table.add_row(kind, _fields(rows), f"{len(files)}", rows[0].example, released, scrubbed)
    console().print(table)
    say(f"{found.sentence()} --json lists each of them.")
    if found.not_opened:
        say(f"Note: {len(found.not_opened)} files could not be looked at.")


def _fields(rows: list[Finding]) -> str:
    names = [row.field for row in rows]
    more = len(names) - _SHOWN_FIELDS
    return ", ".join(names[:_SHOWN_FIELDS]) + (f" and {more} more" if more > 0 else "")
