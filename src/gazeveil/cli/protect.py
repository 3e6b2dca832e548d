"""`gazeveil protect`: protected recordings, feature tables, heat maps or attributes of people.

Options of the verbs that write a release: what goes out as it is, and in which form.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil.cli.arguments import (
    SEEDED,
    FormatOption,
    JsonOption,
    MechanismOption,
    ScreenOption,
    SetOption,
    TestSeedOption,
    WorkersOption,
    bar,
    console,
    counted,
    print_table,
    read_cohort,
    say,
    track,
    write_json,
)
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.privacy.guarantee import Guarantee
    from gazeveil.privacy.mechanism import Mechanism
    from gazeveil.privacy.publication.alignment import Look
    from gazeveil.privacy.publication.ledger import Charging
    from gazeveil.privacy.publication.publication import Publication
    from gazeveil.privacy.release import Release
    from gazeveil.release.run import Running
    from gazeveil.release.stop_sign import OpenQuestion

KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="FIELD",
        help=(
            "Publish a field as recorded, outside the promise: person, session, stimulus, task,"
            " times, rate, attributes, an attribute (age) or a channel (pupil). Repeatable."
        ),
    ),
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="parquet (default), csv, bids or same.")
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="Write which participant has which pseudonym, for you alone.",
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE|none",
        help="Ledger of your releases; under $GAZEVEIL_HOME if not given.",
    ),
]
InsteadOfOption = Annotated[
    Path | None,
    typer.Option(
        "--instead-of",
        metavar="FOLDER",
        help="Replace an earlier release that was never given away, or an interrupted run.",
    ),
]
ReleaseClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler that shares this disk."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Confirm what reading guessed, in a dataset.toml.")
]


def answered(questions: Sequence[OpenQuestion], source: Path, confirm: bool) -> None:
    """Show what reading guessed and go on with a yes alone: on the terminal, or by --confirm. A yes
    is written into the dataset.toml of the recordings.
    """
    from gazeveil.io.known import FILE_NAME, HEADING
    from gazeveil.release.stop_sign import confirming_lines

    if not questions:
        return
    show_questions(questions)
    lines = confirming_lines(questions)
    file = (source if source.is_dir() else source.parent) / FILE_NAME
    text = "\n".join(f"    {line}" for line in lines)
    say(f"If all of it is right, {file} has to say:")
    console().print(f"\n{text}\n", soft_wrap=True)
    if file.exists():
        raise DataError(f"Nothing was written. Put these lines, or what is right, into {file}.")
    if not confirm and not (sys.stdin.isatty() and typer.confirm("Is all of it right?")):
        raise DataError(
            f"Nothing was written. Say --confirm, which writes these lines, or put what is right"
            f" into {file}."
        )
    file.write_text("\n".join((HEADING, *lines, "")), encoding="utf-8")
    say(f"Written: {file}")


def show_questions(questions: Sequence[OpenQuestion]) -> None:
    """One table of what reading guessed."""
    rows = []
    for q in questions:
        others = (f"or else, in dataset.toml: {line}" for line in q.otherwise)
        rows.append((q.topic, "\n".join((q.taken, q.reason, *others))))
    print_table("Reading guessed what a release rests on", ("", ""), rows)


def ledger_and_workers(
    out: Path,
    ledger: str | None,
    instead_of: Path | None,
    budget: str | None,
    workers: int | None,
    cluster: str | None,
    resume: bool,
) -> tuple[Charging, Running]:
    """The ledger that a release is charged to, and who works. What an interrupted run left at the
    place is removed where the release replaces it.

    Raises
    ------
    ParameterError
        For options that exclude one another.
    DataError
        If the place is taken, or a run of it was interrupted and nothing is said about that.
    """
    from gazeveil.privacy.publication.ledger import Charging, ReleaseLedger
    from gazeveil.release.run import Running, check_out, clean, interrupted_names

    if workers is not None and cluster is not None:
        raise ParameterError(
            "--workers are processes here, and --cluster has its own. Say one of them.",
            name="--workers",
            got=workers,
        )
    left = interrupted_names(out) if instead_of == out else None
    replaced = None if left is not None else instead_of
    book = None if ledger == "none" else ReleaseLedger.at(None if ledger is None else Path(ledger))
    charging = Charging() if book is None else Charging(book, budget, replaced)
    if left is not None:
        clean(out)
        say(f"What an interrupted run of {out} left is removed.")
        charging.cancel(out, left)
    check_out(out, resume)
    return charging, Running(cluster or workers, resume)


HELP = """\
Example: `gazeveil protect recordings/ protected/ --mechanism gaussian:sigma_deg=5`

Mechanisms of the kind 'stream' change samples, recording by recording. Those of the kind 'cohort'
draw new recordings from what all of them have in common, e.g. `--mechanism k-same-synth:k=4`. Those
of the kind 'table' take a file of `gazeveil features` and write another one:
`gazeveil protect windows.parquet safe.parquet -m lpa:epsilon=1,length=60`. Those of the kind 'map'
take recordings and write heat maps, one row per cell:
`gazeveil protect recordings/ maps.csv --mechanism heatmap-laplace:epsilon=1`. Those of the kind
'people' take a table of people, or recordings that have one:
`gazeveil protect people.csv safe.csv --mechanism demographics:k=4`.

