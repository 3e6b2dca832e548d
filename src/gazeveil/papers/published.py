"""Ours beside the papers' figures: what agrees, what can only be ordered, and what cannot be
compared here.

Three kinds of comparison. `exact`: the recordings are the paper's own, or the figure needs none
(chance rates, budgets, grid steps, group sizes), so the numbers must agree within a stated
tolerance. `order-only`: other people or simulated ones, or another model, so only directions and
orders can agree. `impossible`: nothing here can answer the figure, with the reason; a mechanism
that is not built yet is named as missing, and its rows fill in as soon as the registry knows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from gazeveil import checks
from gazeveil.evaluation.results import Results
from gazeveil.papers.citations import CITATIONS, check_key
from gazeveil.papers.figure import (
    RESERVED,
    Asked,
    CellQuery,
    Estimate,
    Formula,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    Row,
    published_figures,
    row_of,
)
from gazeveil.privacy.registry import mechanisms

KINDS = ("exact", "order-only", "impossible")

#: Fewest settings of a table to correlate their ranks, and the probability of a false alarm.
FEWEST = 6
ERROR = 0.05


class Paper(Protocol):
    """What a module of :mod:`gazeveil.papers` offers."""

    #: Which locations of the paper a study's `figure` covers.
    LOCATIONS: Mapping[str, Sequence[str]]

    def ask(self, figure: PublishedFigure, lookup: Lookup) -> Asked:
        """Where the answer to a figure stands."""

    def orders(self, lookup: Lookup, figure: str) -> Iterable[Order | Row]:
        """The orders the paper claims, and further rows of its own."""

    def draw(self, results: Results, folder: str | Path) -> list[Path]:
        """The paper's figures and tables as PNG."""


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
        "dwell": ("a factor of 2", _factor(2.0)),
        "kl": ("a factor of 3", _factor(3.0)),
    }
)


def paper_module(paper: str) -> Paper:
    """The module of a paper."""
    module: Paper = import_module(f"gazeveil.papers.{check_key('study', paper)}")
    return module


def compare(results: Results, paper: str | None = None) -> list[Row]:
    """Every published figure the study covers beside ours, then the orders the paper claims.

    Parameters
    ----------
    results : Results
        Of a study; its plan may say `paper`, `figure` (which part of the paper it mirrors) and
        `parts` (what each cohort is).
    paper : str, optional
        A key of :mod:`gazeveil.papers.citations`; default the study's.

    Returns
    -------
    list of dict
        `id`, `what`, `published`, `ours`, `low`, `high` (numbers in the paper's unit, None where
        there is none), `kind` (one of
        :data:`KINDS`) and `verdict`. Empty for a study that mirrors no paper.
    """
    name = paper if paper is not None else results.study.get("paper")
    if not name:
        return []
    module = paper_module(str(name))
    lookup = Lookup(results)
    which = lookup.figure
    covered = (
        None
        if not which
        else set(module.LOCATIONS[checks.one_of("study", "figure", which, module.LOCATIONS)])
    )
    rows = [
        _row(f, module.ask(f, lookup), lookup)
        for f in published_figures(str(name))
        if covered is None or f.location in covered
    ]
    claims = [
        _order(o, lookup) if isinstance(o, Order) else o for o in module.orders(lookup, which)
    ]
    return rows + _ranks(rows, {f.id: f for f in published_figures(str(name))}) + claims


def lines(results: Results) -> list[str]:
    """The comparison as a table in text; rows that differ in the model alone share a line, and
    those not in this run are only counted.
    """
    everything = compare(results)
    rows = [r for r in everything if r["verdict"] != "not in this run"]
    if not everything:
        return []
    table = [
        ("published figure", "published", "ours", "95 % interval", "comparison", "verdict"),
        *row_texts(rows),
    ]
    widths = [max(len(line[i]) for line in table) for i in range(5)]
    head, *body = (
        "  ".join(
            [*(cell.ljust(w) for cell, w in zip(line[:5], widths, strict=True)), line[5]]
        ).rstrip()
        for line in table
    )
    return [head, "-" * len(head), *body, "", summary(everything)]


