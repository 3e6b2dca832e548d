"""Privacy against utility: people recognised by the strongest attacker over what an analyst keeps,
one chart per utility.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.evaluation.report.canvas import GUESS_DASHES, Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, Measure, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import metric_label, percent
from gazeveil.evaluation.report.theme import light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more points than this their bars would hide one another; the table has the intervals.
_MOST_BARS = 14


def tradeoffs(findings: Findings, folder: Path) -> list[Picture]:
    """One picture per utility."""
    return [
        _tradeoff(findings, utility, metric, folder, f"front-{i}")
        for i, (utility, metric) in enumerate(findings.drawn_metrics, 1)
    ]


def _tradeoff(findings: Findings, utility: str, metric: str, folder: Path, name: str) -> Picture:
    shown = []
    for release in findings.attacked:
        measure = release.measure(utility, metric)
        if measure is not None and release.worst is not None and math.isfinite(measure.value):
            shown.append((release, measure, release.worst))
    higher = shown[0][1].better == "higher"
    drawn = figure(4.1)
    axes = drawn.subplots()
    bars = len(shown) <= _MOST_BARS
    for point in shown:
        _draw_point(axes, *point, bars)
    axes.margins(x=0.1)
    values = np.array([m.value for _, m, _ in shown])
    _scale(axes, values, higher)
    best = _pareto(values if higher else -values, np.array([w.value for _, _, w in shown]))
    rates = [100 * shown[i][2].value for i in best]
    axes.plot(values[best], rates, ls="-", lw=1.2, color=light("faint"), zorder=2)
    chance = next((w.chance for _, _, w in shown if math.isfinite(w.chance)), math.nan)
    if math.isfinite(chance):
        axes.axhline(100 * chance, color=light("muted"), lw=1.4, ls=GUESS_DASHES, zorder=1.5)
    title = metric_label(utility, metric)
    axes.set(
        ylim=(-4, 104),
        ylabel="people recognised (%)",
        xlabel=f"{title}\nmore useful →",
        title=title,
    )
    drawn.draw_without_rendering()
    _label(axes, [(m.value, 100 * w.value, str(r.number), light(r.colour)) for r, m, w in shown])
    listed = "; ".join(
        f"{r.label}: {m.value:.3g}, {percent(w.value)} recognised" for r, m, w in shown
    )
    caption = (
        "Each number is a release (see the key). Down is more private, right is more useful"
        f" ({'higher' if higher else 'lower'} is better). Grey line: the releases no other one"
        " beats in both. Dotted: guessing." + (" Bars: 95 % intervals." if bars else "")
    )
    return finish(drawn, folder, name, f"{title} against people recognised. {listed}.", caption)


def _draw_point(
    axes: Axes, release: ReleaseFindings, measure: Measure, worst: Rate, bars: bool
) -> None:
    """A release with the intervals of both figures."""
    colour = light(release.colour)
    y = 100 * worst.value
    thin: dict[str, Any] = {"color": colour, "lw": 1, "alpha": 0.6}
    if bars and math.isfinite(measure.low):
        axes.plot([measure.low, measure.high], [y, y], "-", **thin)
    if bars and math.isfinite(worst.low):
        axes.plot([measure.value] * 2, [100 * worst.low, 100 * worst.high], "-", **thin)
    mark: dict[str, Any] = {"ms": 7.5, "color": colour, "mec": light("paper"), "mew": 0.8}
    axes.plot(measure.value, y, "s" if release.baseline else "o", **mark, zorder=4)


def _scale(axes: Axes, values: Floats, higher: bool) -> None:
    """Put the useful end to the right. Over two decades and more, points near zero would sit on
    each other; what is zero itself stays on a straight piece of the axis.
    """
    positive = values[values > 0]
    if (values >= 0).all() and len(positive) > 1 and float(positive.max() / positive.min()) > 100:
        _logarithmic(axes, float(positive.min()))
    if not higher:
        axes.invert_xaxis()


def _logarithmic(axes: Axes, least: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("symlog", linthresh=least, linscale=0.5)
    top = max(abs(v) for v in axes.get_xlim())
    decades = [
        10.0**e for e in range(math.ceil(math.log10(least)), math.floor(math.log10(top)) + 1)
    ]
    axes.xaxis.set_major_locator(
        FixedLocator([0.0, *decades[:: max(1, math.ceil(len(decades) / 5))]])
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def _pareto(useful: Floats, recognised: Floats) -> list[int]:
    """Indices of the points no other one beats in both, by rising usefulness."""
    keep: list[int] = []
    best = math.inf
    for i in sorted(range(len(useful)), key=lambda i: (-useful[i], recognised[i])):
        if recognised[i] < best:
            keep.append(i)
            best = float(recognised[i])
    return keep[::-1]


def _label(axes: Axes, points_: Sequence[tuple[float, float, str, str]]) -> None:
    """Put a text beside each point where it covers no point and no other text."""
    at = axes.transData.transform([(x, y) for x, y, _, _ in points_])
    taken: list[tuple[float, float]] = [(float(x), float(y)) for x, y in at]
    size = axes.figure.dpi / 72
    for (x, y), (own_x, own_y, text, colour) in zip(at, points_, strict=True):
        best, score = (10.0, 0.0), -math.inf
        for reach in (10, 17, 25):
            for angle in np.arange(8) * math.pi / 4 + 0.4:
                dx, dy = reach * math.cos(angle), reach * math.sin(angle)
                room = (
                    min(math.hypot(x + dx * size - a, y + dy * size - b) for a, b in taken) / size
                )
                gain = min(room, 12) - 0.25 * reach
                if gain > score:
                    best, score = (dx, dy), gain
        taken.append((x + best[0] * size, y + best[1] * size))
        axes.annotate(
            text,
            (own_x, own_y),
            best,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9.5,
            fontweight="bold",
            color=colour,
            zorder=5,
        )
