"""`gazeveil events`: what the eyes did, recording by recording."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    counted,
    options,
    print_table,
    read_cohort,
    say,
    track,
    write_json,
)

if TYPE_CHECKING:
    from gazeveil.arrays import Floats
    from gazeveil.events.quality import Quality
    from gazeveil.gaze.events import Events
    from gazeveil.gaze.recording import RecordingKey

HELP = """\
Example: `gazeveil events recordings/ --method ivt --parameter setting=ren2024 --out
events.parquet`"""

# Field, title, format, and which end of it is the worst.
_MEASURES = (
    ("rate_hz", "rate (Hz)", "{:.0f}", min),
    ("noise_deg", "noise (deg)", "{:.3f}", max),
    ("rms_s2s_deg", "RMS-S2S in fixations (deg)", "{:.3f}", max),
    ("sd_deg", "SD in fixations (deg)", "{:.3f}", max),
    ("lost", "lost samples", "{:.1%}", max),
)


def command(
    path: PathArgument,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    method: Annotated[
        str, typer.Option("--method", help="auto, ivt, idt, dorr, is5t or online.")
    ] = "auto",
    parameters: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter of the method."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the events, .parquet or .csv."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Detect events."""
    import numpy as np

    from gazeveil.events import detect
    from gazeveil.events.quality import QualityWarning, quality
    from gazeveil.gaze.events import KINDS
    from gazeveil.io.tables_file import write_events

    cohort = read_cohort(path, format_name, settings, screen)
    parsed = options(parameters, taken={"recording": "the argument PATH", "method": "--method"})
    durations: dict[str, list[Floats]] = {k: [np.empty(0)] for k in KINDS}
    qualities: list[Quality] = []

    def each() -> Iterator[tuple[RecordingKey, Events]]:
        for recording in track(cohort, len(cohort), "Detecting"):
            with warnings.catch_warnings():
                # What it warns of is printed below, once for all recordings.
                warnings.simplefilter("ignore", QualityWarning)
                events = detect(recording, method, **parsed)
            qualities.append(quality(recording, events))
            for kind in KINDS:
                durations[kind].append(events.of(kind).duration_s)
            yield recording.key, events

    if out is not None:
        write_events(each(), out)
    else:
        list(each())
    statistics = {kind: _statistics(np.concatenate(d)) for kind, d in durations.items()}
    cells = {
        kind: [f"{f[n]:.0f}" for n in ("quarter_ms", "median_ms", "three_quarters_ms")]
        for kind, f in statistics.items()
        if f["count"]
    }
    print_table(
        f"Events of {len(cohort)} recordings by {method}",
        ("kind", "events", "total s", "25 % ms", "median ms", "75 % ms"),
        [
            (k, f"{statistics[k]['count']:,}", f"{statistics[k]['total_s']:.1f}", *ms)
            for k, ms in cells.items()
        ],
        1,
    )
    result = {
        "method": method,
        "parameters": parsed,
        "recordings": len(cohort),
        "events": statistics,
        "quality": [asdict(q) for q in qualities],
    }
    _print_quality(qualities)
    if out is not None:
        say(f"Events: {out}")
    write_json(json_file, result)


def _statistics(durations_s: Floats) -> dict[str, float | int | None]:
    import numpy as np

    shares = {"median_ms": 0.5, "quarter_ms": 0.25, "three_quarters_ms": 0.75}
    ms = {
        name: float(1000 * np.quantile(durations_s, share)) if len(durations_s) else None
        for name, share in shares.items()
    }
    return {"count": len(durations_s), "total_s": float(durations_s.sum()), **ms}


def _print_quality(qualities: Sequence[Quality]) -> None:
    """Print the table, and each concern once with the number of recordings it is about."""
    import numpy as np

    if not qualities:
        return
    rows = []
    for name, words, form, worst in _MEASURES:
        values = np.array([getattr(q, name) for q in qualities], dtype=np.float64)
        values = values[np.isfinite(values)]
        if len(values):
            ends = float(np.median(values)), float(worst(values))
            rows.append((words, *(form.format(v) for v in ends)))
    print_table("Quality", ("measure", "median", "worst"), rows, 1)
    # Without its figure a concern is the same of several recordings.
    lost = "many samples are lost."
    concerns = Counter(lost if c.endswith("samples are lost.") else c
                       for q in qualities for c in q.concerns)  # fmt: skip
    for concern, number in concerns.items():
        say(f"{counted(number, 'recording')}: {concern}")
