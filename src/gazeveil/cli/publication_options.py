"""Options of the verbs that write a release: what goes out as it is, and in which form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import console, say
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from gazeveil.privacy.publication.choices import PublicationChoices
    from gazeveil.privacy.publication.ledger.charging import Charging
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
    str, typer.Option("--to", metavar="FORMAT", help="parquet, csv, bids or same.")
]
RateOption = Annotated[str | None, typer.Option("--rate", metavar="HZ", help="Public rate.")]
DurationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--durations",
        metavar="LENGTHS",
        help=(
            "Public lengths: keep, common (one for each stimulus) or STIMULUS=SECONDS (repeatable)."
        ),
    ),
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
        help="Replace an earlier release that was never given away.",
    ),
]
ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Confirm what reading guessed, in a dataset.toml.")
]


def charging_of(
    ledger: str | None, instead_of: Path | None, budget: str | None = None
) -> Charging | None:
    """The ledger of a release."""
    from gazeveil.privacy.publication.ledger import ReleaseLedger
    from gazeveil.privacy.publication.ledger.charging import Charging

    if ledger == "none":
        return None
    book = ReleaseLedger.at(None if ledger is None else Path(ledger))
    return Charging(book, budget, instead_of)


def answered(questions: Sequence[OpenQuestion], source: Path, confirm: bool) -> None:
    """Show what reading guessed and go on with a yes alone: on the terminal, or by --confirm. A yes
    is written into the dataset.toml of the recordings.
    """
    from gazeveil.io.dataset_file import FILE_NAME, HEADING
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
    title = "Reading guessed what a release rests on"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_header=False)
    for q in questions:
        others = (f"or else, in dataset.toml: {line}" for line in q.otherwise)
        table.add_row(q.topic, "\n".join((q.taken, q.reason, *others)), end_section=True)
    console().print(table)


def publication_choices(
    keep: list[str] | None,
    to: str,
    rate_hz: str | None,
    durations: list[str] | None,
    key_file: Path | None,
    default: str = "keep",
) -> PublicationChoices:
    """The choices that the options make; `default` holds for lengths where nothing is said."""
    from gazeveil.privacy.publication.choices import PublicationChoices

    kept = tuple(keep or ())
    # Where the tracker's own times are kept, so are lengths.
    usual = "keep" if {"times", "t_ns"}.intersection(kept) else default
    return PublicationChoices(
        kept, to, rate_hz, durations_of(durations) if durations else usual, key_file=key_file
    )


def durations_of(texts: list[str]) -> str | dict[str, str]:
    """`keep`, `common`, or seconds by stimulus."""
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    lengths = {}
    for text in texts:
        stimulus, sign, seconds = text.rpartition("=")
        if not sign or not stimulus:
            raise ParameterError(
                "The '--durations' option must be keep, common, or STIMULUS=SECONDS. Got"
                f" '{text}' instead.",
                name="--durations",
                got=text,
            )
        lengths[stimulus] = seconds
    return lengths


WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", help="Processes; chosen by the amount of work if not given."
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler that shares this disk."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
CleanOption = Annotated[
    bool, typer.Option("--clean", help="Remove an interrupted run and start again.")
]


def running_of(
    out: Path | None, workers: int | None, cluster: str | None, resume: bool, clean_first: bool
) -> Running:
    """Who works, as the options say; what was left is removed if that is asked.

    Raises
    ------
    ParameterError
        For options that exclude one another.
    DataError
        If the place is taken, or a run of it was interrupted and nothing is said about that.
    """
    from gazeveil.release.run import Running, check_out, clean

    if resume and clean_first:
        raise ParameterError(
            "--resume goes on with what --clean removes. Say one of them.", name="--resume"
        )
    if workers is not None and cluster is not None:
        raise ParameterError(
            "--workers are processes here, and --cluster has its own. Say one of them.",
            name="--workers",
            got=workers,
        )
    if out is not None:
        if clean_first and clean(out):
            say(f"What an interrupted run of {out} left is removed.")
        check_out(out, resume)
    return Running(workers, cluster, resume)
