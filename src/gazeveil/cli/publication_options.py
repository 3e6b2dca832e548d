"""Options of the verbs that write a release: what goes out as it is, and in which form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.errors import ParameterError
from gazeveil.privacy.publication.choices import PublicationChoices

KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="FIELD",
        help=(
            "Publish a field as it is: person, session, stimulus, task, times, rate, attributes,"
            " one attribute such as age, or a channel such as pupil (stream mechanisms alone)."
            " What is kept is not covered by the promise. May be repeated."
        ),
    ),
]
ToOption = Annotated[
    str, typer.Option("--to", metavar="parquet|csv|bids|same", help="Format of the release.")
]
RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="HZ", help="Public rate; the usual one nearest to the recordings' own."
    ),
]
DurationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--durations",
        metavar="keep|common|STIMULUS=SECONDS",
        help=(
            "Public lengths: each recording's own, one for each stimulus, or those named. May be"
            " repeated."
        ),
    ),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="Write who is who, for you alone; without it nobody can tell afterwards.",
    ),
]


def publication_choices(
    keep: list[str] | None,
    to: str,
    rate_hz: str | None,
    durations: list[str] | None,
    key_file: Path | None,
    default: str = "keep",
) -> PublicationChoices:
    """The choices that the options make; `default` holds for lengths where nothing is said."""
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
