"""`gazeveil randomize`: a device's locally private messages about its recordings, as a file.

The public parameter file that devices and the curator share is a mechanism and its parameters, as
TOML. For example::

    mechanism = "dpgazesynth-one-report"
    epsilon = "1"
    G = 60
    space = "screen"

`space` ("screen" or "sphere") is for the curator: messages about the other kind are refused.
Without it the more common kind is taken.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    track,
    write_json,
)
from gazeveil.errors import DataError, FormatError

if TYPE_CHECKING:
    from gazeveil.gaze.recording import Recording, RecordingKey
    from gazeveil.privacy.synthesis.dpgazesynth.grid import WindowLayout
    from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

HELP = """\
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
    people = {key[0] for cohort in cohorts for key in cohort.keys}
    if pseudonym is not None and len(people) > 1:
        raise DataError(
            f"--as names one person, and these recordings are of {len(people)}. Report them one by"
            " one."
        )
    reported: list[tuple[str, WindowLayout, int]] = []
    count = sum(map(len, cohorts))
    items = track((r for cohort in cohorts for r in cohort), count, "Randomizing")
    recordings = (r if pseudonym is None else r.with_(person=pseudonym) for r in items)
    messages = _messages(recordings, public, parameters, seed, reported)
    size = _write_messages(out, messages)
    if not reported:
        out.unlink()
        raise DataError("There are no recordings to report.")
    windows = sum(-(-samples // plan.samples) for _, plan, samples in reported)
    promise = chosen.promise(reported)
    promise = promise if seed is None else promise.tested()
    say(f"{len(reported)} messages about {windows:,} windows, {size:,} bytes, written to {out}.")
    if seed is not None:
        say(f"{SEEDED} Never send it.")
    say(promise.plain)
    summary = {
        "messages": len(reported),
        "windows": windows,
        "bytes": size,
        "parameters": str(chosen),
        "guarantee": promise.to_dict(),
        "sentence": str(promise),
    }
    write_json(json_file, {**summary, "seed": seed})


def _messages(
    recordings: Iterable[Recording],
    public: PublicParameters,
    parameters: Path,
    seed: int | None,
    reported: list[tuple[str, WindowLayout, int]],
) -> Iterator[bytes]:
    """One message of each recording that may be reported; notes what each is about."""
    from gazeveil.gaze.geometry import Sphere
    from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams, message

    chosen, space = public.mechanism, public.space
    scheme, streams = chosen.scheme(), Streams(seed, chosen.name, chosen.reading)
    seen: set[RecordingKey] = set()
    for recording in recordings:
        if recording.key in seen:
            raise DataError(
                f"The {recording.title} was given twice. Report it once: each report spends its"
                " budget."
            )
        if space is not None and isinstance(recording.space, Sphere) != (space == "sphere"):
            raise DataError(
                f"The {recording.title} is not about a {space}, as {parameters} says messages are."
                " Give --screen, or ask the curator."
            )
        seen.add(recording.key)
        plan = scheme.plan(recording.space, recording.rate_hz)
        reported.append((recording.person, plan, len(recording)))
        yield message(scheme, str(chosen), recording, streams.of(*recording.key))


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


_REMEDY = (
    'Write it as TOML: mechanism = "dpgazesynth", epsilon = "1", and further parameters of the'
    " mechanism, one on each line."
)


@dataclass(frozen=True)
class PublicParameters:
    """What a file says: the mechanism with everything fixed, and what messages may be about."""

    mechanism: Synthesis
    space: str | None = None


def read_parameters(path: Path) -> PublicParameters:
    """What a file says.

    Raises
    ------
    FormatError
        For a file that is no TOML or names no mechanism whose devices report.
    ParameterError
        For a parameter the mechanism does not take.
    """
    from gazeveil.privacy.registry import get, mechanism, mechanisms
    from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"this is no parameter file ({error})", _REMEDY) from error
    name = content.pop("mechanism", None)
    if not isinstance(name, str):
        raise FormatError(path, "it does not name a mechanism", _REMEDY)
    space = content.pop("space", None)
    if space not in (None, "screen", "sphere"):
        raise FormatError(
            path,
            f"its space is {space!r}",
            'Write space = "screen" or space = "sphere", or leave it out.',
        )
    if name in mechanisms() and not issubclass(get(name), Synthesis):
        raise FormatError(
            path,
            f"devices do not report for '{name}'",
            "Choose dpgazesynth or dpgazesynth-one-report.",
        )
    chosen = mechanism(name, **content)
    assert isinstance(chosen, Synthesis)
    return PublicParameters(chosen, space)
