"""Charts with a row per release or attacker: who is identified, and how much an adaptive attacker
gains.

How the rate of identification falls with the number of people an attacker knows.

Privacy against utility: people recognised by the strongest attacker over what an analyst keeps,
one chart per utility.

From a matplotlib figure to two things: a PNG beside the report, and an inline SVG whose colours
follow the reader's light or dark mode.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.evaluation.report.findings import Difference, Findings, Measure, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import (
    attack_label,
    attack_parts,
    metric_label,
    percent,
    points,
)
from gazeveil.plot.paths import GUESS_DASHES, INKS, light
from gazeveil.plot.tradeoff import MOST_BARS, FrontPoint, FrontSeries, front

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Width of every picture in inches. At 72 units to the inch, type of 10 units is about 10 CSS
#: pixels on a phone and 15 in a column.
WIDTH_IN = 5.0

_DPI = 200


@dataclass(frozen=True)
class Picture:
    """A picture of the report.

    Parameters
    ----------
    name : str
        File name of the PNG, without its ending.
    svg : Markup
        For the page, without size and with variables for colours, and in words what it shows.
    caption : str
        How to read it; plain text.
    """

    name: str
    svg: Markup
    caption: str


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of every picture. Names from data are shown as they are: a dollar sign begins no
    formula.
    """
    import matplotlib as mpl

    settings: dict[Any, Any] = {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 10,
        "xtick.labelsize": 9.5,
        "ytick.labelsize": 9.5,
        "legend.fontsize": 9.5,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": light("rule"),
        "grid.linewidth": 0.7,
        "axes.edgecolor": light("faint"),
        "xtick.color": light("muted"),
        "ytick.color": light("muted"),
        "text.color": light("ink"),
        "axes.labelcolor": light("ink"),
        "axes.titlecolor": light("ink"),
        "figure.facecolor": light("paper"),
        "axes.facecolor": light("paper"),
        "text.parse_math": False,
        "svg.fonttype": "none",
        "axes.unicode_minus": False,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # A name in a script the font lacks shows as boxes in the PNG; the page shows it with the
        # reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure that no window and no global state knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout="constrained")


def finish(drawn: Figure, folder: Path, name: str, alt: str, caption: str) -> Picture:
    """Write the PNG and make the SVG; `alt` says in words what the picture shows."""
    import matplotlib as mpl
    from markupsafe import Markup

    drawn.savefig(folder / f"{name}.png", dpi=_DPI, metadata={"Software": "gazeveil"})
    # The layout is found once: both forms show the same picture.
    drawn.set_layout_engine("none")
    stream = io.StringIO()
    # Names inside the SVG are made from its content and this salt: the same bytes every time, and
    # no two pictures share a name.
    with mpl.rc_context({"svg.hashsalt": name}):
        drawn.savefig(
            stream,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    words = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
    svg = themed(stream.getvalue(), name).replace("<svg", words, 1)
    return Picture(name, Markup(svg), caption)


def themed(svg: str, name: str) -> str:
    """The `<svg>` element for a page: no prolog, no size of its own, names of its own, colours as
    variables.
    """
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    # Groups are numbered from 1 in every figure: prefixed, so that no two elements of the page have
    # one name.
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", rest)
    marks = {pair[0].lower(): f"var(--{ink})" for ink, pair in INKS.items()}
    return (
        head
        + ">"
        + re.sub(
            r"(?<=[\s:])#[0-9a-f]{6}(?=[;\"\s])", lambda m: marks.get(m.group(0), m.group(0)), rest
        )
    )


#: Marks of attackers, by name; others get the last.
_MARKS = {
    "linkage": "o",
    "steps": "d",
    "rocket": "p",
    "fusion": "H",
    "ekyt": "8",
    "forest": "^",
    "svm": "P",
    "knn": "X",
    "lda": "*",
    "boosting": ">",
    "tree": "<",
}


def identification(findings: Findings, folder: Path) -> Picture:
    """Identification by mechanism and parameter: the strongest attacker with its interval, all
    others as lighter marks, and chance.
    """
    releases = findings.attacked
    drawn = figure(1.0 + 0.52 * len(releases))
    axes = drawn.subplots()
    names: dict[str, str] = {}
    for row, release in enumerate(releases):
        names |= _release_row(axes, row, release)
    worst = [(r.label, r.shown) for r in releases if r.shown is not None]
    chances = {round(w.chance, 6) for _, w in worst if math.isfinite(w.chance)}
    for chance in chances:
        axes.axvline(100 * chance, color=light("muted"), lw=1.4, ls=GUESS_DASHES, zorder=1.5)
    axes.set(
        xlim=(-2, 102), ylim=(len(releases) - 0.6, -0.75), xlabel="people recognised (%)", yticks=[]
    )
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    drawn.legend(
        handles=_identification_key(names),
        loc="outside lower center",
        ncols=2,
        columnspacing=1.2,
        handletextpad=0.6,
    )
    alt = (
        f"People recognised by the {findings.strongest} on each release:"
        f" {'; '.join(f'{label} {percent(w.value)}' for label, w in worst)}. Guessing:"
        f" {', '.join(percent(c) for c in sorted(chances)) or 'unknown'}."
    )
    caption = (
        f"Filled dot and bar: the {findings.strongest}, chosen on other splits, and its 95 %"
        " interval over people. Open square: the papers' RBF network. Light marks: every attacker"
        " in every scenario. Dotted line:"
        " chance. Further left is more private."
    )
    return finish(drawn, folder, "identification", alt, caption)


def _release_row(axes: Axes, row: int, release: ReleaseFindings) -> dict[str, str]:
    """Draw all attackers of a release; returns the marks of those that are neither the strongest
    nor the papers' own.
    """
    worst, rbfn = release.shown, release.rbfn
    if worst is None:
        return {}
    names: dict[str, str] = {}
    others: dict[str, Any] = {"ms": 5, "mfc": "none", "mec": light("faint"), "mew": 1.1}
    for rate in release.rates:
        name = attack_parts(rate.attack).name
        if name != "rbfn":
            names[name] = _MARKS.get(name, "D")
            axes.plot(100 * rate.value, row, names[name], **others, zorder=2)
    if rbfn is not None:
        square: dict[str, Any] = {"ms": 7.5, "mfc": light("paper"), "mec": light("ink"), "mew": 1.3}
        axes.plot(100 * rbfn.value, row, "s", **square, zorder=3)
    colour = light(release.colour)
    if math.isfinite(worst.low):
        _interval_bar(axes, row, worst.low, worst.high, colour, zorder=3.5)
    dot: dict[str, Any] = {"ms": 8.5, "color": colour, "mec": light("paper"), "mew": 1}
    axes.plot(100 * worst.value, row, "o", **dot, zorder=4)
    label = shorten(f"{release.number}. {release.label}", 50, placeholder="...")
    axes.text(-1, row - 0.4, label, ha="left", **_on_lines())
    axes.text(101, row - 0.4, worst.people, ha="right", color=light("muted"), **_on_lines())
    return names


def _identification_key(names: Mapping[str, str]) -> list[Line2D]:
    """What dots, squares, marks and the dotted line mean."""
    from matplotlib.lines import Line2D

    def mark(sign: str, size: float, face: str, edge: str, label: str) -> Line2D:
        return Line2D([], [], marker=sign, ls="", mfc=face, mec=edge, ms=size, label=label)

    strongest: dict[str, Any] = {"marker": "o", "ls": "-", "lw": 2.4, "ms": 8}
    return [
        Line2D([], [], **strongest, color=light("blue"), label="chosen on other splits, 95 %"),
        Line2D([], [], color=light("muted"), lw=1.4, ls=GUESS_DASHES, label="chance"),
        mark("s", 7, light("paper"), light("ink"), "RBF network (papers)"),
        *(
            mark(m, 5.5, "none", light("muted"), shorten(attack_label(n), 27, placeholder="..."))
            for n, m in sorted(names.items())
        ),
    ]


def adaptive(differences: Sequence[Difference], folder: Path) -> Picture:
    """Retrained and denoising attackers against their frozen selves: paired differences with their
    95 % intervals over people.
    """
    moved = [d for d in differences if d.difference or d.low < d.high] or list(differences[:1])
    shown = sorted(moved, key=lambda d: -abs(d.difference))[:16]
    shown.sort(key=lambda d: (d.release.number, d.scenario, d.attack))
    drawn = figure(0.7 + 0.56 * len(shown))
    axes = drawn.subplots()
    axes.axvline(0, color=light("ink"), lw=1, zorder=1.5)
    for row, d in enumerate(shown):
        _difference_row(axes, row, d)
    ends = (100 * abs(v) for d in shown for v in (d.low, d.high, d.difference) if math.isfinite(v))
    reach = max(10.0, *ends) * 1.08
    axes.set(
        xlim=(-reach, reach),
        ylim=(len(shown) - 0.5, -0.8),
        yticks=[],
        xlabel="← weaker  |  points more people recognised  |  stronger →",
    )
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    gains = "; ".join(
        f"{attack_label(d.attack)} on {d.release.label} {points(d.difference)} points"
        for d in shown
    )
    alt = f"Gain of adaptive attackers over frozen ones. {gains}."
    caption = (
        "Each attacker beside the same one left as it is, on the same people and releases: paired"
        " difference and its 95 % interval over people."
    )
    left = len(differences) - len(shown)
    if left:
        caption += f" Shown are the largest differences; the other {left} stand in the table."
    return finish(drawn, folder, "adaptive", alt, caption)


def _difference_row(axes: Axes, row: int, d: Difference) -> None:
    colour = light(d.release.colour)
    if math.isfinite(d.low):
        _interval_bar(axes, row, d.low, d.high, colour)
    axes.plot(100 * d.difference, row, "o", ms=7.5, color=colour, mec=light("paper"))
    label = shorten(f"{d.release.number}. {attack_label(d.attack)}", 50, placeholder="...")
    across: dict[str, Any] = {"transform": axes.get_yaxis_transform(), **_on_lines()}
    axes.text(1.0, row - 0.42, d.scenario, ha="right", color=light("muted"), **across)
    axes.text(0.0, row - 0.42, label, **across)


def _interval_bar(
    axes: Axes, row: int, low: float, high: float, colour: str, zorder: float | None = None
) -> None:
    """A 95 % interval of a rate, in percent."""
    style: dict[str, Any] = {"color": colour, "lw": 2.4, "solid_capstyle": "round"}
    axes.plot([100 * low, 100 * high], [row, row], "-", **style, zorder=zorder)


def _on_lines() -> dict[str, Any]:
    """The style of a text that lies on lines: paper behind it."""
    paper = {"facecolor": light("paper"), "edgecolor": "none", "pad": 0.8}
    return {"va": "center", "fontsize": 9.5, "bbox": paper, "zorder": 1.8}


#: A release, and its rates among 2 people to all.
Line: TypeAlias = tuple[ReleaseFindings, Floats]

#: At most so many lines in one chart: more cannot be told apart.
MOST_LINES = 9

_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))


