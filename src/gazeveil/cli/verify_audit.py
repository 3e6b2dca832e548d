"""`gazeveil verify-audit`: see that an exported audit log is as it was
written, without a database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.errors import ParameterError

NAME = "verify-audit"
HELP = """Check an audit log of the Gatekeeper.

Example: `gazeveil verify-audit audit.jsonl --key-file audit.key`

The file comes from `GET /v1/audit/export`, the key from `GET /v1/audit/key`. Exit code 0 if every
row is as it was written, 2 with one sentence if not."""


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The exported log.")],
    key_file: Annotated[
        Path,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="File with the key of the log, as hexadecimal digits.",
        ),
    ],
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="NUMBER:HASH",
            help="A row that was noted earlier, which the log must still hold.",
        ),
    ] = None,
) -> None:
    """Verify."""
    from gazeveil.gatekeeper.ledger.audit.export import verify_lines

    try:
        key = bytes.fromhex(key_file.read_text(encoding="utf-8").strip())
    except ValueError:
        key = b""
    if not 16 <= len(key) <= 64:
        raise ParameterError(
            f"The file {key_file} must hold the key of the log as hexadecimal digits. Get it with"
            " GET /v1/audit/key.",
            name="key_file",
        )
    noted = None
    if head is not None:
        number, _, chain = head.partition(":")
        if not number.isascii() or not number.isdigit() or len(chain) != 64:
            raise ParameterError(
                "The option --head is the number of a row and its hash of 64 digits, as"
                " 120:0f3c...",
                name="head",
                got=head[:80],
            )
        noted = (int(number), chain)
    with path.open("rb") as lines:
        log = verify_lines(lines, key, noted)
    typer.echo(f"{log.rows} rows, numbers {log.first} to {log.last}, all as they were written.")
    if log.pruned_by is not None:
        typer.echo(f"Rows before {log.first} were pruned, as row {log.pruned_by} says.")