def row_texts(rows: Sequence[Row]) -> list[tuple[str, str, str, str, str, str]]:
    """Rows as texts: what, published, ours, interval, comparison, verdict; rows that differ in the
    model alone are one.
    """
    by_id = {f.id: f for paper in CITATIONS for f in published_figures(paper)}
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        f = by_id.get(str(row["id"]))
        key = (
            (row["id"],)
            if f is None
            else (
                f.location,
                f.dataset,
                f.mechanism,
                f.parameter,
                f.metric,
                row["kind"],
                row["ours"] is None,
            )
        )
        groups.setdefault(key, []).append(row)
    table = []
    for group in groups.values():
        f = by_id.get(str(group[0]["id"]))
        label = str(group[0]["what"])
        if f is not None and len(group) > 1:
            models = "/".join(by_id[str(r["id"])].model.partition(";")[0] for r in group)
            label = (
                f"{f.location}, {f.dataset}, {' '.join(filter(None, (f.mechanism, f.parameter)))},"
                f" {models}, {f.metric}"
            )
        verdicts = list(dict.fromkeys(str(r["verdict"]) for r in group))
        table.append(
            (
                label,
                "/".join(_text(r["published"]) for r in group),
                (
                    "/".join(_text(r["ours"]) for r in group)
                    if any(r["ours"] is not None for r in group)
                    else ""
                ),
                _interval(group[0]) if len(group) == 1 else "",
                str(group[0]["kind"]),
                "; ".join(
                    verdicts
                    if len(verdicts) < 3
                    else [f"{sum(r['verdict'] == v for r in group)} {v}" for v in verdicts]
                ),
            )
        )
    return table


def summary(rows: Sequence[Row]) -> str:
    """One sentence that counts the comparisons."""
    exact = [r for r in rows if r["kind"] == "exact" and r["ours"] is not None]
    agree = sum(str(r["verdict"]).startswith(("within", "equal")) for r in exact)
    order = [r for r in rows if r["kind"] == "order-only" and r["ours"] is not None]
    good = sum(str(r["verdict"]).startswith(("same", "holds")) for r in order)
    bad = sum(str(r["verdict"]).startswith(("other", "does not hold")) for r in order)
    missing = sum(str(r["verdict"]).startswith("missing") for r in rows)
    impossible = sum(r["kind"] == "impossible" for r in rows) - missing
    absent = sum(r["kind"] != "impossible" and r["ours"] is None for r in rows)
    return (
        f"{agree} of {len(exact)} exact comparisons agree; of {len(order)} that can only be ordered"
        f" {good} agree, {bad} disagree and {len(order) - good - bad} are undecided; {absent} are"
        f" not in this run, {missing} wait for a mechanism, {impossible} are impossible here."
    )


def _row(figure: PublishedFigure, asked: Asked, lookup: Lookup) -> Row:
    published: object = figure.value if math.isnan(figure.number) else figure.number
    row = row_of(figure.id, figure.about, published, "impossible", "")
    if isinstance(asked, NotComparable):
        return row | {"verdict": asked.reason}
    if isinstance(asked, Formula):
        verdict = _equal(asked, figure) + (f": {asked.note}" if asked.note else "")
        return row | {"ours": asked.ours, "kind": "exact", "verdict": verdict}
    absent = _missing([asked])
    if absent:
        return row | {"verdict": absent}
    exact = lookup.real(asked.cohort) and not asked.other_model
    estimate = lookup.find(asked)
    if estimate is None:
        return row | {"kind": "exact" if exact else "order-only", "verdict": "not in this run"}
    row |= {"ours": estimate.value, "low": _or_none(estimate.low), "high": _or_none(estimate.high)}
    if exact and asked.tolerance:
        margin, agrees = TOLERANCES[asked.tolerance]
        inside = agrees(estimate.value / asked.scale, figure.number / asked.scale)
        verdict = f"within {margin}" if inside else f"off by more than {margin}"
        return row | {"kind": "exact", "verdict": verdict}
    return row | {"kind": "order-only", "verdict": _direction(figure, asked, estimate, lookup)}


def _equal(asked: Formula, figure: PublishedFigure) -> str:
    if str(asked.ours) == figure.value:
        return "equal"
    if not isinstance(asked.ours, int | float):
        return "not equal"
    if round(float(asked.ours), asked.digits) == figure.number:
        return "equal"
    # 1/18 printed as 5.5 %: cut off, not rounded.
    return (
        "equal but for the last digit"
        if abs(asked.ours - figure.number) < 10.0**-asked.digits
        else "not equal"
    )


