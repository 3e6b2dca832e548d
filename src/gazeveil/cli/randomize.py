"""`gazeveil randomize`: a device's locally private messages about its recordings, as a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import (
    SEEDED,
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    TestSeedOption,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import track
from gazeveil.cli.public_parameters import PublicParameters, read_parameters
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.device import message
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Streams

NAME = "randomize"
HELP = """Write locally private messages for a curator.

Example: `gazeveil randomize my-gaze.csv --parameters public.toml --out messages.gvr`

The file of public parameters names the mechanism, e.g.
`mechanism = "dpgazesynth-one-report"` and `epsilon = "1"`, one on each line. `gazeveil curate`
takes any number of such files. A recording must be randomized once: each message spends its
budget."""

ParametersOption = Annotated[
    Path,
    typer.Option(
        "--parameters",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Public parameters, as TOML.",
    ),
]


def command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="RECORDING...", help="Files or folders of recordings.")
    ],
    parameters: ParametersOption,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File of messages to write; must not exist."
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
        ),
    ] = None,
    seed: TestSeedOption = None,
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
    renamed = ((r if pseudonym is None else r.with_(person=pseudonym)) for c in cohorts for r in c)
    device = _Device(public, parameters, seed)
    recordings = track(renamed, sum(len(c) for c in cohorts), "Randomizing")
    size = _write_messages(out, (device.message(recording) for recording in recordings))
    if not device.reported:
        out.unlink()
        raise DataError("There are no recordings to report.")
    windows = sum(-(-samples // plan.samples) for _, plan, samples in device.reported)
    promise = chosen.promise(device.reported)
    promise = promise if seed is None else promise.tested()
    say(
        f"{len(device.reported)} messages about {windows:,} windows, {size:,} bytes, written to"
        f" {out}."
    )
    if seed is not None:
        say(f"{SEEDED} Never send it.")
    say(promise.plain)
    summary = {
        "messages": len(device.reported),
        "windows": windows,
        "bytes": size,
        "parameters": str(chosen),
        "guarantee": promise.to_dict(),
        "sentence": str(promise),
    }
    write_json(json_file, {**summary, "seed": seed})


def _write_messages(out: Path, messages: Iterable[bytes]) -> int:
    """Write a new file, all of it or nothing; returns its bytes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with out.open("xb") as file:
            return sum(file.write(message) for message in messages)
    except BaseException:
        # Half a file would be sent, and the rest reported again.
        out.unlink(missing_ok=True)
        raise


class _Device:
    """Makes one message of each recording, and keeps what it reported about."""

    def __init__(self, public: PublicParameters, parameters: Path, seed: int | None) -> None:
        chosen = public.mechanism
        self._public, self._parameters, self._text = public, parameters, str(chosen)
        self._scheme, self._streams = chosen.scheme(), Streams(seed, chosen.name, chosen.reading)
        self._seen: set[RecordingKey] = set()
        self.reported: list[tuple[str, WindowLayout, int]] = []

    def message(self, recording: Recording) -> bytes:
        """The message of a recording that may be reported."""
        if recording.key in self._seen:
            raise DataError(
                f"The {recording.title} was given twice. Report it once: each report spends its"
                " budget."
            )
        self._seen.add(recording.key)
        space = self._public.space
        if space is not None and isinstance(recording.space, Sphere) != (space == "sphere"):
            raise DataError(
                f"The {recording.title} is not about a {space}, as {self._parameters} says messages"
                " are. Give --screen, or ask the curator."
            )
        payload = message(self._scheme, self._text, recording, self._streams.of(*recording.key))
        plan = self._scheme.plan(recording.space, recording.rate_hz)
        self.reported.append((recording.person, plan, len(recording)))
        return payload
