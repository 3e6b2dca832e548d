"""`gazeveil verify`: whether a release is what its certificate says, and nothing of the recordings
slipped into it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    read_cohort,
    say,
    track,
    write_json,
)
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    pass

HELP = """\
Example: `gazeveil verify published/ --against recordings/ --key lab.key.pub`

Hashes of all files, the signature, the page, the promise (worked out again from the mechanism and
the released recordings), the sizes of groups and, with --against, that no raw row, name, date or
serial number of the recordings is in any file. Exit code 0 if all is well, 1 with one line for each
failure if not. `gazeveil verify --new-key lab.key` makes a key to sign releases with.

An audit log of the Gatekeeper (`GET /v1/audit/export`) is checked by
`gazeveil verify audit.jsonl --audit-key audit.key`, with the key of `GET /v1/audit/key`: exit code
2 with one sentence if a row is not as it was written."""


def command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="A release, or an audit log.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RECORDINGS", help="The recordings behind it."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY|FILE",
            help="The public key that must have signed it, or a file that holds it.",
        ),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(
            "--new-key",
            metavar="FILE",
            help="Make a signing key: the secret half in FILE, the public half in FILE.pub.",
        ),
    ] = None,
    new_ledger: Annotated[
        Path | None,
        typer.Option("--new-ledger", metavar="FILE", help="Begin a ledger of releases."),
    ] = None,
    regions: Annotated[
        Path | None,
        typer.Option(
            "--regions",
            metavar="FILE",
            help="The file of regions that the certificate names, to work out its promise again.",
        ),
    ] = None,
    audit_key: Annotated[
        Path | None,
        typer.Option("--audit-key", metavar="FILE", help="Key of an audit log, as hex digits."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="NUMBER:HASH", help="A row noted earlier that the log must hold."
        ),
    ] = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    json_file: JsonOption = None,
) -> None:
    """Verify a release or an audit log."""
    from gazeveil.privacy.publication.certificate import new_key as make_key
    from gazeveil.privacy.publication.certificate import read_public_key
    from gazeveil.release.verify import verify

    if new_key is not None:
        made = make_key(new_key)
        say(f"Secret key: {new_key}, for you alone. Public key: {new_key}.pub, {made.public}")
    if new_ledger is not None:
        from gazeveil.privacy.publication.ledger import ReleaseLedger

        say(f"Ledger: {ReleaseLedger.create(new_ledger).path}")
    if folder is None:
        if new_key is None and new_ledger is None:
            raise ParameterError("Name the folder to verify: `gazeveil verify published/`.")
        return
    if not folder.exists():
        raise DataError(f"{folder}: there is no such file or folder. Check the path.")
    if audit_key is not None:
        _verify_log(folder, audit_key, head)
        return
    pinned = None if key is None else read_public_key(key)
    raw = None if against is None else read_cohort(against, format_name, settings, screen)
    result = verify(folder, raw, pinned, track, source=against, regions=regions)
    for check in result.checks:
        # A name of a file may hold a new line; each failure is one line.
        lines = [" ".join(f.split()) for f in check.failures or (f"{check.note}.",)]
        say(f"{'ok    ' if check.passed else 'FAILED'} {check.name}: {lines[0]}")
        for failure in lines[1:]:
            say(f"       {failure}")
    write_json(json_file, result.to_dict())
    if not result.passed:
        say(f"{folder} is NOT what its certificate says. Do not publish or use it.")
        raise typer.Exit(1)
    say(f"{folder} is what its certificate says.")


def _verify_log(path: Path, key_file: Path, head: str | None) -> None:
    """See that an exported audit log is as it was written, without a database."""
    from gazeveil.gatekeeper.ledger.audit import verify_lines

    try:
        key = bytes.fromhex(key_file.read_text(encoding="utf-8").strip())
    except ValueError:
        key = b""
    if not 16 <= len(key) <= 64:
        raise ParameterError(
            f"The file {key_file} must hold the key of the log as hexadecimal digits. Get it with"
            " GET /v1/audit/key.",
            name="--audit-key",
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
