"""Pictures shared by the papers' modules: ours filled, the published values as hollow diamonds or
dashed lines, chance dotted.

Drawn without matplotlib's global state, in the inks of the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.papers.comparison.lookup import Estimate
from gazeveil.papers.protocols import OUR_NETWORK, PAPERS_NETWORK
from gazeveil.plot.canvas import SERIES, light

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

#: Attackers in the order of their panels, with the titles of these.
ATTACKERS = {
    PAPERS_NETWORK: "RBF network as published: all events, the paper's attacker",
    OUR_NETWORK: "RBF network, ours: drawn events, people balanced",
    "linkage": "linkage, a stronger attacker",
}

#: The same in names of files.
ATTACKER_FILES = {PAPERS_NETWORK: "rbfn-published", OUR_NETWORK: "rbfn", "linkage": "linkage"}

_DPI = 150
_MARKERS = ("o", "s", "^", "v", "P", "X", "D")


@dataclass(frozen=True)
class Curve:
    """One line of a panel: places on the x axis by name, ours (None where not measured) and theirs
    there.
    """

    label: str
    ours: Mapping[str, Estimate | None]
    published: Mapping[str, float] = field(default_factory=dict)


def picture(
    columns: int, rows: int, width_in: float, height_in: float, title: str
) -> tuple[Picture, list[Axes]]:
    """A figure with a grid of panels, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width_in, height_in), layout="constrained", facecolor=light("paper"))
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(rows, columns, squeeze=False)
    # A title as wide as the picture at most: letters are about 0.6 of their size wide.
    drawn.suptitle(
        title, fontsize=min(11.0, 115.0 * width_in / max(1, len(title))), color=light("ink")
    )
    panels = list(grid.flat)
    for panel in panels:
        plain(panel)
    return drawn, panels


def plain(panel: Axes) -> None:
    """No box, quiet ticks."""
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(light("rule"))
    panel.tick_params(colors=light("muted"), labelsize=8)
    panel.set_facecolor(light("paper"))


