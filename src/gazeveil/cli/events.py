"""`gazeveil events`: what the eyes did, recording by recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from gazeveil.arrays import Floats, Texts
from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    console,
    options,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import track
from gazeveil.errors import ParameterError
from gazeveil.events import agreement, detect
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.recording import Recording
from gazeveil.io.events_file import write_events

NAME = "events"
HELP = """Detect fixations, saccades, pursuits, blinks and the rest.

Example: `gazeveil events recordings/ --method ivt --parameter setting=ren2024 --out
events.parquet`"""


def command(
    path: PathArgument,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="auto, ivt, idt, dorr, is5t or online.")
    ] = "auto",
    parameters: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter of the method."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="LABELLER", help="Score against labels in the recordings."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the events, .parquet or .csv."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Detect events."""
    cohort = read_cohort(path, format_name, settings, screen)
    parsed = options(parameters, taken={"recording": "the argument PATH", "method": "--method"})
    durations: dict[str, list[Floats]] = {k: [] for k in KINDS}
    label_pairs: list[tuple[Texts, Texts]] = []

    def each() -> Iterator[tuple[tuple[str, str, str, str], Events]]:
        for recording in track(cohort, len(cohort), "Detecting"):
            events = detect(recording, method, **parsed)
            for kind in KINDS:
                durations[kind].append(events.of(kind).duration_s)
            if against is not None:
                label_pairs.append((_labels(recording, against), events.words(len(recording))))
            yield recording.key, events

    if out is not None:
        write_events(each(), out)
    else:
        for _ in each():
            continue
    statistics = {
        kind: _statistics(np.concatenate(d) if d else np.empty(0)) for kind, d in durations.items()
    }
    screen_out = console()
    screen_out.print(_table(statistics, f"Events of {len(cohort)} recordings by {method}"))
    result: dict[str, object] = {
        "method": method,
        "parameters": parsed,
        "recordings": len(cohort),
        "events": statistics,
    }
    if against is not None:
        truth, detected = (np.concatenate([pair[i] for pair in label_pairs]) for i in (0, 1))
        score = agreement.agreement(truth, detected)
        screen_out.print(str(score))
        result["agreement"] = {"against": against, "f1": dict(score.f1), "kappa": score.kappa}
    if out is not None:
        say(f"Events: {out}")
    write_json(json_file, result)


def _labels(recording: Recording, name: str) -> Texts:
    if name not in recording.labels:
        names = ", ".join(recording.labels) or "none"
        raise ParameterError(
            f"The '--against' option must name labels of the recordings ({names}). Got '{name}'"
            " instead.",
            name="--against",
            got=name,
        )
    return recording.labels[name]


def _statistics(durations_s: Floats) -> dict[str, float | int | None]:
    shares = {"median_ms": 0.5, "quarter_ms": 0.25, "three_quarters_ms": 0.75}
    ms = {
        name: float(1000 * np.quantile(durations_s, share)) if len(durations_s) else None
        for name, share in shares.items()
    }
    return {"count": len(durations_s), "total_s": float(durations_s.sum()), **ms}


def _table(statistics: dict[str, dict[str, float | int | None]], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("kind")
    for name in ("events", "total s", "25 % ms", "median ms", "75 % ms"):
        table.add_column(name, justify="right")
    for kind, f in statistics.items():
        if f["count"]:
            ms = (f"{f[name]:.0f}" for name in ("quarter_ms", "median_ms", "three_quarters_ms"))
            table.add_row(kind, f"{f['count']:,}", f"{f['total_s']:.1f}", *ms)
    return table
