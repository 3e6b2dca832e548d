"""`gazeveil inspect`: people, stimuli, rates, loss and ranges of any recordings, and what their
files say beside gaze, as tables, as JSON and as one picture.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    console,
    read_cohort,
    reading_options,
    say,
    track,
    write_json,
)

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort, ReadAs
    from gazeveil.gaze.geometry import Space
    from gazeveil.gaze.summary import CohortSummary, RecordingSummary
    from gazeveil.release.inventory import Finding, Inventory

HELP = """\
Example: `gazeveil inspect recordings/ --plot overview.png`"""

#: What a release holds that is one file and no recordings, as its certificate calls it.
ONE_FILE = ("feature table", "heat maps", "table of people")

_TOPICS = {"y_axis": "y axis", "unit": "gaze unit"}
_ORIGINS = {
    "file": "said by the file",
    "said": "by dataset.toml or an option",
    "guessed": "GUESSED",
}

_SHOWN_FIELDS = 3


def command(
    path: PathArgument,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="PNG", help="Draw trace, main sequence, heat map and data loss."
        ),
    ] = None,
    json_file: JsonOption = None,
    rows: Annotated[int, typer.Option("--rows", min=0, help="Recordings to list one by one.")] = 10,
    write_dataset: Annotated[
        bool,
        typer.Option(
            "--write-dataset",
            help="Write a dataset.toml beside the data: columns, units, screen, names. Check it.",
        ),
    ] = False,
    all_text: Annotated[
        bool,
        typer.Option(
            "--all-text",
            help="Look for dates, names and numbers in every line, not in headers and samples"
            " alone.",
        ),
    ] = False,
) -> None:
    """Inspect recordings."""
    from gazeveil.release.inventory import inventory

    certificate = certificate_of(path)
    contents = (certificate or {}).get("contents")
    held = contents if isinstance(contents, dict) else {}
    if held.get("format") in ONE_FILE:
        _show_certificate(certificate)
        write_json(json_file, {"certificate": certificate})
        return
    if write_dataset:
        from gazeveil.io.reading import write_dataset_file

        file = write_dataset_file(path, format_name, **reading_options(settings, screen))
        say(f"Written: {file}. Check it; every verb reads it from now on.")
    cohort = read_cohort(path, format_name, settings, screen)
    pieces = path.is_dir() and "pieces" in held
    summary = show(cohort, rows=rows, pieces=pieces)
    _show_certificate(certificate)
    found = inventory(
        path,
        all_text,
        cohort.people,
        progress=lambda files: track(files, len(files), "Looking for identifiers"),
    )
    _show_inventory(found)
    if plot is not None:
        from gazeveil.cli.figures import draw_overview

        draw_overview(cohort, summary, plot)
        say(f"Picture: {plot}")
    shown = {**_figures(summary, pieces), "certificate": certificate, "inventory": found.to_dict()}
    shown["doubts"] = [d._asdict() for d in dict.fromkeys((*cohort.doubts, *summary.doubts))]
    if cohort.read_as is not None:
        used, unused = dict(cohort.read_as.used), list(cohort.read_as.unused)
        shown["columns"] = {"used": used, "not_used": unused}
    write_json(json_file, shown)


def certificate_of(path: Path) -> dict[str, Any] | None:
    """The certificate in a folder or beside a file; promises and their noise take longer to import
    than a small folder to read, so only a certificate imports them.
    """
    if not (path / "PRIVACY.json" if path.is_dir() else Path(f"{path}.PRIVACY.json")).is_file():
        return None
    from gazeveil.privacy.publication.certificate import has_certificate, read_certificate

    return read_certificate(path) if has_certificate(path) else None


def show(cohort: Cohort, rows: int = 10, pieces: bool = False) -> CohortSummary:
    """Print the summary of a cohort and return it; names of pieces identify no participant."""
    from gazeveil.gaze.recording import FILE
    from gazeveil.gaze.summary import summarise

    summary = summarise(cohort, progress=lambda items: track(items, len(cohort), "Inspecting"))
    out = console()
    out.print(_overview(summary, cohort.read_as, pieces))
    of_layout = all(f.origin == FILE for facts in summary.facts.values() for f in facts)
    if not of_layout and not pieces:
        out.print(_origins(summary, cohort.read_as))
    if rows and summary.recordings:
        out.print(_rows(summary, rows, pieces))
    for note in summary.warnings():
        say(f"Note: {note}")
    return summary


def _overview(summary: CohortSummary, read_as: ReadAs | None, pieces: bool) -> Table:
    seconds = sum(r.duration_s for r in summary.recordings)
    rates = ", ".join(
        f"{rate:g} Hz" + (f" ({n})" if len(summary.rates_hz) > 1 else "")
        for rate, n in list(summary.rates_hz.items())[:8]
    )
    spaces = sorted({_space_words(r.space) for r in summary.recordings})
    known = sorted({k for a in summary.people.values() for k in a})
    people = f"{len(summary.people)}" + (f" ({', '.join(known)} known)" if known else "")
    rows: list[tuple[str, str]] = [
        *([] if read_as is None else [("format", read_as.format)]),
        ("pieces", f"{len(summary.recordings)} (each has a name of its own, which is nobody's)")
        if pieces
        else ("people", people),
        ("stimuli", f"{len(summary.stimuli)}"),
        *([] if pieces else [("recordings", f"{len(summary.recordings)}")]),
        ("samples", f"{summary.samples:,}"),
        ("time", f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.1f} s"),
        ("rates", (rates or "unknown") + (", ..." if len(summary.rates_hz) > 8 else "")),
        ("lost samples", f"{100 * summary.loss:.2f} %"),
        ("space", ", ".join(spaces[:3]) + (f" and {len(spaces) - 3} more" if spaces[3:] else "")),
    ]
    table = Table(title="Cohort", show_header=False, title_justify="left")
    for row in rows:
        table.add_row(*row)
    return table


def _space_words(space: Space) -> str:
    from gazeveil.gaze.geometry import Screen

    if isinstance(space, Screen):
        return f"screen {space.width_px:g} x {space.height_px:g} px"
    return "sphere"


def _origins(summary: CohortSummary, read_as: ReadAs | None) -> Table:
    """What reading took, and where it comes from."""
    table = Table(
        title="Read as", title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_header=False
    )
    for topic, facts in summary.facts.items():
        for number, (fact, count) in enumerate(list(facts.items())[:3]):
            some = f" ({count} recordings)" if len(facts) > 1 else ""
            basis = f", {fact.basis}" if fact.basis else ""
            name = _TOPICS.get(topic, topic) if not number else ""
            table.add_row(name, fact.value + some, _ORIGINS.get(fact.origin, fact.origin) + basis)
        if others := list(facts.values())[3:]:
            table.add_row("", f"{len(others)} others ({sum(others)} recordings)", "")
    if read_as is not None and read_as.used:
        table.add_row("columns", ", ".join(read_as.used.values()), "used")
        table.add_row("", ", ".join(read_as.unused) or "none", "not used")
    return table


def _rows(summary: CohortSummary, rows: int, pieces: bool) -> Table:
    from gazeveil.gaze.recording import KEY_NAMES

    count, noun = len(summary.recordings), "Pieces" if pieces else "Recordings"
    title = f"{noun} ({min(rows, count)} of {count})"
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    # What is the same everywhere needs no column; a terminal has 80 of them.
    keys = [
        n
        for n in KEY_NAMES
        if n in ("person", "stimulus") or len({getattr(r, n) for r in summary.recordings}) > 1
    ]
    for name in keys:
        shown = "piece" if pieces and name == "person" else name
        table.add_column(shown, overflow="ellipsis", no_wrap=True, max_width=14)
    for name in ("Hz", "samples", "s", "lost %", "x deg", "y deg"):
        table.add_column(name, justify="right", no_wrap=True, min_width=max(4, len(name)))
    for r in summary.recordings[:rows]:
        x_range, y_range = (
            f"{a:.0f}..{b:.0f}" if a <= b else "-"
            for a, b in ((r.x_min_deg, r.x_max_deg), (r.y_min_deg, r.y_max_deg))
        )
        rate = "-" if math.isnan(r.rate_hz) else f"{r.rate_hz:.4g}"
        cells = (
            rate,
            f"{r.samples:,}",
            f"{r.duration_s:.1f}",
            f"{100 * r.loss:.1f}",
            x_range,
            y_range,
        )
        table.add_row(*(getattr(r, n) for n in keys), *cells)
    return table


def _figures(summary: CohortSummary, pieces: bool) -> dict[str, object]:
    """Return the summary as for JSON; a release of pieces has no names of participants."""
    import numpy as np

    return {
        **({"pieces": len(summary.recordings)} if pieces else {}),
        "people": {} if pieces else summary.people,
        "stimuli": list(summary.stimuli),
        "samples": summary.samples,
        "loss": summary.loss,
        "rates_hz": {str(k): v for k, v in summary.rates_hz.items()},
        "loss_by_time": np.round(summary.loss_by_time, 6).tolist(),
        "skipped": summary.skipped,
        "notes": summary.warnings(),
        "facts": {
            topic: [{**f._asdict(), "recordings": n} for f, n in facts.items()]
            for topic, facts in summary.facts.items()
        },
        "recordings": [_row(r) for r in summary.recordings],
    }


def _row(r: RecordingSummary) -> dict[str, object]:
    return {
        "person": r.person,
        "stimulus": r.stimulus,
        "session": r.session,
        "task": r.task,
        "rate_hz": r.rate_hz if math.isfinite(r.rate_hz) else None,
        "rows": r.rows,
        "samples": r.samples,
        "valid": r.valid,
        "events": r.events,
        "duration_s": r.duration_s,
        "loss": r.loss,
        "longest_loss_s": r.longest_loss_s,
        "time_faults": r.time_faults,
        "impossible": r.impossible,
        "x_deg": [v if math.isfinite(v) else None for v in (r.x_min_deg, r.x_max_deg)],
        "y_deg": [v if math.isfinite(v) else None for v in (r.y_min_deg, r.y_max_deg)],
        "assumed_geometry": r.assumed_geometry,
        "source": r.source,
    }


def _show_inventory(found: Inventory) -> None:
    """Print what recordings say beside gaze."""
    table = Table(
        title="Beside the gaze",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("kind", no_wrap=True)
    table.add_column("fields", overflow="fold", min_width=21, max_width=26)
    table.add_column("files", justify="right")
    table.add_column("example", overflow="ellipsis", no_wrap=True, max_width=13)
    for title in ("in a release", "by scrub"):
        table.add_column(title, overflow="fold", max_width=10)
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for row in found.summary():
        groups.setdefault((row.kind, row.in_release, row.in_scrub), []).append(row)
    for (kind, released, scrubbed), rows in groups.items():
        files = {f.file for f in found.of(kind)}
        table.add_row(kind, _fields(rows), f"{len(files)}", rows[0].example, released, scrubbed)
    console().print(table)
    say(f"{found.sentence()} --json lists each of them.")
    if found.not_opened:
        say(f"Note: {len(found.not_opened)} files could not be looked at.")


def _fields(rows: list[Finding]) -> str:
    more = len(rows) - _SHOWN_FIELDS
    names = ", ".join(row.field for row in rows[:_SHOWN_FIELDS])
    return names + (f" and {more} more" if more > 0 else "")


def _show_certificate(certificate: dict[str, Any] | None) -> None:
    """Print what the certificate of a release says."""
    if certificate is None:
        return
    from gazeveil.privacy.publication.page import summary

    try:
        lines = summary(certificate)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        lines = ["It is not whole: somebody edited it."]
    say("Certificate, as it stands there; `gazeveil verify` checks it:")
    for line in lines:
        say(f"  {line}")