def save(drawn: Picture, folder: str | Path, name: str) -> Path:
    """Write a picture as PNG and forget it."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    drawn.savefig(place / f"{name}.png", dpi=_DPI)
    drawn.clear()
    return place / f"{name}.png"


def bars(
    panel: Axes, groups: Sequence[str], series: Sequence[Curve], ylabel: str, spread: str = "sd"
) -> None:
    """Grouped bars with ours, hollow diamonds for theirs and a dotted line for chance. Each curve
    has one bar per group, which is its x label; whiskers are the deviation over repetitions or the
    95 % interval.
    """
    width = 0.8 / max(1, len(series))
    for s, curve in enumerate(series):
        colour = ink(s)
        for g, group in enumerate(groups):
            x = g - 0.4 + (s + 0.5) * width
            estimate = curve.ours.get(group)
            if estimate is not None:
                panel.bar(
                    x,
                    estimate.value,
                    0.9 * width,
                    color=colour,
                    label=curve.label if _first(curve, group, groups) else None,
                )
                _whisker(panel, x, estimate, spread)
            if group in curve.published and math.isfinite(curve.published[group]):
                _diamond(panel, x, curve.published[group])
    if all(estimate is None for curve in series for estimate in curve.ours.values()):
        absent(panel)
    for g, group in enumerate(groups):
        chances = [
            f.chance
            for f in (c.ours.get(group) for c in series)
            if f is not None and math.isfinite(f.chance)
        ]
        if chances:
            panel.plot(
                [g - 0.42, g + 0.42], [np.mean(chances)] * 2, ":", color=light("ink"), lw=1.2
            )
    panel.set_xticks(range(len(groups)), [g.replace(", ", ",\n") for g in groups], fontsize=8)
    panel.set_xlim(-0.6, len(groups) - 0.4)
    panel.set_ylim(bottom=0)
    panel.set_ylabel(ylabel, fontsize=9, color=light("muted"))


def curves(
    panel: Axes,
    series: Sequence[Curve],
    ylabel: str = "",
    raw: Estimate | None = None,
    raw_published: float = math.nan,
    chance: float = math.nan,
    spread: str = "interval",
) -> None:
    """Lines over named places; dashed with hollow diamonds what was published; the baseline solid
    and chance dotted across (NaN for none). The spread is a band of the 95 % interval, or whiskers
    of the deviation over repetitions.
    """
    places = list(dict.fromkeys(x for c in series for x in (*c.ours, *c.published)))
    for s, curve in enumerate(series):
        colour = ink(s)
        at = [(i, curve.ours[x]) for i, x in enumerate(places) if curve.ours.get(x) is not None]
        if at:
            xs = np.array([i for i, _ in at], dtype=float)
            estimates = [e for _, e in at if e is not None]
            values = np.array([e.value for e in estimates])
            panel.plot(
                xs,
                values,
                "-",
                marker=_MARKERS[s % len(_MARKERS)],
                ms=4,
                color=colour,
                label=curve.label,
            )
            low, high = np.array([(e.low, e.high) for e in estimates]).T
            if spread == "sd":
                for x, estimate in zip(xs.tolist(), estimates, strict=True):
                    _whisker(panel, x, estimate, "sd", colour)
            elif np.isfinite(low).any():
                panel.fill_between(xs, low, high, color=colour, alpha=0.15, lw=0)
        theirs = [
            (i, curve.published[x])
            for i, x in enumerate(places)
            if math.isfinite(curve.published.get(x, math.nan))
        ]
        if theirs:
            panel.plot(
                *zip(*theirs, strict=True), "--", marker="D", ms=4.5, mfc="none", color=colour, lw=1
            )
    if all(estimate is None for curve in series for estimate in curve.ours.values()):
        absent(panel)
    if raw is not None:
        panel.axhline(raw.value, color=light("ink"), lw=1.2, label="raw")
    if math.isfinite(raw_published):
        panel.axhline(raw_published, color=light("ink"), lw=1, ls="--")
    if math.isfinite(chance):
        panel.axhline(chance, color=light("ink"), lw=1.2, ls=":", label="chance")
    panel.set_xticks(range(len(places)), places, fontsize=8)
    panel.set_xlim(-0.3, len(places) - 0.7)
    panel.set_ylabel(ylabel, fontsize=9, color=light("muted"))


def sideways(
    panel: Axes,
    names: Sequence[str],
    ours: Sequence[Estimate | None],
    published: Sequence[float | None],
    xlabel: str,
) -> None:
    """Horizontal bars from the top down with 95 % intervals; what was published as hollow diamonds;
    a cross where ours is missing.
    """
    for row, (estimate, theirs) in enumerate(zip(ours, published, strict=True)):
        if estimate is None:
            panel.plot(
                [0],
                [row],
                marker="x",
                color=light("muted"),
                ms=5,
                ls="none",
                clip_on=False,
                label="missing" if ours.index(None) == row else None,
            )
        else:
            panel.barh(
                row,
                estimate.value,
                0.7,
                color=ink(0),
                label=(
                    "ours" if next(i for i, f in enumerate(ours) if f is not None) == row else None
                ),
            )
            if math.isfinite(estimate.low) and math.isfinite(estimate.high):
                panel.plot([estimate.low, estimate.high], [row, row], color=light("ink"), lw=1)
        if theirs is not None and math.isfinite(theirs):
            _diamond(panel, theirs, row)
    chances = [f.chance for f in ours if f is not None and math.isfinite(f.chance)]
    if chances:
        panel.axvline(float(np.mean(chances)), color=light("ink"), ls=":", lw=1.2, label="chance")
    panel.set_yticks(range(len(names)), names, fontsize=7)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(left=0)
    panel.set_xlabel(xlabel, fontsize=9, color=light("muted"))


def ink(place: int) -> str:
    """The colour of a line by its place; -1 is that of text."""
    return light("ink") if place < 0 else light(SERIES[place % len(SERIES)])


def absent(panel: Axes) -> None:
    """Say that a panel is empty because nothing of it is in this run."""
    panel.text(
        0.5,
        0.5,
        "not in this run",
        transform=panel.transAxes,
        ha="center",
        va="center",
        color=light("muted"),
        fontsize=9,
    )


def key(
    drawn: Picture,
    panels: Sequence[Axes],
    further: Sequence[str] = ("published",),
    chance: bool = True,
) -> None:
    """One legend under all panels, with what the hollow diamond and the dotted line mean."""
    from matplotlib.lines import Line2D

    entries: dict[str, Artist] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for label in further:
        entries[label] = Line2D(
            [], [], color=light("ink"), marker="D", mfc="none", ls="--", ms=5, lw=1
        )
    if chance and "chance" not in entries:
        entries["chance"] = Line2D([], [], color=light("ink"), ls=":", lw=1.2)
    drawn.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(6, len(entries)),
        fontsize=8,
        frameon=False,
    )


def table(
    folder: str | Path,
    name: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    note: str = "",
) -> Path:
    """A table as a picture, its columns as wide as their text."""
    widths = [max(len(str(line[i])) for line in (header, *rows)) + 2 for i in range(len(header))]
    total = sum(widths)
    width_in = min(16.0, max(6.0, 0.072 * total))
    height_in = 0.62 + 0.22 * (len(rows) + 1) + (0.2 if note else 0.0)
    drawn, (panel,) = picture(1, 1, width_in, height_in, title)
    panel.axis("off")
    size = min(8.0, 8.0 * width_in / (0.072 * total))
    grid = panel.table(
        [list(r) for r in rows],
        colLabels=list(header),
        colWidths=[w / total for w in widths],
        loc="upper center",
        cellLoc="left",
        edges="horizontal",
    )
    grid.auto_set_font_size(False)
    grid.set_fontsize(size)
    for (row, _), cell in grid.get_celld().items():
        cell.set_edgecolor(light("rule"))
        cell.set_height(1 / (len(rows) + 1.5))
        cell.get_text().set_color(light("ink"))
        if row == 0:
            cell.get_text().set_fontweight("bold")
    if note:
        drawn.supxlabel(note, fontsize=8, color=light("muted"))
    return save(drawn, folder, name)


def number(value: float | None, digits: int = 1) -> str:
    """A figure for a table; a dash where there is none."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _first(curve: Curve, group: str, groups: Sequence[str]) -> bool:
    return next((g for g in groups if curve.ours.get(g) is not None), None) == group


def _diamond(panel: Axes, x: float, y: float) -> None:
    panel.plot([x], [y], marker="D", mfc="none", mec=light("ink"), ms=6, ls="none", zorder=5)


def _whisker(panel: Axes, x: float, estimate: Estimate, spread: str, colour: str = "") -> None:
    low, high = (
        (estimate.value - estimate.sd, estimate.value + estimate.sd)
        if spread == "sd"
        else (estimate.low, estimate.high)
    )
    if math.isfinite(low) and math.isfinite(high):
        panel.plot([x, x], [max(0.0, low), high], color=colour or light("ink"), lw=1)
