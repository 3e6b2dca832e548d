"""Which releases another one beats, and all utilities in one picture, for docs/results/front.md.

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

import numpy as np
import polars as pl

from gazeveil.attacks.result import paired_interval
from gazeveil.evaluation.report.charts import (
    Picture,
    Point,
    figure,
    finish,
    front_series,
    points_of,
)
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.report.labels import metric_label
from gazeveil.evaluation.study import CELL, RATE
from gazeveil.plot.paths import light
from gazeveil.plot.tradeoff import front, label_points


@dataclass(frozen=True)
class Dominated:
    """A release that another one beats for a utility.

    Parameters
    ----------
    release, by : ReleaseFindings
        Which, and the one that beats it: clearly where one does, and of these the one that leaves
        the fewest people recognised.
    clearly : bool
        Whether the intervals of both differences say so too; see the top of the file.
    """

    release: ReleaseFindings
    by: ReleaseFindings
    clearly: bool


def dominated(findings: Findings, utility: str, metric: str) -> tuple[Dominated, ...]:
    """The releases that another one beats for a utility, in the order of their numbers."""
    points = points_of(findings, utility, metric)
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
    return math.inf if release.shown is None else release.shown.value


def _clearly(findings: Findings, first: Point, second: Point) -> bool:
    """Whether the second release beats the first beyond the luck of people and stimuli."""
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
    shown = [r for r in findings.attacked if any(points_of(findings, *m, only=r) for m in metrics)]
    drawn = figure(3.1 * rows + 0.16 * len(shown) / 2 + 0.4, 3.6 * columns)
    panels = drawn.subplots(rows, columns, squeeze=False).ravel()
    for axes, (utility, metric) in zip(panels, metrics, strict=False):
        front(front_series(findings, utility, metric), ax=axes, labels=False, bars=False)
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
        label_points(axes, front_series(findings, utility, metric, numbers=True).points)
    caption = (
        "Numbers: the key below. Down is more private, right more useful. Grey: releases that no"
        " other beats in both. Dotted: chance."
    )
    return finish(
        drawn, folder, name, f"People recognised against: {', '.join(headings)}.", caption
    )