What is written can be published: people have fresh pseudonyms, times begin at zero, all recordings
have one public rate, at least four people share each row of the people's table, and PRIVACY.md
beside the data says what is promised. `--keep` names what goes out as it is. `gazeveil publish`
attacks the release too."""

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
    keep: KeepOption = None,
    to: ToOption = None,
    key_file: KeyFileOption = None,
    confirm: ConfirmOption = False,
    ledger: LedgerOption = None,
    instead_of: InsteadOfOption = None,
    workers: WorkersOption = None,
    cluster: ReleaseClusterOption = None,
    resume: ResumeOption = False,
    seed: TestSeedOption = None,
    json_file: JsonOption = None,
) -> None:
    """Protect data."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.privacy.publication.ledger import Charging, charged
    from gazeveil.privacy.publication.names import PublicationChoices, check_key_file
    from gazeveil.privacy.publication.protecting import channels_of, protected, write_file
    from gazeveil.privacy.registry import mechanism, protect
    from gazeveil.release.run import Running, begun_names, interrupted_names

    chosen = mechanism(mechanism_text)
    _check_paths(chosen, path, out)
    charging, running = Charging(), Running()
    looks: tuple[Look, ...] = ()
    choices = PublicationChoices(tuple(keep or ()), to or "parquet", key_file=key_file)
    if key_file is not None and not resume:
        check_key_file(key_file, out)
    of_file = _read_file(chosen.kind, path)
    if of_file is None:
        asked = (None, workers, cluster, resume)
        charging, running = ledger_and_workers(out, ledger, instead_of, *asked)
        charging = charging if seed is None else Charging()
    data = read_cohort(path, format_name, settings, screen) if of_file is None else of_file
    if isinstance(data, Cohort):
        looks = _look(data, path, confirm, charging if seed is None else None)
    if chosen.kind in ("stream", "cohort"):
        names = begun_names(out) if running.resume else None
        with bar("Protecting"):
            publication = protected(data, chosen, choices, seed, looks, names=names)
        release = publication.release
        with charged(
            publication.names,
            release.guarantee,
            out,
            charging,
            table=bool(publication.table.rows),
            pieces=publication.pieces,
            resumed=names is not None,
            left=lambda: interrupted_names(out) == publication.names,
        ):
            numbers, promise = _write_recordings(publication, out, data, running)
        for note in publication.notes:
            say(note)
    else:
        with bar("Protecting"):
            release = protect(data, chosen, seed, channels_of(choices, chosen.kind))
        raw = data if isinstance(data, Cohort) else None
        described = write_file(release, out, choices, seed, raw=raw, charging=charging)
        promise = described.guarantee
        numbers = _counts(chosen.kind, release.data, out)
    _print_notes(data, release, seed)
    say(promise.plain)
    say("The exact statement is in the certificate.")
    said = {"guarantee": promise.to_dict(), "sentence": str(promise)}
    origin = {"provenance": release.provenance.to_dict(), "seed": seed}
    write_json(json_file, {**numbers, **said, **origin})


def _look(cohort: Cohort, path: Path, confirm: bool, charging: Charging | None) -> tuple[Look, ...]:
    """Look at all recordings, recognise people, and stop where reading guessed who is who."""
    from gazeveil.privacy.publication.alignment import look_at
    from gazeveil.release.stop_sign import open_questions

    looks = look_at(
        cohort,
        True,
        lambda numbers: track(numbers, len(numbers), "Looking at recordings"),
        charging.seen.note if charging is not None else lambda recording: None,
    )
    if path.is_dir():
        answered(open_questions(cohort, looks, path), path, confirm)
    return looks


def _check_paths(chosen: Mechanism[Any], path: Path, out: Path) -> None:
    """Refuse what cannot be read or written before any work is done."""
    from gazeveil.io.tables_file import people_suffix, table_suffix

    if chosen.kind in ("stream", "cohort"):
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


def _read_file(kind: str, path: Path) -> Any:
    """A table of features or of people; None where recordings are to be read."""
    from gazeveil.features import FeatureTable
    from gazeveil.io.tables_file import read_people

    if kind == "table":
        return FeatureTable.read(path)
    if kind == "people" and path.is_file() and path.suffix.lower() in (".csv", ".tsv"):
        return read_people(path)
    return None


def _write_recordings(
    publication: Publication, out: Path, raw: Cohort, running: Running
) -> tuple[Numbers, Guarantee]:
    from gazeveil.release.run import run

    with bar("Protecting") as progress:
        done = run(
            publication,
            out,
            raw=raw,
            executor=running.executor,
            resume=running.resume,
            progress=progress,
        )
    for note in done.notes:
        say(note)
    summaries = done.summaries
    samples = sum(s.samples for s in summaries)
    say(f"{len(summaries)} recordings, {samples:,} samples written to {out}.")
    if not any(s.valid for s in summaries):
        say(
            "Warning: no sample of them has any gaze. Check what was read with `gazeveil inspect`,"
            " and its format and settings."
        )
    numbers = {"recordings": len(summaries), "samples": samples}
    return numbers, publication.description(summaries).guarantee


def _counts(kind: str, data: Any, out: Path) -> Numbers:
    noun, key = {
        "map": ("heat map", "maps"),
        "table": ("row", "rows"),
        "people": ("person", "people"),
    }[kind]
    say(f"{counted(len(data), noun)} written to {out}.")
    return {key: len(data)}


def _print_notes(data: Any, release: Release[Any], seed: int | None) -> None:
    """Print notes for the holder of the raw data, and the warning about a seed."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.privacy.mechanism import PieceMechanism
    from gazeveil.privacy.registry import get

    notes = dict(release.curator_notes)
    # Pieces have names of their own, so none of them is called as what it was made from.
    pieces = issubclass(get(release.provenance.mechanism), PieceMechanism)
    if isinstance(data, Cohort) and isinstance(release.data, Cohort) and not pieces:
        notes = {"recordings left out": len(set(data.keys) - set(release.data.keys)), **notes}
    for sentence in replace(release, curator_notes=notes).for_curator:
        say(sentence)
    if seed is not None:
        say(f"{SEEDED} Never publish it.")
