"""The charts of the report: who is identified, at what price, among how many, and how much an
adaptive attacker gains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazeveil.evaluation.report.canvas import Picture, figure, finish
from gazeveil.evaluation.report.findings import Difference, Findings, ReleaseFindings, gallery_curve
from gazeveil.evaluation.report.labels import (
    attack_label,
    attack_parts,
    metric_label,
    percent,
    points,
)
from gazeveil.evaluation.report.theme import light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At most so many lines in one chart: more cannot be told apart.
MOST_LINES = 9

#: Marks of attackers, by name; others get the last.
_MARKS = {
    "linkage": "o",
    "trace": "v",
    "forest": "^",
    "svm": "P",
    "knn": "X",
    "lda": "*",
    "boosting": ">",
    "tree": "<",
}

# Guessing looks the same in every chart, and like no mechanism.
_GUESS = (0, (2, 2))

_LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))


def identification(findings: Findings, folder: Path) -> Picture:
    """Identification by mechanism and parameter: the strongest attacker with its interval, all
    others as lighter marks, and chance.
    """
    releases = findings.attacked
    drawn = figure(1.0 + 0.52 * len(releases))
    axes = drawn.subplots()
    chances = {
        round(r.worst.chance, 6)
        for r in releases
        if r.worst is not None and math.isfinite(r.worst.chance)
    }
    names: dict[str, str] = {}
    for row, release in enumerate(releases):
        worst = release.worst
        if worst is None:
            continue
        for rate in release.rates:
            name = attack_parts(rate.attack).name
            if rate is worst or name == "rbfn":
                continue
            names[name] = _MARKS.get(name, "d")
            axes.plot(
                100 * rate.value,
                row,
                names[name],
                ms=5,
                mfc="none",
                mec=light("faint"),
                mew=1.1,
                zorder=2,
            )
        if release.rbfn is not None:
            axes.plot(
                100 * release.rbfn.value,
                row,
                "s",
                ms=7.5,
                mfc=light("paper"),
                mec=light("ink"),
                mew=1.3,
                zorder=3,
            )
        colour = light(release.colour)
        if math.isfinite(worst.low):
            axes.plot(
                [100 * worst.low, 100 * worst.high],
                [row, row],
                "-",
                color=colour,
                lw=2.4,
                solid_capstyle="round",
                zorder=3.5,
            )
        axes.plot(
            100 * worst.value, row, "o", ms=8.5, color=colour, mec=light("paper"), mew=1, zorder=4
        )
        axes.text(
            -1,
            row - 0.4,
            shorten(f"{release.number}. {release.label}", 50, placeholder="..."),
            va="center",
            ha="left",
            fontsize=9.5,
            bbox=_blank(),
            zorder=1.8,
        )
        axes.text(
            101,
            row - 0.4,
            worst.people,
            va="center",
            ha="right",
            fontsize=9.5,
            color=light("muted"),
            bbox=_blank(),
            zorder=1.8,
        )
    for chance in chances:
        axes.axvline(100 * chance, color=light("muted"), lw=1.4, ls=_GUESS, zorder=1.5)
    axes.set(
        xlim=(-2, 102), ylim=(len(releases) - 0.6, -0.75), xlabel="people recognised (%)", yticks=[]
    )
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            marker="o",
            ls="-",
            lw=2.4,
            ms=8,
            color=light("blue"),
            label="strongest attacker, 95 %",
        ),
        Line2D([], [], color=light("muted"), lw=1.4, ls=_GUESS, label="guessing"),
        Line2D(
            [],
            [],
            marker="s",
            ls="",
            mfc=light("paper"),
            mec=light("ink"),
            ms=7,
            label="RBF network (papers)",
        ),
        *(
            Line2D(
                [],
                [],
                marker=m,
                ls="",
                mfc="none",
                mec=light("muted"),
                ms=5.5,
                label=shorten(attack_label(n), 27, placeholder="..."),
            )
            for n, m in sorted(names.items())
        ),
    ]
    drawn.legend(
        handles=handles, loc="outside lower center", ncols=2, columnspacing=1.2, handletextpad=0.6
    )
    said = "; ".join(f"{r.label} {percent(r.worst.value)}" for r in releases if r.worst is not None)
    alt = (
        f"People recognised by the strongest attacker on each release: {said}. Guessing:"
        f" {', '.join(percent(c) for c in sorted(chances)) or 'unknown'}."
    )
    caption = (
        "Filled dot and bar: the strongest attacker and its 95 % interval over people. Open square:"
        " the papers' RBF network. Light marks: every other attacker and scenario. Dotted line:"
        " guessing. Further left is more private."
    )
    return finish(drawn, folder, "identification", alt, caption)


def tradeoffs(findings: Findings, folder: Path) -> list[Picture]:
    """Privacy against utility, one picture per utility: identification by the strongest attacker
    over what an analyst keeps.
    """
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
    values = np.array([m.value for _, m, _ in shown])
    positive = values[values > 0]
    # Over two decades and more, points near zero would sit on each other; what is zero itself stays
    # on a straight piece of the axis.
    log = (
        bool((values >= 0).all())
        and len(positive) > 1
        and float(positive.max() / positive.min()) > 100
    )
    # With many points their bars would hide one another; the table has the intervals.
    bars = len(shown) <= 14
    for release, measure, worst in shown:
        colour = light(release.colour)
        y = 100 * worst.value
        if bars and math.isfinite(measure.low):
            axes.plot([measure.low, measure.high], [y, y], "-", color=colour, lw=1, alpha=0.6)
        if bars and math.isfinite(worst.low):
            axes.plot(
                [measure.value] * 2,
                [100 * worst.low, 100 * worst.high],
                "-",
                color=colour,
                lw=1,
                alpha=0.6,
            )
        axes.plot(
            measure.value,
            y,
            "s" if release.baseline else "o",
            ms=7.5,
            color=colour,
            mec=light("paper"),
            mew=0.8,
            zorder=4,
        )
    axes.margins(x=0.1)
    if log:
        _logarithmic(axes, float(positive.min()))
    if not higher:
        axes.invert_xaxis()
    ideal = _pareto(values if higher else -values, np.array([w.value for _, _, w in shown]))
    axes.plot(
        values[ideal],
        [100 * shown[i][2].value for i in ideal],
        ls="-",
        lw=1.2,
        color=light("faint"),
        zorder=2,
    )
    chance = next((w.chance for _, _, w in shown if math.isfinite(w.chance)), math.nan)
    if math.isfinite(chance):
        axes.axhline(100 * chance, color=light("muted"), lw=1.4, ls=_GUESS, zorder=1.5)
    axes.set(
        ylim=(-4, 104),
        ylabel="people recognised (%)",
        xlabel=f"{metric_label(utility, metric)}\nmore useful →",
        title=metric_label(utility, metric),
    )
    drawn.draw_without_rendering()
    _label(axes, [(m.value, 100 * w.value, str(r.number), light(r.colour)) for r, m, w in shown])
    said = "; ".join(
        f"{r.label}: {m.value:.3g}, {percent(w.value)} recognised" for r, m, w in shown
    )
    caption = (
        "Each number is a release (see the key). Down is more private, right is more useful"
        f" ({'higher' if higher else 'lower'} is better). Grey line: the releases no other one"
        " beats in both. Dotted: guessing." + (" Bars: 95 % intervals." if bars else "")
    )
    return finish(
        drawn,
        folder,
        name,
        f"{metric_label(utility, metric)} against people recognised. {said}.",
        caption,
    )


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


def _pareto(useful: NDArray[np.float64], found: NDArray[np.float64]) -> list[int]:
    """Indices of the points no other one beats in both, by rising usefulness."""
    keep: list[int] = []
    best = math.inf
    for i in sorted(range(len(useful)), key=lambda i: (-useful[i], found[i])):
        if found[i] < best:
            keep.append(i)
            best = float(found[i])
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


def gallery(findings: Findings, folder: Path) -> Picture | None:
    """How the rate falls with the number of people known, in closed form from how many others score
    above the true person.
    """
    lines: list[tuple[ReleaseFindings, NDArray[np.float64]]] = []
    people = 0
    for release in _spread(findings.attacked, MOST_LINES):
        if release.worst is None or not release.worst.chance > 0:
            continue
        known = round(1 / release.worst.chance)
        answers = findings.answers(release, release.worst)
        if answers.height == 0 or known < 2:
            continue
        people = max(people, known)
        lines.append(
            (
                release,
                gallery_curve(answers["beaten_by"].to_list(), answers["value"].to_list(), known),
            )
        )
    if not lines or people < 3:
        return None
    drawn = figure(4.0)
    axes = drawn.subplots()
    sizes = np.arange(2, people + 1)
    axes.plot(sizes, 100 / sizes, color=light("muted"), lw=1.4, ls=_GUESS)
    for i, (release, curve) in enumerate(lines):
        axes.plot(
            np.arange(2, len(curve) + 2),
            100 * curve,
            color=light(release.colour),
            lw=1.9,
            ls=_LINES[i % len(_LINES)],
        )
    axes.set(
        ylim=(-3, 105),
        xlim=(2, people),
        xlabel="people the attacker knows",
        ylabel="people recognised (%)",
    )
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    ends = _apart([*(100 * float(curve[-1]) for _, curve in lines), 100 / people], least=5.0)
    for (release, curve), y in zip(lines, ends, strict=False):
        axes.annotate(
            str(release.number),
            (1, 100 * curve[-1]),
            (1.045, y),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            color=light(release.colour),
            fontweight="bold",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": light("faint"),
                "lw": 0.7,
                "shrinkA": 1,
                "shrinkB": 0,
            },
            annotation_clip=False,
        )
    axes.text(
        1.02,
        ends[-1],
        "guess",
        transform=axes.get_yaxis_transform(),
        color=light("muted"),
        va="center",
        fontsize=9.5,
    )
    said = "; ".join(
        f"{r.label} from {percent(float(c[0]))} among 2 to {percent(float(c[-1]))} among"
        f" {len(c) + 1}"
        for r, c in lines
    )
    caption = (
        "The strongest attacker of each release, among a random choice of people. Computed from how"
        " many others score above the true person: a rate quoted without the number of people says"
        " little. Numbers as in the key."
    )
    return finish(
        drawn,
        folder,
        "gallery",
        f"People recognised by how many the attacker knows. {said}.",
        caption,
    )


def _apart(values: Sequence[float], least: float) -> list[float]:
    """The values, moved as little as needed to be `least` apart."""
    order = np.argsort(values, kind="stable")
    moved = np.array(values, dtype=np.float64)
    for _ in range(200):
        pushed = False
        for a, b in pairwise(order):
            gap = least - (moved[b] - moved[a])
            if gap > 1e-6:
                moved[a] -= gap / 2
                moved[b] += gap / 2
                pushed = True
        if not pushed:
            break
    return [float(v) for v in moved]


def adaptive(differences: Sequence[Difference], folder: Path) -> Picture:
    """Retrained and denoising attackers against their frozen selves: paired differences with their
    95 % intervals over people.
    """
    moved = [d for d in differences if d.difference or d.low < d.high] or list(differences[:1])
    shown = sorted(moved, key=lambda d: -abs(d.difference))[:16]
    shown.sort(key=lambda d: (d.release.number, d.scenario, d.attack))
    left = len(differences) - len(shown)
    drawn = figure(0.7 + 0.56 * len(shown))
    axes = drawn.subplots()
    axes.axvline(0, color=light("ink"), lw=1, zorder=1.5)
    for row, d in enumerate(shown):
        colour = light(d.release.colour)
        if math.isfinite(d.low):
            axes.plot(
                [100 * d.low, 100 * d.high],
                [row, row],
                "-",
                color=colour,
                lw=2.4,
                solid_capstyle="round",
            )
        axes.plot(100 * d.difference, row, "o", ms=7.5, color=colour, mec=light("paper"))
        label = shorten(f"{d.release.number}. {attack_label(d.attack)}", 50, placeholder="...")
        across = axes.get_yaxis_transform()
        axes.text(
            1.0,
            row - 0.42,
            d.scenario,
            transform=across,
            fontsize=9.5,
            va="center",
            ha="right",
            color=light("muted"),
            bbox=_blank(),
            zorder=1.8,
        )
        axes.text(
            0.0,
            row - 0.42,
            label,
            transform=across,
            fontsize=9.5,
            va="center",
            bbox=_blank(),
            zorder=1.8,
        )
    reach = (
        max(
            [
                10.0,
                *(
                    100 * abs(v)
                    for d in shown
                    for v in (d.low, d.high, d.difference)
                    if math.isfinite(v)
                ),
            ]
        )
        * 1.08
    )
    axes.set(
        xlim=(-reach, reach),
        ylim=(len(shown) - 0.5, -0.8),
        yticks=[],
        xlabel="← weaker  |  points more people recognised  |  stronger →",
    )
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    said = "; ".join(
        f"{attack_label(d.attack)} on {d.release.label} {points(d.difference)} points"
        for d in shown
    )
    caption = (
        "Each attacker beside the same one left as it is, on the same people and releases: paired"
        " difference and its 95 % interval over people."
    )
    if left:
        caption += f" Shown are the largest differences; the other {left} stand in the table."
    return finish(
        drawn, folder, "adaptive", f"Gain of adaptive attackers over frozen ones. {said}.", caption
    )


def _blank() -> dict[str, object]:
    """Paper behind a text that lies on lines."""
    return {"facecolor": light("paper"), "edgecolor": "none", "pad": 0.8}


def _spread(releases: Sequence[ReleaseFindings], most: int) -> list[ReleaseFindings]:
    """At most so many releases, the first (the baseline) and others spread evenly over the list."""
    if len(releases) <= most:
        return list(releases)
    return [releases[i] for i in np.unique(np.linspace(0, len(releases) - 1, most).astype(int))]
