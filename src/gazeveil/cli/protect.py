"""`gazeveil protect`: protected recordings, feature tables, heat maps or attributes of people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gazeveil.cli.arguments import (
    SEEDED,
    FormatOption,
    JsonOption,
    MechanismOption,
    ScreenOption,
    SetOption,
    TestSeedOption,
    counted,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import bar, track
from gazeveil.errors import DataError, ParameterError
from gazeveil.features import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.features_file import table_suffix, write_table
from gazeveil.io.maps_file import write_maps
from gazeveil.io.parquet import write
from gazeveil.io.people import people_suffix, read_people, write_people
from gazeveil.io.staging import free
from gazeveil.privacy.api import protect
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.release import Release

NAME = "protect"
HELP = """Protect what the mechanism takes, write it, and print what that promises.

Example: `gazeveil protect recordings/ protected/ --mechanism gaussian:sigma_deg=5`

Mechanisms of the kind 'stream' change samples, recording by recording. Those of the kind 'cohort'
draw new recordings from what all of them have in common, e.g. `--mechanism k-same-synth:k=4`. Those
of the kind 'table' take a file of `gazeveil features` and write another one:
`gazeveil protect windows.parquet safe.parquet --mechanism lpa:epsilon=1`. Those of the kind 'map'
take recordings and write heat maps, one row per cell:
`gazeveil protect recordings/ maps.csv --mechanism heatmap-laplace:epsilon=1`. Those of the kind
'people' take a table of people, or recordings that have one:
`gazeveil protect people.csv safe.csv --mechanism demographics:k=4`."""

Numbers = Mapping[str, int]


def command(
    path: Annotated[
        Path,
        typer.Argument(
            help="A file or a folder of recordings, a feature table or a table of people."
        ),
    ],
    out: Annotated[
        Path, typer.Argument(help="Folder to write, or file for tables and maps; must not exist.")
    ],
    mechanism_text: MechanismOption,
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
        ),
    ] = None,
    seed: TestSeedOption = None,
    json_file: JsonOption = None,
) -> None:
    """Protect data."""
    chosen = mechanism(mechanism_text)
    _check_paths(chosen, path, out)
    data = _read(chosen.kind, path, lambda: read_cohort(path, format_name, settings, screen))
    with bar("Protecting"):
        release = protect(data, chosen, seed, tuple(keep or ()))
    if chosen.kind in ("stream", "cohort"):
        numbers = _write_recordings(release, out)
    else:
        numbers = _write_file(chosen.kind, release.data, out)
    _print_notes(data, release, seed)
    say(release.guarantee)
    promise = {"guarantee": release.guarantee.to_dict(), "sentence": str(release.guarantee)}
    origin = {"provenance": release.provenance.to_dict(), "seed": seed}
    write_json(json_file, {**numbers, **promise, **origin})


def _check_paths(chosen: Mechanism[Any], path: Path, out: Path) -> None:
    """Refuse what cannot be read or written before any work is done."""
    if chosen.kind in ("stream", "cohort"):
        free(out)
        return
    suffix = path.suffix.lower()
    if chosen.kind == "table" and (path.is_dir() or suffix not in (".parquet", ".csv", ".tsv")):
        raise ParameterError(
            f"'{chosen.name}' takes a feature table, and {path} is none. Make one first:"
            " `gazeveil features recordings/ --out table.parquet`.",
            name="path",
            got=str(path),
        )
    if chosen.kind == "people":
        people_suffix(out)
    else:
        table_suffix(out, "a feature table" if chosen.kind == "table" else "a table of maps")
    if out.exists():
        raise DataError(f"{out} exists already. Name another file.")


def _read(kind: str, path: Path, recordings: Callable[[], Cohort]) -> Any:
    """What a mechanism of this kind takes."""
    if kind == "table":
        return FeatureTable.read(path)
    if kind == "people" and path.is_file() and path.suffix.lower() in (".csv", ".tsv"):
        return read_people(path)
    return recordings()


def _write_recordings(release: Release[Cohort], out: Path) -> Numbers:
    samples, valid = 0, 0

    def each(recordings: Iterable[Recording]) -> Iterator[Recording]:
        nonlocal samples, valid
        for recording in track(recordings, len(release.data), "Protecting"):
            samples, valid = samples + len(recording), valid + int(recording.valid.sum())
            yield recording

    folder = write(release.data, out, progress=each)
    say(f"{len(release.data)} recordings, {samples:,} samples written to {folder}.")
    if not valid:
        say(
            "Warning: no sample of them has any gaze. Check what was read with `gazeveil inspect`,"
            " and its format and settings."
        )
    return {"recordings": len(release.data), "samples": samples}


def _write_file(kind: str, data: Any, out: Path) -> Numbers:
    if kind == "map":
        write_maps({name: (m.space, m.cells, m.noisy) for name, m in data.items()}, out)
    elif kind == "table":
        write_table(data, out)
    else:
        write_people(data, out)
    noun = {"map": "heat map", "table": "row", "people": "person"}[kind]
    say(f"{counted(len(data), noun)} written to {out}.")
    return {{"map": "maps", "table": "rows"}.get(kind, kind): len(data)}


def _print_notes(data: Any, release: Release[Any], seed: int | None) -> None:
    """Print what is for the holder of the raw data alone, and that a seed protects nobody."""
    notes = dict(release.curator_notes)
    if isinstance(data, Cohort) and isinstance(release.data, Cohort):
        notes = {"recordings left out": len(set(data.keys) - set(release.data.keys)), **notes}
    counts = ", ".join(f"{name.replace('_', ' ')}: {n}" for name, n in notes.items() if n)
    if counts:
        say(f"For you alone, not covered by the promise, never to be published: {counts}.")
    if seed is not None:
        say(f"{SEEDED} Never publish it.")
