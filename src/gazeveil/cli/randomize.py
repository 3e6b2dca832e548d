"""`gazeveil randomize`: a device's locally private messages about its recordings, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    console,
    read_cohort,
    track,
    write_json,
)
from gazeveil.cli.public_parameters import read_parameters
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.device import message
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Streams

NAME = "randomize"
HELP = """Write locally private messages about recordings for a curator: noise in a file, nothing else.

Example: `gazeveil randomize my-gaze.csv --parameters public.toml --out messages.gvr`

The file of public parameters names the mechanism, e.g.
`mechanism = "dpgazesynth-one-report"` and `epsilon = "1"`, one on each line. `gazeveil curate`
takes any number of such files. A recording must be randomized once: each message spends its
budget."""

ParametersOption = Annotated[
    Path,
    typer.Option(
        "--parameters",
        "-p",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Public parameters, as TOML.",
        show_default=False,
    ),
]


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING...", help="Files or folders of recordings.", show_default=False
        ),
    ],
    parameters: ParametersOption,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File of messages to write; must not exist.",
            show_default=False,
        ),
    ],
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    pseudonym: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Name the person this in the messages; for recordings of one person.",
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
    """Randomize recordings."""
    public = read_parameters(parameters)
    chosen = public.mechanism
    if out.exists():
        raise DataError(
            f"{out} exists already. Name another file: a recording that is reported twice spends"
            " its budget twice."
        )
    cohorts = [read_cohort(path, format_name, settings, screen) for path in paths]
    people = sorted({key[0] for cohort in cohorts for key in cohort.keys})
    if pseudonym is not None and len(people) > 1:
        raise DataError(
            f"--as names one person, and these recordings are of {len(people)}. Report them one by"
            " one."
        )
    scheme, streams = chosen.scheme(), Streams(seed, chosen.name, chosen.reading)
    reported: list[tuple[str, WindowLayout, int]] = []
    seen: set[tuple[str, str, str, str]] = set()
    size = 0
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with out.open("xb") as file:
            for recording in track(
                (r for c in cohorts for r in c), sum(len(c) for c in cohorts), "Randomizing"
            ):
                named = recording if pseudonym is None else recording.with_(person=pseudonym)
                if named.key in seen:
                    raise DataError(
                        f"The {named.title} was given twice. Report it once: each report spends its"
                        " budget."
                    )
                seen.add(named.key)
                if public.space is not None and isinstance(named.space, Sphere) != (
                    public.space == "sphere"
                ):
                    raise DataError(
                        f"The {named.title} is not about a {public.space}, as {parameters} says"
                        " messages are. Give --screen, or ask the curator."
                    )
                size += file.write(message(scheme, str(chosen), named, streams.of(*named.key)))
                reported.append((named.person, scheme.plan(named.space, named.rate_hz), len(named)))
    except BaseException:
        # Half a file would be sent, and the rest reported again.
        out.unlink(missing_ok=True)
        raise
    if not reported:
        out.unlink()
        raise DataError("There are no recordings to report.")
    total = sum(-(-samples // plan.samples) for _, plan, samples in reported)
    promise = chosen.promise(reported)
    promise = promise if seed is None else promise.tested()
    say = console()
    say.print(
        f"{len(reported)} messages about {total:,} windows, {size:,} bytes, written to {out}.",
        soft_wrap=True,
    )
    if seed is not None:
        say.print(
            "This is a test: the noise came from a seed, so whoever knows it can undo the noise."
            " Never send it.",
            soft_wrap=True,
        )
    say.print(str(promise), soft_wrap=True)
    figures = {
        "messages": len(reported),
        "windows": total,
        "bytes": size,
        "parameters": str(chosen),
        "guarantee": promise.to_dict(),
        "sentence": str(promise),
    }
    write_json(json_file, {**figures, "seed": seed})
