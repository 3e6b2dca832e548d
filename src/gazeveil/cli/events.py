"""`gazeveil events`: what the eyes did, recording by recording."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    PathArgument,
    ScreenOption,
    SetOption,
    console,
    counted,
    options,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import track
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.arrays import Floats, Ints, Texts
    from gazeveil.events.comparison import Comparison, ComparisonRow
    from gazeveil.events.quality import Quality
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.events import Events
    from gazeveil.gaze.recording import Recording, RecordingKey

HELP = """\
Example: `gazeveil events recordings/ --method ivt --parameter setting=ren2024 --out
events.parquet`"""

#: The value of `--against` that stands for all labels.
LABELS = "labels"

#: Narrowest screen, in characters, on which the comparison has its words in full.
_WIDE = 110


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
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="LABELLER",
            help="Score against one column of labels in the recordings; 'labels' compares the"
            " method, I-VT and the labellers on all of them.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the events, .parquet or .csv."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Detect events."""
    import numpy as np

    from gazeveil.events import agreement, detect
    from gazeveil.events.quality import QualityWarning, quality
    from gazeveil.gaze.events import KINDS
    from gazeveil.io.tables_file import write_events

    cohort = read_cohort(path, format_name, settings, screen)
    parsed = options(parameters, taken={"recording": "the argument PATH", "method": "--method"})
    comparison = _comparison(cohort, against, method, parsed)
    durations: dict[str, list[Floats]] = {k: [] for k in KINDS}
    label_pairs: list[tuple[Texts, Texts, Ints]] = []
    qualities: list[Quality] = []

    def each() -> Iterator[tuple[RecordingKey, Events]]:
        for recording in track(cohort, len(cohort), "Detecting"):
            with warnings.catch_warnings():
                # What it warns of is said below, once for all recordings.
                warnings.simplefilter("ignore", QualityWarning)
                events = detect(recording, method, **parsed)
            qualities.append(quality(recording, events))
            for kind in KINDS:
                durations[kind].append(events.of(kind).duration_s)
            if comparison is not None:
                comparison.add(recording, events)
            elif against is not None:
                labels, found = _labels(recording, against), events.words(len(recording))
                label_pairs.append((labels, found, recording.t_ns))
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
        "quality": [asdict(q) for q in qualities],
    }
    print_quality(screen_out, qualities)
    if comparison is not None:
        rows = comparison.rows()
        screen_out.print(_comparison_table(rows, comparison.left_out, screen_out.width >= _WIDE))
        result["comparison"] = [row.as_dict() for row in rows]
    elif against is not None:
        score = agreement.pool(label_pairs)
        screen_out.print(str(score))
        result["agreement"] = {"against": against, "f1": dict(score.f1), "kappa": score.kappa}
    if out is not None:
        say(f"Events: {out}")
    write_json(json_file, result)


def _comparison(
    cohort: Cohort, against: str | None, method: str, parameters: dict[str, object]
) -> Comparison | None:
    """What `--against labels` asks for; None where it names one column of labels, or nothing."""
    from gazeveil.events.comparison import Comparison, label_columns

    if against != LABELS:
        return None
    # Most folders are labelled throughout: one recording tells.
    looked = track(cohort, len(cohort), "Looking for labels")
    first = next((r for r in looked if LABELS in r.labels or label_columns(r)), None)
    if first is None:
        raise ParameterError(
            "The '--against' option needs labels of events, and no recording here has any. Name a"
            " folder that was labelled, or leave the option out.",
            name="--against",
            got=against,
        )
    return None if LABELS in first.labels else Comparison(method, parameters)


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
    import numpy as np

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


def _comparison_table(rows: list[ComparisonRow], left_out: tuple[str, ...], wide: bool) -> Table:
    """Rows by group; full words where the screen is wide."""
    table = Table(
        title="Detectors and labellers against the labels",
        title_justify="left",
        caption=_caption(rows, left_out),
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1 if wide else 0, 0, 0),
        pad_edge=False,
        show_edge=wide,
    )
    table.add_column("", overflow="fold", min_width=10)
    for head in _heads(wide):
        table.add_column(head, justify="right", no_wrap=True)
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            table.add_section()
            count = counted(max(r.recordings for r in rows if r.group == group), "recording")
            table.add_row(f"{group}, {count}" if group else count)
        table.add_row(row.name, *_cells(row))
    return table


