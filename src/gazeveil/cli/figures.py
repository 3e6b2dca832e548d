"""Pictures of the command line, drawn with matplotlib without a display."""

from __future__ import annotations

from collections.abc import Iterator
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
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")
    chosen = _typical(summary)
    if chosen is None:
        axes[0, 0].text(0.5, 0.5, "no recording has valid samples", ha="center", va="center")
    else:
        _draw_trace(axes[0, 0], cohort[chosen])
    plot.main_sequence(_usable(cohort, summary), axes[0, 1])
    _draw_heat(axes[1, 0], summary)
    _draw_loss(axes[1, 1], summary)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_protected(raw: Recording, protected: list[tuple[str, Recording]], path: Path) -> None:
    """A recording beside what mechanisms make of it, as PNG, PDF or SVG: x over ten seconds, and
    the path on the plane.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(protected), figsize=(6.5 * len(protected), 6.5), layout="constrained", squeeze=False
    )
    for column, (name, released) in enumerate(protected):
        for row, view in enumerate(("x", "path")):
            plot.before_after(
                raw, released, axes[row, column], view=view, seconds=_SHOWN_S, legend=row == 0
            )
        axes[0, column].set_title(name, parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _typical(summary: CohortSummary) -> int | None:
    """The recording whose loss is the median one."""
    usable = [i for i, r in enumerate(summary.recordings) if r.valid > 1]
    if not usable:
        return None
    return sorted(usable, key=lambda i: summary.recordings[i].loss)[len(usable) // 2]


def _draw_trace(axes: Axes, recording: Recording) -> None:
    """Ten seconds from the first valid sample, with the events of the best detector."""
    path = plot.trace(recording, axes, events=_detected(recording), seconds=_SHOWN_S)
    path.set_title(
        f"Trace: {recording.person}, {recording.stimulus} (events: gazeveil.detect)",
        parse_math=False,
    )


def _detected(recording: Recording) -> Events:
    try:
        return detect(recording)
    except GazeveilError:
        return Events.empty()  # too short to detect anything in


def _usable(cohort: Cohort, summary: CohortSummary) -> Iterator[Recording]:
    """Up to 40 recordings with valid samples, spread over the cohort."""
    usable = [i for i, r in enumerate(summary.recordings) if r.valid > 1]
    last = len(usable) - 1
    for place in np.unique(np.linspace(0, last, _MAIN_SEQUENCE_RECORDINGS).astype(int)):
        if usable:
            yield cohort[usable[place]]


def _draw_heat(axes: Axes, summary: CohortSummary) -> None:
    plot.heat_map(
        summary.heat, ax=axes, extent_deg=summary.heat_extent_deg, scale="log", colourbar=True
    )
    axes.set_title("Where gaze went, all recordings")


def _draw_loss(axes: Axes, summary: CohortSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    people = list(summary.people)
    samples = dict.fromkeys(people, 0)
    lost = dict.fromkeys(people, 0)
    for r in summary.recordings:
        samples[r.person] += r.samples
        lost[r.person] += r.samples - r.valid
    shares = np.array(
        sorted((100 * lost[p] / samples[p] for p in people if samples[p]), reverse=True)
    )
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
