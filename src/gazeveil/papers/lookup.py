"""How the cell that answers a published figure is found among the results of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache

from gazeveil.errors import GazeveilError
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.study import RATE
from gazeveil.papers.figures import CellQuery, Formula, NotComparable, PublishedFigure
from gazeveil.papers.protocols import attack, utility


@dataclass(frozen=True)
class Estimate:
    """A figure of a study with its interval, in the published unit."""

    value: float
    low: float
    high: float

    def scaled(self, by: float, minus: float = 0.0) -> Estimate:
        """In another unit, and above another value."""
        return Estimate(*((v - minus) * by for v in (self.value, self.low, self.high)))

    def inverse(self) -> Estimate:
        """One over it; nothing below zero has one."""
        ends = (1 / v if v > 0 else math.nan for v in (self.value, self.high, self.low))
        return Estimate(*ends)


class Lookup:
    """The figures of some results, to be asked for by :class:`CellQuery`."""

    def __init__(self, results: Results) -> None:
        self._by: dict[tuple[str, str, str], list[dict[str, object]]] = {}
        for row in results.frame.iter_rows(named=True):
            self._by.setdefault(
                (str(row["cohort"]), str(row["mechanism"]), str(row["metric"])), []
            ).append(row)
        #: The strongest attacker of each release, chosen on other repetitions.
        self._strongest = results.strongest_against().to_dicts() if results.frame.height else []
        #: What each cohort of the results is: `dataset`, `real`, `people`, `stimuli`.
        self.parts = parts(results)
        #: Which part of the paper the study mirrors; empty for all of it.
        self.figure = str(results.study.get("figure") or "")
        #: Whether it is the short form, which grades nothing.
        self.quick = bool(results.study.get("quick"))

    def real(self, cohort: str) -> bool:
        """Whether a part holds the dataset it is named after, rather than simulated people."""
        return bool(self.parts.get(cohort, {}).get("real", False))

    def people(self, cohort: str) -> int:
        """How many people a part has; many where the study does not say."""
        return int(str(self.parts.get(cohort, {}).get("people") or 1_000_000))

    def find(self, cell: CellQuery) -> Estimate | None:
        """The figure of a cell in the published unit; None where this study did not measure it."""
        row = self._row(cell)
        if row is None:
            return None
        estimate = Estimate(*(_number(row.get(n)) for n in ("value", "low", "high")))
        minus = 0.0
        if cell.above_raw:
            raw = self.find(cell.baseline)
            if raw is None:
                return None
            minus = raw.value / cell.scale
        return (estimate.inverse() if cell.inverse else estimate).scaled(cell.scale, minus)

    def beside(self, cell: CellQuery) -> dict[str, Estimate]:
        """What linkage, and the strongest attacker that was tried, find in the release of a cell
        that is a rate; the latter is chosen on the other repetitions.
        """
        row = self._row(cell) if cell.metric == RATE else None
        if row is None:
            return {}
        found: dict[str, Estimate] = {}
        others = {"linkage": {"attack": "linkage"}, "labels carried": {"events": "carried"}}
        for name, changed in others.items():
            estimate = self.find(replace(cell, **changed))  # type: ignore[arg-type]
            if estimate is not None and cell.events != "carried":
                found[name] = estimate
        keys = ("cohort", "mechanism", "reading", "parameters", "events")
        for best in self._strongest:
            if all(best[k] == row[k] for k in keys) and best["chosen"] is not None:
                ends = (_number(best[n]) for n in ("chosen", "chosen_low", "chosen_high"))
                found[f"strongest of {best['tried']}"] = Estimate(*ends).scaled(cell.scale)
        return found

    def or_else(self, cell: CellQuery, instead: CellQuery) -> CellQuery:
        """`cell` where the study measured the same of raw recordings, else the other: a
        study without the paper's network has ours.
        """
        return instead if self.find(cell.baseline) is None else cell

    def _row(self, cell: CellQuery) -> dict[str, object] | None:
        """The papers' own reading first, and events found again before events carried along."""
        rows = [
            row
            for row in self._by.get((cell.cohort, cell.mechanism, cell.metric), [])
            if _agrees(row, cell) and row["value"] is not None
        ]
        return min(
            rows,
            key=lambda r: (
                r["reading"] not in ("published", "", None),
                r["events"] == "carried",
                len(str(r["attack"] or r["utility"])),
            ),
            default=None,
        )


def parts(results: Results) -> dict[str, dict[str, object]]:
    """What each cohort of the results is; empty where the study does not say."""
    listed = results.study.get("parts", [])
    assert isinstance(listed, list | tuple)
    known = {str(p["cohort"]): dict(p) for p in listed}
    others = (str(c) for c in results.frame["cohort"].unique(maintain_order=True).to_list())
    return {**known, **{c: {} for c in others if c not in known}}


def shape(figure: PublishedFigure, label: str, lookup: Lookup) -> Formula | NotComparable:
    """How many people or stimuli a part has, which says something of the paper only where the
    recordings are the paper's own.
    """
    part = lookup.parts.get(label, {})
    ours = part.get("people" if figure.metric == "participants" else "stimuli")
    if ours is None:
        return NotComparable("this study has no such part")
    if not lookup.real(label):
        return NotComparable(f"simulated here, {ours} by choice")
    return Formula(ours, 0) if ours == figure.number else NotComparable(f"{ours} are here")


def same_text(text: str, got: str, what: str = "attack") -> bool:
    """Whether an attack or utility as written in results is the one wanted; parameters that are not
    named may be anything.

    Examples
    --------
    >>> same_text("linkage", "linkage:features=extended"), same_text("linkage", "rbfn")
    (True, False)
    >>> same_text("linkage:features=summary", "linkage")
    True
    """
    name, parameters = pairs(text)
    if name != got.partition(":")[0]:
        return False
    values = _written(got, what) if parameters else {}
    return all(same(v, values.get(k)) for k, v in parameters.items())


@cache
def _written(text: str, what: str) -> dict[str, str]:
    """All parameters of an attack or utility, those left to their defaults too; texts no registry
    knows stand for themselves.
    """
    build: Callable[[str], object] = attack if what == "attack" else utility
    try:
        built = build(text)
    except GazeveilError:
        return pairs(text)[1]
    return {f.name: str(getattr(built, f.name)) for f in fields(built)}  # type: ignore[arg-type]


def pairs(text: str) -> tuple[str, dict[str, str]]:
    """`name:a=1,b=2` taken apart."""
    name, _, rest = text.partition(":")
    return name, {
        k.strip(): v.strip() for k, s, v in (p.partition("=") for p in rest.split(",")) if s
    }


def same(a: str, b: str | None) -> bool:
    """Whether two values of a parameter are the same, as numbers where they are numbers."""
    if b is None:
        return False
    try:
        return Fraction(a) == Fraction(b)
    except (ValueError, ZeroDivisionError):
        return a == b


def _agrees(row: Mapping[str, object], cell: CellQuery) -> bool:
    for name in ("scenario", "events", "reading"):
        wanted = getattr(cell, name)
        if wanted and row[name] != wanted:
            return False
    for name, wanted in (("attack", cell.attack), ("utility", cell.utility)):
        if (row[name] is None) != (not wanted) or (
            wanted and not same_text(wanted, str(row[name]), name)
        ):
            return False
    got = pairs(":" + str(row["parameters"] or ""))[1]
    return all(same(v, got.get(k)) for k, v in cell.parameters.items())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
