"""Pictures of the command line, drawn with matplotlib without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import plot
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.events import detect
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.summary import CohortSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN_S = 10.0
_MAIN_SEQUENCE_RECORDINGS = 40


def draw_overview(cohort: Cohort, summary: CohortSummary, path: Path) -> None:
    """One picture (PNG, PDF or SVG) of a cohort: a trace with its events, the main sequence of up
    to 40 recordings spread over the cohort, a heat map, and data loss.
    """
    if path.suffix.lower() not in {".png", ".pdf", ".svg"}:
        raise ParameterError(
            f"The '--plot' option must name a PNG, PDF or SVG file. Got '{path}' instead.",
            name="--plot",
            got=str(path),
        )
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    usable = [i for i, r in enumerate(summary.recordings) if r.valid > 1]
    spread = np.linspace(0, len(usable) - 1, min(len(usable), _MAIN_SEQUENCE_RECORDINGS))
    if usable:
        # The recording whose loss is the median one.
        typical = sorted(usable, key=lambda i: summary.recordings[i].loss)[len(usable) // 2]
        _draw_trace(axes[0, 0], cohort[typical])
    else:
        axes[0, 0].text(0.5, 0.5, "no recording has valid samples", ha="center", va="center")
    plot.main_sequence((cohort[usable[i]] for i in np.unique(spread.astype(int))), axes[0, 1])
    plot.heat_map(
        summary.heat, ax=axes[1, 0], extent_deg=summary.heat_extent_deg, scale="log", colourbar=True
    )
    axes[1, 0].set_title("Where gaze went, all recordings")
    _draw_loss(axes[1, 1], summary)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_trace(axes: Axes, recording: Recording) -> None:
    """Ten seconds from the first valid sample, with the events of the best detector."""
    try:
        events = detect(recording)
    except GazeveilError:
        events = Events.empty()  # too short to detect anything in
    path = plot.trace(recording, axes, events=events, seconds=_SHOWN_S)
    title = f"Trace: {recording.person}, {recording.stimulus} (events: gazeveil.detect)"
    path.set_title(title, parse_math=False)


def _draw_loss(axes: Axes, summary: CohortSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    counts = {person: np.zeros(2) for person in summary.people}
    for r in summary.recordings:
        counts[r.person] += (r.samples, r.samples - r.valid)
    shares = sorted((100 * lost / n for n, lost in counts.values() if n), reverse=True)
    axes.bar(
        np.arange(1, len(shares) + 1),
        shares,
        color="#56B4E9",
        label="each person, most first (lower axis)",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="person, ordered by loss", ylabel="lost samples (%)")
    over_time = axes.twiny()
    over_time.plot(
        np.linspace(0, 100, len(summary.loss_by_time)),
        100 * summary.loss_by_time,
        color="black",
        lw=1,
        label="over the recording (upper axis)",
    )
    over_time.set_xlabel("time in the recording (%)", fontsize=8)
    axes.set_title(f"Data loss: {100 * summary.loss:.2f} % of {summary.samples:,} samples")
    handles = [*axes.get_legend_handles_labels()[0], *over_time.get_legend_handles_labels()[0]]
    over_time.legend(handles=handles, loc="upper right", fontsize=7)
