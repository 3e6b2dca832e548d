"""Ours beside the papers' figures, row by row, and three verdicts on a figure or claim.

* *reproduced*: ours is inside a stated tolerance on the paper's own recordings, or equal where no
  recordings are needed;
* *same order*: all orders that the paper claims hold on its recordings, intervals apart;
* *not reproduced*: neither.

A verdict has a reason. What cannot be judged has none, and its reason begins with one of
:data:`UNGRADED`: the short form grades nothing, simulated people grade nothing that depends on
recordings, and a chance level never counts.

The papers' figures as pictures: ours filled with its interval, the published values hollow and
dashed, other attackers thin; a title that says whether people are simulated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import cycle, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gazeveil import checks
from gazeveil.evaluation.results import Results
from gazeveil.papers.figures import (
    Asked,
    CellQuery,
    Estimate,
    Formula,
    Identity,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    Row,
    check_key,
    people_in,
    published_figures,
    row_of,
)
from gazeveil.plot.paths import SERIES, light

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPRODUCED, SAME_ORDER, NOT_REPRODUCED = "reproduced", "same order", "not reproduced"

#: The words of a verdict.
VERDICTS = (REPRODUCED, SAME_ORDER, NOT_REPRODUCED)

ABSENT = "not in this run"
QUICK = "short form"
SIMULATED = "simulated people"
OTHER_MODEL = "another model"
NO_TOLERANCE = "no tolerance"
NOT_PRINTED = "not printed"
IN_PART = "in part"
OURS = "not claimed by the paper"
IMPOSSIBLE = "impossible here"
CHANCE = "chance level"
FEW = "too few people"

#: How the reason of a row without a verdict begins.
UNGRADED = (
    *(ABSENT, QUICK, SIMULATED, FEW, OTHER_MODEL),
    *(NO_TOLERANCE, NOT_PRINTED, IN_PART, OURS, CHANCE, IMPOSSIBLE),
)

#: Fewest people of a part whose figures are graded.
FEWEST_PEOPLE = 10


def _factor(most: float) -> Callable[[float, float], bool]:
    return lambda ours, published: (
        ours > 0 and published > 0 and max(ours / published, published / ours) <= most
    )


#: When numbers on a paper's own recordings agree; rates and accuracies as fractions of 1.
TOLERANCES: Mapping[str, tuple[str, Callable[[float, float], bool]]] = MappingProxyType(
    {
        "identification": (
            "8 points or a quarter",
            lambda ours, published: abs(ours - published) <= max(0.08, 0.25 * published) + 1e-9,
        ),
        "accuracy": ("5 points", lambda ours, published: abs(ours - published) <= 0.05 + 1e-9),
        "prediction": (
            "a quarter",
            lambda ours, published: abs(ours - published) <= 0.25 * published + 1e-9,
        ),
        "dwell": ("a factor of 2", _factor(2.0)),
        "kl": ("a factor of 3", _factor(3.0)),
    }
)


class Paper(Protocol):
    """What a module of :mod:`gazeveil.papers` offers."""

    #: Which locations of the paper a study's `figure` covers.
    LOCATIONS: Mapping[str, Sequence[str]]

    #: Places of its pictures whose values it does not print.
    UNPRINTED: Sequence[PublishedFigure]

    def ask(self, figure: PublishedFigure, lookup: Lookup) -> Asked:
        """Where the answer to a figure stands."""

    def orders(self, lookup: Lookup, figure: str) -> Iterable[Order | Identity]:
        """The orders the paper claims, and further rows of its own."""


def paper_module(paper: str) -> Paper:
    """The module of a paper."""
    module: Paper = import_module(f"gazeveil.papers.{check_key('study', paper)}")
    return module


def figures_of(paper: str) -> tuple[PublishedFigure, ...]:
    """The published figures of a paper, and the places of its pictures."""
    return (*published_figures(paper), *paper_module(paper).UNPRINTED)


def compare(results: Results, paper: str | None = None) -> list[Row]:
    """Every published figure the study covers beside ours, then the orders the paper claims.

    Parameters
    ----------
    results : Results
        Of a study; its plan may say `paper`, `figure` (which part of the paper it mirrors) and
        `parts` (what each cohort is).
    paper : str, optional
        A key of :mod:`gazeveil.papers.figures`; default the study's.

    Returns
    -------
    list of dict
        `id`, `what`, `published`, `ours`, `low`, `high` (numbers in the paper's unit, None where
        there is none), `kind` (`exact` where numbers must agree, `order-only`, or `impossible`),
        `verdict` (one of :data:`VERDICTS`, or empty), `reason`, and `beside`: what other attackers
        find, as name to value, low and high. Empty for a study that mirrors no paper.
    """
    name = paper if paper is not None else results.study.get("paper")
    if not name:
        return []
    module, lookup = paper_module(str(name)), Lookup(results)
    which = lookup.figure
    covered = which and module.LOCATIONS[checks.one_of("study", "figure", which, module.LOCATIONS)]
    rows = [
        _row(f, module.ask(f, lookup), lookup)
        for f in figures_of(str(name))
        if not covered or f.location in covered
    ]
    claims = [
        _order(o, lookup) if isinstance(o, Order) else _identity(o, lookup)
        for o in module.orders(lookup, which)
    ]
    return rows + claims


def is_absent(row: Row) -> bool:
    """Whether the run holds nothing of a row."""
    return row.get("reason") == ABSENT


def summary(rows: Sequence[Row]) -> str:
    """One sentence that counts the verdicts, and why the others have none."""
    words = Counter(str(r["verdict"]) for r in rows)
    counts = ", ".join(f"{words[v]} {v}" for v in VERDICTS)
    why = Counter(str(r["reason"]).partition(":")[0] for r in rows if not r["verdict"])
    listed = ", ".join(f"{why[w]} {w}" for w in UNGRADED if why[w])
    return f"{counts}; {words['']} not graded" + (f": {listed}." if listed else ".")


def _graded(verdict: str, reason: str) -> Row:
    """The two keys of a row that hold its verdict."""
    return {"verdict": verdict, "reason": reason}


def _ungraded(why: str, detail: str = "") -> Row:
    """The two keys of a row without a verdict."""
    return _graded("", f"{why}: {detail}" if detail else why)


def _row(figure: PublishedFigure, asked: Asked, lookup: Lookup) -> Row:
    published: object = figure.value if math.isnan(figure.number) else figure.number
    row = row_of(figure.id, figure.about, published, "impossible")
    if isinstance(asked, NotComparable):
        return row | _ungraded(IMPOSSIBLE, asked.reason)
    if isinstance(asked, Formula):
        return row | {"ours": asked.ours, "kind": "exact"} | _formula(asked, figure, lookup.quick)
    row["kind"] = "exact" if asked.tolerance and not asked.other_model else "order-only"
    estimate = lookup.find(asked)
    if estimate is None:
        return row | _ungraded(ABSENT)
    value, low, high = _numbers(estimate)
    row |= {"ours": value, "low": low, "high": high}
    row["beside"] = {name: _numbers(found) for name, found in lookup.beside(asked).items()}
    barred = _barred(lookup, [asked])
    if barred:
        return row | {"kind": "order-only"} | barred
    return row | _figure(figure, asked, estimate, lookup)


def _numbers(estimate: Estimate) -> list[float | None]:
    """Value, low and high as JSON has them."""
    return [None if math.isnan(v) else v for v in (estimate.value, estimate.low, estimate.high)]


def _formula(asked: Formula, figure: PublishedFigure, quick: bool) -> Row:
    """The verdict on a figure that the package computes alone."""
    if quick:
        return _ungraded(QUICK)
    equal = _equal(asked, figure)
    if figure.model == "chance":
        return _ungraded(CHANCE, equal)
    verdict = NOT_REPRODUCED if equal == "not equal" else REPRODUCED
    return _graded(verdict, ": ".join(filter(None, (equal, asked.note))))


def _equal(asked: Formula, figure: PublishedFigure) -> str:
    if str(asked.ours) == figure.value:
        return "equal"
    if not isinstance(asked.ours, int | float):
        return "not equal"
    if round(float(asked.ours), asked.digits) == figure.number:
        return "equal"
    # 1/18 printed as 5.5 %: cut off, not rounded.
    near = abs(asked.ours - figure.number) < 10.0**-asked.digits
    return "equal but for the last digit" if near else "not equal"


def _figure(figure: PublishedFigure, cell: CellQuery, estimate: Estimate, lookup: Lookup) -> Row:
    """The verdict on a figure of recordings."""
    if cell.other_model:
        return _ungraded(OTHER_MODEL, cell.other_model)
    if not figure.value:
        return _ungraded(NOT_PRINTED)
    if not cell.tolerance or math.isnan(figure.number):
        return _ungraded(NO_TOLERANCE, "shown beside the paper's")
    margin, agrees = TOLERANCES[cell.tolerance]
    theirs = people_in(figure.source, figure.dataset)
    ours = lookup.people(cell.cohort)
    some = f"; {ours} of the paper's {theirs} people" if theirs and ours < theirs else ""
    if agrees(estimate.value / cell.scale, figure.number / cell.scale):
        return _graded(REPRODUCED, f"within {margin}{some}")
    known = f"; {cell.why}" if cell.why else ""
    return _graded(NOT_REPRODUCED, f"off by more than {margin}{some}{known}")


def _identity(claim: Identity, lookup: Lookup) -> Row:
    row = row_of(claim.id, claim.what, claim.published, "exact") | {"ours": claim.ours}
    if lookup.quick:
        return row | _ungraded(QUICK)
    if claim.equal:
        return row | _graded(REPRODUCED, "equal")
    return row | _graded(NOT_REPRODUCED, "not equal")


def _order(order: Order, lookup: Lookup) -> Row:
    """The verdict on a claim that some cells stand in an order."""
    row = row_of(order.id, order.what, order.published, "order-only")
    estimates = [f for f in map(lookup.find, order.cells) if f is not None]
    if len(estimates) < 2:
        return row | _ungraded(ABSENT)
    ordered = all(a.value < b.value for a, b in pairwise(estimates))
    row["ours"] = (" < " if ordered else ", ").join(f"{f.value:.4g}" for f in estimates)
    holds, sentence = _standing(estimates)
    barred = _barred(lookup, order.cells)
    if barred:
        return row | _ungraded(str(barred["reason"]), sentence)
    if not order.claimed:
        return row | _ungraded(OURS, sentence)
    if len(estimates) < len(order.cells):
        here = f"{len(estimates)} of {len(order.cells)} are here, {sentence}"
        return row | _ungraded(IN_PART, here)
    if holds:
        return row | _graded(SAME_ORDER, sentence)
    return row | _graded(NOT_REPRODUCED, "; ".join(filter(None, (sentence, order.why))))


def _barred(lookup: Lookup, cells: Sequence[CellQuery]) -> Row | None:
    """What stands in the way of every verdict on figures of recordings."""
    if lookup.quick:
        return _ungraded(QUICK)
    if not all(lookup.real(c.cohort) for c in cells):
        return _ungraded(SIMULATED)
    fewest = min((lookup.people(c.cohort) for c in cells), default=FEWEST_PEOPLE)
    if fewest < FEWEST_PEOPLE:
        return _ungraded(FEW, f"{fewest}, of {FEWEST_PEOPLE} at least")
    return None


def _standing(estimates: Sequence[Estimate]) -> tuple[bool, str]:
    """Whether the order holds with intervals apart, and how it stands."""
    steps = list(pairwise(estimates))
    if all(a.high < b.low for a, b in steps):
        return True, "intervals apart"
    if any(a.low > b.high for a, b in steps):
        return False, "in another order, intervals apart"
    if all(a.value < b.value for a, b in steps):
        return False, "holds in the means, intervals overlap"
    return False, "undecided, intervals overlap"


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
        further = [
            (f"{label}: {name}", others, style)
            for (name, others), style in zip(line.beside.items(), cycle((":", "-.")), strict=False)
        ]
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