def _heads(wide: bool) -> list[str]:
    """Heads of the columns of :func:`_cells`, four lines each."""
    from gazeveil.events.comparison import EVENT_WORDS, WORDS

    short = {"fixation": "fix.", "saccade": "sacc.", "pursuit": "purs."}
    words = {word: word if wide else short.get(word, word) for word in WORDS}
    sample, overlap = ("sample", "overlap") if wide else ("smpl.", "over.")
    heads = [f"\n{sample}\nF1\n{words[word]}" for word in WORDS]
    heads.append("\n\n\nkappa")
    for by in ("IoU", overlap):
        heads += [f"event\nF1\n{by}\n{words[word]}" for word in EVENT_WORDS]
    return [*heads, "\nsacc.\nonset\nms", "\nsacc.\noffset\nms"]


def _cells(row: ComparisonRow) -> list[str]:
    import numpy as np

    from gazeveil.events.comparison import EVENT_WORDS, WORDS

    shares = [row.figure(word, "f1") for word in WORDS]
    shares.append(row.kappa)
    shares += [row.figure(word, "event_f1") for word in EVENT_WORDS]
    shares += [row.figure(word, "event_f1_overlap") for word in EVENT_WORDS]
    times_ms = [row.figure("saccade", f"{end}_distance_ms") for end in ("onset", "offset")]
    return ["" if np.isnan(v) else f"{v:.3f}" for v in shares] + [
        "" if np.isnan(v) else f"{v:.1f}" for v in times_ms
    ]


def _caption(rows: list[ComparisonRow], left_out: tuple[str, ...]) -> str:
    """What the figures mean, and what was done to the labels."""
    columns = dict.fromkeys(name for row in rows for name in row.against)
    sentences = [
        f"Detectors against {', '.join(columns)}"
        + (": all samples and events of these columns pooled." if len(columns) > 1 else "."),
        "Event F1: pairs with an intersection over union of at least 0.5, and pairs that overlap"
        " at all. Onset and offset of saccades: median distance. Blank: the labels have none.",
    ]
    if any(row.name == "auto" for row in rows):
        sentences.append(
            "The network of auto was trained on GazeCom, Lund 2013, irf and hmr: on recordings of"
            " these its row says how well it learnt, not how well it does elsewhere."
        )
    joined = dict.fromkeys(row.group for row in rows if row.joined)
    if joined:
        where = f" of {', '.join(joined)}" if any(joined) else ""
        sentences.append(f"The labels{where} have no pso, so pso counts as saccade there.")
    if left_out:
        sentences.append(f"Left out, with words that are not events: {', '.join(left_out)}.")
    return "\n".join(sentences)


# Field, what it is called, how it is written, and which end of it is the worst.
_MEASURES = (
    ("rate_hz", "rate (Hz)", "{:.0f}", min),
    ("noise_deg", "noise (deg)", "{:.3f}", max),
    ("rms_s2s_deg", "RMS-S2S in fixations (deg)", "{:.3f}", max),
    ("sd_deg", "SD in fixations (deg)", "{:.3f}", max),
    ("lost", "lost samples", "{:.1%}", max),
)


def print_quality(screen: Console, qualities: Sequence[Quality]) -> None:
    """Print the table, and each concern once with the number of recordings it is about."""
    import numpy as np

    if not qualities:
        return
    table = Table(title="Quality", title_justify="left")
    table.add_column("measure")
    table.add_column("median", justify="right")
    table.add_column("worst", justify="right")
    for name, words, form, worst in _MEASURES:
        values = np.array([getattr(q, name) for q in qualities], dtype=np.float64)
        values = values[np.isfinite(values)]
        if len(values):
            table.add_row(
                words, form.format(float(np.median(values))), form.format(float(worst(values)))
            )
    screen.print(table)
    concerns = Counter(_general(concern) for q in qualities for concern in q.concerns)
    for concern, number in concerns.items():
        screen.print(f"{counted(number, 'recording')}: {concern}")


def _general(concern: str) -> str:
    """A concern without its figure, so that equal ones are counted together."""
    return "many samples are lost." if concern.endswith("samples are lost.") else concern