def _direction(figure: PublishedFigure, cell: CellQuery, estimate: Estimate, lookup: Lookup) -> str:
    """Whether ours and theirs stand on the same side of the baseline, or of chance."""
    if math.isnan(figure.number):
        return "shown beside"
    if cell.mechanism == "none":
        if math.isnan(estimate.chance):
            return "shown beside"
        if not math.isnan(estimate.low) and estimate.low <= estimate.chance <= estimate.high:
            return "undecided: our interval holds chance"
        return (
            "same side of chance"
            if (estimate.value > estimate.chance) == (figure.number > estimate.chance)
            else "other side of chance"
        )
    if cell.above_raw:
        theirs, ours, low, high = figure.number, estimate.value, estimate.low, estimate.high
    else:
        baseline = _baselines(figure.source).get((figure.dataset, figure.metric))
        raw = lookup.find(cell.baseline)
        if baseline is None or raw is None:
            return "shown beside"
        theirs, ours, low, high = (
            figure.number - baseline.number,
            estimate.value - raw.value,
            estimate.low - raw.value,
            estimate.high - raw.value,
        )
    if theirs == 0 or (low <= 0 <= high):
        return "undecided: no clear difference to raw here or there"
    return "same direction from raw" if (ours > 0) == (theirs > 0) else "other direction from raw"


@cache
def _baselines(paper: str) -> dict[tuple[str, str], PublishedFigure]:
    """The unprotected figures of a paper by dataset and metric, the first of each."""
    baselines: dict[tuple[str, str], PublishedFigure] = {}
    for f in published_figures(paper):
        if f.mechanism == "none" and f.model != "chance":
            baselines.setdefault((f.dataset, f.metric), f)
    return baselines


def _order(order: Order, lookup: Lookup) -> Row:
    row = row_of(order.id, order.what, order.published, "order-only", "not in this run")
    estimates = [f for f in map(lookup.find, order.cells) if f is not None]
    if len(estimates) < 2:
        absent = _missing(order.cells)
        return row | ({"kind": "impossible", "verdict": absent} if absent else {})
    ordered = all(a.value < b.value for a, b in pairwise(estimates))
    row["ours"] = (" < " if ordered else ", ").join(_text(f.value) for f in estimates)
    if ordered:
        apart = all(a.high < b.low for a, b in pairwise(estimates))
        verdict = "holds" if apart else "holds in the means, intervals overlap"
    else:
        # A pair in the wrong order counts against the claim only where its intervals are apart;
        # else the data do not decide.
        wrong = any(a.low > b.high for a, b in pairwise(estimates))
        verdict = "does not hold" if wrong else "undecided: the intervals overlap"
    if len(estimates) < len(order.cells):
        verdict += f" for the {len(estimates)} of {len(order.cells)} that are here"
    return row | {"verdict": verdict}


def _ranks(rows: Sequence[Row], by_id: Mapping[str, PublishedFigure]) -> list[Row]:
    """Whether the settings of a table stand in the published order, by Spearman's rank correlation
    over all that are here.
    """
    from scipy.stats import spearmanr

    tables: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        f, ours, theirs = by_id[str(row["id"])], row["ours"], row["published"]
        if (
            row["kind"] != "impossible"
            and f.mechanism != "none"
            and isinstance(ours, float)
            and isinstance(theirs, float)
        ):
            tables.setdefault((f.location, f.dataset, f.metric), []).append((ours, theirs))
    rank_rows: list[Row] = []
    for (location, dataset, metric), pairs in tables.items():
        mine, other = (np.array(v) for v in zip(*pairs, strict=True))
        if len(pairs) < FEWEST or len(set(mine.tolist())) == 1 or len(set(other.tolist())) == 1:
            continue
        rho, p = spearmanr(mine, other)
        verdict = (
            "undecided: no clear rank correlation"
            if p >= ERROR
            else "holds"
            if rho > 0
            else "does not hold"
        )
        label = (
            f"{location}, {dataset}, {metric}: rank correlation of {len(pairs)} settings with the"
            " published ones"
        )
        name = f"{by_id[str(rows[0]['id'])].source}-ranks-{location}-{dataset}-{metric}"
        row = row_of(name, label, 1.0, "order-only", f"{verdict} (p = {p:.2g})")
        rank_rows.append(row | {"ours": round(float(rho), 3)})
    return rank_rows


def _missing(cells: Sequence[CellQuery]) -> str:
    absent = sorted(
        {c.mechanism for c in cells if c.mechanism in RESERVED and c.mechanism not in mechanisms()}
    )
    return f"missing: {', '.join(absent)} not built yet" if absent else ""


def _interval(row: Row) -> str:
    return (
        ""
        if row["low"] is None or row["high"] is None
        else f"{_text(row['low'])} to {_text(row['high'])}"
    )


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value == 0:
        return "0"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.3g}"
