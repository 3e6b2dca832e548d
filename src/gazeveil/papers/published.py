"""Ours beside the papers' figures, row by row.

Three kinds of comparison. `exact`: the recordings are the paper's own, or the figure needs none
(chance rates, budgets, grid steps, group sizes), so the numbers must agree within a stated
tolerance. `order-only`: a claimed order, or a figure that cannot be graded: other people or
simulated ones, another model. `impossible`: nothing here can answer the figure, with the reason.
The verdicts are those of :mod:`gazeveil.papers.comparison.grading`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from gazeveil import checks
from gazeveil.evaluation.results import Results
from gazeveil.papers.citations import CITATIONS, check_key
from gazeveil.papers.comparison.grading import (
    ABSENT,
    FEWEST_PEOPLE,
    IMPOSSIBLE,
    NOT_REPRODUCED,
    QUICK,
    REPRODUCED,
    grade_figure,
    grade_formula,
    grade_order,
    graded,
    is_absent,
    summary,
    ungraded,
    verdict_text,
)
from gazeveil.papers.comparison.lookup import Lookup
from gazeveil.papers.figure import (
    Asked,
    Formula,
    Identity,
    NotComparable,
    Order,
    PublishedFigure,
    Row,
    published_figures,
    row_of,
)

KINDS = ("exact", "order-only", "impossible")


class Paper(Protocol):
    """What a module of :mod:`gazeveil.papers` offers."""

    #: Which locations of the paper a study's `figure` covers.
    LOCATIONS: Mapping[str, Sequence[str]]

    def ask(self, figure: PublishedFigure, lookup: Lookup) -> Asked:
        """Where the answer to a figure stands."""

    def orders(self, lookup: Lookup, figure: str) -> Iterable[Order | Identity]:
        """The orders the paper claims, and further rows of its own."""

    def draw(self, results: Results, folder: str | Path) -> list[Path]:
        """The paper's figures and tables as PNG."""


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
        there is none), `kind` (one of :data:`KINDS`), `verdict` (one of
        :data:`gazeveil.papers.comparison.grading.VERDICTS`, or empty) and `reason`. Empty for a
        study that mirrors no paper.
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
        _order(o, lookup) if isinstance(o, Order) else _identity(o, lookup)
        for o in module.orders(lookup, which)
    ]
    return rows + claims


def lines(results: Results) -> list[str]:
    """The comparison as a table in text; rows that differ in the model alone share a line, and
    those not in this run are only counted.
    """
    everything = compare(results)
    rows = [r for r in everything if not is_absent(r)]
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
        verdicts = list(dict.fromkeys(verdict_text(r) for r in group))
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
                    else [f"{sum(verdict_text(r) == v for r in group)} {v}" for v in verdicts]
                ),
            )
        )
    return table


def _row(figure: PublishedFigure, asked: Asked, lookup: Lookup) -> Row:
    published: object = figure.value if math.isnan(figure.number) else figure.number
    row = row_of(figure.id, figure.about, published, "impossible")
    if isinstance(asked, NotComparable):
        return row | ungraded(IMPOSSIBLE, asked.reason)
    if isinstance(asked, Formula):
        verdict = grade_formula(asked, figure, lookup.quick)
        return row | {"ours": asked.ours, "kind": "exact"} | verdict
    exact = (
        lookup.real(asked.cohort)
        and lookup.people(asked.cohort) >= FEWEST_PEOPLE
        and not (asked.other_model or lookup.quick)
        and bool(asked.tolerance)
    )
    row["kind"] = "exact" if exact else "order-only"
    estimate = lookup.find(asked)
    if estimate is None:
        return row | ungraded(ABSENT)
    row |= {"ours": estimate.value, "low": _or_none(estimate.low), "high": _or_none(estimate.high)}
    return row | grade_figure(figure, asked, estimate, lookup)


def _identity(claim: Identity, lookup: Lookup) -> Row:
    row = row_of(claim.id, claim.what, claim.published, "exact") | {"ours": claim.ours}
    if lookup.quick:
        return row | ungraded(QUICK)
    return row | (
        graded(REPRODUCED, "equal") if claim.equal else graded(NOT_REPRODUCED, "not equal")
    )


def _order(order: Order, lookup: Lookup) -> Row:
    row = row_of(order.id, order.what, order.published, "order-only")
    estimates = [f for f in map(lookup.find, order.cells) if f is not None]
    if len(estimates) < 2:
        return row | ungraded(ABSENT)
    ordered = all(a.value < b.value for a, b in pairwise(estimates))
    row["ours"] = (" < " if ordered else ", ").join(_text(f.value) for f in estimates)
    return row | grade_order(order, estimates, lookup)


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