def draw_gallery(findings: Findings, folder: Path) -> Picture | None:
    """Draw the strongest attacker of each release over gallery size, in closed form. The input is
    the number of people scoring above the true person. None where no attacker has three people in
    its gallery.
    """
    lines = _lines(findings)
    people = max((len(curve) + 1 for _, curve in lines), default=0)
    if people < 3:
        return None
    drawn = figure(4.0)
    axes = drawn.subplots()
    sizes = np.arange(2, people + 1)
    guess: dict[str, Any] = {"color": light("muted"), "lw": 1.4, "ls": GUESS_DASHES}
    axes.plot(sizes, 100 / sizes, **guess, label="guess")
    for i, (release, curve) in enumerate(lines):
        axes.plot(
            np.arange(2, len(curve) + 2),
            100 * curve,
            color=light(release.colour),
            lw=1.9,
            ls=_DASHES[i % len(_DASHES)],
            label=str(release.number),
        )
    axes.set(
        ylim=(-3, 105),
        xlim=(2, people),
        xlabel="people the attacker knows",
        ylabel="people recognised (%)",
    )
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    drawn.legend(loc="outside right upper")
    listed = "; ".join(
        f"{r.label} from {percent(float(c[0]))} among 2 to {percent(float(c[-1]))} among"
        f" {len(c) + 1}"
        for r, c in lines
    )
    caption = (
        f"The {findings.strongest} on each release, among a random choice of people. Computed from"
        " how many others score above the true person: a rate quoted without the number of people"
        " says little. Numbers as in the key."
    )
    alt = f"People recognised by how many the attacker knows. {listed}."
    return finish(drawn, folder, "gallery", alt, caption)


