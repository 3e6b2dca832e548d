"""`gazeveil verify`: whether a release is what its certificate says, and nothing of the recordings
slipped into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import track
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.recording import Recording

NAME = "verify"
HELP = """Check a release against its certificate.

Example: `gazeveil verify published/ --against recordings/ --key lab.key.pub`

Hashes of all files, the signature, the page, the promise (worked out again from the mechanism and
the released recordings), the sizes of groups and, with --against, that no raw row, name, date or
serial number of the recordings is in any file. Exit code 0 if all is well, 1 with one line for each
failure if not. `gazeveil verify --new-key lab.key` makes a key to sign releases with."""


def command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="A folder that was published.")
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
    regions: Annotated[
        Path | None,
        typer.Option(
            "--regions",
            metavar="FILE",
            help="The file of regions that the certificate names, to work out its promise again.",
        ),
    ] = None,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    json_file: JsonOption = None,
) -> None:
    """Verify a release."""
    from gazeveil.privacy.publication.signing import new_key as make_key
    from gazeveil.privacy.publication.signing import read_public_key
    from gazeveil.release.verify import verify

    if new_key is not None:
        made = make_key(new_key)
        say(f"Secret key: {new_key}, for you alone. Public key: {new_key}.pub, {made.public}")
    if folder is None:
        if new_key is None:
            raise ParameterError("Name the folder to verify: `gazeveil verify published/`.")
        return
    if not folder.exists():
        raise DataError(f"{folder}: there is no such file or folder. Check the path.")
    pinned = None if key is None else read_public_key(key)
    raw = None if against is None else read_cohort(against, format_name, settings, screen)
    result = verify(folder, raw, pinned, _progress, source=against, regions=regions)
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


def _progress(recordings: Iterable[Recording], count: int, what: str) -> Iterable[Recording]:
    return track(recordings, count, what)
