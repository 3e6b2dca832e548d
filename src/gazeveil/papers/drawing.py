"""The papers' figures as pictures: ours filled with its interval, the published values hollow and
dashed, other attackers thin; a title that says whether people are simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil.papers.figures import PublishedFigure
from gazeveil.papers.grading import SIMULATED
from gazeveil.plot.canvas import SERIES, light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Value and interval by place on the x axis.
Points = dict[str, tuple[float, float, float]]

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Line:
    """One line of a panel: ours, the published values, and other attackers by name."""

    ours: Points = field(default_factory=dict)
    published: Points = field(default_factory=dict)
    beside: dict[str, Points] = field(default_factory=dict)


#: Dataset, metric with its unit, and what the x axis shows -> lines by mechanism and model.
Panels = dict[tuple[str, str, str], dict[str, Line]]


def panels_of(figures: Sequence[PublishedFigure], rows: Rows) -> Panels:
    """The figures of one place in a paper as panels; raw gaze is in each panel of its dataset."""
    panels: Panels = {}
    several = len({f.model for f in figures if f.parameters}) > 1
    for figure in sorted(figures, key=lambda f: not f.parameters):
        names = ", ".join(figure.parameters)
        place = next(iter(figure.parameters.values()), "raw")
        place = place if len(figure.parameters) < 2 else figure.parameter
        metric = f"{figure.metric}, {figure.unit}".removesuffix(", ")
        key = (figure.dataset, metric, names)
        label = f"{figure.mechanism}, {figure.model}" if several else figure.mechanism
        same = [] if figure.parameters else [p for k, p in panels.items() if k[:2] == key[:2]]
        lines = [line for panel in same for line in panel.values()]
        for line in lines or [panels.setdefault(key, {}).setdefault(label, Line())]:
            _add(line, place, figure, rows[figure.id])
    return panels


def _add(line: Line, place: str, figure: PublishedFigure, row: Mapping[str, Any]) -> None:
    line.ours[place] = _point(row["ours"], row["low"], row["high"])
    if math.isfinite(figure.number):
        line.published[place] = (figure.number, math.nan, math.nan)
    for name, numbers in row.get("beside", {}).items():
        line.beside.setdefault(name, {})[place] = _point(*numbers)


def _point(*numbers: float | None) -> tuple[float, float, float]:
    value, low, high = (math.nan if n is None else float(n) for n in numbers)
    return value, low, high


def titled(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A title that says where the recordings come from."""
    simulated = [str(r["reason"]).startswith(SIMULATED) for r in rows]
    if not any(simulated):
        return title
    return f"{title} [{'simulated people' if all(simulated) else 'in part simulated people'}]"


def draw(panels: Panels, title: str, path: Path) -> Path:
    """Write panels as one PNG, three beside one another at most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    picture = Figure(
        figsize=(4.2 * columns, 0.7 + 2.9 * rows), layout="constrained", facecolor=light("paper")
    )
    FigureCanvasAgg(picture)
    axes = picture.subplots(rows, columns, squeeze=False).ravel()
    picture.suptitle(title, fontsize=10, color=light("ink"), wrap=True)
    for panel, ((dataset, metric, names), lines) in zip(axes, panels.items(), strict=False):
        _draw_panel(panel, lines)
        panel.set_title(dataset, fontsize=9)
        panel.set_xlabel(names, fontsize=8)
        panel.set_ylabel(metric, fontsize=8)
    for panel in axes[len(panels) :]:
        panel.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=100)
    return path


def _draw_panel(panel: Axes, lines: Mapping[str, Line]) -> None:
    places = dict.fromkeys(place for line in lines.values() for place in line.ours)
    at = {place: i for i, place in enumerate(sorted(places, key=lambda x: x != "raw"))}
    for number, (label, line) in enumerate(lines.items()):
        ink = light(SERIES[number % len(SERIES)])
        further = [(f"{label}: {name}", p, ":") for name, p in line.beside.items()]
        for name, points, style in (
            (label, line.ours, "-"),
            (f"{label}, published", line.published, "--"),
            *further,
        ):
            if not points:
                continue
            xs, ends = zip(*sorted((at[x], numbers) for x, numbers in points.items()), strict=True)
            values, low, high = np.array(ends).T
            filled = ink if style == "-" else "none"
            panel.plot(xs, values, style, marker="o", ms=4, color=ink, mfc=filled, lw=1, label=name)
            if style == "-":
                panel.vlines(xs, low, high, color=ink, lw=1)
    step = -(-len(at) // 12)
    turned = 60 if max(map(len, at)) > 6 else 0
    panel.set_xticks(range(0, len(at), step), list(at)[::step], fontsize=7, rotation=turned)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    panel.tick_params(colors=light("muted"), labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=6, frameon=False)