def gallery_curve(beaten_by: Sequence[int | None], credit: Sequence[float], people: int) -> Floats:
    """Probability of being found among m people drawn at random, the true one among them, for m = 2
    to all.

    Parameters
    ----------
    beaten_by : sequence of int or None
        How many others score above the true person; None for a person who is not among those known.
    credit : sequence of float
        What the person counted among all: 1, 1/(t+1) in a tie with t others at the top, or 0.
    people : int
        N, the people known.

    Returns
    -------
    array of float64, shape (N - 1,)
        Mean over the persons asked about, :func:`gazeveil.attacks.curves.found_among` for
        each.

    Examples
    --------
    >>> gallery_curve([0, 1], [1.0, 0.0], 3).tolist()
    [0.75, 0.5]
    """
    from gazeveil.attacks.curves import found_among

    asked = Counter(
        (people if b is None else b, round(1 / c) - 1 if b == 0 and 0 < c < 1 else 0)
        for b, c in zip(beaten_by, credit, strict=True)
    )
    curve = np.zeros(people - 1)
    for (beaten, tied), times in asked.items():
        curve += times * np.array(
            [found_among(beaten, min(tied, people - 1), people, m) for m in range(2, people + 1)]
        )
    return curve / max(asked.total(), 1)


def _lines(findings: Findings) -> list[Line]:
    lines: list[Line] = []
    for release in _spread(findings.attacked, MOST_LINES):
        if release.worst is None or not release.worst.chance > 0:
            continue
        known = round(1 / release.worst.chance)
        answers = findings.answers(release, release.worst)
        if answers.height and known >= 2:
            beaten_by, credit = answers["beaten_by"].to_list(), answers["value"].to_list()
            lines.append((release, gallery_curve(beaten_by, credit, known)))
    return lines


def _spread(releases: Sequence[ReleaseFindings], most: int) -> list[ReleaseFindings]:
    """At most so many releases, the first (the baseline) and others spread evenly over the list."""
    if len(releases) <= most:
        return list(releases)
    return [releases[i] for i in np.unique(np.linspace(0, len(releases) - 1, most).astype(int))]


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
