"""`gazeveil protect`: a protected copy of recordings, as a canonical folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gazeveil.cli.arguments import FormatOption, JsonOption, PathArgument, ScreenOption, SetOption, read_cohort, track, write_json
from gazeveil.errors import ParameterError
from gazeveil.gaze.recording import Recording
from gazeveil.io.parquet import write
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.session import StreamMechanism

NAME = "protect"
HELP = """Protect recordings with a mechanism, write them, and print what that promises.

Example: `gazeveil protect recordings/ protected/ --mechanism gaussian:sigma_deg=5`"""


def command(
    path: PathArgument,
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist or be empty.", show_default=False)],
    mechanism_text: Annotated[
        str, typer.Option("--mechanism", "-m", metavar="NAME:PARAMETER=VALUE,...", help="See `gazeveil mechanisms`.", show_default=False)
    ],
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", metavar="CHANNEL", help="Pass a channel on as it is, e.g. pupil. May be repeated.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="For tests only: repeatable noise, which protects nobody.", show_default=False)] = None,
    json_file: JsonOption = None,
) -> None:
    """Protect recordings."""
    chosen = mechanism(mechanism_text)
    if not isinstance(chosen, StreamMechanism):
        raise ParameterError(
            f"'{chosen.name}' takes a {chosen.kind}, not recordings. Choose a mechanism of the kind 'stream'; `gazeveil mechanisms` lists them.",
            name="--mechanism",
            got=mechanism_text,
        )
    cohort = read_cohort(path, format_name, settings, screen)
    release = chosen.release(cohort, seed=seed, keep=tuple(keep or ()))
    samples = 0

    def each(recordings: Iterable[Recording]) -> Iterator[Recording]:
        nonlocal samples
        for recording in track(recordings, len(cohort), "Protecting"):
            samples += len(recording)
            yield recording

    folder = write(release.data, out, progress=each)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{len(cohort)} recordings, {samples:,} samples written to {folder}.", markup=False)
    if seed is not None:
        console.print("This is a test: the noise came from a seed, so whoever knows it can undo the noise. Never publish it.", markup=False)
    console.print(str(release.guarantee), markup=False)
    figures = {"recordings": len(cohort), "samples": samples, "guarantee": release.guarantee.figures(), "sentence": str(release.guarantee)}
    write_json(json_file, {**figures, "provenance": release.provenance.figures(), "seed": seed})
