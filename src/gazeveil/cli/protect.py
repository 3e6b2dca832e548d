"""`gazeveil protect`: a protected copy of recordings, as a canonical folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    read_cohort,
    track,
    write_json,
)
from gazeveil.cli.printing import bar
from gazeveil.errors import DataError, ParameterError
from gazeveil.features import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.features_file import write_table
from gazeveil.io.parquet import free, write
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.mechanism import StreamMechanism

NAME = "protect"
HELP = """Protect recordings with a mechanism, write them, and print what that promises.

Example: `gazeveil protect recordings/ protected/ --mechanism gaussian:sigma_deg=5`

Mechanisms of the kind 'stream' change samples, recording by recording. Those of the kind 'cohort'
draw new recordings from what all of them have in common, e.g. `--mechanism k-same-synth:k=4`. Those
of the kind 'table' take a file of `gazeveil features` and write another one:
`gazeveil protect windows.parquet safe.parquet --mechanism lpa:epsilon=1`."""


def command(
    path: PathArgument,
    out: Annotated[
        Path,
        typer.Argument(help="Folder to write; must not exist or be empty.", show_default=False),
    ],
    mechanism_text: Annotated[
        str,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME:PARAMETER=VALUE,...",
            help="See `gazeveil mechanisms`.",
            show_default=False,
        ),
    ],
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="CHANNEL",
            help=(
                "Pass a channel on as it is, e.g. pupil; stream mechanisms alone. May be repeated."
            ),
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="For tests only: repeatable noise, which protects nobody.",
            show_default=False,
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Protect recordings."""
    chosen = mechanism(mechanism_text)
    if chosen.kind == "table":
        _protect_table(chosen, path, out, seed, json_file)
        return
    if chosen.kind not in ("stream", "cohort"):
        raise ParameterError(
            f"'{chosen.name}' takes a {chosen.kind}, not recordings. Choose a mechanism of the kind"
            " 'stream' or 'cohort', or 'table' for a feature table; `gazeveil mechanisms` lists them.",
            name="--mechanism",
            got=mechanism_text,
        )
    free(out)
    cohort = read_cohort(path, format_name, settings, screen)
    release = _released(chosen, cohort, seed, tuple(keep or ()))
    samples, good = 0, 0

    def each(recordings: Iterable[Recording]) -> Iterator[Recording]:
        nonlocal samples, good
        for recording in track(recordings, len(release.data), "Protecting"):
            samples, good = samples + len(recording), good + int(recording.valid.sum())
            yield recording

    folder = write(release.data, out, progress=each)
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{len(release.data)} recordings, {samples:,} samples written to {folder}.", markup=False
    )
    if not good:
        console.print(
            "Warning: no sample of them has any gaze. Check what was read with `gazeveil inspect`,"
            " and its format and settings.",
            markup=False,
        )
    notes = {
        "recordings left out": len(set(cohort.keys) - set(release.data.keys)),
        **release.curator_notes,
    }
    told = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in notes.items() if count)
    if told:
        console.print(
            f"For you alone, not covered by the promise, never to be published: {told}.",
            markup=False,
        )
    if seed is not None:
        console.print(
            "This is a test: the noise came from a seed, so whoever knows it can undo the noise."
            " Never publish it.",
            markup=False,
        )
    console.print(str(release.guarantee), markup=False)
    figures = {
        "recordings": len(release.data),
        "samples": samples,
        "guarantee": release.guarantee.to_dict(),
        "sentence": str(release.guarantee),
    }
    write_json(json_file, {**figures, "provenance": release.provenance.to_dict(), "seed": seed})


def _protect_table(
    chosen: Mechanism[Any], path: Path, out: Path, seed: int | None, json_file: Path | None
) -> None:
    """Protect a feature table that `gazeveil features` wrote."""
    if path.is_dir() or path.suffix.lower() not in (".parquet", ".csv", ".tsv"):
        raise ParameterError(
            f"'{chosen.name}' takes a feature table, and {path} is none. Make one first:"
            " `gazeveil features recordings/ --out table.parquet`.",
            name="path",
            got=str(path),
        )
    if out.exists():
        raise DataError(f"{out} exists already. Name another file.")
    release = chosen.release(FeatureTable.read(path), seed=seed)
    write_table(release.data, out)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{len(release.data):,} rows written to {out}.", markup=False)
    console.print(str(release.guarantee), markup=False)
    figures = {"rows": len(release.data), "guarantee": release.guarantee.to_dict()}
    write_json(json_file, {**figures, "sentence": str(release.guarantee), "seed": seed})


def _released(
    chosen: Mechanism[Any], cohort: Cohort, seed: int | None, keep: tuple[str, ...]
) -> Release[Cohort]:
    """The release of a whole cohort: a stream mechanism protects recordings when they are written,
    another one looks at all of them first.
    """
    if isinstance(chosen, StreamMechanism):
        return chosen.release(cohort, seed=seed, keep=keep)
    if keep:
        raise ParameterError(
            f"'{chosen.name}' draws new samples, so nothing of the raw ones can be kept. Leave"
            " --keep out, or choose a mechanism of the kind 'stream'.",
            name="--keep",
            got=keep,
        )
    with bar("Learning from all recordings"):
        return chosen.release(cohort, seed=seed)
