"""`gazeveil scrub`: vendors' files without identifiers, gaze as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import JsonOption, PathArgument, counted, say, track, write_json

HELP = """\
Example: `gazeveil scrub recordings/ scrubbed/`

Takes every text format of `gazeveil list formats` (EyeLink ASC, Tobii, Pupil Labs exports, SMI,
Gazepoint, headset logs, ARFF, plain CSV, BIDS, public datasets), tables whose columns a
dataset.toml says, and tables of people. Dates, clocks, serial numbers, names, paths, messages,
attributes, positions of the head and file names are removed or become random labels; gaze stays as
it is, and the files still load where they loaded before. Binary files and files of other kinds are
not copied and are named. For a release that protects gaze use `gazeveil publish`."""

_SHOWN = 20


def command(
    path: PathArgument,
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    keep_text: Annotated[
        list[str] | None,
        typer.Option(
            "--keep-text",
            metavar="REGEX",
            help=(
                "Messages, stimuli and names that stay as they are, e.g. 'face_\\d+'."
                " May be repeated."
            ),
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="An attribute of people's tables that stays, e.g. group. May be repeated.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Write which label stands for what, readable for you alone; outside OUT.",
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Scrub files."""
    from gazeveil.release.scrub import PAGE, scrub
    from gazeveil.release.scrub.run import CHECKS, NOT_PROTECTED

    report = scrub(
        path,
        out,
        keep_text or (),
        keep or (),
        key_file,
        progress=lambda files: track(files, len(files), "Scrubbing"),
    )
    for name, count in report.formats.items():
        say(f"Copied: {counted(count, 'file')} of {name}.")
    for what, count in sorted(report.done.items()):
        say(f"{what[:1].upper()}{what[1:]}: {count:,}.")
    for name, reason in list(report.not_copied.items())[:_SHOWN]:
        say(f"Not copied: {name} ({reason}).")
    if len(report.not_copied) > _SHOWN:
        say(f"Not copied: {len(report.not_copied) - _SHOWN} more; --json names them.")
    say(NOT_PROTECTED)
    say(f"What a person should still check (also in {out / PAGE}):")
    for number, check in enumerate(CHECKS, 1):
        say(f"{number}. {check}")
    if report.kept:
        say(f"Texts that stay as they are: {', '.join(report.kept[:_SHOWN])}.")
    write_json(json_file, report.to_dict())
