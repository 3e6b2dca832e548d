"""Options of the verbs that write a release: what goes out as it is, and in which form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import console, print_table, say
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from gazeveil.privacy.publication.ledger import Charging
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
