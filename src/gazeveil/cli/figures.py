"""Pictures of the command line, drawn with matplotlib without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.events import detect
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere, distance_deg, unwrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.summary import CohortSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: One colour per kind of event, readable for the colour-blind (Okabe and Ito).
COLOURS = {
    "fixation": "#0072B2",
    "saccade": "#D55E00",
    "pursuit": "#009E73",
    "pso": "#CC79A7",
    "blink": "#999999",
    "noise": "#F0E442",
    "undefined": "#DDDDDD",
}

_SHOWN_S = 10.0
_MAIN_SEQUENCE_RECORDINGS = 40


def draw_overview(cohort: Cohort, summary: CohortSummary, path: Path) -> None:
    """One picture of a cohort: a trace with its events, the main sequence, a heat map, and data
    loss.

    Parameters
    ----------
    cohort : Cohort
        Recordings; one is drawn as a trace, up to 40 spread over the cohort give the main sequence.
    summary : CohortSummary
        From :func:`gazeveil.gaze.summary.summarise`.
    path : Path
        PNG, PDF or SVG.
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
        draw_trace(axes[0, 0], cohort[chosen])
    _draw_main_sequence(axes[0, 1], cohort, summary)
    _draw_heat(axes[1, 0], summary)
    _draw_loss(axes[1, 1], summary)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_protected(raw: Recording, protected: list[tuple[str, Recording]], path: Path) -> None:
    """A recording beside what mechanisms make of it: x over ten seconds, and the path on the plane.

    Parameters
    ----------
    raw : Recording
        As it was.
    protected : list of (name, Recording)
        Releases of it.
    path : Path
        PNG, PDF or SVG.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(protected), figsize=(6.5 * len(protected), 6.5), layout="constrained", squeeze=False
    )
    for column, (name, released) in enumerate(protected):
        for recording, colour, label in ((released, "#D55E00", "released"), (raw, "black", "raw")):
            shown = recording.t_ns - recording.t_ns[0] <= _SHOWN_S * 1e9
            t = (recording.t_ns[shown] - recording.t_ns[0]) / 1e9
            x, y = (
                np.where(recording.valid[shown], v[shown], np.nan)
                for v in (recording.x_deg, recording.y_deg)
            )
            x = unwrap_x(x) if isinstance(recording.space, Sphere) else x
            axes[0, column].plot(t, x, color=colour, lw=0.8, label=label)
            axes[1, column].plot(x, y, color=colour, lw=0.6)
        axes[0, column].set(xlabel="time (s)", ylabel="x (deg)", title=name)
        axes[0, column].legend(loc="upper right", fontsize=8)
        axes[1, column].set(xlabel="x (deg)", ylabel="y (deg)")
        axes[1, column].invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _typical(summary: CohortSummary) -> int | None:
    """The recording whose loss is the median one."""
    usable = [i for i, r in enumerate(summary.recordings) if r.valid > 1]
    if not usable:
        return None
    return sorted(usable, key=lambda i: summary.recordings[i].loss)[len(usable) // 2]


def draw_trace(axes: Axes, recording: Recording) -> None:
    """The first ten seconds after the first valid sample: x and y against time, a stripe of events
    below.
    """
    begin = int(np.flatnonzero(recording.valid)[0])
    stop = begin + int(
        np.searchsorted(
            np.maximum.accumulate(recording.t_ns[begin:]),
            recording.t_ns[begin] + int(_SHOWN_S * 1e9),
        )
    )
    piece = recording.slice(begin, max(stop, begin + 2))
    t = (piece.t_ns - piece.t_ns[0]) / 1e9
    x, y = (np.where(piece.valid, v, np.nan) for v in (piece.x_deg, piece.y_deg))
    if isinstance(piece.space, Sphere):
        x = unwrap_x(x)
    axes.plot(t, x, color="black", lw=0.9, label="x")
    axes.plot(t, y, color="#56B4E9", lw=0.9, label="y")
    try:
        events = detect(piece)
    except GazeveilError:
        events = Events.empty()
    low, high = axes.get_ylim()
    height = 0.06 * (high - low)
    for kind in COLOURS:
        some = events.of(kind)
        if len(some) == 0:
            continue
        # An event lasts until the sample after its last one.
        more = 1 / piece.rate_hz if piece.rate_hz > 0 else 1e-3
        spans = [
            ((a - piece.t_ns[0]) / 1e9, (b - a) / 1e9 + more)
            for a, b in zip(some.onset_ns, some.offset_ns, strict=True)
        ]
        axes.broken_barh(spans, (low - 1.5 * height, height), facecolors=COLOURS[kind], label=kind)
    axes.set(
        xlabel="time (s)",
        ylabel="gaze (deg)",
        title=f"Trace: {piece.person}, {piece.stimulus} (events: gazeveil.detect)",
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=9, fontsize=7, frameon=False)


def saccade_sizes(recording: Recording, events: Events) -> tuple[Floats, Floats]:
    """Amplitude (deg) and peak speed (deg/s) of each saccade with valid ends."""
    saccades = events.of("saccade")
    if len(saccades) == 0:
        return np.empty(0), np.empty(0)
    a, b = saccades.onset, saccades.offset
    x, y = recording.x_deg, recording.y_deg
    amplitude = distance_deg(recording.space, x[a], y[a], x[b], y[b])
    steps = (
        np.concatenate(([0.0], distance_deg(recording.space, x[:-1], y[:-1], x[1:], y[1:])))
        * recording.rate_hz
    )
    steps[~recording.valid] = 0.0
    steps[1:][~recording.valid[:-1]] = 0.0
    # A saccade's first step leads into its first sample, so one more than its samples is looked at.
    ends = np.minimum(b + 1, len(steps) - 1)
    peak = np.maximum.reduceat(np.append(steps, 0.0), np.stack((a, ends + 1), axis=1).ravel())[::2]
    good = recording.valid[a] & recording.valid[b]
    return amplitude[good], peak[good]


def _draw_main_sequence(axes: Axes, cohort: Cohort, summary: CohortSummary) -> None:
    usable = [i for i, r in enumerate(summary.recordings) if r.valid > 1]
    picked = (
        [
            usable[i]
            for i in np.unique(
                np.linspace(0, len(usable) - 1, _MAIN_SEQUENCE_RECORDINGS).astype(int)
            )
        ]
        if usable
        else []
    )
    sizes = []
    for index in picked:
        recording = cohort[index]
        try:
            sizes.append(saccade_sizes(recording, detect(recording)))
        except GazeveilError:
            continue  # a recording too short to detect anything in has no saccades to show
    amplitude = np.concatenate([s[0] for s in sizes]) if sizes else np.empty(0)
    peak = np.concatenate([s[1] for s in sizes]) if sizes else np.empty(0)
    shown = (amplitude > 0.05) & (peak > 1)
    axes.loglog(amplitude[shown], peak[shown], ".", ms=2.5, alpha=0.4, color=COLOURS["saccade"])
    axes.set(
        xlabel="saccade amplitude (deg)",
        ylabel="peak speed (deg/s)",
        title=f"Main sequence: {int(shown.sum())} saccades of {len(picked)} recordings",
    )
    axes.grid(alpha=0.3)


def _draw_heat(axes: Axes, summary: CohortSummary) -> None:
    shares = summary.heat / max(summary.heat.sum(), 1.0)
    image = axes.imshow(
        np.log10(shares * 100 + 1e-4),
        extent=summary.heat_extent_deg,
        aspect="auto",
        cmap="magma",
        vmin=-4,
        interpolation="nearest",
    )
    axes.set(xlabel="x (deg)", ylabel="y (deg)", title="Where gaze went, all recordings")
    axes.figure.colorbar(image, ax=axes, label="share of samples per cell (log10 %)")


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
