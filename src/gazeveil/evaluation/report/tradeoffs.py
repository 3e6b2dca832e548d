"""Privacy against utility: people recognised by the strongest attacker over what an analyst keeps,
one chart per utility.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TypeAlias

from gazeveil.evaluation.report.canvas import Picture, figure, finish
from gazeveil.evaluation.report.findings import Findings, Measure, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import metric_label, percent
from gazeveil.plot.canvas import light
from gazeveil.plot.tradeoff import MOST_BARS, FrontPoint, FrontSeries, front

#: A release with a figure of a utility and its strongest attacker.
Point: TypeAlias = tuple[ReleaseFindings, Measure, Rate]


def tradeoffs(findings: Findings, folder: Path) -> list[Picture]:
    """One picture per utility."""
    return [
        _tradeoff(findings, utility, metric, folder, f"front-{i}")
        for i, (utility, metric) in enumerate(findings.drawn_metrics, 1)
    ]


def points_of(
    findings: Findings, utility: str, metric: str, only: ReleaseFindings | None = None
) -> list[Point]:
    """The releases that have both figures."""
    points = []
    for release in findings.attacked if only is None else (only,):
        measure = release.measure(utility, metric)
        if measure is not None and release.shown is not None and math.isfinite(measure.value):
            points.append((release, measure, release.shown))
    return points


def _tradeoff(findings: Findings, utility: str, metric: str, folder: Path, name: str) -> Picture:
    shown = points_of(findings, utility, metric)
    higher = shown[0][1].better == "higher"
    drawn = figure(4.1)
    axes = drawn.subplots()
    bars = len(shown) <= MOST_BARS
    front(front_series(findings, utility, metric, numbers=True), ax=axes, bars=bars)
    listed = "; ".join(
        f"{r.label}: {m.value:.3g}, {percent(w.value)} recognised" for r, m, w in shown
    )
    caption = (
        "Each number is a release (see the key). Down is more private, right is more useful"
        f" ({'higher' if higher else 'lower'} is better). Grey line: the releases no other one"
        " beats in both. Dotted: chance." + (" Bars: 95 % intervals." if bars else "")
    )
    title = metric_label(utility, metric)
    return finish(drawn, folder, name, f"{title} against people recognised. {listed}.", caption)


def front_series(
    findings: Findings, utility: str, metric: str, numbers: bool = False
) -> FrontSeries:
    """The releases that have a figure of a utility and an attacker, as points of a front.

    Parameters
    ----------
    findings : Findings
        Of attacks and utilities.
    utility, metric : str
        Which figure.
    numbers : bool
        Label the points with the numbers of the releases instead of their names.
    """
    shown = points_of(findings, utility, metric)
    points = tuple(
        FrontPoint(
            str(r.number) if numbers else r.label,
            m.value,
            w.value,
            m.low,
            m.high,
            w.low,
            w.high,
            light(r.colour),
            r.baseline,
        )
        for r, m, w in shown
    )
    chance = next((w.chance for _, _, w in shown if math.isfinite(w.chance)), math.nan)
    better = shown[0][1].better if shown else "higher"
    return FrontSeries(metric_label(utility, metric), points, better, chance)
