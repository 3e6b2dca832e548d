"""Published figures, and how a figure is found among results: as a cell of a study, as a formula,
or not at all.

`published_figures.csv` holds the figures of the papers in :mod:`gazeveil.papers.citations`, with
table, figure or section; those of the supplement of davidjohn2023 have the location
`Supplement ...`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from pathlib import Path

from gazeveil.errors import GazeveilError
from gazeveil.evaluation.results import Results
from gazeveil.papers.citations import check_key
from gazeveil.papers.protocols import attack, utility

#: Mechanisms of the papers whose names are reserved and whose code need not be there yet: named as
#: missing where it is not.
RESERVED = ("k-same-synth", "event-synth-pd", "dpgazesynth")

#: The reading that alone may stand beside a published figure, for mechanisms whose studies have
#: several. Kaleido's pseudocode to the letter halves its budget for ever, so that after some
#: seconds every sample lies opposite to the true one; the papers' figures cannot come from it.
BESIDE = {
    "kaleido": "corrected",
    "k-same-synth": "published",
    "event-synth-pd": "published",
    "dpgazesynth": "published",
}

Parameters = Mapping[str, str]


@dataclass(frozen=True)
class PublishedFigure:
    """One published figure, as text of the paper.

    Parameters
    ----------
    id, source : str
        `PF0001`..., and the paper.
    dataset, mechanism, parameter, model, metric, value, unit : str
        What it is about, in the paper's words.
    origin : str
        `paper-table`, `paper-text`, `figure-vector` (curve coordinates), `figure-pixel` (bar
        heights) or `derived`.
    location : str
        Table, figure or section.
    """

    id: str
    source: str
    dataset: str
    mechanism: str
    parameter: str
    model: str
    metric: str
    value: str
    unit: str
    origin: str
    location: str

    @property
    def number(self) -> float:
        """The value as a number; NaN for ranges and lists."""
        try:
            return float(self.value)
        except ValueError:
            return math.nan

    @property
    def parameters(self) -> dict[str, str]:
        """`epsilon=10; w=50; r=2deg` as a mapping; words without `=` are left out."""
        return {
            k.strip(): v.strip()
            for k, s, v in (p.partition("=") for p in self.parameter.split(";"))
            if s
        }

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return ", ".join(
            filter(
                None,
                (
                    self.location,
                    self.dataset,
                    " ".join(filter(None, (self.mechanism, self.parameter))),
                    self.model,
                    self.metric,
                ),
            )
        )


@cache
def published_figures(paper: str) -> tuple[PublishedFigure, ...]:
    """The published figures of a paper, in the order of its tables and figures."""
    check_key("figures", paper)
    with (Path(__file__).with_name("published_figures.csv")).open(
        encoding="utf-8", newline=""
    ) as stream:
        return tuple(
            f
            for f in (PublishedFigure(**row) for row in csv.DictReader(stream))
            if f.source == paper
        )


@dataclass(frozen=True)
class CellQuery:
    """Where a study holds the answer to a figure.

    Parameters
    ----------
    cohort : str
        Label of the study's part: the dataset, or `dataset, variant`.
    metric : str
        As in the results.
    mechanism : str
        Name; `none` for the baseline.
    parameters : mapping
        Those that must agree; others may be anything.
    scenario, events, reading : str
        Empty for any; the published reading goes first.
    attack, utility : str
        Name, with `:parameter=value` where these must agree; one of them is empty.
    scale : float
        Published unit per unit of the results: 100 for percent.
    above_raw : bool
        Whether the figure is the difference to the baseline.
    other_model : str
        Why numbers never compare even on the paper's own recordings (another model, another unit);
        empty where they do.
    tolerance : str
        One of the keys of :data:`gazeveil.papers.comparison.grading.TOLERANCES`.
    why : str
        Why ours differs where it does, if that is known.
    """

    cohort: str
    metric: str
    mechanism: str = "none"
    parameters: Parameters = field(default_factory=dict, hash=False)
    scenario: str = ""
    events: str = ""
    reading: str = ""
    attack: str = ""
    utility: str = ""
    scale: float = 1.0
    above_raw: bool = False
    other_model: str = ""
    tolerance: str = ""
    why: str = ""

    @property
    def baseline(self) -> CellQuery:
        """The unprotected cell it is measured against."""
        return CellQuery(
            self.cohort,
            self.metric,
            scenario="raw/raw",
            attack=self.attack,
            utility=self.utility,
            scale=self.scale,
        )


@dataclass(frozen=True)
class Formula:
    """A figure that needs no recordings: ours is computed by the package alone."""

    ours: object
    digits: int = 1
    note: str = ""


@dataclass(frozen=True)
class NotComparable:
    """A figure nothing here can answer, and why."""

    reason: str


Asked = CellQuery | Formula | NotComparable

#: One row of a comparison: id, what, published, ours, low, high, kind, verdict, reason.
Row = dict[str, object]


@dataclass(frozen=True)
class Order:
    """A claim that some cells stand in an order.

    Parameters
    ----------
    id, what : str
        A name and the claim in words.
    cells : sequence of CellQuery
        From the smallest to the largest.
    published : str
        The paper's values, or its words.
    claimed : bool
        Whether it is the paper that claims it; what we add is shown and never graded.
    why : str
        Why it may not hold here, if that is known.
    """

    id: str
    what: str
    cells: Sequence[CellQuery]
    published: str
    claimed: bool = True
    why: str = ""


@dataclass(frozen=True)
class Estimate:
    """A figure of a study, in the published unit."""

    value: float
    low: float
    high: float
    n: int
    chance: float
    sd: float

    def scaled(self, by: float, minus: float = 0.0) -> Estimate:
        """In another unit, and above another value."""
        value, low, high = ((v - minus) * by for v in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n, self.chance * by, self.sd * by)


def row_of(name: str, what: str, published: object, kind: str) -> Row:
    """A row of a comparison without a figure of ours and without a verdict."""
    nothing = dict.fromkeys(("ours", "low", "high"))
    row: Row = {"id": name, "what": what, "published": published}
    return {**row, **nothing, "kind": kind, "verdict": "", "reason": ""}


@dataclass(frozen=True)
class Identity:
    """A claim that needs no recordings, in words, with the paper's value and the package's."""

    id: str
    what: str
    published: object
    ours: object
    equal: bool


class Lookup:
    """The figures of some results, to be asked for by :class:`CellQuery`."""

    def __init__(self, results: Results) -> None:
        self._by: dict[tuple[str, str, str], list[dict[str, object]]] = {}
        for row in results.frame.iter_rows(named=True):
            self._by.setdefault(
                (str(row["cohort"]), str(row["mechanism"]), str(row["metric"])), []
            ).append(row)
        self.parts = parts(results)
        #: Which part of the paper the study mirrors; empty for all of it.
        self.figure = str(results.study.get("figure") or "")
        #: Whether it is the short form, which grades nothing.
        self.quick = bool(results.study.get("quick"))

    @property
    def cohorts(self) -> tuple[str, ...]:
        """Labels of the parts."""
        return tuple(self.parts)

    def real(self, cohort: str) -> bool:
        """Whether a part holds the dataset it is named after, rather than simulated people."""
        return bool(self.parts.get(cohort, {}).get("real", False))

    def titled(self, title: str) -> str:
        """A title that says where the recordings come from."""
        real = [bool(p.get("real")) for p in self.parts.values()]
        source = (
            "the dataset's recordings"
            if real and all(real)
            else "recordings, in part simulated"
            if any(real)
            else "simulated people"
        )
        return f"{title} [{source}]"

    def find(self, cell: CellQuery) -> Estimate | None:
        """The figure of a cell in the published unit; None where this study did not measure it."""
        rows = [
            row
            for row in self._by.get((cell.cohort, cell.mechanism, cell.metric), [])
            if _agrees(row, cell) and row["value"] is not None
        ]
        if not rows:
            return None
        # The papers' own reading first, and events found again before events carried along.
        row = min(
            rows,
            key=lambda r: (
                r["reading"] not in ("published", "", None),
                r["events"] == "carried",
                len(str(r["attack"] or r["utility"])),
            ),
        )
        value, low, high, chance, sd = (
            _number(row.get(n)) for n in ("value", "low", "high", "chance", "sd")
        )
        estimate = Estimate(value, low, high, int(_number(row["n"], 0)), chance, sd)
        minus = 0.0
        if cell.above_raw:
            raw = self.find(cell.baseline)
            if raw is None:
                return None
            minus = raw.value / cell.scale
        return estimate.scaled(cell.scale, minus)

    def or_else(self, wanted: CellQuery, instead: CellQuery) -> CellQuery:
        """The cell wanted where the study measured the same of raw recordings, else the other: a
        study without the paper's network has ours.
        """
        return instead if self.find(wanted.baseline) is None else wanted


def published_rows(results: Results) -> list[Row]:
    """The published figures beside ours that a study carries."""
    listed = results.study.get("published", [])
    return [dict(r) for r in listed if isinstance(r, Mapping)] if isinstance(listed, list) else []


def parts(results: Results) -> dict[str, dict[str, object]]:
    """What each cohort of the results is: `dataset`, `real`, `people`, `stimuli`; empty where the
    study does not say.
    """
    listed = results.study.get("parts", [])
    known = (
        {str(p["cohort"]): dict(p) for p in listed if isinstance(p, Mapping) and "cohort" in p}
        if isinstance(listed, list | tuple)
        else {}
    )
    others = (str(c) for c in results.frame["cohort"].unique(maintain_order=True).to_list())
    return {**known, **{c: {} for c in others if c not in known}}


def same_text(wanted: str, got: str, what: str = "attack") -> bool:
    """Whether an attack or utility as written in results is the one wanted; parameters that are not
    named may be anything.

    Examples
    --------
    >>> same_text("linkage", "linkage:features=extended"), same_text("linkage", "rbfn")
    (True, False)
    >>> same_text("linkage:features=summary", "linkage")
    True
    """
    name, parameters = pairs(wanted)
    if name != got.partition(":")[0]:
        return False
    values = written(got, what) if parameters else {}
    return all(same(v, values.get(k)) for k, v in parameters.items())


@cache
def written(text: str, what: str) -> dict[str, str]:
    """All parameters of an attack or utility, those left to their defaults too; texts no registry
    knows stand for themselves.
    """
    build: Callable[[str], object] = attack if what == "attack" else utility
    try:
        built = build(text)
    except GazeveilError:
        return pairs(text)[1]
    return {f.name: str(getattr(built, f.name)) for f in fields(built)}  # type: ignore[arg-type]


def people_in(paper: str, dataset: str) -> int:
    """How many people a paper says that a dataset has."""
    of_dataset = (f for f in published_figures(paper) if f.dataset == dataset)
    return int(next(f.number for f in of_dataset if f.metric == "participants"))


def shape(figure: PublishedFigure, label: str, lookup: Lookup) -> Formula | NotComparable:
    """How many people or stimuli a part has, which says something of the paper only where the
    recordings are the paper's own.
    """
    part = lookup.parts.get(label, {})
    ours = part.get("people" if figure.metric == "participants" else "stimuli")
    if ours is None:
        return NotComparable("this study has no such part")
    if lookup.real(label):
        return Formula(ours, 0)
    return NotComparable(f"simulated here, {ours} by choice")


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
    if any(
        wanted and row[name] != wanted
        for name, wanted in (
            ("scenario", cell.scenario),
            ("events", cell.events),
            ("reading", cell.reading),
        )
    ):
        return False
    for name, wanted in (("attack", cell.attack), ("utility", cell.utility)):
        if (row[name] is None) != (not wanted) or (
            wanted and not same_text(wanted, str(row[name]), name)
        ):
            return False
    got = pairs(":" + str(row["parameters"] or ""))[1]
    return all(same(v, got.get(k)) for k, v in cell.parameters.items())


def _number(value: object, missing: float = math.nan) -> float:
    return float(value) if isinstance(value, int | float) else missing
