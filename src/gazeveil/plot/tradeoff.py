"""Privacy against utility: people recognised over what an analyst keeps, and the releases no other
one beats in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.plot.paths import GUESS_DASHES, axes_or_new, light, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The longest label that fits beside a point.
_SHORT = 3

#: With more points than this their bars would hide one another.
MOST_BARS = 14


@dataclass(frozen=True)
class FrontPoint:
    """One release: how useful it is and how many people are recognised.

    Parameters
    ----------
    label : str
        Its name.
    useful, useful_low, useful_high : float
        The figure of the utility and its interval, NaN where not known.
    recognised, recognised_low, recognised_high : float
        Share of people the strongest attacker recognises, a fraction of 1, and its interval.
    colour : str
        Of matplotlib.
    baseline : bool
        Whether it is the raw recordings.
    """

    label: str
    useful: float
    recognised: float
    useful_low: float = math.nan
    useful_high: float = math.nan
    recognised_low: float = math.nan
    recognised_high: float = math.nan
    colour: str = "#00639c"
    baseline: bool = False


@dataclass(frozen=True)
class FrontSeries:
    """The points of one utility.

    Parameters
    ----------
    title : str
        What the utility is called.
    points : tuple of FrontPoint
        The releases, the baseline first.
    better : {"higher", "lower"}
        Which figures are more useful.
    chance : float
        What guessing recognises, a fraction of 1; NaN where not known.
    """

    title: str
    points: tuple[FrontPoint, ...]
    better: str = "higher"
    chance: float = math.nan


class HasFronts(Protocol):
    """Results: points by utility and metric."""

    def front(self, utility: str | None = None, metric: str | None = None) -> FrontSeries:
        """The points of one utility; the first that was measured if none is named."""
        ...


def front(
    results: HasFronts | FrontSeries,
    utility: str | None = None,
    metric: str | None = None,
    ax: Axes | None = None,
    *,
    labels: bool = True,
    bars: bool | None = None,
) -> Axes:
    """People recognised by the strongest attacker over what an analyst keeps. Down is more private,
    right is more useful; the grey line joins the releases no other one beats in both.

    Parameters
    ----------
    results : Results or FrontSeries
        Of :func:`gazeveil.evaluate`, with attacks and utilities; or points of one's own.
    utility, metric : str, optional
        Which figure; default the first of the results.
    ax : Axes, optional
        Where to draw; new axes if not given.
    labels : bool
        Name the releases: beside their points, or by numbers with a key where names are long.
    bars : bool, optional
        Draw 95 % intervals; default where there are at most 14 points.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        Where no release has both figures.
    """
    series = results if isinstance(results, FrontSeries) else _series(results, utility, metric)
    higher = checks.one_of("plot.front", "better", series.better, ("higher", "lower")) == "higher"
    points = series.points
    if not points:
        raise DataError(
            "There is nothing to draw: no release has both an attacker's rate and a figure of the"
            " utility. Give evaluate() attacks and utilities."
        )
    axes = axes_or_new("plot.front", ax, 6.0, 4.5)
    for point in points:
        _draw_point(axes, point, len(points) <= MOST_BARS if bars is None else bars)
    axes.margins(x=0.1)
    values = np.array([p.useful for p in points])
    _scale(axes, values, higher)
    best = _pareto(values if higher else -values, np.array([p.recognised for p in points]))
    rates = [100 * points[i].recognised for i in best]
    axes.plot(values[best], rates, ls="-", lw=1.2, color=light("faint"), zorder=2)
    if math.isfinite(series.chance):
        axes.axhline(100 * series.chance, color=light("muted"), lw=1.4, ls=GUESS_DASHES, zorder=1.5)
    axes.set(
        ylim=(-4, 104), ylabel="people recognised (%)", xlabel=f"{series.title}\nmore useful →"
    )
    titled(axes, series.title)
    if labels:
        _name_points(axes, points)
    return axes


def _name_points(axes: Axes, points: Sequence[FrontPoint]) -> None:
    """Short labels beside their points; long ones in a key below, with numbers at the points."""
    named = points
    if any(len(p.label) > _SHORT for p in points):
        from matplotlib.lines import Line2D

        first = 0 if points[0].baseline else 1
        named = [replace(p, label=str(i)) for i, p in enumerate(points, first)]
        marks = [
            Line2D([], [], ls="", marker="s" if p.baseline else "o", color=p.colour) for p in points
        ]
        words = [f"{n.label}  {p.label}" for n, p in zip(named, points, strict=True)]
        key = axes.legend(
            marks, words, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=8
        )
        key.set_frame_on(False)
        for text in key.get_texts():
            text.set_parse_math(False)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    label_points(axes, named)


def _series(results: HasFronts, utility: str | None, metric: str | None) -> FrontSeries:
    if not hasattr(results, "front"):
        checks.refuse("plot.front", "results", "Results, or a FrontSeries", results)
    return results.front(utility, metric)


def _draw_point(axes: Axes, point: FrontPoint, bars: bool) -> None:
    """A release with the intervals of both figures."""
    y = 100 * point.recognised
    thin: dict[str, Any] = {"color": point.colour, "lw": 1, "alpha": 0.6}
    if bars and math.isfinite(point.useful_low):
        axes.plot([point.useful_low, point.useful_high], [y, y], "-", **thin)
    if bars and math.isfinite(point.recognised_low):
        ends = [100 * point.recognised_low, 100 * point.recognised_high]
        axes.plot([point.useful] * 2, ends, "-", **thin)
    mark: dict[str, Any] = {"ms": 7.5, "color": point.colour, "mec": light("paper"), "mew": 0.8}
    axes.plot(point.useful, y, "s" if point.baseline else "o", **mark, zorder=4)


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


def label_points(axes: Axes, points: Sequence[FrontPoint]) -> None:
    """Put the label of each point beside it, where it covers no point and no other label."""
    at = axes.transData.transform([(p.useful, 100 * p.recognised) for p in points])
    taken: list[tuple[float, float]] = [(float(x), float(y)) for x, y in at]
    size = axes.figure.dpi / 72
    for (x, y), point in zip(at, points, strict=True):
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
            point.label,
            (point.useful, 100 * point.recognised),
            best,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9.5,
            fontweight="bold",
            color=point.colour,
            zorder=5,
            parse_math=False,
        )
