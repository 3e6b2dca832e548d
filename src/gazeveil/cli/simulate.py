"""`gazeveil simulate`: a cohort of simulated people, as a canonical folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import ScreenOption, parse_screen, say, track

HELP = """\
Example: `gazeveil simulate people/ --people 20 --stimuli 8 --seconds 30 --rate 120 --task video`"""

Out = Annotated[Path, typer.Argument(help="Folder to write; must not exist or be empty.")]


def command(
    path: Out,
    people: Annotated[int, typer.Option(help="Number of people.")] = 10,
    stimuli: Annotated[int, typer.Option(help="Number of stimuli each of them sees.")] = 4,
    seconds: Annotated[float, typer.Option(help="Length of each recording.")] = 30.0,
    rate: Annotated[float, typer.Option("--rate", help="Samples per second.")] = 120.0,
    task: Annotated[
        str,
        typer.Option(
            help="reading or random-saccade, at a screen; free-viewing, video, search or tracking,"
            " in a headset unless --screen is given."
        ),
    ] = "free-viewing",
    sessions: Annotated[
        int, typer.Option(help="Sessions of each person, with slow change between them.")
    ] = 1,
    screen: ScreenOption = None,
    seed: Annotated[int | None, typer.Option(help="Makes the cohort repeatable.")] = None,
) -> None:
    """Simulate a cohort."""
    from gazeveil.gaze.geometry import Screen
    from gazeveil.gaze.simulate import simulate
    from gazeveil.io.parquet import write

    cohort = simulate(
        people,
        stimuli,
        seconds,
        rate,
        task=task,
        space=None if screen is None else parse_screen(screen),
        seed=seed,
        sessions=sessions,
    )
    write(cohort, path, progress=lambda items: track(items, len(cohort), "Simulating"))
    place = "at a screen" if isinstance(next(iter(cohort)).space, Screen) else "in a headset"
    say(f"{len(cohort)} recordings of {people} people {place}: {path}")
