"""Privacy against utility: people recognised by the strongest attacker over what an analyst keeps,
one chart per utility, or all utilities in one picture; and which releases another one beats.

A release is *dominated* for a utility where another one leaves no more people recognised and is no
less useful, and is better in one of the two. It is *clearly* dominated where both 95 % intervals of
the differences hold no better value for it: that of recognition over people, that of the utility
over its parts (people or stimuli), both paired. The rest may be luck of these people and stimuli.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from gazeveil.arrays import Floats
from gazeveil.evaluation.columns import CELL, RATE
from gazeveil.evaluation.report.canvas import GUESS_DASHES, Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, Measure, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import metric_label, percent
from gazeveil.evaluation.report.theme import light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A release with a figure of a utility and its strongest attacker.
Point: TypeAlias = tuple[ReleaseFindings, Measure, Rate]

#: With more points than this their bars would hide one another; the table has the intervals.
_MOST_BARS = 14


def tradeoffs(findings: Findings, folder: Path) -> list[Picture]:
    """One picture per utility."""
    return [
        _tradeoff(findings, utility, metric, folder, f"front-{i}")
        for i, (utility, metric) in enumerate(findings.drawn_metrics, 1)
    ]


def fronts(
    findings: Findings,
    metrics: Sequence[tuple[str, str]],
    folder: Path,
    name: str,
    titles: Sequence[str] = (),
) -> Picture:
    """All utilities in one picture, with the key of the releases below.

    Parameters
    ----------
    findings : Findings
        Of attacks and utilities.
    metrics : sequence of (utility, metric)
        One panel each.
    folder : Path
        Where the PNG goes.
    name : str
        Of its file, without ending.
    titles : sequence of str
        Of the panels; default what reports call the metrics.
    """
    from matplotlib.lines import Line2D

    columns = min(3, len(metrics))
    rows = -(-len(metrics) // columns)
    shown = [r for r in findings.attacked if any(_points(findings, *m, only=r) for m in metrics)]
    drawn = figure(3.1 * rows + 0.16 * len(shown) / 2 + 0.4, 3.6 * columns)
    panels = drawn.subplots(rows, columns, squeeze=False).ravel()
    for axes, (utility, metric) in zip(panels, metrics, strict=False):
        _panel(axes, findings, utility, metric, False)
    for axes in panels[len(metrics) :]:
        axes.set_axis_off()
    headings = list(titles) or [metric_label(*m) for m in metrics]
    for i, axes in enumerate(panels[: len(metrics)]):
        axes.set_title(headings[i])
        axes.set_ylabel("people recognised (%)" if i % columns == 0 else "")
        axes.set_xlabel("more useful →")
    key = [
        Line2D([], [], ls="", marker="s" if r.baseline else "o", color=light(r.colour))
        for r in shown
    ]
    drawn.legend(
        key,
        [f"{r.number}  {r.label}" for r in shown],
        loc="outside lower left",
        ncols=2,
        fontsize=8,
    )
    drawn.draw_without_rendering()
    for axes, (utility, metric) in zip(panels, metrics, strict=False):
        _number(axes, _points(findings, utility, metric))
    caption = (
        "Each number is a release (key below). Down is more private, right is more useful. Grey"
        " line: the releases no other one beats in both. Dotted: guessing."
    )
    return finish(
        drawn, folder, name, f"People recognised against: {', '.join(headings)}.", caption
    )


@dataclass(frozen=True)
class Dominated:
    """A release that another one beats for a utility.

    Parameters
    ----------
    release, by : ReleaseFindings
        Which, and the one that beats it: clearly where one does, and of these the one that leaves
        the fewest people recognised.
    clearly : bool
        Whether the intervals of both differences say so too; see the top of the page.
    """

    release: ReleaseFindings
    by: ReleaseFindings
    clearly: bool


def dominated(findings: Findings, utility: str, metric: str) -> tuple[Dominated, ...]:
    """The releases that another one beats for a utility, in the order of their numbers."""
    points = _points(findings, utility, metric)
    beaten = []
    for point in points:
        release, measure, worst = point
        sign = 1 if measure.better == "higher" else -1
        better = []
        for other in points:
            gains = worst.value - other[2].value, sign * (other[1].value - measure.value)
            if other is not point and min(gains) >= 0 and max(gains) > 0:
                better.append(Dominated(release, other[0], _clearly(findings, point, other)))
        if better:
            beaten.append(min(better, key=lambda d: (not d.clearly, _rate_of(d.by))))
    return tuple(beaten)


def _rate_of(release: ReleaseFindings) -> float:
    return math.inf if release.worst is None else release.worst.value


def _clearly(findings: Findings, first: Point, second: Point) -> bool:
    """Whether the second release beats the first beyond the luck of people and stimuli."""
    from gazeveil.attacks.result import paired_interval

    sign = 1 if first[1].better == "higher" else -1
    recognised = [
        _parts(findings, r, RATE, attack=w.attack, scenario=w.scenario)
        for r, _, w in (first, second)
    ]
    useful = [
        _parts(findings, r, m.metric, utility=m.utility, scenario=m.scenario)
        for r, m, _ in (second, first)
    ]
    for pair, way in ((recognised, 1), (useful, sign)):
        common = sorted(pair[0].keys() & pair[1].keys())
        if len(common) < 2:
            return False
        more, less = (way * np.array([side[n] for n in common]) for side in pair)
        if paired_interval(more, less)[1] < 0:
            return False
    return True


def _parts(
    findings: Findings, release: ReleaseFindings, metric: str, **cell: str
) -> dict[str, float]:
    """The parts of a figure (people, stimuli), each the mean over repetitions."""
    wanted = dict(zip(CELL, release.key, strict=False)) | cell | {"metric": metric}
    rows = (
        findings.results.outcomes.filter(
            *(pl.col(c).fill_null("") == v for c, v in wanted.items()),
            pl.col("value").is_not_null(),
        )
        .group_by("part")
        .agg(pl.col("value").mean())
    )
    return {part: float(value) for part, value in rows.rows() if math.isfinite(value)}


def _points(
    findings: Findings, utility: str, metric: str, only: ReleaseFindings | None = None
) -> list[Point]:
    """The releases that have both figures."""
    points = []
    for release in findings.attacked if only is None else (only,):
        measure = release.measure(utility, metric)
        if measure is not None and release.worst is not None and math.isfinite(measure.value):
            points.append((release, measure, release.worst))
    return points


def _tradeoff(findings: Findings, utility: str, metric: str, folder: Path, name: str) -> Picture:
    shown = _points(findings, utility, metric)
    higher = shown[0][1].better == "higher"
    drawn = figure(4.1)
    axes = drawn.subplots()
    bars = len(shown) <= _MOST_BARS
    _panel(axes, findings, utility, metric, bars)
    drawn.draw_without_rendering()
    _number(axes, shown)
    listed = "; ".join(
        f"{r.label}: {m.value:.3g}, {percent(w.value)} recognised" for r, m, w in shown
    )
    caption = (
        "Each number is a release (see the key). Down is more private, right is more useful"
        f" ({'higher' if higher else 'lower'} is better). Grey line: the releases no other one"
        " beats in both. Dotted: guessing." + (" Bars: 95 % intervals." if bars else "")
    )
    title = metric_label(utility, metric)
    return finish(drawn, folder, name, f"{title} against people recognised. {listed}.", caption)


def _panel(axes: Axes, findings: Findings, utility: str, metric: str, bars: bool) -> None:
    """The points of one utility, the front and guessing."""
    shown = _points(findings, utility, metric)
    higher = shown[0][1].better == "higher"
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


def _number(axes: Axes, points: Sequence[Point]) -> None:
    """Put the number of each release beside its point."""
    _label(axes, [(m.value, 100 * w.value, str(r.number), light(r.colour)) for r, m, w in points])


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
